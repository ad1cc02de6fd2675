# SPDX-License-Identifier: Apache-2.0

"""Words for the standing of requests."""

import dataclasses

import pytest

from nova_fairness.model import cluster
from nova_fairness.model import eviction
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.model import standing

A, C, S = (
    eviction.EvictionAction, eviction.EvictionCause, eviction.EvictionState
)  # fmt: skip
MEMBER = reason.Audience.MEMBER
WAITS = reason.why(reason.Reason.NOT_PLANNED)
ASKED = request.Request('r', 'p', 'u', ('s1',), request.Demand(()), 0.0)
RUNS = dataclasses.replace(ASKED, state=request.State.ACTIVE)
MANY = dataclasses.replace(RUNS, servers=('s1', 's2', 's3'))
LEAVES = eviction.Eviction(
    's1', 'p', 'u', C.ROOM,
    reason.why(reason.Reason.MAKES_ROOM, 'q', ran_s=60), (A.SHELVE,), 5400.0,
    0.0, state=S.TOLD,
)  # fmt: skip


def said(asked, why=WAITS, **known):
    return standing.request_standing(
        asked, why, standing.StandingFacts(**known), MEMBER
    )[1]


@pytest.mark.parametrize(
    ('position', 'text'),
    [(1, '1st'), (2, '2nd'), (3, '3rd'), (4, '4th'), (11, '11th'),
     (12, '12th'), (13, '13th'), (21, '21st'), (112, '112th')],
)  # fmt: skip
def test_positions_are_written_as_ordinals(position, text):
    place = cluster.Waiting(position, WAITS)
    assert said(ASKED, place=place).startswith(
        f'waits: {text}, the next cycle'
    )


def test_an_estimated_start_is_told():
    estimate = cluster.Estimate(5400.0, 9000.0)
    assert said(ASKED, estimate=estimate) == (
        'waits: the next cycle of the queue decides on it;'
        ' it starts at about 1970-01-01 01:30 UTC'
    )


def test_a_server_that_leaves_now_is_told_no_time():
    acting = dataclasses.replace(LEAVES, state=S.ASKED, tried=1)
    assert said(RUNS, leaves=[acting]).startswith('leaves now (it makes room')


@pytest.mark.parametrize(
    'more', [{'actions': (A.DELETE,)}, {'cause': C.TIME_LIMIT}]
)
def test_a_server_that_leaves_for_good_is_not_told_to_return(more):
    leave = dataclasses.replace(LEAVES, **more)
    assert 'returns' not in said(RUNS, leaves=[leave])
    gone = dataclasses.replace(leave, state=S.GONE, tried=1)
    assert said(RUNS, leaves=[gone]) == 'runs'


def test_servers_among_many_are_counted():
    later = dataclasses.replace(LEAVES, server='s2', at=9000.0)
    text = said(MANY, leaves=[later, LEAVES])
    assert 'at 1970-01-01 01:30 UTC' in text
    assert text.endswith(' (2 of its 3 servers)')
    gone = dataclasses.replace(LEAVES, state=S.GONE, tried=1)
    assert said(MANY, leaves=[gone]).endswith(
        'and returns by itself (1 of its 3 servers)'
    )
    assert said(MANY, moving=['s3']).endswith(' (1 of its 3 servers)')
