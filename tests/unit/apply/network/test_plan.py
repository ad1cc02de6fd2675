# SPDX-License-Identifier: Apache-2.0

"""Numbers of classes and filters, the sum of rates, and steps to them."""

import dataclasses

import pytest

from nova_fairness import exception
from nova_fairness.apply.network import plan
from nova_fairness.apply.network import state
from nova_fairness.model import instance
from tests.unit.apply.network import fake_network


def nic(last, before=0):
    mac = f'52:54:00:00:{before:02x}:{last:02x}'
    return instance.Nic(mac, 'bridge', f'tap{before}-{last}')


def joined(members, key, *nics, rate=1000):
    return {
        **members,
        key: plan.with_class(members, key, nics, rate),
    }


def test_each_vm_has_a_unique_number_and_freed_numbers_are_reused():
    found = joined({}, 'a', nic(1))
    found = joined(found, 'b', nic(2))
    assert [item.minor for item in found.values()] == [16, 17]
    found.pop('a')
    assert joined(found, 'c', nic(3))['c'].minor == 16


def test_a_vm_keeps_its_numbers_when_its_rate_or_interfaces_change():
    found = joined({}, 'a', nic(1), nic(2))
    faster = joined(found, 'a', nic(1), nic(2), rate=9)['a']
    assert faster.filters == found['a'].filters
    assert (faster.minor, faster.rate) == (16, 9)
    more = joined(found, 'a', nic(2), nic(3))['a']
    assert more.minor == 16
    kept = {mac: handle for handle, mac in found['a'].filters.items()}
    now = {mac: handle for handle, mac in more.filters.items()}
    assert now[nic(2).mac] == kept[nic(2).mac]
    assert set(now) == {nic(2).mac, nic(3).mac}


def test_addresses_with_the_same_last_byte_share_a_bucket_by_number():
    found = joined({}, 'a', nic(7, 1), nic(7, 2))
    found = joined(found, 'b', nic(7, 3))
    handles = [handle for item in found.values() for handle in item.filters]
    assert sorted(handles) == [(7, 1), (7, 2), (7, 3)]


@pytest.mark.parametrize('change', [str.lower, str.upper])
def test_a_second_vm_with_an_address_is_refused_by_name(change):
    found = joined({}, 'a', nic(7), nic(8))
    copied = dataclasses.replace(nic(8, 1), mac=change(nic(8).mac))
    with pytest.raises(exception.WriteRefused) as caught:
        joined(found, 'b', nic(9), copied)
    for word in ('b ', 'a ', nic(8).mac):
        assert word in str(caught.value)
    assert joined(found, 'c', nic(9))['c'].minor == 17


def test_a_vm_that_takes_an_address_while_it_runs_is_refused():
    found = joined(joined({}, 'a', nic(7)), 'b', nic(9))
    with pytest.raises(exception.WriteRefused, match='of them another'):
        joined(found, 'b', nic(9), nic(7))


def test_a_vm_may_have_one_address_twice():
    twice = dataclasses.replace(nic(7, 1), mac=nic(7).mac)
    found = joined({}, 'a', nic(7), twice)['a']
    assert list(found.filters.values()) == [nic(7).mac]
    assert found.taps == ('tap0-7', 'tap1-7')
    assert plan.has_interfaces(found, [nic(7), twice])


def filters_of(target, device, links=('tap0-7', 'tap0-8', 'up0')):
    kernel = state.Kernel(dict.fromkeys(links, 1), {}, {}, {})
    return sorted(
        operation[3:]
        for _, operation in plan.plan_steps(kernel, target, '')
        if operation[0] in ('filter', 'tap-filter') and operation[1] == device
    )


@pytest.mark.parametrize(
    ('uplink', 'at_taps', 'device', 'expected'),
    [
        ('up0', False, 'up0', 'tap0-7'),
        ('up0', False, state.IFB_IN, None),
        ('', True, state.IFB_OUT, 'tap0-7'),
        ('', True, state.IFB_IN, 'tap0-7'),
        ('up0', True, 'up0', 'tap0-7'),
        ('up0', True, state.IFB_IN, 'tap0-7'),
    ],
)
def test_an_address_of_two_vms_counts_for_the_tap_of_the_first_only(
    uplink, at_taps, device, expected
):
    members = joined(joined({}, 'a', nic(7)), 'c', nic(8))
    told = {'a': {nic(7).mac: 'tap0-7'}, 'b': {nic(7).mac: 'tap1-7'}}
    members = plan.with_duplicates(members, told)
    target = plan.NetworkTarget(uplink, at_taps, 10**6, members)
    alone = (nic(8).mac, 1, 17)
    own = [] if expected is None else [(nic(7).mac, 1, 16, expected)]
    assert filters_of(target, device) == [*own, alone]


def test_an_address_of_two_vms_without_a_tap_counts_for_neither():
    members = joined({}, 'a', nic(7))
    members = plan.with_duplicates(members, {'a': {nic(7).mac: 'gone'}})
    target = plan.NetworkTarget('up0', False, 10**6, members)
    assert filters_of(target, 'up0') == []


def test_exhausted_class_numbers_are_reported(monkeypatch):
    monkeypatch.setattr(state, 'LAST_MINOR', state.FIRST_MINOR)
    found = joined({}, 'a', nic(1))
    with pytest.raises(exception.WriteRefused, match='class'):
        joined(found, 'b', nic(2))


def member(minor, rate):
    return plan.Member(minor, {}, (), rate)


@pytest.mark.parametrize(
    ('before', 'after', 'expected', 'refused'),
    [
        ({}, {'a': 60, 'b': 40}, {'a': 60, 'b': 40}, set()),
        ({}, {'a': 60, 'b': 50}, {'a': 60}, {'b'}),
        ({'a': 50, 'b': 50}, {'a': 90, 'b': 50}, {'a': 50, 'b': 50}, {'a'}),
        ({'a': 50, 'b': 50}, {'a': 90, 'b': 10}, {'a': 90, 'b': 10}, set()),
        ({'a': 50, 'b': 50}, {'a': 99, 'b': 10}, {'a': 50, 'b': 10}, {'a'}),
        ({'a': 90, 'b': 90}, {'a': 80, 'b': 80}, {'a': 80, 'b': 80}, set()),
    ],
)
def test_the_sum_of_rates_stays_within_the_link(
    before, after, expected, refused
):
    numbers = {name: place for place, name in enumerate('abc')}

    def made(rates):
        return {n: member(numbers[n], rate) for n, rate in rates.items()}

    kept, excess = plan.within_capacity(made(before), made(after), 100)
    assert {name: item.rate for name, item in kept.items()} == expected
    assert excess == refused


def test_rates_of_recorded_vms_come_from_the_kernel():
    tree = state.ClassTree({16: state.Class(5000, 0, 0)}, {})
    found = plan.with_rates_of({'a': member(16, 0), 'b': member(17, 0)}, tree)
    assert {key: item.rate for key, item in found.items()} == {
        'a': 5000,
        'b': 1000,
    }


LINK = 1_000_000


def some_members(*rates):
    found = {}
    for number, rate in enumerate(rates, 1):
        nic = instance.Nic(f'52:54:00:00:00:{number:02x}', 'bridge', 'tap')
        key = f'vm{number}'
        found[key] = plan.with_class(found, key, [nic], rate)
    return found


WHERE = {
    'uplink': ('eth1', False),
    'taps': ('', True),
    'both': ('eth1', True),
}


def target(*rates, where='uplink'):
    return plan.NetworkTarget(*WHERE[where], LINK, some_members(*rates))


@pytest.mark.parametrize('where', WHERE)
@pytest.mark.parametrize('rates', [(), (1000,), (1000, 500_000, 2000)])
def test_completed_steps_are_not_planned_again(where, rates):
    kernel = fake_network.FakeNetwork('eth1', 'tap')
    wanted = target(*rates, where=where)
    steps = plan.plan_steps(kernel.read(), wanted, '')
    assert kernel.run([item for _, item in steps]) == [''] * len(steps)
    assert plan.plan_steps(kernel.read(), wanted, 'eth1') == ()


@pytest.mark.parametrize('where', WHERE)
@pytest.mark.parametrize('before', WHERE)
def test_a_new_layout_replaces_the_earlier_layout(where, before):
    kernel = fake_network.FakeNetwork('eth1', 'tap')
    for name in (before, where):
        wanted = target(1000, 2000, where=name)
        steps = plan.plan_steps(kernel.read(), wanted, 'eth1')
        assert kernel.run([item for _, item in steps]) == [''] * len(steps)
    assert plan.plan_steps(kernel.read(), wanted, 'eth1') == ()
    uplink, at_taps = WHERE[where]
    assert set(kernel.trees) == {uplink or 'nfair-out', 'nfair-in'}
    assert ('eth1' in kernel.redirects) is not at_taps


@pytest.mark.parametrize('where', WHERE)
def test_an_empty_plan_removes_all_classes(where):
    kernel = fake_network.FakeNetwork('eth1', 'tap')
    for wanted in (target(1000, 2000, where=where), target(where=where)):
        steps = plan.plan_steps(kernel.read(), wanted, 'eth1')
        assert kernel.run([item for _, item in steps]) == [''] * len(steps)
    assert kernel.trees == {}
    assert kernel.redirects == {}
    assert set(kernel.links) == {'eth1', 'tap'}


def test_each_step_names_its_vm():
    kernel = fake_network.FakeNetwork('eth1', 'tap')
    steps = plan.plan_steps(kernel.read(), target(1000, 2000), '')
    of_vms = {
        (key, operation[2] if operation[0] == 'class' else operation[3])
        for key, operation in steps
        if operation[0] in ('class', 'filter') and key
    }
    assert of_vms == {
        ('vm1', 16),
        ('vm1', '52:54:00:00:00:01'),
        ('vm2', 17),
        ('vm2', '52:54:00:00:00:02'),
    }


def test_a_class_is_removed_after_its_filters():
    kernel = fake_network.FakeNetwork('eth1', 'tap')
    kernel.run(
        item for _, item in plan.plan_steps(kernel.read(), target(5000), '')
    )
    only = {'x': some_members(1, 5000)['vm2']}
    other = plan.NetworkTarget('eth1', False, LINK, only)
    steps = plan.plan_steps(kernel.read(), other, 'eth1')
    names = [item[0] for _, item in steps if item[1] == 'eth1']
    assert names.index('no-filter') < names.index('no-class')
    assert names.index('class') < names.index('filter')


@pytest.mark.parametrize(
    ('rates', 'least'),
    [([1_000], 0.002), ([12_000_000], 0.002), ([10**10], 0.001)],
)
def test_the_slowest_class_sends_whole_packets_in_its_turn(rates, least):
    seconds = plan.quantum_time(rates)
    assert seconds >= least
    assert seconds * min(rates) >= 16000


def quanta(*rates, link=10**10):
    """Quantum by rate of the classes of VMs, and that of the rest."""
    members = {
        str(number): plan.Member(16 + number, {}, (), rate)
        for number, rate in enumerate(rates)
    }
    tree = plan.wanted_tree(plan.NetworkTarget('eth1', False, link, members))
    return {
        item.rate: item.quantum
        for minor, item in tree.classes.items()
        if minor != state.TRUNK
    }


@pytest.mark.parametrize('slow', [1000, 1001, 50_000])
@pytest.mark.parametrize('fast', [10**6, 10**8, 4 * 10**8])
def test_weights_hold_beside_a_vm_that_is_very_slow(slow, fast):
    found = quanta(slow, fast, 2 * fast, 20 * fast)
    assert found[2 * fast] == pytest.approx(2 * found[fast], rel=0.01)
    assert found[20 * fast] == pytest.approx(20 * found[fast], rel=0.01)
    assert found[slow] <= max(2000, found[fast] * slow / fast * 1.01)


def test_the_default_class_keeps_its_rate_beside_slow_vms():
    found = quanta(1000, 10**6, link=10**8)
    rest = max(found)
    assert found[rest] < 1 << 24
    assert found[rest] == pytest.approx(found[10**6] * rest / 10**6, rel=0.01)


def test_small_rate_changes_keep_the_quanta():
    assert plan.quantum_time([500_000]) == plan.quantum_time(
        [501_000, 900_000]
    )


@pytest.mark.parametrize('rate', [1000, 10**6, 10**10])
def test_a_burst_covers_late_timers(rate):
    assert plan.burst(rate) >= max(16000, 0.002 * rate)


def test_foreign_trees_and_filters_are_ignored():
    kernel = fake_network.FakeNetwork('eth0', 'eth1', 'tap')
    kernel.add_qdisc('eth0', 'htb', 1, 'root')
    kernel.add_qdisc('tap', 'ingress', 0xFFFF, 'ingress')
    kernel.redirects['tap'] = '', 3
    kernel.add_qdisc('eth0', 'clsact', 0xFFFF, 'ingress', (7, 8))
    assert plan.plan_steps(kernel.read(), target(), '') == ()
    assert plan.plan_steps(kernel.read(), target(), 'tap') == ()


def test_the_default_class_keeps_a_minimum_rate():
    tree = plan.wanted_tree(target(LINK))
    assert tree.classes[state.REST].rate == 1
