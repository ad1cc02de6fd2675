# SPDX-License-Identifier: Apache-2.0

import pytest

from fairness_lab.results import reach
from fairness_lab.results import recording

BOTH = (('n1', 'n2', 'n3'),)
WITHOUT = (('n1', 'n3'), ('n2',))


def groups(events, t_s, agents=True):
    made = reach.Reach(
        ('n1', 'n2', 'n3'),
        [recording.EventRow(*event) for event in events],
        agents=agents,
    )
    return made.groups(t_s)


@pytest.mark.parametrize(
    ('away', 'back'),
    [
        ('cut', 'heal'),
        ('kill-agent', 'start-agent'),
        ('freeze-agent', 'thaw-agent'),
    ],
)
def test_a_node_is_apart_between_two_events(away, back):
    events = [(10, away, 'n2'), (20, back, 'n2')]
    assert groups(events, 9.9) == BOTH
    assert groups(events, 10) == WITHOUT
    assert groups(events, 19.9) == WITHOUT
    assert groups(events, 20) == BOTH


def test_a_node_comes_back_when_nothing_holds_it_any_more():
    events = [
        (1, 'cut', 'n2'),
        (2, 'freeze-agent', 'n2'),
        (3, 'heal', 'n2'),
        (4, 'thaw-agent', 'n2'),
    ]
    assert groups(events, 3.5) == WITHOUT
    assert groups(events, 4) == BOTH


def test_a_late_joiner_is_apart_until_it_starts():
    events = [(5, 'start-agent', 'n2')]
    assert groups(events, 4) == WITHOUT
    assert groups(events, 5) == BOTH


def test_events_of_vms_and_redis_part_no_nodes():
    events = [
        (1, 'freeze', 'n2-vm'),
        (2, 'kill-redis', ''),
        (3, 'restart-agent', 'n2'),
    ]
    assert groups(events, 9) == BOTH


def test_without_agents_no_node_is_apart():
    assert groups([(1, 'cut', 'n2')], 2, agents=False) == BOTH


def test_all_nodes_may_be_apart():
    events = [(0, 'cut', name) for name in ('n1', 'n2', 'n3')]
    assert groups(events, 1) == (('n1',), ('n2',), ('n3',))
