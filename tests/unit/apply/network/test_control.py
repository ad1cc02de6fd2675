# SPDX-License-Identifier: Apache-2.0

"""Classes of VMs: what is made, repaired, refused and taken away."""

import pathlib

import pytest

from nova_fairness import exception
from nova_fairness.apply.network import control as network
from nova_fairness.apply.network import settings as network_settings
from nova_fairness.apply.network import state
from nova_fairness.model import allocation
from nova_fairness.model import instance
from nova_fairness.model import resources
from tests.unit.apply.network import fake_network

BANDWIDTH = 1e6
UPLINK = network_settings.SteeringKind.UPLINK
TAP = network_settings.SteeringKind.TAP


def key(name):
    return f'{name}/1/1'


def change(name, rate):
    knob = allocation.Knob(key(name), resources.ResourceControl.NETWORK)
    return allocation.Change(knob, None, rate)


def mac(number, nic=0):
    return f'52:54:00:00:{nic:02x}:{number:02x}'


class Host:
    """A control over a network in memory."""

    def __init__(self, tmp_path, layout, uplink=''):
        self.sys = tmp_path / 'net'
        self.record = tmp_path / 'network.json'
        self.layout = layout
        self.uplink = uplink
        self.kernel = fake_network.FakeNetwork('eth1', 'br0', 'lo')
        for name in ('eth1', 'br0', 'lo'):
            (self.sys / name).mkdir(parents=True)
        (self.sys / 'eth1' / 'upper_br0').symlink_to('../br0')
        self.kernel.add_qdisc('eth1', 'mq', 0, 'root')
        self.vms = {}
        self.ended = set()
        self.control = self.new()

    def new(self, **settings):
        given = {
            'layout': self.layout,
            'uplink': self.uplink,
            'bandwidth': BANDWIDTH,
            'link_part': 1.0,
            **settings,
        }
        self.control = network.NetworkClasses(
            network_settings.NetworkSettings(**given),
            lambda: list(self.vms.values()),
            self.record,
            runner=self.kernel.run,
            read_kernel=self.kernel.read,
            sys=self.sys,
            is_running=lambda found: found not in self.ended,
        )
        return self.control

    def start(self, name, number, nics=1):
        found = tuple(
            instance.Nic(mac(number, nic), 'bridge', f'tap{number}-{nic}')
            for nic in range(nics)
        )
        for nic in found:
            self.kernel.links[nic.tap] = len(self.kernel.links) + 1
            (self.sys / nic.tap).mkdir()
            (self.sys / nic.tap / 'master').symlink_to('../br0')
        self.set_vm(name, found)

    def set_vm(self, name, nics):
        vm = instance.Instance(name, name, 1, 1, nics=tuple(nics))
        self.vms[name] = instance.Incarnation(vm, 1, 1)

    def end(self, name):
        gone = self.vms.pop(name)
        self.ended.add(gone.key)
        for nic in gone.instance.nics:
            self.kernel.unplug(nic.tap)

    def read(self):
        keys = [item.key for item in self.vms.values()]
        values = self.control.read(keys)
        return {found.split('/')[0]: rate for found, rate in values.items()}

    def write(self, **rates):
        self.read()
        done = self.control.write([change(*pair) for pair in rates.items()])
        return {
            item.change.knob.incarnation.split('/')[0]: 'gone'
            if item.gone
            else item.error
            for item in done
            if not item.written
        }

    @property
    def trees(self):
        first = self.uplink or state.IFB_OUT
        return [self.kernel.trees[name] for name in (first, state.IFB_IN)]

    def is_bare(self):
        return (
            not self.kernel.trees
            and not self.kernel.redirects
            and not set(state.IFBS) & set(self.kernel.links)
        )


@pytest.fixture(
    params=[(UPLINK, 'eth1'), (TAP, ''), (TAP, 'eth1')],
    ids=['uplink', 'tap', 'both'],
)
def host(request, tmp_path):
    return Host(tmp_path, *request.param)


@pytest.fixture
def uplink(tmp_path):
    return Host(tmp_path, UPLINK, 'eth1')


@pytest.fixture
def tap(tmp_path):
    return Host(tmp_path, TAP)


def test_a_vm_is_found_without_a_class_and_gets_one_both_ways(host):
    host.start('a', 1)
    host.start('b', 2)
    assert host.read() == {'a': 0, 'b': 0}
    assert host.write(a=100_000, b=300_000) == {}
    assert host.read() == {'a': 100_000, 'b': 300_000}
    for tree in host.trees:
        rates = sorted(item.rate for item in tree.classes.values())
        assert rates == [100_000, 300_000, 600_000, 1_000_000]
        leads = {item.mac: item.minor for item in tree.filters.values()}
        assert tree.classes[leads[mac(2)]].rate == 300_000


def test_the_default_class_gets_the_remaining_rate_of_the_link(host):
    host.start('a', 1)
    host.write(a=700_000)
    for tree in host.trees:
        own = tree.classes[state.TRUNK].rate
        below = sum(item.rate for item in tree.classes.values()) - own
        assert below == own == BANDWIDTH


def test_quanta_are_in_proportion_to_rates(host):
    host.start('a', 1)
    host.start('b', 2)
    host.write(a=100_000, b=300_000)
    by_rate = {item.rate: item for item in host.trees[0].classes.values()}
    slow, fast = by_rate[100_000], by_rate[300_000]
    assert fast.quantum == pytest.approx(3 * slow.quantum, rel=0.01)
    assert slow.quantum >= 16000


def test_a_change_writes_only_differences(host):
    host.start('a', 1)
    host.start('b', 2)
    host.write(a=100_000, b=300_000)
    host.kernel.done.clear()
    host.write(a=100_000, b=310_000)
    minor = max(host.trees[0].classes.keys() - {state.REST})
    written = [item[0] for item in host.kernel.done]
    assert written == ['class'] * 4
    assert {item[2] for item in host.kernel.done} == {minor, state.REST}


def test_rates_never_exceed_the_link_between_two_states(host):
    host.start('a', 1)
    host.start('b', 2)
    host.write(a=100_000, b=800_000)
    host.kernel.done.clear()
    host.write(a=800_000, b=100_000)
    rates = {minor: c.rate for minor, c in host.trees[0].classes.items()}
    rates = {**rates, 16: 100_000, 17: 800_000}
    device = host.uplink or state.IFB_OUT
    for item in host.kernel.done:
        if item[:2] == ('class', device):
            rates[item[2]] = item[3]
            assert sum(rates.values()) - rates[state.TRUNK] <= BANDWIDTH


def test_all_interfaces_of_a_vm_share_its_class(host):
    host.start('a', 1, nics=3)
    assert host.write(a=100_000) == {}
    filters = host.trees[1].filters.values()
    assert {item.mac for item in filters} == {mac(1, n) for n in range(3)}
    assert len({item.minor for item in filters}) == 1


def test_a_hotplugged_interface_gets_the_class_of_its_vm(host):
    host.start('a', 1)
    host.write(a=100_000)
    host.vms.pop('a')
    (host.sys / 'tap1-0' / 'master').unlink()
    (host.sys / 'tap1-0').rmdir()
    host.start('a', 1, nics=2)
    assert host.read() == {'a': 0}
    host.write(a=100_000)
    assert host.read() == {'a': 100_000}
    assert len(host.trees[0].filters) == 2


@pytest.mark.parametrize(
    'spoil',
    [
        'class',
        'filter',
        'quantum',
        'table',
        'tree',
        'redirect',
        'trunk',
        'ifb',
    ],
)
def test_a_change_by_hand_is_detected_and_repaired(host, spoil):
    host.start('a', 1)
    host.start('b', 2)
    host.write(a=100_000, b=300_000)
    spoiled(host.kernel, spoil)
    assert host.read()['a'] == 0
    assert host.write(a=100_000, b=300_000) == {}
    assert host.read() == {'a': 100_000, 'b': 300_000}


def spoiled(kernel, what):
    tree = kernel.trees[state.IFB_IN]
    classes, filters = dict(tree.classes), dict(tree.filters)
    if what == 'class':
        classes[16] = state.Class(1, 1_000_000, classes[16].quantum)
    elif what == 'quantum':
        classes[16] = state.Class(100_000, 1_000_000, 1600)
    elif what == 'trunk':
        classes[state.TRUNK] = state.Class(5, 5, 60000)
    elif what == 'filter':
        filters.pop((1, 1))
    kernel.trees[state.IFB_IN] = state.ClassTree(
        classes, filters, has_table=what != 'table'
    )
    if what == 'tree':
        kernel.run([('no-root', state.IFB_IN)])
    elif what == 'ifb':
        kernel.unplug(state.IFB_IN)
        kernel.redirects = dict.fromkeys(kernel.redirects, ('', 0))
    elif what == 'redirect':
        kernel.redirects = dict.fromkeys(kernel.redirects, ('', 0))


def test_a_vm_that_ended_between_reading_and_writing_harms_no_other(host):
    host.start('a', 1)
    host.start('b', 2)
    host.read()
    host.end('a')
    done = host.control.write([change('a', 100_000), change('b', 300_000)])
    assert [item.gone for item in done] == [True, False]
    assert done[1].written
    assert host.read() == {'b': 300_000}


def test_a_vm_that_replaces_the_last_vm_gets_its_class(host):
    host.start('a', 1)
    host.write(a=100_000)
    host.vms.pop('a')
    host.ended.add(key('a'))
    host.start('b', 2)
    assert host.write(b=200_000) == {}
    assert host.read() == {'b': 200_000}


def test_a_tap_that_vanished_fails_its_own_vm_only(tap):
    tap.start('a', 1)
    tap.start('b', 2)
    tap.read()
    tap.kernel.unplug('tap1-0')
    done = tap.control.write([change('a', 100_000), change('b', 300_000)])
    assert 'tap1-0' in done[0].error
    assert done[1].written


def test_the_class_of_an_ended_vm_is_removed_in_the_next_round(host):
    host.start('a', 1)
    host.start('b', 2)
    host.write(a=100_000, b=300_000)
    host.end('a')
    assert host.control.settle() == ()
    assert len(host.trees[0].classes) == 3
    assert host.read() == {'b': 300_000}


def test_a_refusal_of_the_kernel_is_an_error_of_its_vm_only(uplink):
    uplink.start('a', 1)
    uplink.start('b', 2)
    uplink.write(a=100_000, b=300_000)
    uplink.vms.pop('a')
    uplink.set_vm('a', [instance.Nic(mac(9), 'bridge', 'tap1-0')])
    uplink.kernel.broken = {('filter', 'eth1')}
    failed = uplink.write(a=100_000, b=300_000)
    assert list(failed) == ['a']
    assert 'it is broken' in failed['a']


def test_trees_are_removed_with_the_last_class(host):
    host.start('a', 1)
    host.write(a=100_000)
    assert host.write(a=0) == {}
    assert host.is_bare()
    assert host.read() == {'a': 0}


def test_release_removes_all_classes_and_can_be_repeated(host):
    host.start('a', 1)
    host.write(a=100_000)
    assert host.control.release() == ()
    assert host.is_bare()
    host.kernel.done.clear()
    assert host.control.release() == ()
    assert host.kernel.done == []


def test_an_agent_continues_with_classes_of_its_killed_predecessor(host):
    host.start('a', 1)
    host.start('b', 2)
    host.write(a=100_000, b=300_000)
    host.new()
    assert host.read() == {'a': 100_000, 'b': 300_000}
    host.kernel.done.clear()
    host.write(a=100_000, b=300_000)
    assert host.kernel.done == []


def test_restore_without_inventory_removes_all_classes(host):
    host.start('a', 1)
    host.start('b', 2)
    host.write(a=100_000, b=300_000)
    host.vms = {}
    host.new()
    assert host.control.read([key('a')]) == {key('a'): 100_000}
    done = host.control.write([change('a', 0), change('b', 0)])
    assert [item.written for item in done] == [True, True]
    assert host.is_bare()


@pytest.mark.parametrize('text', ['', '{', '[]', '{"version": 1}'])
def test_without_a_record_own_classes_are_recognized_by_number(host, text):
    host.start('a', 1)
    host.write(a=100_000)
    host.record.write_text(text)
    host.new()
    assert host.control.release() == ()
    assert not host.kernel.trees
    assert not set(state.IFBS) & set(host.kernel.links)


def test_another_layout_than_the_one_before_a_kill_replaces_it(uplink):
    uplink.start('a', 1)
    uplink.write(a=100_000)
    uplink.layout, uplink.uplink = TAP, ''
    uplink.new()
    assert uplink.write(a=200_000) == {}
    assert uplink.read() == {'a': 200_000}
    assert uplink.kernel.qdiscs['eth1'] == []


def test_disabling_the_control_after_a_kill_removes_all_classes(uplink):
    uplink.start('a', 1)
    uplink.write(a=100_000)
    uplink.new(layout=network_settings.SteeringKind.OFF)
    assert uplink.read() == {}
    assert uplink.control.settle() == ()
    assert uplink.is_bare()


def test_a_foreign_root_is_never_replaced(uplink):
    uplink.start('a', 1)
    uplink.kernel.qdiscs['eth1'] = []
    uplink.kernel.add_qdisc('eth1', 'htb', 1, 'root')
    assert uplink.read() == {}
    works, why = uplink.control.availability()
    assert not works
    assert 'without effect' in why
    assert 'htb' in why
    assert uplink.control.problems() != ()
    assert uplink.control.problems() == ()
    assert uplink.kernel.done == []


@pytest.mark.parametrize('kind', ['ingress', 'clsact'])
def test_foreign_filters_of_the_uplink_are_never_touched(uplink, kind):
    uplink.start('a', 1)
    uplink.kernel.add_qdisc('eth1', kind, 0xFFFF, 'ingress')
    if kind == 'ingress':
        uplink.kernel.redirects['eth1'] = '', 2
    assert uplink.read() == {}
    assert not uplink.control.availability()[0]
    assert uplink.control.release() == ()
    assert uplink.kernel.done == []


def test_foreign_filters_stay_when_own_filters_are_removed(uplink):
    uplink.start('a', 1)
    uplink.write(a=100_000)
    uplink.kernel.redirects['eth1'] = state.IFB_IN, 1
    assert uplink.control.release() == ()
    assert uplink.kernel.redirects == {'eth1': ('', 1)}
    assert not uplink.kernel.trees


def test_foreign_filters_of_a_tap_leave_its_vm_alone(tap):
    tap.start('a', 1)
    tap.start('b', 2)
    tap.kernel.add_qdisc('tap1-0', 'ingress', 0xFFFF, 'ingress')
    assert tap.read() == {'b': 0}
    why = tap.control.without_effect()[key('a')]
    assert 'Neutron QoS' in why
    assert tap.write(b=300_000) == {}
    tap.control.release()
    assert [q.kind for q in tap.kernel.qdiscs['tap1-0']] == ['ingress']


@pytest.mark.parametrize(
    ('kind', 'name', 'expected'),
    [
        ('hostdev', '', 'SR-IOV'),
        ('vhostuser', '', 'vhost-user'),
        ('vdpa', '', 'vDPA'),
        ('bridge', '', 'no interface on the host'),
        ('bridge', 'tap9-9', 'any more'),
        ('bridge', 'lo', 'no bridge over eth1'),
    ],
)
def test_an_interface_that_cannot_be_steered_is_named(
    uplink, kind, name, expected
):
    uplink.set_vm('a', [instance.Nic(mac(7), kind, name)])
    assert uplink.read() == {}
    assert expected in uplink.control.without_effect()[key('a')]
    (text,) = uplink.control.problems()
    assert mac(7) in text
    assert uplink.control.problems() == ()


def test_one_interface_that_cannot_be_steered_leaves_the_others(host):
    host.start('a', 1)
    nics = (*host.vms['a'].instance.nics, instance.Nic(mac(8), 'hostdev', ''))
    host.set_vm('a', nics)
    assert host.write(a=100_000) == {}
    assert host.read() == {'a': 100_000}
    assert mac(8) in host.control.without_effect()[key('a')]


def test_a_vm_without_interfaces_causes_no_error(host):
    host.set_vm('a', [])
    assert host.read() == {}
    assert host.control.without_effect() == {key('a'): 'it has no interface'}
    assert host.control.problems() == ()


@pytest.mark.parametrize('rate', [-1, 999, 10**12 + 1])
def test_a_rate_out_of_range_is_refused(host, rate):
    host.start('a', 1)
    assert 'expected 0 or 1000' in host.write(a=rate)['a']
    assert host.is_bare()


def test_rates_above_the_link_are_refused_except_reductions(host):
    host.start('a', 1)
    host.start('b', 2)
    host.write(a=100_000, b=300_000)
    failed = host.write(a=50_000, b=2_000_000)
    assert list(failed) == ['b']
    assert host.read() == {'a': 50_000, 'b': 300_000}


def test_a_link_of_unknown_speed_is_not_divided(uplink):
    uplink.start('a', 1)
    uplink.new(bandwidth=None)
    assert uplink.read() == {}
    assert 'network_bandwidth' in uplink.control.availability()[1]


def test_traffic_of_the_host_has_a_minimum_rate(uplink):
    assert uplink.control.capacity == 0.95 * BANDWIDTH
    assert uplink.new(host_rate=2e5).capacity == 800_000
    assert uplink.new(host_rate=9e5).capacity == 500_000


def test_the_minimum_rate_of_the_host_is_reserved_at_taps(tap):
    assert tap.control.capacity == BANDWIDTH
    tap.new(host_rate=2e5)
    tap.start('a', 1)
    tap.write(a=100_000)
    assert tap.trees[0].classes[state.TRUNK].rate == 800_000


def test_a_record_that_cannot_be_written_keeps_all_from_being_made(host):
    host.start('a', 1)
    host.record.parent.joinpath('network.json').mkdir()
    assert 'cannot be written' in host.write(a=100_000)['a']
    assert host.is_bare()


def test_an_unavailable_helper_fails_all_changes_and_keeps_the_record(host):
    host.start('a', 1)
    host.write(a=100_000)
    before = host.kernel.run

    def away(operations):
        raise exception.ControlUnavailable('it is away')

    host.control._trees._runner = away
    assert host.write(a=200_000) == {'a': 'network of a/1/1: it is away'}
    host.control._trees._runner = before
    assert host.read() == {'a': 100_000}


def test_an_unresponsive_kernel_is_reported(host):
    host.start('a', 1)
    host.read()

    def silent():
        raise exception.ControlUnavailable('silence')

    host.control._read_kernel = silent
    with pytest.raises(exception.ControlUnavailable, match='silence'):
        host.control.read([key('a')])


def copy_of(host, name, number, nics):
    """A VM that has addresses of another one, behind taps of its own."""
    host.start(name, number)
    tap = host.vms[name].instance.nics[0].tap
    host.set_vm(name, [instance.Nic(mac, 'bridge', tap) for mac in nics])


def test_a_vm_that_copies_an_address_has_no_class_and_is_told_why(host):
    host.start('alice', 1)
    assert host.write(alice=1000) == {}
    copy_of(host, 'bob', 2, [mac(1)])
    assert host.read() == {'alice': 0}
    why = host.control.without_effect()[key('bob')]
    assert mac(1) in why
    assert key('alice') in why
    assert host.write(alice=1000, bob=1000)['bob']
    assert host.read() == {'alice': 1000}
    assert any(key('bob') in one for one in host.control.problems())
    assert host.control.problems() == ()


def test_the_first_with_an_address_counts_for_its_own_tap_only(host):
    host.start('alice', 1)
    host.write(alice=1000)
    copy_of(host, 'bob', 2, [mac(1).upper()])
    host.write(alice=2000)
    taps = {item.tap for tree in host.trees for item in tree.filters.values()}
    assert taps == {'tap1-0'}
    host.end('bob')
    host.read()
    host.write(alice=1000)
    taps = {item.tap for tree in host.trees for item in tree.filters.values()}
    assert taps == {''}
    assert host.control.without_effect() == {}


def test_only_the_first_of_three_vms_with_one_address_is_steered(host):
    host.start('alice', 1)
    host.write(alice=1000)
    copy_of(host, 'bob', 2, [mac(1)])
    copy_of(host, 'carol', 3, [mac(1), mac(3)])
    host.start('dan', 4)
    assert set(host.write(alice=1000, dan=1000)) == set()
    assert host.read() == {'alice': 1000, 'dan': 1000}
    told = host.control.without_effect()
    assert {key('bob'), key('carol')} <= set(told)
    host.end('alice')
    host.control.settle()
    assert set(host.read()) == {'bob', 'carol', 'dan'}


def test_an_address_copied_at_run_time_changes_no_class(host):
    host.start('alice', 1)
    host.start('bob', 2)
    assert host.write(alice=1000, bob=1000) == {}
    tap = host.vms['bob'].instance.nics[0].tap
    host.set_vm('bob', [instance.Nic(mac(1), 'bridge', tap)])
    assert 'bob' not in host.read()
    host.write(alice=1000)
    assert host.read() == {'alice': 1000}
    assert key('bob') in host.control.without_effect()


def test_a_new_vm_has_no_class():
    control = network.NetworkClasses(
        network_settings.NetworkSettings(),
        list,
        pathlib.Path('/nonexistent/x'),
    )
    assert control.default() == 0
    assert control.unit_range()[0] == 0
