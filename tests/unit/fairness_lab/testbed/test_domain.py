# SPDX-License-Identifier: Apache-2.0

from xml.etree import ElementTree as ET

import pytest

from fairness_lab.scenario import values as scenario_module
from fairness_lab.testbed.guests import domain


def placed(spec, **changes):
    fields = {
        'domain': 'instance-00000001',
        'uuid': '11111111-2222-3333-4444-555555555555',
        'kind': 'qemu',
        'kernel': '/k',
        'initrd': '/i',
        'disks': [f'/d{n}' for n in range(len(spec.disks))],
        'control': '/c',
        'console': '/o',
        'bridge': 'br0',
        'addresses': [
            (f'10.{78 + n}.0.2/16', 'fd78::2/64') for n in range(spec.nics)
        ],
    }
    return domain.GuestPlacement(**{**fields, **changes})


def root_of(spec, **changes):
    text = domain.xml(spec, placed(spec, **changes))
    return ET.fromstring(text)


def test_the_metadata_equals_that_of_nova():
    spec = scenario_module.Vm(
        'web', 'alice', vcpus=2, extra_specs={'quota:cpu_shares': '700'}
    )
    nova = {'nova': domain.NOVA_NAMESPACE}
    instance = root_of(spec).find('metadata/nova:instance', nova)
    assert instance.findtext('nova:name', '', nova) == 'web'
    assert instance.findtext('nova:flavor/nova:vcpus', '', nova) == '2'
    assert instance.findtext('nova:flavor/nova:memory', '', nova) == '96'
    extra = instance.find('nova:flavor/nova:extraSpecs/nova:extraSpec', nova)
    assert (extra.get('name'), extra.text) == ('quota:cpu_shares', '700')
    user = instance.find('nova:owner/nova:user', nova)
    assert user.text == 'alice'
    assert user.get('uuid') == domain.owner_id('user alice')
    project = instance.find('nova:owner/nova:project', nova)
    assert project.get('uuid') == domain.owner_id('project alice')


def test_ids_look_like_those_of_keystone():
    one, other = domain.owner_id('user a'), domain.owner_id('user b')
    assert one != other
    assert len(one) == 32
    assert int(one, 16)


@pytest.mark.parametrize('cache', scenario_module.CACHE_MODES)
def test_a_disk_has_the_cache_mode_that_was_asked_for(cache):
    spec = scenario_module.Vm(
        'a', 'u', disks=(scenario_module.GuestDisk(8, cache),)
    )
    disk = root_of(spec).find('devices/disk')
    assert disk.find('driver').get('cache') == cache
    assert disk.find('source').get('file') == '/d0'
    assert disk.find('target').get('dev') == 'vda'


def test_every_interface_is_plugged_and_addressed():
    spec = scenario_module.Vm('a', 'u', nics=2)
    root = root_of(spec)
    nics = root.findall('devices/interface')
    assert [nic.find('source').get('bridge') for nic in nics] == ['br0'] * 2
    line = root.findtext('os/cmdline')
    assert 'lab.net=eth0,10.78.0.2/16,fd78::2/64' in line
    assert 'lab.net=eth1,10.79.0.2/16,fd78::2/64' in line


def test_commands_come_on_the_second_serial_port():
    serials = root_of(scenario_module.Vm('a', 'u')).findall('devices/serial')
    ports = {s.find('target').get('port'): s for s in serials}
    assert ports['0'].find('source').get('path') == '/o'
    assert ports['1'].get('type') == 'unix'
    assert ports['1'].find('source').get('path') == '/c'


def test_tuning_is_written_only_if_asked_for():
    assert root_of(scenario_module.Vm('a', 'u')).find('cputune') is None
    spec = scenario_module.Vm('a', 'u', cputune={'shares': '700'})
    assert root_of(spec).findtext('cputune/shares') == '700'


def test_only_an_emulated_guest_bounds_its_translations():
    spec = scenario_module.Vm('a', 'u')
    assert root_of(spec).find('features/tcg') is not None
    assert root_of(spec, kind='kvm').find('features/tcg') is None
