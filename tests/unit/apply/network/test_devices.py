# SPDX-License-Identifier: Apache-2.0

"""On which interfaces the helper makes something, whoever asks for it."""

import os
import signal

import pytest

from nova_fairness.apply.network import devices
from nova_fairness.apply.network import state

OF_UPLINKS = ('root', 'ingress', 'redirect')


class Host:
    """Interfaces as the kernel lists them."""

    def __init__(self, sys):
        self.sys = sys

    def add(self, name, kind='1', tun='', port=False, **links):
        path = self.sys / name
        path.mkdir()
        (path / 'type').write_text(f'{kind}\n')
        if tun:
            (path / 'tun_flags').write_text(f'{tun}\n')
        if port:
            (path / 'brport').mkdir()
        for link, target in links.items():
            (path / link).symlink_to(f'../{target}')
        return name


@pytest.fixture
def host(tmp_path):
    made = Host(tmp_path)
    made.add('lo', kind='772')
    made.add('br0')
    (tmp_path / 'br0' / 'bridge').mkdir()
    made.add('ovs-system')
    made.add('eth0', port=True, master='br0', upper_br0='br0')
    made.add('eth1', master='ovs-system')
    made.add('eth2')  # of storage, say
    made.add('bond0', **{'upper_bond0.7': 'bond0.7'})
    made.add('eth3', master='bond0', upper_bond0='bond0')
    made.add('bond0.7', port=True, master='br0')
    made.add('tap1', tun='0x5002', port=True, master='br0')
    for name, other, port in (('veth1', 2, True), ('veth2', 3, False)):
        made.add(name, port=port)
        (tmp_path / name / 'ifindex').write_text('9\n')
        (tmp_path / name / 'iflink').write_text(f'{other}\n')
        (tmp_path / name / 'uevent').write_text(f'INTERFACE={name}\n')
    made.add('tun0', tun='0x1001', kind='65534')
    return made


@pytest.mark.parametrize(
    ('device', 'may_have_tree', 'is_tap'),
    [
        ('lo', False, False),
        ('br0', True, False),
        ('eth0', True, False),
        ('eth1', True, False),
        ('eth2', False, False),
        ('eth3', True, False),
        ('bond0', True, False),
        ('bond0.7', True, False),
        ('tap1', False, True),
        ('tun0', False, False),
        ('veth1', True, True),
        ('veth2', False, False),
    ],
)
def test_only_uplinks_have_trees_and_only_taps_lead_into_them(
    host, device, may_have_tree, is_tap
):
    for operation in OF_UPLINKS:
        why = devices.device_error((operation, device), host.sys)
        assert (why == '') == may_have_tree, (operation, why)
        assert not why or device in why
    item = 'clsact', device, state.BLOCK_OUT, state.BLOCK_IN
    assert (devices.device_error(item, host.sys) == '') == is_tap


@pytest.mark.parametrize('name', state.IFBS)
def test_our_own_interfaces_may_have_trees(host, name):
    host.add(name)
    assert devices.device_error(('root', name), host.sys) == ''


@pytest.mark.parametrize('name', ['no-root', 'no-ingress', 'no-clsact'])
def test_objects_of_ours_may_be_removed_everywhere(host, name):
    assert devices.device_error((name, 'eth2'), host.sys) == ''


def test_with_a_switch_in_user_space_physical_interfaces_are_uplinks(host):
    host.add('ovs-netdev')
    assert devices.device_error(('root', 'eth2'), host.sys)
    (host.sys / 'eth2' / 'device').mkdir()
    assert devices.device_error(('root', 'eth2'), host.sys) == ''


@pytest.mark.parametrize('name', ['..', '../br0', 'a/b', ''])
def test_a_name_that_is_a_path_is_no_interface(host, name):
    assert not devices.is_tap(name, host.sys)
    assert not devices.is_uplink(name, host.sys)


@pytest.mark.parametrize(
    ('mode', 'expected'), [(0o644, {'eth2'}), (0o664, set()), (0o646, set())]
)
def test_further_uplinks_count_only_if_root_alone_names_them(
    host, tmp_path, monkeypatch, mode, expected
):
    allowed = tmp_path / 'uplinks'
    allowed.write_text('eth2\n')
    allowed.chmod(mode)
    monkeypatch.setattr(devices, 'ROOT', allowed.stat().st_uid)
    assert devices.read_allowed_uplinks(allowed) == expected
    why = devices.device_error(('root', 'eth2'), host.sys, allowed)
    assert (why == '') == bool(expected)
    link = tmp_path / 'link'
    link.symlink_to(allowed)
    assert devices.read_allowed_uplinks(link) == set()
    monkeypatch.setattr(devices, 'ROOT', allowed.stat().st_uid + 1)
    assert devices.read_allowed_uplinks(allowed) == set()


def test_a_pipe_in_place_of_the_uplinks_file_does_not_block(
    tmp_path, monkeypatch
):
    pipe = tmp_path / 'uplinks'
    os.mkfifo(pipe, 0o600)
    monkeypatch.setattr(devices, 'ROOT', pipe.stat().st_uid)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(5)
    try:
        assert devices.read_allowed_uplinks(pipe) == set()
    finally:
        signal.alarm(0)
