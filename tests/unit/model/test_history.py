# SPDX-License-Identifier: Apache-2.0

import pytest

from nova_fairness.model import eviction
from nova_fairness.model import history
from nova_fairness.model import plans
from nova_fairness.model import reason
from nova_fairness.model import request

A, K, R, S = reason.Audience, history.EventKind, reason.Reason, request.State
SENT = reason.why(R.SENT)
GPU = reason.why(R.NO_ROOM, 'VGPU', asked=1, free=0)
BEHIND = reason.why(R.BEHIND_OTHERS, before=3)


def waits(why, at, until):
    return history.request_event(S.WAITING, why, at, until)


def told(events, now=0.0):
    return history.wait_sentence(history.wait_sums(events, now))


@pytest.mark.parametrize('state', S)
def test_every_state_is_an_event(state):
    assert history.request_event(state, SENT, 1.0, 2.0).at == 1.0


def test_an_event_that_ends_a_request_takes_no_time():
    assert history.request_event(S.FAILED, SENT, 1.0, 2.0).until is None


def test_a_request_that_room_is_made_for_has_its_own_kind():
    why = reason.why(R.ROOM_IS_MADE, servers=2)
    assert waits(why, 1.0, 2.0).kind is K.ROOM_MADE


def test_hosts_are_known_of_requests_that_were_sent():
    hosts = ['h1', 'h2']
    sent = history.request_event(S.STARTING, SENT, 1.0, 2.0, hosts)
    again = history.request_event(S.WAITING, GPU, 3.0, None, hosts)
    assert (sent.hosts, again.hosts) == (('h1', 'h2'), ())


def test_waits_are_told_by_purpose_the_longest_first():
    events = [
        waits(BEHIND, 0.0, 3000.0),
        waits(GPU, 3000.0, 10800.0),
        history.request_event(S.STARTING, SENT, 10800.0, 10900.0),
        history.request_event(S.ACTIVE, SENT, 10900.0, None),
    ]
    assert told(events) == (
        'waited 2 h 10 min for room on hosts with VGPU; 50 min for its turn'
    )


def test_a_wait_that_lasts_is_told_up_to_now():
    cpus = reason.why(R.NO_ROOM, 'VCPU', asked=4, free=2)
    events = [waits(cpus, 100.0, None)]
    assert told(events, 220.0) == 'waited 2 min for room on a host: VCPU'


def test_waits_for_one_purpose_are_summed():
    deep = reason.why(R.BEYOND_DEPTH, before=900, depth=500)
    events = [waits(deep, 0.0, 60.0), waits(BEHIND, 60.0, 180.0)]
    assert told(events) == 'waited 3 min for its turn'


def test_a_wait_of_days_is_shown_without_minutes():
    assert told([waits(BEHIND, 0.0, 90000.0)]) == 'waited 1 d 1 h for its turn'


def test_a_short_wait_is_omitted():
    assert told([waits(BEHIND, 0.0, 59.0)]) == ''
    assert told([]) == ''


def test_events_that_are_not_kept_are_told_as_such():
    events = [waits(BEHIND, 0.0, 60.0), waits(GPU, 360.0, 480.0)]
    assert told(events) == (
        'waited 5 min for reasons that are not kept; 2 min for room on hosts'
        ' with VGPU; 1 min for its turn'
    )


def test_a_clock_set_back_gives_no_wait():
    events = [waits(BEHIND, 500.0, 400.0), waits(GPU, 300.0, 420.0)]
    assert told(events) == 'waited 2 min for room on hosts with VGPU'


def test_a_reason_without_a_purpose_is_told_by_its_token():
    odd = reason.why(R.IDLE, idle_h=1)
    assert told([waits(odd, 0.0, 60.0)]) == 'waited 1 min idle'


def test_a_server_that_left_has_three_events():
    why = reason.why(R.TIME_IS_UP, limit_s=60.0)
    leave = eviction.Eviction(
        's1', 'p', 'u', eviction.EvictionCause.TIME_LIMIT, why,
        (eviction.EvictionAction.SHELVE,), 5.0, 5.0,
        told_at=5.0, gone_at=7.0, returned_at=9.0,
    )  # fmt: skip
    found = history.eviction_events(leave)
    assert [(each.at, each.kind) for each in found] == [
        (5.0, K.NOTIFIED),
        (7.0, K.EVICTED),
        (9.0, K.RETURNED),
    ]
    assert {(each.server, each.why) for each in found} == {('s1', why)}


def test_moves_that_were_made_are_events_of_their_servers():
    done, open_ = plans.MoveState.MOVED, plans.MoveState.MOVING
    moves = (
        plans.Move('s1', 'h1', 'h2', 1, 9, state=done, ended_at=4.0),
        plans.Move('s1', 'h2', 'h3', 2, 9, state=open_),
        plans.Move('s2', 'h1', 'h2', 1, 9, state=done, ended_at=5.0),
    )
    assert history.move_events(moves, ['s1', 's9']) == [
        history.HistoryEvent(4.0, K.MIGRATED, hosts=('h1', 'h2'), server='s1')
    ]


def test_hosts_are_told_to_operators_only():
    event = history.request_event(S.STARTING, SENT, 0.0, 60.0, ['h1'])
    assert history.event_facts(event, A.OPERATOR, 'p') == {
        'at': '1970-01-01T00:00:00+00:00',
        'until': '1970-01-01T00:01:00+00:00',
        'kind': 'dispatched',
        'server': None,
        'reason': 'sent',
        'explanation': 'Nova builds it',
        'hosts': ['h1'],
    }
    for audience in (A.OWNER, A.MEMBER, A.MANAGER):
        assert history.event_facts(event, audience, 'p')['hosts'] == []


def test_an_event_without_a_reason_is_told():
    told_of = history.event_facts(
        history.HistoryEvent(0.0, K.SUBMITTED), A.MEMBER, 'p'
    )
    assert (told_of['until'], told_of['reason']) == (None, None)
    assert told_of['explanation'] is None


def test_names_of_others_are_kept_from_readers():
    event = waits(
        reason.why(R.BUDGET_SPENT, 'institute', asked=2, left=1), 0.0, 1.0
    )
    told_to = [
        history.event_facts(event, audience, 'p')['explanation']
        for audience in (A.OPERATOR, A.MEMBER)
    ]
    assert ['institute' in each for each in told_to] == [True, False]
