# SPDX-License-Identifier: Apache-2.0

"""Where servers of a market lie, on small clouds."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness.model import cluster
from nova_fairness.model import market
from nova_fairness.planners.market import arrays
from nova_fairness.planners.market import cores
from nova_fairness.planners.market import group_hosts
from nova_fairness.planners.market import move_order
from nova_fairness.planners.market import planner
from nova_fairness.planners.market import server_groups
from tests.fixtures import small_cloud

ANY = planner.MarketRules(margin=0.0)


def given(hosts, servers, **more):
    """A market of servers, each told as (uuid, host, rate) and more.

    What follows may be ``vcpu``, ``memory``, ``stays``, ``group`` and fields
    of a bid.
    """
    rows = {each[0].name: n for n, each in enumerate(hosts)}
    cloud = small_cloud.cloud(hosts)
    used = cloud.inventory.used.copy()
    running, bids = [], {}
    for uuid, host, rate, *rest in servers:
        own = dict(rest[0]) if rest else {}
        wanted = small_cloud.demand(
            own.pop('vcpu', 1), own.pop('memory', 100), **own.pop('needs', {})
        )
        used[rows[host]] += cluster.amounts_vector(
            dict(wanted.amounts), small_cloud.CLASSES
        )
        running.append(
            cluster.Running(
                host,
                'p',
                wanted.amounts,
                0.0,
                uuid=uuid,
                group=own.pop('group', ''),
            )
        )
        demand = None if own.pop('stays', False) else wanted
        bids[uuid] = market.Bid(rate, demand=demand, **own)
    cloud = dataclasses.replace(
        cloud,
        inventory=dataclasses.replace(cloud.inventory, used=used),
        running=tuple(running),
    )
    return market.MarketState(cloud, bids, **more)


def plan(made, rules=ANY, now=0.0):
    return planner.plan(made, now, rules)


def where(found):
    return {uuid: each.host for uuid, each in found.stands.items()}


A, B, C = (small_cloud.host(name) for name in 'abc')


def test_each_server_gets_its_paid_part_of_its_host():
    found = plan(given([A], [('s', 'a', 30.0), ('t', 'a', 10.0)]))
    assert found.prices == {'a': {'VCPU': 40.0}}
    assert found.stands['s'].share == {'VCPU': 6.0}
    assert found.stands['t'].share == {'VCPU': 2.0}


def test_the_cheapest_move_that_equalizes_prices_is_made():
    servers = [(f's{n}', 'a', 10.0, {'cost': 5.0 - n}) for n in range(4)]
    found = plan(given([A, B], servers))
    assert {each.server for each in found.moves} == {'s2', 's3'}
    assert found.level == (2.0, 1.0)
    assert found.cost_mb == 5


def test_identical_servers_do_not_swap_hosts():
    servers = [
        ('s1', 'a', 20.0),
        ('s2', 'b', 10.0),
        ('s3', 'b', 20.0),
        ('s4', 'a', 10.0),
    ]
    assert not plan(given([A, B], servers)).moves


def test_a_host_of_twice_the_size_has_twice_the_price():
    hosts = [A, small_cloud.host('b', vcpu=16)]
    servers = [(f's{n}', 'a', 10.0) for n in range(6)]
    found = plan(given(hosts, servers))
    assert found.prices == {'a': {'VCPU': 20.0}, 'b': {'VCPU': 40.0}}
    assert len(found.moves) == 4


@pytest.mark.parametrize(
    ('sold', 'price'), [(('VCPU',), 20.0), (('VCPU', 'MEMORY_MB'), 30.0)]
)
def test_the_most_expensive_resource_class_decides(sold, price):
    """Three times the CPUs, but no more memory."""
    hosts = [A, small_cloud.host('b', vcpu=24)]
    servers = [(f's{n}', 'a', 10.0) for n in range(8)]
    found = plan(given(hosts, servers, sold=sold))
    assert found.prices['a'] == dict.fromkeys(sold, price)


@pytest.mark.parametrize(
    ('kept', 'rules'),
    [
        ({'stays': True}, ANY),
        ({'group': 'g'}, ANY),
        ({'moved_at': 50.0}, planner.MarketRules(0.0, hold_s=60.0)),
        ({'needs': {'zone': 'other'}}, ANY),
        ({'needs': {'host': 'a'}}, ANY),
    ],
)
def test_a_server_that_may_not_move_stays_and_still_pays(kept, rules):
    servers = [(f's{n}', 'a', 10.0, kept) for n in range(4)]
    found = plan(given([A, B], servers), rules, now=100.0)
    assert not found.moves
    assert found.prices['a'] == {'VCPU': 40.0}
    assert found.level == (2.0, 2.0)


def test_a_server_moves_again_after_its_hold_time():
    servers = [(f's{n}', 'a', 10.0, {'moved_at': 50.0}) for n in range(4)]
    rules = planner.MarketRules(0.0, hold_s=60.0)
    assert plan(given([A, B], servers), rules, now=110.0).moves


def test_other_servers_move_around_fixed_servers():
    servers = [
        ('s1', 'a', 30.0, {'stays': True}),
        ('s2', 'a', 10.0),
        ('s3', 'a', 10.0),
        ('s4', 'a', 10.0),
    ]
    found = plan(given([A, B], servers))
    assert {each.server for each in found.moves} == {'s2', 's3', 's4'}


def test_servers_without_a_bid_stay_and_pay_the_lowest_rate():
    made = given([A, B], [('s', 'a', 10.0), ('t', 'a', 10.0)])
    made = dataclasses.replace(made, bids={}, lowest=3.0)
    found = plan(made)
    assert not found.moves
    assert found.prices['a'] == {'VCPU': 6.0}


def test_no_server_moves_to_a_disabled_host():
    hosts = [A, small_cloud.host('b', takes=False)]
    assert not plan(given(hosts, [('s', 'a', 1.0), ('t', 'a', 1.0)])).moves


def test_a_small_improvement_causes_no_move():
    servers = [
        ('s1', 'a', 10.0),
        ('s2', 'a', 10.0),
        ('s3', 'a', 1.0),
        ('s4', 'b', 11.0),
        ('s5', 'b', 11.0),
    ]
    made = given([A, B], servers)
    before = plan(made).level[0]
    assert 1 < before < 1.001
    assert not plan(made, planner.USUAL).moves


def full(names, memory, *servers):
    hosts = [small_cloud.host(name, memory=memory) for name in names]
    made = given(
        hosts, [(uuid, at, 1.0, {'memory': 100}) for uuid, at in servers]
    )
    return arrays.MarketArrays(made, 0.0, 0.0)


def test_two_servers_that_swap_hosts_use_a_third_host():
    field = full('abc', 100, ('s1', 'a'), ('s2', 'b'))
    waves = move_order.order_moves(field, np.array([1, 0]))
    moves = move_order.moves_of_waves(field, waves)
    assert [(m.server, m.source, m.target, m.wave) for m in moves] == [
        ('s1', 'a', 'c', 1),
        ('s2', 'b', 'a', 2),
        ('s1', 'c', 'b', 3),
    ]
    assert move_order.hosts_after_waves(field, waves).tolist() == [1, 0]


def test_a_server_without_room_on_the_way_stays():
    field = full('ab', 100, ('s1', 'a'), ('s2', 'b'))
    assert move_order.order_moves(field, np.array([1, 0])) == []


def test_a_server_without_room_is_placed_before_others():
    hosts = [small_cloud.host(name, memory=500) for name in 'ab']
    servers = [
        ('s1', 'a', 4.0, {'memory': 200}),
        ('s2', 'b', 3.0, {'memory': 200}),
        ('s3', 'a', 2.0, {'memory': 300}),
        ('s4', 'b', 1.0, {'memory': 300}),
    ]
    found = plan(given(hosts, servers))
    assert not found.homeless


def test_a_server_for_which_there_is_no_room_in_thought_is_named():
    """Hosts are full to the last, and the dearest would lie apart."""
    hosts = [
        small_cloud.host('a', memory=400),
        small_cloud.host('b', memory=600),
    ]
    servers = [
        ('s0', 'a', 5.0, {'memory': 200}),
        ('s1', 'a', 5.0, {'memory': 200}),
        ('s2', 'b', 1.0, {'memory': 300}),
        ('s3', 'b', 1.0, {'memory': 300}),
    ]
    found = plan(given(hosts, servers))
    assert (found.homeless, found.moves) == ('s0', ())
    assert where(found) == {uuid: at for uuid, at, *_ in servers}


def test_vcpus_of_a_server_share_a_core_only_if_cores_are_few():
    for rates, vcpus in itertools.product(
        itertools.permutations([1.0, 5.0, 90.0]), range(1, 10)
    ):
        servers = [(f's{n}', rate, vcpus) for n, rate in enumerate(rates)]
        for found in cores.assign_cores(servers, 4).values():
            count = np.bincount(found, minlength=4)
            assert count.sum() == vcpus
            assert count.max() == math.ceil(vcpus / 4)


def test_a_cheap_server_does_not_put_all_it_has_on_the_one_cheap_core():
    """As published both of its VCPUs would go to the third core."""
    servers = [('dear', 100.0, 2), ('cheap', 1.0, 2)]
    assert cores.assign_cores(servers, 3) == {'dear': (0, 1), 'cheap': (2, 0)}


def test_the_highest_spender_chooses_first_and_others_take_the_cheapest():
    """The servers of ``tests/functional/test_rates_real.py``."""
    dear = [('wide', 200.0, 2), ('four', 120.0, 1)]
    servers = [*dear, ('three', 90.0, 1), ('two', 60.0, 1)]
    both = {'wide': (0, 1), 'four': (0,), 'three': (1,), 'two': (1,)}
    assert cores.assign_cores(servers, 2) == both
    more = {'wide': (0, 1), 'four': (2,), 'three': (3,), 'two': (3,)}
    assert cores.assign_cores(servers, 4) == more


def test_cores_are_assigned_where_they_are_known():
    servers = [('s', 'a', 2.0, {'vcpus': 2}), ('t', 'b', 2.0)]
    found = plan(given([A, B], servers, cores={'a': 4}))
    assert found.stands['s'].cores == (0, 1)
    assert found.stands['t'].cores == ()


def test_groups_move_to_hosts_by_the_cheapest_moves():
    rates = [35.0, 20.0, 30.0, 35.0, 20.0, 30.0, 5.0, 5.0]
    hosts = [A, B, C]
    servers = [
        (f's{n}', 'abc'[n % 3], rate, {'cost': 1.0 + n % 4})
        for n, rate in enumerate(rates)
    ]
    field = arrays.MarketArrays(given(hosts, servers), 0.0, 0.0)
    counts, homeless = server_groups.group_servers(field)
    assert homeless < 0
    at = group_hosts.assign_groups(field, counts, 0.0)
    paid = float(field.cost[at != field.at].sum())
    table = group_hosts.leaving_costs(field, counts)
    assert paid == min(
        sum(table[row, group] for row, group in enumerate(each))
        for each in itertools.permutations(range(3))
    )


def test_with_slack_groups_go_to_smaller_hosts_and_less_is_moved():
    hosts = [A, small_cloud.host('b', vcpu=9)]
    servers = [('s1', 'a', 11.0), ('s2', 'b', 10.0)]
    strict = plan(given(hosts, servers))
    assert [each.server for each in strict.moves] == ['s1', 's2']
    loose = plan(given(hosts, servers), planner.MarketRules(0.0, slack=0.5))
    assert not loose.moves


def test_a_market_of_an_empty_cloud_has_an_empty_plan():
    found = plan(given([A, B], []))
    assert found.moves == ()
    assert found.level == (0.0, 0.0)


BAD = {
    'rate of a bid must be above 0': lambda: market.Bid(0.0),
    'rate of a bid must be above 0 and finite, got nan': (
        lambda: market.Bid(math.nan)
    ),
    'cost of a bid must be above 0': lambda: market.Bid(1.0, cost=-1.0),
    'vcpus of a bid must be at least 1': lambda: market.Bid(1.0, vcpus=0),
    'got none': lambda: given([A], [], sold=()),
    'sold must be some of the classes VCPU, MEMORY_MB, got GPU': (
        lambda: given([A], [], sold=('GPU',))
    ),
    'lowest must be above 0': lambda: given([A], [], lowest=0.0),
    'cores of a must be at least 1': lambda: given([A], [], cores={'a': 0}),
}


@pytest.mark.parametrize(('text', 'make'), BAD.items(), ids=BAD)
def test_a_snapshot_that_is_no_market_is_named(text, make):
    with pytest.raises(exception.BadSnapshot, match=text):
        make()
