# SPDX-License-Identifier: Apache-2.0

"""Where VMs are steered, by what the host has."""

import pytest

from nova_fairness.apply.network import layout as network_layout
from nova_fairness.apply.network import settings as network_settings
from nova_fairness.apply.network import state
from nova_fairness.model import instance

KINDS = network_settings.SteeringKind
NO_KERNEL = state.Kernel({}, {}, {}, {})


class Net:
    """``/sys/class/net`` of a host."""

    def __init__(self, root):
        self.root = root

    def add(
        self, name, *, real=False, master='', lower=(), kind='', tun=False
    ):
        path = self.root / name
        path.mkdir()
        if real:
            (path / 'device').mkdir()
        if tun:
            (path / 'tun_flags').touch()
        (path / 'uevent').write_text(f'DEVTYPE={kind}\n' if kind else '\n')
        if master:
            self.enslave(name, master)
        for other in lower:
            (path / f'lower_{other}').symlink_to(f'../{other}')
            (self.root / other / f'upper_{name}').symlink_to(f'../{name}')

    def bridge(self, name):
        self.add(name)
        (self.root / name / 'brif').mkdir()

    def enslave(self, name, master):
        (self.root / name / 'master').symlink_to(f'../{master}')
        (self.root / name / f'upper_{master}').symlink_to(f'../{master}')
        (self.root / name / 'brport').mkdir()
        (self.root / name / 'brport' / 'bridge').symlink_to(f'../../{master}')
        (self.root / master / 'brif' / name).symlink_to(f'../../{name}')
        (self.root / master / f'lower_{name}').symlink_to(f'../{name}')


@pytest.fixture
def net(tmp_path):
    return Net(tmp_path)


def chosen(net, layout='auto', uplink=''):
    settings = network_settings.NetworkSettings(KINDS(layout), uplink, 1e6)
    found = network_layout.choose_layout(settings, net.root)
    return found.kind, found.uplink


def plain_bridge(net):
    net.bridge('br0')
    net.add('eth1', real=True, master='br0')
    net.add('tap1', master='br0', tun=True)


def vlan_bridge(net):
    net.bridge('brq1')
    net.add('bond0')
    (net.root / 'bond0' / 'bonding').mkdir()
    net.add('eth1', real=True)
    (net.root / 'bond0' / 'lower_eth1').symlink_to('../eth1')
    net.add('bond0.7', lower=['bond0'], kind='vlan')
    net.enslave('bond0.7', 'brq1')


def two_ports(net):
    plain_bridge(net)
    net.bridge('br1')
    net.add('eth2', real=True, master='br1')


def tunnels(net):
    plain_bridge(net)
    net.bridge('brq2')
    net.add('vxlan-7', master='brq2', kind='vxlan')


def open_vswitch(net):
    plain_bridge(net)
    net.add('ovs-system')


def user_space(net):
    plain_bridge(net)
    net.add('ovs-netdev', tun=True)


def hybrid(net):
    net.bridge('qbr1')
    net.add('qvb1', master='qbr1')
    net.add('tap1', master='qbr1', tun=True)


def no_bridge(net):
    net.add('eth0', real=True)


@pytest.mark.parametrize(
    ('build', 'expected'),
    [
        (plain_bridge, (KINDS.UPLINK, 'eth1')),
        (vlan_bridge, (KINDS.UPLINK, 'bond0')),
        (two_ports, (KINDS.TAP, '')),
        (tunnels, (KINDS.TAP, '')),
        (open_vswitch, (KINDS.TAP, '')),
        (user_space, (KINDS.TAP, '')),
        (hybrid, (KINDS.TAP, '')),
        (no_bridge, (KINDS.TAP, '')),
    ],
)
def test_the_layout_follows_from_the_interfaces_of_the_host(
    net, build, expected
):
    build(net)
    assert chosen(net) == expected


def test_a_configured_layout_overrides_the_host(net):
    open_vswitch(net)
    assert chosen(net, 'uplink') == (KINDS.UPLINK, 'eth1')
    assert chosen(net, 'auto', 'eth7') == (KINDS.UPLINK, 'eth7')
    assert chosen(net, 'tap', 'eth7') == (KINDS.TAP, 'eth7')
    assert chosen(net, 'off', 'eth7') == (KINDS.OFF, '')


def test_an_uplink_that_cannot_be_found_must_be_named(net):
    two_ports(net)
    settings = network_settings.NetworkSettings(KINDS.UPLINK, '', 1e6)
    found = network_layout.choose_layout(settings, net.root)
    assert found.kind is KINDS.OFF
    assert 'eth1, eth2' in network_layout.obstacle(found, NO_KERNEL)


def view(net, kind, uplink='', links=(), qdiscs=None):
    kernel = state.Kernel(
        {name: place for place, name in enumerate(links, 1)},
        qdiscs or {},
        {},
        {},
    )
    layout = network_layout.NetworkLayout(kind, uplink, '')
    return network_layout.read_facts(layout, kernel, net.root)


def steered(found, nic):
    vm = instance.Instance('u', 'd', 1, 1, nics=(nic,))
    return network_layout.steerable(vm, found)


def test_a_tap_on_a_bridge_over_a_vlan_of_a_bond_is_over_the_bond(net):
    vlan_bridge(net)
    net.add('tap1', master='brq1', tun=True)
    found = view(net, KINDS.UPLINK, 'bond0', ['bond0', 'tap1'])
    nic = instance.Nic('52:54:00:00:00:01', 'bridge', 'tap1')
    assert steered(found, nic) == ([nic], '')


def test_a_macvtap_over_the_uplink_is_steered_there_and_not_at_taps(net):
    net.add('eth1', real=True)
    net.add('macvtap0', lower=['eth1'])
    nic = instance.Nic('52:54:00:00:00:01', 'direct', 'macvtap0')
    links = ['eth1', 'macvtap0']
    assert steered(view(net, KINDS.UPLINK, 'eth1', links), nic)[1] == ''
    nobody, why = steered(view(net, KINDS.TAP, '', links), nic)
    assert nobody == []
    assert 'macvtap' in why


def test_a_tap_on_another_bridge_is_named(net):
    two_ports(net)
    net.add('tap2', master='br1', tun=True)
    nic = instance.Nic('52:54:00:00:00:01', 'bridge', 'tap2')
    nobody, why = steered(view(net, KINDS.UPLINK, 'eth1', ['tap2']), nic)
    assert nobody == []
    assert why.endswith('is connected by tap2 to no bridge over eth1')


def test_bandwidth_elements_of_libvirt_are_left_alone_at_the_uplink(net):
    plain_bridge(net)
    nic = instance.Nic('52:54:00:00:00:01', 'bridge', 'tap1')
    qdiscs = {
        'tap1': (
            state.Qdisc('htb', 1, 'root'),
            state.Qdisc('ingress', 0xFFFF, 'ingress'),
        )
    }
    at_uplink = view(net, KINDS.UPLINK, 'eth1', ['tap1'], qdiscs)
    assert steered(at_uplink, nic)[1] == ''
    at_tap = view(net, KINDS.TAP, '', ['tap1'], qdiscs)
    assert '<bandwidth>' in steered(at_tap, nic)[1]


@pytest.mark.parametrize(
    ('root', 'ours'),
    [
        (None, True),
        (state.Qdisc('noqueue', 0, 'root'), True),
        (state.Qdisc('mq', 0, 'root'), True),
        (state.Qdisc('htb', state.ROOT_HANDLE, 'root'), True),
        (state.Qdisc('htb', 1, 'root'), False),
        (state.Qdisc('fq_codel', 0x8001, 'root'), False),
        (state.Qdisc('tbf', state.ROOT_HANDLE, 'root'), False),
    ],
)
def test_only_a_queueing_made_by_the_kernel_may_be_replaced(root, ours):
    layout = network_layout.NetworkLayout(KINDS.UPLINK, 'eth1', '')
    kernel = state.Kernel(
        {'eth1': 1}, {'eth1': (root,) if root else ()}, {}, {}
    )
    assert (network_layout.obstacle(layout, kernel) == '') is ours


def test_a_missing_uplink_is_reported():
    layout = network_layout.NetworkLayout(KINDS.UPLINK, 'eth1', '')
    assert 'does not exist' in network_layout.obstacle(layout, NO_KERNEL)


@pytest.mark.parametrize(
    ('links', 'master', 'uplink', 'half'),
    [
        (['tap1', 'ovs-netdev'], '', '', True),
        (['tap1', 'ovs-netdev', 'eth7'], '', 'eth7', False),
        (['tap1', 'ovs-netdev', 'ovs-system'], 'ovs-system', '', False),
        (['tap1'], '', '', False),
    ],
)
def test_an_interface_that_user_space_reads_first_is_named(
    net, links, master, uplink, half
):
    net.add('tap1', tun=True)
    if master:
        (net.root / 'tap1' / 'master').symlink_to(f'../{master}')
    nic = instance.Nic('52:54:00:00:00:01', 'bridge', 'tap1')
    nics, why = steered(view(net, KINDS.TAP, uplink, links), nic)
    assert nics == [nic]
    assert ('Open vSwitch' in why) is half
