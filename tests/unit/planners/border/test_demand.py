# SPDX-License-Identifier: Apache-2.0

import random

import pytest

from nova_fairness.model import border as border_module
from nova_fairness.planners.border import calendars
from nova_fairness.planners.border import demand
from nova_fairness.planners.border import planner
from tests.fixtures import border

NOW = 1_000_000.0
LONG = NOW - 400
HOUR = 3600.0
E, C = border_module.HostEvent, border_module.HostCause


def moved_hosts(*nodes, rules=None, **more):
    """Names of hosts that are asked to move, in order; '-' before others."""
    plan = planner.plan(
        border.snapshot(*nodes, **more), NOW, rules or demand.BorderRules()
    )
    return [
        each.host if each.step is E.ASK else f'-{each.host}'
        for each in plan.actions
    ]


def hosts_in_state(count, state='batch', cores=8):
    return [border.node(f'{state[0]}{n}', state, cores) for n in range(count)]


def waiting_job(cores, since=LONG):
    return [border.wanting_job(cores, since)]


@pytest.mark.parametrize(
    ('batch', 'cloud', 'expected'),
    [
        ([], [], []),
        # As many hosts as wanted cores fill.
        ([], waiting_job(1), ['b0']),
        ([], waiting_job(8), ['b0']),
        ([], waiting_job(9), ['b0', 'b1']),
        # The other side needs them, however short it waits.
        (waiting_job(16, NOW), waiting_job(8), ['b0']),
        (waiting_job(17, NOW), waiting_job(8), []),
        (waiting_job(24), waiting_job(8), []),
        # Nothing moves for what only began to wait.
        ([], waiting_job(8, NOW - 299), []),
        ([], waiting_job(8, NOW - 300), ['b0']),
        # Nor for what is to begin later, nor is anything kept for it.
        ([], waiting_job(8, NOW + 1), []),
        (waiting_job(24, NOW + 1), waiting_job(8), ['b0']),
        # Nor for what no number of hosts could hold.
        ([], waiting_job(25), []),
    ],
)
def test_hosts_move_to_the_side_with_waiting_requests(batch, cloud, expected):
    rules = demand.BorderRules(most_moving=9)
    hosts = hosts_in_state(3)
    assert (
        moved_hosts(*hosts, batch=batch, cloud=cloud, rules=rules) == expected
    )
    turned = hosts_in_state(3, 'cloud')
    there = [name.replace('b', 'c') for name in expected]
    assert moved_hosts(*turned, batch=cloud, cloud=batch, rules=rules) == there


def test_room_that_a_side_has_is_used_before_hosts_move():
    assert (
        moved_hosts(
            *hosts_in_state(2),
            *hosts_in_state(1, 'cloud'),
            cloud=waiting_job(8),
        )
        == []
    )
    assert moved_hosts(
        *hosts_in_state(2), *hosts_in_state(1, 'cloud'), cloud=waiting_job(9)
    ) == ['b0']


def half_used_host(name):
    """A host of the cloud half of which is in use."""
    used_host = border.usage_at(border.work(cores=4))
    return border.node(name, 'cloud'), border.CLOSED, used_host


@pytest.mark.parametrize(
    ('want', 'expected'),
    [
        # Eight cores are free, four on each of two hosts.
        ({'cores': 8}, []),
        ({'cores': 8, 'part': 4}, []),
        ({'cores': 8, 'part': 8}, ['b0']),
        ({'cores': 6, 'part': 3}, []),
        ({'cores': 9, 'part': 3}, ['b0']),
        ({'cores': 12, 'part': 6}, ['b0', 'b1']),
        # What no host can hold moves none.
        ({'cores': 9, 'part': 9}, ['b0']),
        ({'cores': 7.5, 'part': 0.1}, []),
    ],
)
def test_a_large_request_gets_a_host_that_can_hold_it(want, expected):
    nodes = half_used_host('c0'), half_used_host('c1'), *hosts_in_state(3)
    wants = [border.wanting_job(since=LONG, **want)]
    assert moved_hosts(*nodes, cloud=wants) == expected


def test_any_number_of_parts_is_placed_at_once():
    wants = [border.wanting_job(24, LONG, part=24 / 10**12)] * 100_000
    found = demand.side_balance(
        border.snapshot(*hosts_in_state(3), batch=wants),
        border_module.BorderSide.BATCH,
        NOW,
        0.0,
    )
    assert found.unplaced == pytest.approx(24 * 99_999)


def unplaced_cores(free, parts):
    """Place the largest part first, on the host that it fits best.

    :returns: cores of the parts that have no room.
    """
    left, missing = list(free), 0.0
    for part in sorted(parts, reverse=True):
        fitting = [each for each in left if each >= part - 1e-9]
        if fitting:
            left.remove(min(fitting))
            left.append(min(fitting) - part)
        else:
            missing += part
    return missing


@pytest.mark.parametrize('seed', range(200))
def test_parts_are_placed_as_if_one_after_the_other(seed):
    chance = random.Random(seed)
    cores = [chance.choice([2, 4, 8, 7.5]) for _ in range(3)]
    wants, parts = [], []
    for _ in range(chance.randrange(1, 9)):
        part = chance.choice([0.1, 0.5, 1, 1.5, 3, 4])
        count = chance.randrange(1, 4)
        if part * count <= sum(cores):
            wants.append(border.wanting_job(part * count, LONG, part=part))
            parts += [part] * count
    nodes = [border.node(f'b{n}', cores=c) for n, c in enumerate(cores)]
    found = demand.side_balance(
        border.snapshot(*nodes, batch=wants),
        border_module.BorderSide.BATCH,
        NOW,
        0.0,
    )
    parts = [part for part in parts if part <= max(cores)]
    assert found.unplaced == pytest.approx(unplaced_cores(cores, parts))


def test_a_request_that_waited_shortly_needs_no_host_to_itself():
    wants = [border.wanting_job(8, NOW, part=8)]
    assert (
        moved_hosts(
            half_used_host('c0'),
            half_used_host('c1'),
            *hosts_in_state(1),
            cloud=wants,
        )
        == []
    )


def test_a_large_request_gets_no_host_that_is_missed_elsewhere():
    wants = [border.wanting_job(8, LONG, part=8)]
    waits_there = waiting_job(8, NOW)
    nodes = half_used_host('c0'), half_used_host('c1'), *hosts_in_state(1)
    assert moved_hosts(*nodes, batch=waits_there, cloud=wants) == []


def test_hosts_in_use_do_not_count_as_spare():
    full = border.usage_at(border.work(cores=8, gone_at=NOW + HOUR))
    nodes = [(node, full, border.CLOSED) for node in hosts_in_state(2)]
    assert moved_hosts(*nodes, cloud=waiting_job(8)) == []
    free = border.node('free')
    assert moved_hosts(*nodes, free, cloud=waiting_job(8)) == ['free']


def test_spare_cores_are_kept():
    rules = demand.BorderRules(spare_cores=9)
    assert moved_hosts(
        *hosts_in_state(3), cloud=waiting_job(16), rules=rules
    ) == ['b0']


@pytest.mark.parametrize('place', [border.FOREIGN, border.DOWN, None], ids=str)
def test_a_host_that_a_side_cannot_use_does_not_count_for_it(place):
    unusable = border.node('x', 'cloud'), border.CLOSED, place
    assert moved_hosts(unusable, *hosts_in_state(2), cloud=waiting_job(8))[
        -1:
    ] == ['b0']


def test_a_host_stays_for_a_while_where_it_came_to():
    fresh = border.node('a', since=NOW - HOUR + 1)
    assert moved_hosts(fresh, cloud=waiting_job(8)) == []
    assert moved_hosts(
        fresh, border.node('b', since=NOW - HOUR), cloud=waiting_job(8)
    ) == ['b']


def test_no_more_hosts_are_on_their_way_than_allowed():
    nodes = hosts_in_state(5)
    assert moved_hosts(*nodes, cloud=waiting_job(40)) == ['b0', 'b1']
    rules = demand.BorderRules(most_moving=1)
    leaving_host = border.node('l', 'leaving_batch', until=NOW + 1)
    held = border.usage_at(border.work(), place=border.CLOSED)
    on_its_way = leaving_host, held, border.CLOSED
    assert (
        moved_hosts(*nodes, on_its_way, cloud=waiting_job(40), rules=rules)
        == []
    )


def after_moves(name, count, ago):
    node = border.node(name)
    for _ in range(count):
        node = node.stepped(E.ASK, NOW - ago, C.DEMAND)
        node = node.stepped(E.CANCEL, NOW - ago, C.DEMAND)
    return node


def test_a_host_moves_only_so_often_within_a_day():
    day = demand.DAY_S
    assert (
        moved_hosts(after_moves('a', 3, day - 1), cloud=waiting_job(8)) == []
    )
    assert moved_hosts(after_moves('a', 2, day - 1), cloud=waiting_job(8)) == [
        'a'
    ]
    assert moved_hosts(after_moves('a', 3, day), cloud=waiting_job(8)) == ['a']


def used_host(name, *works, **more):
    return border.node(name, **more), border.usage_at(*works), border.CLOSED


def test_the_host_with_the_least_idle_drain_moves():
    """Core-seconds idle: 8 * 4 h - 32 h = 0; 8 * 1 h - 1 h = 7 h."""
    nodes = [
        used_host('long', border.work(cores=1, gone_at=NOW + 9 * HOUR)),
        used_host('short', border.work(cores=1, gone_at=NOW + HOUR)),
        used_host('whole', border.work(cores=8, gone_at=NOW + 4 * HOUR)),
    ]
    rules = demand.BorderRules(most_moving=9)
    room = border.node('f', fixed=True, cores=10)
    assert moved_hosts(*nodes, room, cloud=waiting_job(8), rules=rules) == [
        'whole'
    ]
    room = border.node('f', fixed=True, cores=99)
    assert moved_hosts(*nodes, room, cloud=waiting_job(24), rules=rules) == [
        'whole',
        'short',
        'long',
    ]


def test_of_equal_drains_the_one_that_moves_fewest_vms_is_taken():
    def host(name, *ways):
        works = [
            border.work(f'{name}{n}', 1, NOW, way)
            for n, way in enumerate(ways)
        ]
        node = border.node(name, 'cloud')
        return node, border.CLOSED, border.usage_at(*works)

    nodes = host('a', 'moves', 'yields'), host('b', 'moves')
    room = border.node('room', 'cloud', fixed=True)
    assert moved_hosts(*nodes, room, batch=waiting_job(8)) == ['b']


def test_vms_that_move_need_room_on_their_own_side():
    vms = border.usage_at(border.work(cores=8, gone_at=NOW, way='moves'))
    full = [(border.node(name, 'cloud'), border.CLOSED, vms) for name in 'ab']
    assert moved_hosts(*full, batch=waiting_job(8)) == []
    free = border.node('free', 'cloud')
    assert moved_hosts(*full, free, batch=waiting_job(8)) == ['free']


def test_a_host_whose_drain_would_not_end_in_time_is_not_taken():
    late = used_host('late', border.work(cores=1, gone_at=NOW + 2 * HOUR))
    never = used_host('never', border.work(cores=1))
    room = border.node('room', fixed=True)
    rules = demand.BorderRules(ttl_s=HOUR)
    assert (
        moved_hosts(late, never, room, cloud=waiting_job(8), rules=rules) == []
    )
    rules = demand.BorderRules(ttl_s=2 * HOUR)
    assert moved_hosts(
        late, never, room, cloud=waiting_job(8), rules=rules
    ) == ['late']


def test_vms_without_an_end_hold_a_host_unless_they_may_be_ended():
    vm = border.usage_at(border.work(cores=1))
    host = border.node('a', 'cloud'), border.CLOSED, vm
    room = border.node('room', 'cloud', fixed=True)
    assert moved_hosts(host, room, batch=waiting_job(8)) == []
    rules = demand.BorderRules(end_vms=True)
    assert moved_hosts(host, room, batch=waiting_job(8), rules=rules) == ['a']
    job = used_host('b', border.work(cores=1))
    spare = border.node('spare', fixed=True)
    assert moved_hosts(job, spare, cloud=waiting_job(8), rules=rules) == []


def test_fixed_and_obstructed_hosts_are_not_taken():
    fixed = border.node('a', fixed=True)
    obstructed = border.node('b'), border.OPEN, border.FOREIGN
    assert moved_hosts(fixed, obstructed, cloud=waiting_job(8)) == []


def leaving_host(name, state, *, cause=C.DEMAND, gone_at=NOW + HOUR):
    asked = border.node(name, 'batch').stepped(E.ASK, 0.0, cause)
    node = (
        asked
        if state == 'cloud_asked'
        else asked.stepped(E.ACCEPT, 0.0, C.CHECKED, until=NOW + HOUR)
    )
    place = border.CLOSED if state == 'leaving_batch' else border.OPEN
    held = border.usage_at(border.work(gone_at=gone_at), place=place)
    return node, held, border.CLOSED


@pytest.mark.parametrize('state', ['cloud_asked', 'leaving_batch'])
def test_a_host_on_the_way_comes_back_if_it_is_missed(state):
    assert moved_hosts(leaving_host('a', state), batch=waiting_job(8)) == [
        '-a'
    ]
    plan = planner.plan(
        border.snapshot(leaving_host('a', state), batch=waiting_job(1)), NOW
    )
    assert plan.actions[0].step is E.CANCEL
    by_hand = leaving_host('a', state, cause=C.OPERATOR)
    plan = planner.plan(border.snapshot(by_hand, batch=waiting_job(1)), NOW)
    assert E.CANCEL not in [each.step for each in plan.actions]


def test_the_host_with_longest_to_go_comes_back_first():
    near = leaving_host('near', 'leaving_batch', gone_at=NOW + 60)
    far = leaving_host('far', 'leaving_batch', gone_at=NOW + HOUR)
    assert moved_hosts(near, far, batch=waiting_job(8)) == ['-far']


def test_while_both_sides_lack_hosts_the_border_stays_where_it_is_put():
    full = border.usage_at(border.work(cores=8, gone_at=NOW + HOUR))
    nodes = [(node, full, border.CLOSED) for node in hosts_in_state(3)]
    both = {'batch': waiting_job(8), 'cloud': waiting_job(8)}
    assert moved_hosts(*nodes, **both) == []
    rules = demand.BorderRules(contended=1)
    assert moved_hosts(*nodes, **both, rules=rules) == ['b0']
    there = border.node('c', 'cloud')
    cloud = border.usage_at(border.work('vm', 8, NOW + HOUR))
    there = there, border.CLOSED, cloud
    assert moved_hosts(*nodes, there, **both, rules=rules) == []


@pytest.mark.parametrize(
    ('hosts', 'expected'),
    [(0, ['c0']), (1, []), (2, ['b0']), (99, ['b0', 'b1'])],
)
def test_a_target_by_hand_says_how_many_hosts_the_cloud_has(hosts, expected):
    target = border_module.CloudTarget(hosts)
    nodes = *hosts_in_state(2), *hosts_in_state(1, 'cloud')
    assert moved_hosts(*nodes, target=target, batch=waiting_job(8)) == expected


def test_a_target_comes_before_the_calendar_and_that_before_demand():
    always = calendars.CalendarWindow('* * * * *', 60, 1)
    rules = demand.BorderRules(windows=(always,))
    assert moved_hosts(*hosts_in_state(2), rules=rules) == ['b0']
    assert moved_hosts(
        *hosts_in_state(2), rules=rules, cloud=waiting_job(16)
    ) == ['b0']
    target = border_module.CloudTarget(0)
    assert moved_hosts(*hosts_in_state(2), rules=rules, target=target) == []
    plan = planner.plan(border.snapshot(*hosts_in_state(2)), NOW, rules)
    assert plan.actions[0].cause is C.CALENDAR
    assert 'has 0 hosts and is to have 1' in plan.actions[0].text


def test_numbers_of_demand_are_reported():
    plan = planner.plan(
        border.snapshot(*hosts_in_state(2), cloud=waiting_job(8)), NOW
    )
    assert plan.actions[0].text == ('cloud lacks 8 cores, batch can spare 16')
    assert plan.actions[0].cause is C.DEMAND
