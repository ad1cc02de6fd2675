# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import order
from nova_fairness.planners.fairqueue import orders
from nova_fairness.planners.fairqueue import planner
from tests.fixtures import small_cloud

R = reason.Reason
ask, cloud, host = (
    small_cloud.waiting_request,
    small_cloud.cloud,
    small_cloud.host,
)


def hosts_of_started(plan):
    return {
        each.request: each.hosts
        for each in plan.actions
        if each.verb is cluster.Verb.START
    }


def why(plan, name):
    told = plan.waiting[name].why
    return (told.reason, told.subject, dict(told.numbers))


def vector(vcpu, memory=0):
    return np.array([vcpu, memory], dtype=np.int64)


def group(rule, per_host=1):
    return request.Group('g', rule, per_host)


TOGETHER = group(request.Rule.TOGETHER)
APART = group(request.Rule.APART)


def test_an_empty_cloud_has_an_empty_plan():
    assert planner.plan(cloud([]), 0) == cluster.Plan()


def test_a_request_that_fits_starts_where_least_is_left_over():
    hosts = [host('a', used=1), host('b', used=6), host('c', used=3)]
    plan = planner.plan(cloud(hosts, [ask('r', 2)]), 0)
    assert hosts_of_started(plan) == {'r': ('b',)}
    assert plan.actions[0].key == 'start/r/0'
    assert plan.waiting == {}


def test_only_held_requests_are_planned():
    held = ask('r', state=request.State.RESERVED)
    assert planner.plan(cloud([host('a')], [held]), 0) == cluster.Plan()


def test_the_guaranteed_part_starts_before_older_ones_beyond_it():
    snapshot = cloud(
        [host('a', vcpu=6)],
        [ask('old', 4, 'q', at=1), ask('new', 4, 'p', at=2)],
        limits={'p': small_cloud.guaranteed(4, 100)},
    )
    plan = planner.plan(snapshot, 9)
    assert hosts_of_started(plan) == {'new': ('a',)}
    assert why(plan, 'old') == (
        R.OVER_SHARED_PART,
        'VCPU',
        {'asked': 4, 'shared': 2},
    )


def test_an_unused_guaranteed_part_is_not_lent():
    snapshot = cloud(
        [host('a', vcpu=8)],
        [ask('r', 3, 'q'), ask('s', 2, 'q', at=1)],
        limits={'p': small_cloud.guaranteed(4)},
    )
    plan = planner.plan(snapshot, 9)
    assert hosts_of_started(plan) == {'r': ('a',)}
    assert why(plan, 's') == (
        R.SHARED_PART_TAKEN,
        'VCPU',
        {'asked': 2, 'free': 1, 'shared': 4},
    )


def test_room_beyond_the_guaranteed_part_is_shared_in_every_class():
    snapshot = cloud(
        [host('a', memory=1000)],
        [ask('r', memory=600, project='p')],
        limits={'p': small_cloud.guaranteed(8, 500)},
        used={'q': vector(0, 450)},
    )
    assert why(planner.plan(snapshot, 9), 'r') == (
        R.SHARED_PART_TAKEN,
        'MEMORY_MB',
        {'asked': 100, 'free': 50, 'shared': 500},
    )


def test_excess_guaranteed_quota_leaves_nothing_to_share():
    snapshot = cloud(
        [host('a')],
        [ask('r', project='q')],
        limits={'p': small_cloud.guaranteed(80, 10)},
    )
    assert why(planner.plan(snapshot, 9), 'r')[0] is R.OVER_SHARED_PART


LENT = request.Band.PREEMPTIBLE


def preemptible_server(name, vcpu, project='p', **more):
    """A preemptible server that runs."""
    amounts = small_cloud.demand(vcpu, 0).amounts
    return cluster.Running(name, project, amounts, 0.0, band=LENT, **more)


def test_a_preemptible_request_comes_after_all_others():
    asked = [ask('old', 4, band=LENT), ask('new', 6, at=1)]
    plan = planner.plan(cloud([host('a')], asked), 9)
    assert hosts_of_started(plan) == {'new': ('a',)}
    assert why(plan, 'old')[0] is R.NO_ROOM
    plan = planner.plan(cloud([host('a', 12)], asked), 9)
    assert hosts_of_started(plan) == {'new': ('a',), 'old': ('a',)}


def test_guaranteed_room_is_lent_while_its_owners_leave_it():
    snapshot = cloud(
        [host('a')],
        [ask('r', 3, 'q'), ask('s', 3, 'q', band=LENT)],
        limits={'p': small_cloud.guaranteed(8)},
    )
    assert hosts_of_started(planner.plan(snapshot, 9)) == {'s': ('a',)}


def test_use_of_preemptible_servers_is_taken_from_no_part():
    snapshot = cloud(
        [host('a', used=4)],
        [ask('r', 4, 'p')],
        running=(preemptible_server('a', 4),),
        limits={'p': cluster.Limits({}, {'VCPU': 4})},
    )
    assert hosts_of_started(planner.plan(snapshot, 9)) == {'r': ('a',)}


def test_preemptible_servers_have_a_limit_of_their_own():
    limits = {'p': cluster.Limits({}, {'VCPU': 1}, {'VCPU': 6})}
    asked = [ask('r', 2, band=LENT), ask('s', 1, at=1, band=LENT)]
    snapshot = cloud(
        [host('a', 20, used=4)],
        asked,
        running=(preemptible_server('a', 4),),
        limits=limits,
    )
    plan = planner.plan(snapshot, 9)
    assert hosts_of_started(plan) == {'r': ('a',)}
    assert why(plan, 's') == (
        R.OVER_CEILING,
        'VCPU',
        {'asked': 1, 'used': 6, 'ceiling': 6},
    )


def test_a_project_with_many_preemptible_servers_comes_later():
    asked = [ask('r', 4, 'p', band=LENT), ask('s', 4, 'q', 1, band=LENT)]
    running = (preemptible_server('a', 4, user='u'),)
    snapshot = cloud([host('a', used=4)], asked, running=running)
    plan = planner.plan(snapshot, 9, orders.FairTree())
    assert hosts_of_started(plan) == {'s': ('a',)}
    assert hosts_of_started(planner.plan(snapshot, 9)) == {'r': ('a',)}


def test_normal_and_preemptible_servers_of_a_group_start_apart():
    asked = [
        ask('r', 2, group=APART, band=LENT),
        ask('s', 9, group=APART),
    ]
    plan = planner.plan(cloud([host('a')], asked), 9)
    assert hosts_of_started(plan) == {'r': ('a',)}


def test_a_ceiling_binds_its_project_only():
    ceiling = cluster.Limits(ceiling={'VCPU': 3, 'UNKNOWN': 0})
    snapshot = cloud(
        [host('a')],
        [ask('r', 2, 'p'), ask('s', 2, 'q', at=1)],
        limits={'p': ceiling},
        used={'p': vector(2)},
    )
    plan = planner.plan(snapshot, 9)
    assert hosts_of_started(plan) == {'s': ('a',)}
    assert why(plan, 'r') == (
        R.OVER_CEILING,
        'VCPU',
        {'asked': 2, 'used': 2, 'ceiling': 3},
    )


def test_the_oldest_request_is_first_and_ties_are_ordered_by_uuid():
    snapshot = cloud(
        [host('a', vcpu=1)],
        [ask('c', at=1), ask('b', at=1), ask('a', at=2)],
    )
    plan = planner.plan(snapshot, 9)
    assert list(hosts_of_started(plan)) == ['b']
    assert [plan.waiting[name].position for name in ('c', 'a')] == [1, 2]


def test_the_first_waiting_request_blocks_hosts_for_younger_ones():
    hosts = [host('a', used=4), host('b', used=2), host('c', vcpu=2)]
    requests = [
        ask('big', 8, at=1),
        ask('mid', 5, at=2),
        ask('low', 2, at=3),
        ask('too', 1, at=4),
        ask('end', 1, at=5),
    ]
    plan = planner.plan(cloud(hosts, requests), 9)
    # b comes closest to 8 and is kept; c and a are used by those behind.
    assert hosts_of_started(plan) == {
        'low': ('c',),
        'too': ('a',),
        'end': ('a',),
    }
    assert why(plan, 'big') == (R.NO_ROOM, 'VCPU', {'asked': 8, 'free': 6})
    assert why(plan, 'mid') == (R.BEHIND_OTHERS, '', {'before': 1})


def test_requests_behind_the_first_read_that_reason():
    hosts = [host('a', used=4), host('b', used=8)]
    requests = [ask('big', 8, at=1), ask('x', at=2), ask('y', at=3)]
    plan = planner.plan(cloud(hosts, requests), 9)
    assert hosts_of_started(plan) == {}
    assert why(plan, 'x')[0] is R.BEHIND_OTHERS
    assert why(plan, 'y') == (R.BEHIND_OTHERS, '', {'before': 2})


def test_shared_room_that_the_first_waits_for_is_kept():
    snapshot = cloud(
        [host('a', vcpu=8), host('b', vcpu=8)],
        [ask('big', 6, 'q', at=1), ask('low', 2, 'r', at=2)],
        limits={'p': small_cloud.guaranteed(8)},
        used={'q': vector(4)},
    )
    plan = planner.plan(snapshot, 9)
    assert plan.actions == ()
    assert why(plan, 'big')[0] is R.SHARED_PART_TAKEN
    assert why(plan, 'low')[0] is R.BEHIND_OTHERS


def test_a_project_keeps_room_below_its_ceiling_for_its_first():
    snapshot = cloud(
        [host('a', vcpu=8, used=6), host('b', vcpu=4, used=1)],
        [ask('big', 4, at=1), ask('low', 1, at=2), ask('else', 1, 'q', at=3)],
        limits={'p': cluster.Limits(ceiling={'VCPU': 4})},
    )
    plan = planner.plan(snapshot, 9)
    assert hosts_of_started(plan) == {'else': ('b',)}
    assert why(plan, 'low')[0] is R.BEHIND_OTHERS


def test_a_request_that_can_never_start_reserves_nothing():
    hosts = [host('a', used=7)]
    requests = [ask('huge', 9, at=1), ask('low', 1, at=2)]
    plan = planner.plan(cloud(hosts, requests), 9)
    assert hosts_of_started(plan) == {'low': ('a',)}
    assert why(plan, 'huge') == (R.TOO_LARGE, 'VCPU', {'asked': 9, 'most': 8})


def test_equal_demands_are_judged_once_for_all_requests():
    hosts = [host('a', used=8)]
    plan = planner.plan(cloud(hosts, [ask(n, at=1) for n in 'xyz']), 9)
    assert {plan.waiting[n].why.reason for n in 'xyz'} == {R.NO_ROOM}


def demand(**more):
    return small_cloud.demand(**more)


MATCHES = {
    'a zone': (demand(zone='z1'), 'a'),
    'another zone': (demand(zone='z2'), 'b'),
    'a trait': (demand(required=frozenset({'SSD'})), 'b'),
    'a forbidden trait': (demand(forbidden=frozenset({'SSD'})), 'a'),
    'an aggregate': (demand(aggregates=(frozenset({'x', 'y'}),)), 'b'),
    'a host': (demand(host='b'), 'b'),
    'an unknown zone': (demand(zone='z9'), None),
    'both of two aggregates': (
        demand(aggregates=(frozenset({'x'}), frozenset({'y'}))),
        None,
    ),
}


@pytest.mark.parametrize(('wanted', 'expected'), MATCHES.values(), ids=MATCHES)
def test_only_matching_hosts_are_used(wanted, expected):
    hosts = [
        host('a', zone='z1'),
        host(
            'b',
            zone='z2',
            traits=frozenset({'SSD'}),
            aggregates=frozenset({'x'}),
        ),
        host('c', takes=False, traits=frozenset({'SSD'}), zone='z1'),
    ]
    plan = planner.plan(cloud(hosts, [ask('r', demand=wanted)]), 9)
    if expected:
        assert hosts_of_started(plan) == {'r': (expected,)}
    else:
        assert why(plan, 'r') == (R.NO_HOST_MATCHES, '', {'hosts': 3})


def test_a_class_that_no_host_has_is_too_large():
    wanted = request.Demand((('CUSTOM_GPU', 1), ('VCPU', 1)))
    plan = planner.plan(cloud([host('a')], [ask('r', demand=wanted)]), 9)
    assert why(plan, 'r') == (
        R.TOO_LARGE,
        'CUSTOM_GPU',
        {'asked': 1, 'most': 0},
    )


def test_the_maximum_unit_and_step_size_of_a_host_are_respected():
    snapshot = cloud([host('a')], [ask('r', 4, memory=2)], unit=2)
    assert why(planner.plan(snapshot, 9), 'r') == (
        R.TOO_LARGE,
        'VCPU',
        {'asked': 4, 'most': 2},
    )
    snapshot = cloud([host('a')], [ask('r', 3)], step=2)
    assert why(planner.plan(snapshot, 9), 'r') == (
        R.TOO_LARGE,
        'VCPU',
        {'asked': 3, 'most': 2},
    )


def test_a_server_that_needs_nothing_starts_anywhere():
    wanted = request.Demand(())
    requests = [ask('r', demand=wanted), ask('s', demand=wanted, count=3)]
    plan = planner.plan(cloud([host('a', used=8)], requests), 9)
    assert set(hosts_of_started(plan)) == {'r', 's'}


def test_several_servers_of_a_request_start_together_or_not():
    hosts = [host('a', used=5), host('b', used=6)]
    plan = planner.plan(cloud(hosts, [ask('r', 2, count=2)]), 9)
    assert hosts_of_started(plan) == {'r': ('b', 'a')}
    plan = planner.plan(cloud(hosts, [ask('r', 2, count=3)]), 9)
    assert why(plan, 'r') == (R.GROUP_HAS_NO_ROOM, '', {'asked': 3, 'fit': 2})


def test_a_request_of_too_many_servers_for_the_cloud_is_named():
    plan = planner.plan(cloud([host('a')], [ask('r', 4, count=3)]), 9)
    assert why(plan, 'r') == (
        R.GROUP_TOO_LARGE,
        'on any hosts',
        {'asked': 3, 'most': 2},
    )


def test_servers_of_an_affine_group_are_on_one_host():
    hosts = [host('a', used=5), host('b'), host('c', used=6)]
    requests = [
        ask('r', 2, count=2, group=TOGETHER),
        ask('s', 1, group=TOGETHER, at=5),
    ]
    plan = planner.plan(cloud(hosts, requests), 9)
    assert hosts_of_started(plan) == {'r': ('b', 'b'), 's': ('b',)}


def test_an_affine_group_stays_where_its_members_are():
    hosts = [host('a'), host('b', used=6)]
    requests = [ask('r', 3, group=TOGETHER)]
    members = {'g': ('b', 'gone')}
    plan = planner.plan(cloud(hosts, requests, member_hosts=members), 9)
    assert why(plan, 'r') == (R.GROUP_HAS_NO_ROOM, '', {'asked': 1, 'fit': 0})
    plan = planner.plan(
        cloud(hosts, [ask('r', 2, group=TOGETHER)], member_hosts=members), 9
    )
    assert hosts_of_started(plan) == {'r': ('b',)}


def test_an_affine_group_larger_than_a_host_cannot_start():
    requests = [ask('r', 3, count=3, group=TOGETHER)]
    plan = planner.plan(cloud([host('a'), host('b')], requests), 9)
    assert why(plan, 'r') == (
        R.GROUP_TOO_LARGE,
        'on one host',
        {'asked': 3, 'most': 0},
    )


def test_anti_affine_servers_are_placed_on_different_hosts():
    hosts = [host('a'), host('b', used=1), host('c', used=2)]
    requests = [
        ask('r', count=2, group=APART),
        ask('s', 2, group=APART, at=1),
    ]
    plan = planner.plan(cloud(hosts, requests), 9)
    # The larger one chooses first.
    assert hosts_of_started(plan) == {'r': ('b', 'a'), 's': ('c',)}


def test_anti_affine_servers_avoid_hosts_of_members():
    hosts = [host('a'), host('b')]
    for count, per_host, expected in (
        (1, 1, ('b',)),
        (3, 2, ('a', 'b', 'b')),
    ):
        apart = group(request.Rule.APART, per_host)
        snapshot = cloud(
            hosts,
            [ask('r', count=count, group=apart)],
            member_hosts={'g': ('a',)},
        )
        assert hosts_of_started(planner.plan(snapshot, 9)) == {'r': expected}


def test_more_anti_affine_servers_than_hosts_cannot_start():
    requests = [ask('r', count=3, group=APART)]
    snapshot = cloud([host('a'), host('b')], requests)
    assert why(planner.plan(snapshot, 9), 'r') == (
        R.GROUP_TOO_LARGE,
        'on different hosts',
        {'asked': 3, 'most': 2},
    )


def test_a_running_member_is_waited_for_and_keeps_no_other_back():
    requests = [ask('r', count=2, group=APART), ask('s', 8, at=1)]
    snapshot = cloud(
        [host('a'), host('b')], requests, member_hosts={'g': ('a',)}
    )
    plan = planner.plan(snapshot, 9)
    assert why(plan, 'r') == (R.GROUP_HAS_NO_ROOM, '', {'asked': 2, 'fit': 1})
    assert plan.waiting['r'].reserved is None
    assert hosts_of_started(plan) == {'s': ('a',)}


def test_a_group_waits_as_a_whole_and_keeps_hosts_as_a_whole():
    hosts = [host('a', used=8), host('b', used=7), host('c', used=4)]
    requests = [
        ask('r', 4, group=APART, at=1),
        ask('s', 2, group=APART, at=7),
        ask('low', 1, at=8),
    ]
    plan = planner.plan(cloud(hosts, requests), 9)
    assert plan.actions == ()
    assert why(plan, 's') == (R.GROUP_HAS_NO_ROOM, '', {'asked': 2, 'fit': 1})
    assert [plan.waiting[n].position for n in ('r', 's', 'low')] == [1, 2, 3]


def test_a_group_behind_the_first_request_reads_that_reason():
    hosts = [host('a', used=4)]
    requests = [ask('big', 8, at=1), ask('r', 1, count=2, at=2)]
    plan = planner.plan(cloud(hosts, requests), 9)
    assert why(plan, 'r')[0] is R.BEHIND_OTHERS


def test_equally_named_groups_of_two_projects_are_separate():
    requests = [
        ask('r', 9, 'p', group=TOGETHER),
        ask('s', 1, 'q', group=TOGETHER),
    ]
    plan = planner.plan(cloud([host('a')], requests), 9)
    assert hosts_of_started(plan) == {'s': ('a',)}


def test_a_request_that_waited_too_long_expires():
    requests = [
        ask('r', at=1, expires_at=5.0),
        ask('s', at=2, expires_at=9.5),
    ]
    plan = planner.plan(cloud([host('a')], requests), 9)
    expired, start = plan.actions
    assert expired.verb is cluster.Verb.EXPIRE
    assert expired.why.sentence == 'it waited 8 s, the longest it may'
    assert start.request == 's'


def test_an_overcommitted_host_takes_no_server():
    plan = planner.plan(cloud([host('a', used=11)], [ask('r')]), 9)
    assert why(plan, 'r') == (R.NO_ROOM, 'VCPU', {'asked': 1, 'free': 0})


def test_use_on_a_disabled_host_is_not_missing_from_the_cloud():
    hosts = [host('a', takes=False, used=8), host('b')]
    snapshot = cloud(hosts, [ask('r', 8, 'q')], used={'p': vector(8)})
    assert hosts_of_started(planner.plan(snapshot, 9)) == {'r': ('b',)}


class LosesOne(order.Order):
    def arrange(self, waiting, snapshot, now):
        return waiting[1:]


class Youngest(order.Order):
    def arrange(self, waiting, snapshot, now):
        return sorted(waiting, key=lambda each: (-each.asked_at, each.uuid))


def test_an_order_that_loses_a_request_is_refused():
    snapshot = cloud([host('a')], [ask('r')])
    with pytest.raises(exception.PluginMisbehaved, match='LosesOne'):
        planner.plan(snapshot, 9, LosesOne())


class Fails(order.Order):
    def arrange(self, waiting, snapshot, now):
        raise KeyError('no-such-account')


def test_an_order_that_fails_is_named_with_its_error():
    snapshot = cloud([host('a')], [ask('r')])
    with pytest.raises(
        exception.PluginMisbehaved, match="Fails failed: KeyError: 'no-such"
    ):
        planner.plan(snapshot, 9, Fails())


def test_another_order_puts_another_request_first():
    snapshot = cloud([host('a', vcpu=1)], [ask('r', at=1), ask('s', at=2)])
    assert list(hosts_of_started(planner.plan(snapshot, 9, Youngest()))) == [
        's'
    ]


def test_a_later_start_of_a_plan_is_seen_by_requests_before():
    hosts = [host('a', vcpu=2), host('b', vcpu=4)]
    snapshot = cloud(hosts, [ask('r', 2, at=1), ask('s', 4, at=2)])
    plan = planner.plan(snapshot, 9)
    assert hosts_of_started(plan) == {'r': ('a',), 's': ('b',)}
    later = small_cloud.cloud_after_plan(snapshot, plan)
    assert planner.plan(later, 9) == cluster.Plan()


class Tells(order.OldestFirst):
    def __init__(self, number):
        self.number = number

    def factors(self, waiting, snapshot, now):
        return {'r': {'size': self.number()}}


def test_factors_are_returned_with_the_position():
    snapshot = cloud([host('a', used=8)], [ask('r', at=4), ask('s', at=5)])
    plan = planner.plan(snapshot, 9, Tells(lambda: 3.0))
    assert plan.waiting['r'].factors == {'size': 3.0}
    assert plan.waiting['s'].factors == {}
    plan = planner.plan(snapshot, 9)
    assert plan.waiting['r'].factors == {'waited_s': 5.0}


@pytest.mark.parametrize(
    'number', [lambda: float('inf'), lambda: float('nan'), lambda: 1 / 0]
)
def test_factors_that_are_no_numbers_are_refused(number):
    snapshot = cloud([host('a', used=8)], [ask('r')])
    with pytest.raises(exception.PluginMisbehaved, match='factors'):
        planner.plan(snapshot, 9, Tells(number))
