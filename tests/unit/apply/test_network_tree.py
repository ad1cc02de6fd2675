# SPDX-License-Identifier: Apache-2.0

"""Steps lead from what is to what shall be, and are none where it is."""

import pytest

from nova_fairness.apply import network_members
from nova_fairness.apply.network import plan
from nova_fairness.apply.network import state
from nova_fairness.model import instance
from tests.unit.apply import fake_network

LINK = 1_000_000


def members(*rates):
    found = {}
    for number, rate in enumerate(rates, 1):
        nic = instance.Nic(f'52:54:00:00:00:{number:02x}', 'bridge', 'tap')
        key = f'vm{number}'
        found[key] = network_members.admitted(found, key, [nic], rate)
    return found


WHERE = {
    'uplink': ('eth1', False),
    'taps': ('', True),
    'both': ('eth1', True),
}


def target(*rates, where='uplink'):
    return plan.Target(*WHERE[where], LINK, members(*rates))


@pytest.mark.parametrize('where', WHERE)
@pytest.mark.parametrize('rates', [(), (1000,), (1000, 500_000, 2000)])
def test_what_was_done_needs_not_be_done_again(where, rates):
    kernel = fake_network.FakeNetwork('eth1', 'tap')
    wanted = target(*rates, where=where)
    steps = plan.plan(kernel.read(), wanted, '')
    assert kernel.run([item for _, item in steps]) == [''] * len(steps)
    assert plan.plan(kernel.read(), wanted, 'eth1') == ()


@pytest.mark.parametrize('where', WHERE)
@pytest.mark.parametrize('before', WHERE)
def test_another_place_replaces_what_was_before(where, before):
    kernel = fake_network.FakeNetwork('eth1', 'tap')
    for name in (before, where):
        wanted = target(1000, 2000, where=name)
        steps = plan.plan(kernel.read(), wanted, 'eth1')
        assert kernel.run([item for _, item in steps]) == [''] * len(steps)
    assert plan.plan(kernel.read(), wanted, 'eth1') == ()
    uplink, at_taps = WHERE[where]
    assert set(kernel.trees) == {uplink or 'nfair-out', 'nfair-in'}
    assert ('eth1' in kernel.redirects) is not at_taps


@pytest.mark.parametrize('where', WHERE)
def test_nothing_is_left_for_nobody(where):
    kernel = fake_network.FakeNetwork('eth1', 'tap')
    for wanted in (target(1000, 2000, where=where), target(where=where)):
        steps = plan.plan(kernel.read(), wanted, 'eth1')
        assert kernel.run([item for _, item in steps]) == [''] * len(steps)
    assert kernel.trees == {}
    assert kernel.redirects == {}
    assert set(kernel.links) == {'eth1', 'tap'}


def test_each_step_names_its_vm():
    kernel = fake_network.FakeNetwork('eth1', 'tap')
    steps = plan.plan(kernel.read(), target(1000, 2000), '')
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


def test_a_class_goes_after_its_filters():
    kernel = fake_network.FakeNetwork('eth1', 'tap')
    kernel.run(item for _, item in plan.plan(kernel.read(), target(5000), ''))
    only = {'x': members(1, 5000)['vm2']}
    other = plan.Target('eth1', False, LINK, only)
    steps = plan.plan(kernel.read(), other, 'eth1')
    names = [item[0] for _, item in steps if item[1] == 'eth1']
    assert names.index('no-filter') < names.index('no-class')
    assert names.index('class') < names.index('filter')


@pytest.mark.parametrize(
    ('rates', 'least'),
    [([1_000], 0.002), ([12_000_000], 0.002), ([10**10], 0.002)],
)
def test_the_slowest_class_sends_whole_packets_in_its_turn(rates, least):
    seconds = plan.quantum_time(rates)
    assert seconds >= least
    assert seconds * min(rates) >= 16000


def test_small_changes_leave_the_quanta_alone():
    assert plan.quantum_time([500_000]) == plan.quantum_time(
        [501_000, 900_000]
    )


@pytest.mark.parametrize('rate', [1000, 10**6, 10**10])
def test_a_burst_bears_late_timers(rate):
    assert plan.burst(rate) >= max(16000, 0.002 * rate)


def test_foreign_trees_and_filters_are_nobodys_business():
    kernel = fake_network.FakeNetwork('eth0', 'eth1', 'tap')
    kernel.add_qdisc('eth0', 'htb', 1, 'root')
    kernel.add_qdisc('tap', 'ingress', 0xFFFF, 'ingress')
    kernel.redirects['tap'] = '', 3
    kernel.add_qdisc('eth0', 'clsact', 0xFFFF, 'ingress', (7, 8))
    assert plan.plan(kernel.read(), target(), '') == ()
    assert plan.plan(kernel.read(), target(), 'tap') == ()


def test_the_rest_never_goes_below_something():
    tree = plan.tree(target(LINK))
    assert tree.classes[state.REST].rate == 1
