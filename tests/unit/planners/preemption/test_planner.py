# SPDX-License-Identifier: Apache-2.0

"""Who makes room for whom, on small clouds."""

import dataclasses
import functools

import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import planner as queue
from nova_fairness.planners.preemption import candidates
from nova_fairness.planners.preemption import planner
from nova_fairness.planners.preemption import victims
from tests.fixtures import small_cloud

NOW = 10_000.0
LENT = request.Band.PREEMPTIBLE
SOON = planner.PreemptionRules(patience_s=0.0, least_run_s=0.0)
ask = small_cloud.waiting_request
V, R = cluster.Verb, reason.Reason


def running_server(
    name, host='a', vcpu=4, project='p', age=1000.0, band=LENT, **more
):
    amounts = small_cloud.demand(vcpu).amounts
    return cluster.Running(
        host, project, amounts, NOW - age, 'u', name, band=band, **more
    )


def cloud(hosts, running, requests=(), **more):
    """Hosts by name and CPUs, filled with what runs."""
    used = {name: [0, 0] for name in hosts}
    projects = {}
    for each in running:
        one = np.array([dict(each.amounts)[c] for c in small_cloud.CLASSES])
        used[each.host] = used[each.host] + one
        if each.band is not LENT:
            projects[each.project] = projects.get(each.project, 0) + one
    listed = [
        (cluster.Provider(f'uuid-{name}', name), (vcpu, 10_000), used[name])
        for name, vcpu in hosts.items()
    ]
    return small_cloud.cloud(
        listed, requests, running=tuple(running), used=projects, **more
    )


def plan(snapshot, rules=SOON, **more):
    return planner.plan(snapshot, NOW, queue.plan, rules=rules, **more)


def victims_by_request(found):
    """Hosts and who leaves, by request that room is made for."""
    return {
        each.request: (each.hosts, set(each.leaving))
        for each in found.actions
        if each.verb is V.MAKE_ROOM
    }


def test_a_preemptible_server_makes_room_for_a_normal_request():
    snapshot = cloud(
        {'a': 8}, [running_server('s1', vcpu=8)], [ask('r', 4, 'q')]
    )
    found = plan(snapshot)
    assert victims_by_request(found) == {'r': (('a',), {'s1'})}
    told = found.waiting['r']
    assert told.why == reason.why(R.ROOM_IS_MADE, servers=1.0)
    assert told.reserved == cluster.Reservation(('a',))


def test_a_request_with_room_needs_no_server_to_leave():
    snapshot = cloud({'a': 8}, [running_server('s1')], [ask('r', 4, 'q')])
    assert [each.verb for each in plan(snapshot).actions] == [V.START]


def test_a_normal_server_never_makes_room():
    normal = running_server('s1', vcpu=8, band=request.Band.NORMAL)
    both = [normal, running_server('s2', 'b', 2)]
    snapshot = cloud({'a': 8, 'b': 2}, both, [ask('r', 4, 'q')])
    assert victims_by_request(plan(snapshot)) == {}


def test_a_server_that_starts_in_the_same_plan_makes_no_room():
    wide = [running_server(name, 'a', 3) for name in ('a0', 'a1')]
    narrow = [running_server(name, 'b', 1) for name in ('b0', 'b1', 'b2')]
    asked = [ask('two', 3, 'p', 0.0, 2), ask('one', 1, 'p', 1.0, band=LENT)]
    found = plan(cloud({'a': 6, 'b': 4}, wide + narrow, asked))
    assert [e.request for e in found.actions if e.verb is V.START] == ['one']
    _, left = victims_by_request(found)['two']
    assert left <= {each.uuid for each in wide + narrow}


def test_the_youngest_of_equal_servers_loses_least():
    running = [running_server('old', age=5000), running_server('new', age=700)]
    snapshot = cloud({'a': 8}, running, [ask('r', 4, 'q')])
    assert victims_by_request(plan(snapshot)) == {'r': (('a',), {'new'})}


def test_a_server_further_over_its_share_leaves_before_younger_ones():
    running = [
        running_server('s1', 'a', 8, 'rich', 4000),
        running_server('s2', 'b', 8, 'rich', 4000),
        running_server('s3', 'c', 8, 'poor', 700),
    ]
    snapshot = cloud(dict.fromkeys('abc', 8), running, [ask('r', 8, 'q')])
    (_, left), *_ = victims_by_request(plan(snapshot)).values()
    assert left < {'s1', 's2'}
    assert len(left) == 1
    # Unless lost work is all that counts.
    rules = planner.PreemptionRules(0.0, 0.0, step_s=0.0)
    assert victims_by_request(plan(snapshot, rules)) == {'r': (('c',), {'s3'})}


def test_history_counts_for_the_excess_over_a_share():
    running = [
        running_server('s1', 'a', 8, 'p'),
        running_server('s2', 'b', 8, 'q', 700),
    ]
    snapshot = cloud(
        {'a': 8, 'b': 8},
        running,
        [ask('r', 8, 'x')],
        history={'p': np.array([0.9, 0.1]), 'p/u': np.array([0.9, 0.1])},
    )
    assert victims_by_request(plan(snapshot)) == {'r': (('a',), {'s1'})}


@pytest.mark.parametrize(
    ('weights', 'leaves'),
    [
        ({}, 's2'),
        ({'VCPU': 1.0, 'MEMORY_MB': 1.0}, 's2'),
        ({'VCPU': 1.0}, 's1'),
        ({'VCPU': 40.0, 'MEMORY_MB': 4.0}, 's1'),
        ({'VCPU': 0.01, 'MEMORY_MB': 0.02}, 's2'),
    ],
)
def test_classes_count_as_they_are_charged(weights, leaves):
    """One used CPUs for long, and the other memory."""
    running = [
        running_server('s1', 'a', 8, 'p', 1000),
        running_server('s2', 'b', 8, 'q', 1000),
    ]
    use = {'p': np.array([0.9, 0.1]), 'q': np.array([0.1, 3.0])}
    snapshot = cloud(
        {'a': 8, 'b': 8},
        running,
        [ask('r', 8, 'x')],
        history={**use, **{f'{k}/u': part for k, part in use.items()}},
        weights=weights,
    )
    [(_, left)] = victims_by_request(plan(snapshot)).values()
    assert left == {leaves}


@pytest.mark.parametrize(
    ('weights', 'leave'),
    [({}, 1), ({'VCPU': 3.0}, 1), ({'MEMORY_MB': 1.0}, 0), ({'OTHER': 1}, 0)],
)
def test_by_shares_classes_count_as_they_are_charged(weights, leave):
    """In memory the one who asks has as much as the other."""
    running = [running_server(f's{n}', n, project='rich') for n in 'abcd']
    history = dict.fromkeys(['poor', 'poor/u'], np.array([0.0, 1.0]))
    snapshot = cloud(
        dict.fromkeys('abcd', 4),
        running,
        [ask('r', 4, 'poor', band=LENT)],
        history=history if weights else {},
        weights=weights,
    )
    assert len(victims_by_request(plan(snapshot))) == leave


def test_servers_of_a_group_leave_together_or_not_at_all():
    group = [
        running_server('g1', 'a', group='g', age=700),
        running_server('g2', 'b', group='g', age=700),
    ]
    alone = [running_server('s1', 'a'), running_server('s2', 'b')]
    hosts = {'a': 8, 'b': 8}
    snapshot = cloud(hosts, [*group, *alone], [ask('r', 8, 'q')])
    (_, left), *_ = victims_by_request(plan(snapshot)).values()
    assert {'g1', 'g2'} < left
    snapshot = cloud(hosts, [*group, *alone], [ask('r', 4, 'q')])
    (_, left), *_ = victims_by_request(plan(snapshot)).values()
    assert len(left) == 1


def test_no_member_of_a_group_with_a_new_one_leaves():
    group = [
        running_server('g1', 'a', 8, group='g'),
        running_server('g2', 'b', 8, 'p', 5.0),
    ]
    group[1] = running_server('g2', 'b', 8, age=5.0, group='g')
    snapshot = cloud({'a': 8, 'b': 8}, group, [ask('r', 4, 'q')])
    assert (
        victims_by_request(plan(snapshot, planner.PreemptionRules(0.0, 600.0)))
        == {}
    )
    assert len(victims_by_request(plan(snapshot))) == 1


@pytest.mark.parametrize(
    'rules',
    [
        planner.PreemptionRules(patience_s=NOW + 1, least_run_s=0.0),
        planner.PreemptionRules(0.0, least_run_s=1001.0),
        planner.PreemptionRules(0.0, 0.0, per_hour=0),
    ],
)
def test_no_server_leaves_before_its_minimum_run_time(rules):
    snapshot = cloud(
        {'a': 8}, [running_server('s1', vcpu=8)], [ask('r', 4, 'q')]
    )
    assert victims_by_request(plan(snapshot, rules)) == {}


def test_evictions_per_hour_stay_within_the_limit():
    running = [running_server(f's{n}', n) for n in 'abc']
    asked = [ask(f'r{n}', 4, 'q', n) for n in range(3)]
    snapshot = cloud(dict.fromkeys('abc', 4), running, asked, evicted=8)
    rules = planner.PreemptionRules(0.0, 0.0, per_hour=10)
    assert sorted(victims_by_request(plan(snapshot, rules))) == ['r0', 'r1']


def crowded_cloud(*needs, each=4, **more):
    """Hosts full of small servers, and requests that need some to leave."""
    hosts, running = {}, []
    for n, need in enumerate(needs):
        hosts[f'h{n}'] = need * each
        running += [
            running_server(f's{n}-{k}', f'h{n}', each) for k in range(need)
        ]
    asked = [
        ask(f'r{n}', need * each, f'q{n}', n) for n, need in enumerate(needs)
    ]
    return cloud(hosts, running, asked, **more)


def hourly(per_hour):
    return planner.PreemptionRules(0.0, 0.0, per_hour=per_hour)


def test_a_request_that_costs_too_many_victims_stops_no_other():
    snapshot = crowded_cloud(3, 1, 1, evicted=8)
    found = plan(snapshot, hourly(10))
    assert sorted(victims_by_request(found)) == ['r1', 'r2']
    assert found.waiting['r0'].why == reason.why(
        R.LEAVING_IS_LIMITED, servers=3.0, left=2.0, limit=10.0
    )


def test_many_requests_that_cost_too_many_victims_stop_no_other():
    snapshot = crowded_cloud(*[3] * 70, 1, evicted=8)
    asked = [
        dataclasses.replace(each, project='q0') if each.uuid != 'r70' else each
        for each in snapshot.requests
    ]
    snapshot = dataclasses.replace(snapshot, requests=tuple(asked))
    assert sorted(victims_by_request(plan(snapshot, hourly(10)))) == ['r70']


def test_evictions_continue_after_a_quiet_hour():
    # Others come first.
    found = plan(crowded_cloud(3, 1), hourly(2))
    assert sorted(victims_by_request(found)) == ['r1']
    assert found.waiting['r0'].why == reason.why(
        R.LEAVING_IS_LIMITED, servers=3.0, left=2.0, limit=2.0
    )
    assert (
        victims_by_request(plan(crowded_cloud(3, evicted=1), hourly(2))) == {}
    )
    found = plan(crowded_cloud(3, 4), hourly(2))
    assert sorted(victims_by_request(found)) in (['r0'], ['r1'])
    assert victims_by_request(plan(crowded_cloud(3), hourly(0))) == {}


def test_no_server_leaves_for_a_project_that_had_room_in_vain():
    snapshot = crowded_cloud(1, 1, in_vain={'q0': NOW + 900.0, 'q1': NOW})
    found = plan(snapshot)
    assert sorted(victims_by_request(found)) == ['r1']
    assert found.waiting['r0'].why == reason.why(R.ROOM_IN_VAIN, again_h=0.3)


def test_a_delayed_project_still_starts_in_free_room():
    snapshot = cloud(
        {'a': 8},
        [running_server('s1')],
        [ask('r', 4, 'q')],
        in_vain={'q': NOW + 9},
    )
    assert [each.verb for each in plan(snapshot).actions] == [V.START]


def test_a_promised_request_waits_for_its_room_and_no_other_takes_it():
    asked = [ask('r', 8, 'q', 5), ask('other', 2, 'x', 1)]
    snapshot = cloud(
        {'a': 8},
        [running_server('s1')],
        asked,
        promised={'r': ('a',)},
        leaving=frozenset({'s1'}),
    )
    found = plan(snapshot)
    assert found.actions == ()
    assert found.waiting['r'].why.reason is R.ROOM_IS_MADE
    assert found.waiting['r'].position == 1
    gone = cloud({'a': 8}, [], asked, promised={'r': ('a',)})
    (action,) = plan(gone).actions
    assert (action.verb, action.request) == (V.START, 'r')


def promised_and_elsewhere(*others, **more):
    """Room is promised on a, where s1 leaves; b is free."""
    asked = [ask('r', 8, 'q', 5), *others]
    return cloud(
        {'a': 8, 'b': 8},
        [running_server('s1', 'a', 8)],
        asked,
        promised={'r': ('a',)},
        leaving=frozenset({'s1'}),
        **more,
    )


@pytest.mark.parametrize(
    'others', [(), [ask('s2', 8, 'p', 1, band=LENT)]], ids=['alone', 'before']
)
def test_a_promised_request_starts_where_there_is_room(others):
    snapshot = promised_and_elsewhere(*others)
    found = plan(snapshot)
    assert [
        (each.verb, each.request, each.hosts) for each in found.actions
    ] == [(V.START, 'r', ('b',))]
    assert {uuid: each.why.reason for uuid, each in found.waiting.items()} == {
        each.uuid: R.NO_ROOM for each in others
    }
    # Who was to leave stays by then.
    after = dataclasses.replace(
        small_cloud.cloud_after_plan(snapshot, found, NOW),
        leaving=frozenset(),
        promised={},
    )
    assert plan(after).actions == ()


def test_waiting_requests_have_room_before_the_owner_of_a_promise():
    """Theirs is made already; with this nobody waits for a second notice."""
    found = plan(promised_and_elsewhere(ask('other', 8, 'x', 9)))
    assert [each.request for each in found.actions] == ['other']
    assert found.waiting['r'].why.reason is R.ROOM_IS_MADE
    assert found.waiting['r'].reserved == cluster.Reservation(('a',))


def test_room_promised_to_a_request_that_starts_elsewhere_is_free_at_once():
    """A server of 4 leaves for one of 8: the rest was free, and is again."""
    snapshot = cloud(
        {'a': 8, 'b': 8},
        [running_server('s1', 'a', 4)],
        [ask('r', 8, 'q', 5), ask('small', 4, 'p', 1, band=LENT)],
        promised={'r': ('a',)},
        leaving=frozenset({'s1'}),
    )
    found = plan(snapshot)
    assert {each.request: each.hosts for each in found.actions} == {
        'r': ('b',),
        'small': ('a',),
    }


def test_promised_anti_affine_requests_start_elsewhere_if_apart():
    apart = request.Group('g', request.Rule.APART, 1)
    asked = [ask('r', 8, 'q', count=2, group=apart)]
    running = [running_server('s1', 'a', 8), running_server('s2', 'b', 8)]
    gone = frozenset({'s1', 's2'})
    for hosts, starts in (('ab', ()), ('abc', ()), ('abcd', ('c', 'd'))):
        snapshot = cloud(
            dict.fromkeys(hosts, 8),
            running,
            asked,
            promised={'r': ('a', 'b')},
            leaving=gone,
        )
        found = plan(snapshot)
        at = tuple(sorted(h for each in found.actions for h in each.hosts))
        assert at == starts


def test_room_is_made_for_those_of_a_group_that_fit_beside_a_member():
    apart = request.Group('g', request.Rule.APART, 1)
    member = running_server(
        'm', 'a', 8, 'q', band=request.Band.NORMAL, group='g'
    )
    asked = [ask(f'r{n}', 8, 'q', at=n, group=apart) for n in range(2)]
    snapshot = cloud(
        dict.fromkeys('ab', 8),
        [member, running_server('s', 'b', 8)],
        asked,
        member_hosts={'g': ('a',)},
    )
    found = plan(snapshot)
    assert victims_by_request(found) == {'r0': (('b',), {'s'})}
    assert found.waiting['r1'].why.reason is R.GROUP_IS_FULL


def test_a_host_that_is_gone_keeps_no_promise():
    snapshot = cloud({'a': 8}, [], [ask('r', 8)], promised={'r': ('gone',)})
    assert [each.hosts for each in plan(snapshot).actions] == [('a',)]


def test_no_promise_is_redeemed_yet_on_a_host_that_takes_no_server():
    snapshot = cloud({'a': 8}, [], [ask('r', 8)], promised={'r': ('a',)})
    [provider] = snapshot.providers
    assert [each.verb for each in plan(snapshot).actions] == [V.START]
    closed = dataclasses.replace(
        snapshot, providers=(dataclasses.replace(provider, takes=False),)
    )
    assert plan(closed).actions == ()


def test_a_victim_that_waits_again_does_not_take_the_room_back():
    asked = [ask('r', 8, 'q', 5), ask('s1', 8, 'p', 1, band=LENT)]
    snapshot = cloud({'a': 8}, [], asked, promised={'r': ('a',)})
    found = plan(snapshot)
    assert [each.request for each in found.actions] == ['r']
    after = small_cloud.cloud_after_plan(snapshot, found, NOW)
    assert plan(after).actions == ()


def test_room_of_a_leaving_server_needs_no_second_victim():
    asked = [ask('r', 4, 'q', 1), ask('t', 4, 'q', 2)]
    snapshot = cloud(
        {'a': 8, 'b': 4},
        [running_server('s1', vcpu=8), running_server('s2', 'b')],
        asked,
        promised={'r': ('a',)},
        leaving=frozenset({'s1'}),
    )
    # The other half of what s1 leaves is enough.
    assert victims_by_request(plan(snapshot)) == {'t': (('a',), set())}


@pytest.mark.parametrize('band', request.Band)
def test_room_of_leaving_servers_is_promised_without_other_candidates(band):
    leaves = running_server('s1', 'a', 8, 'p', ends_at=NOW + 100)
    snapshot = cloud(
        {'a': 8}, [leaves], [ask('r', 8, 'q', band=band)],
        leaving=frozenset({'s1'}),
    )  # fmt: skip
    assert victims_by_request(plan(snapshot)) == {'r': (('a',), set())}


def test_a_preemptible_request_has_the_room_of_users_over_their_share():
    running = [running_server(f's{n}', n, project='rich') for n in 'abcd']
    asked = [ask('r', 4, 'poor', band=LENT)]
    snapshot = cloud(dict.fromkeys('abcd', 4), running, asked)
    assert len(victims_by_request(plan(snapshot))) == 1
    own = [ask('r', 4, 'rich', band=LENT)]
    assert (
        victims_by_request(plan(cloud(dict.fromkeys('abcd', 4), running, own)))
        == {}
    )
    rules = planner.PreemptionRules(0.0, 0.0, by_shares=False)
    assert victims_by_request(plan(snapshot, rules)) == {}


@pytest.mark.parametrize(('margin', 'leave'), [(1.0, 1), (2.9, 1), (3.0, 0)])
def test_victims_must_exceed_their_share_by_the_margin(margin, leave):
    running = [running_server(f's{n}', n, project='rich') for n in 'abcd']
    # Afterwards they have three times as much.
    asked = [ask('r', 4, 'poor', band=LENT)]
    snapshot = cloud(dict.fromkeys('abcd', 4), running, asked)
    rules = planner.PreemptionRules(0.0, 0.0, margin=margin)
    assert len(victims_by_request(plan(snapshot, rules))) == leave


def test_equal_users_never_evict_each_other():
    running = [
        running_server('s1', 'a', project='p'),
        running_server('s2', 'b', project='q'),
    ]
    asked = [
        ask('r', 4, 'p', band=LENT),
        ask('t', 4, 'q', band=LENT),
    ]
    assert (
        victims_by_request(plan(cloud({'a': 4, 'b': 4}, running, asked))) == {}
    )


def test_all_servers_of_a_request_have_room_or_no_server_leaves():
    running = [running_server('s1', 'a'), running_server('s2', 'b')]
    hosts = {'a': 4, 'b': 4}
    both = cloud(hosts, running, [ask('r', 4, 'q', count=2)])
    (promised, left), *_ = victims_by_request(plan(both)).values()
    assert sorted(promised) == ['a', 'b']
    assert left == {'s1', 's2'}
    three = cloud(hosts, running, [ask('r', 4, 'q', count=3)])
    assert victims_by_request(plan(three)) == {}


@pytest.mark.parametrize(
    ('rule', 'promised'),
    [
        (request.Rule.TOGETHER, ('a', 'a')),
        (request.Rule.APART, None),
    ],
)
def test_rules_of_groups_hold_for_room_that_is_made(rule, promised):
    group = request.Group('g', rule)
    asked = [ask('r', 4, 'q', count=2, group=group)]
    running = [running_server('s1', 'a', 8)]
    found = victims_by_request(plan(cloud({'a': 8}, running, asked)))
    assert found == ({'r': (promised, {'s1'})} if promised else {})


class _Fake(victims.Victims):
    description = 'A fake.'

    def __init__(self, answer):
        self.answer = answer

    def choose(self, needs, field):
        return self.answer(needs)


@pytest.mark.parametrize(
    ('answer', 'said'),
    [
        (lambda needs: [], 'must choose for 1 need, and did for 0'),
        (lambda needs: 1 / 0, 'ZeroDivisionError'),
        (
            lambda needs: [candidates.VictimChoice(((0,),), (0, 0))],
            'may not leave, or one twice',
        ),
        (lambda needs: [candidates.VictimChoice(((0,),), ())], 'without room'),
        (lambda needs: [candidates.VictimChoice(((),), ())], 'more or fewer'),
    ],
)
def test_a_plugin_that_misbehaves_evicts_no_server(answer, said):
    snapshot = cloud(
        {'a': 8}, [running_server('s1', vcpu=8)], [ask('r', 4, 'q')]
    )
    with pytest.raises(exception.PluginMisbehaved, match=said):
        plan(snapshot, victims=_Fake(answer))


def test_the_queue_is_asked_with_its_own_order():
    asked = []

    def ask_queue(snapshot, now):
        asked.append(len(snapshot.requests))
        return queue.plan(snapshot, now)

    empty = cloud({'a': 8}, [], [ask('r', 9, 'q')])
    planner.plan(empty, NOW, ask_queue)
    # Nothing is preemptible: there is nothing to think about.
    assert len(asked) == 1
    functools.partial(planner.plan, queue=ask_queue)


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        *((name, -1) for name in ('patience_s', 'least_run_s', 'per_hour')),
        ('step_s', -0.5),
        ('margin', 0.99),
        ('at_once', 0),
        *((name, np.nan) for name in ('patience_s', 'margin', 'step_s')),
        *((name, np.inf) for name in ('least_run_s', 'margin')),
    ],
)
def test_impossible_preemption_rules_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f'{name} must be .* got'):
        planner.PreemptionRules(**{name: value})


def test_a_server_of_a_clock_that_is_ahead_makes_no_room():
    ahead = running_server('s1', 'a', 4, age=-500.0)
    snapshot = cloud({'a': 4}, [ahead], [ask('r', 4, 'q')])
    assert victims_by_request(plan(snapshot)) == {}
    # Nor is it worth less than one that has just begun.
    new = running_server('s2', 'b', 4, age=0.0)
    both = cloud({'a': 4, 'b': 4}, [ahead, new], [ask('r', 4, 'q')])
    assert victims_by_request(plan(both)) == {'r': (('b',), {'s2'})}
