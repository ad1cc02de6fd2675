# SPDX-License-Identifier: Apache-2.0

import pytest

from nova_fairness.decide import changes
from nova_fairness.model import allocation
from nova_fairness.model import resources

CPU = resources.ResourceControl.CPU
MEMORY = resources.ResourceControl.MEMORY
KNOB = allocation.Knob('a/1/1', CPU)


@pytest.mark.parametrize(
    ('wanted', 'present', 'written'),
    [
        (1024, 1024, False),
        (1030, 1024, False),
        (1034, 1024, False),
        (1035, 1024, True),
        (1000, 1024, True),
        (3, 2, True),
        (1024, 0, True),
        (1024, None, True),
    ],
)
def test_only_differences_beyond_the_tolerance_change(
    wanted, present, written
):
    held = {} if present is None else {KNOB: present}
    found = changes.changes({KNOB: wanted}, held, 0.01)
    expected = (allocation.Change(KNOB, present, wanted),)
    assert found == (expected if written else ())


def test_without_tolerance_every_difference_is_written():
    assert changes.changes({KNOB: 1025}, {KNOB: 1024}, 0.0)
    assert not changes.changes({KNOB: 1024}, {KNOB: 1024}, 0.0)


def test_a_value_that_is_not_wanted_is_left_alone():
    other = allocation.Knob('b/2/2', CPU)
    assert changes.changes({}, {other: 5}, 0.0) == ()


def test_order_is_by_incarnation_and_control_however_it_was_built():
    knobs = [
        allocation.Knob(key, control)
        for key in ('a/1/1', 'b/1/1')
        for control in (CPU, MEMORY)
    ]
    wanted = dict.fromkeys(reversed(knobs), 1)
    found = changes.changes(wanted, {}, 0.0)
    assert [item.knob for item in found] == knobs
