# SPDX-License-Identifier: Apache-2.0

"""Domain XML, from well-behaved to hostile."""

import pathlib

import pytest

from nova_fairness import exception
from nova_fairness.collect import parse
from nova_fairness.model import instance

SAMPLES = pathlib.Path(__file__).parents[2] / 'data' / 'domains'


def sample(name):
    return (SAMPLES / f'{name}.xml').read_text()


def test_nova_metadata_tells_owner_and_flavor():
    vm = parse.parse_domain(sample('nova'))
    assert vm.uuid == '5f1c6b7e-0b57-4d3c-9a3e-1f6f6f6b0001'
    assert vm.domain_name == 'instance-0000002a'
    assert vm.display_name == 'web-1'
    assert (vm.user_id, vm.user_name) == ('1' * 32, 'alice')
    assert (vm.project_id, vm.project_name) == ('2' * 32, 'physics')
    assert vm.flavor == 'm1.small'
    assert dict(vm.extra_specs) == {
        'quota:cpu_shares': '512',
        'hw:cpu_policy': 'shared',
    }
    assert vm.vcpus == 2


def test_memory_is_that_of_the_flavor_not_the_padded_one():
    assert parse.parse_domain(sample('nova')).memory_bytes == 2048 * 2**20


def test_a_domain_of_nova_has_its_disk_and_tap():
    vm = parse.parse_domain(sample('nova'))
    assert vm.disks == (
        instance.Disk('vda', '/var/lib/nova/instances/5f1c/disk', 'none'),
    )
    assert vm.nics == (
        instance.Nic('fa:16:3e:00:00:01', 'bridge', 'tap00000001-aa'),
    )


def test_a_domain_without_metadata_is_unowned():
    vm = parse.parse_domain(sample('no_metadata'))
    assert vm.uuid == '5f1c6b7e-0b57-4d3c-9a3e-1f6f6f6b0002'
    assert (vm.user_id, vm.project_id) == ('unowned', 'unowned')
    assert vm.memory_bytes == 64 * 2**20
    assert (vm.disks, vm.nics, dict(vm.extra_specs)) == ((), (), {})


def test_several_disks_are_kept_and_empty_drives_are_not():
    vm = parse.parse_domain(sample('many_devices'))
    assert vm.disks == (
        instance.Disk('vda', '/dev/vg/volume-1', 'directsync'),
        instance.Disk('vdb', 'rbd:volumes/volume-2', 'writeback', True),
        instance.Disk('vdc', 'default/three', 'default'),
        instance.Disk(
            'hdb', '/var/lib/nova/instances/many/disk.config', 'default'
        ),
    )


def test_only_interfaces_of_the_host_have_a_tap():
    vm = parse.parse_domain(sample('many_devices'))
    assert [(nic.kind, nic.tap) for nic in vm.nics] == [
        ('ethernet', 'tap11'),
        ('direct', 'macvtap0'),
        ('vhostuser', ''),
        ('hostdev', ''),
    ]


def test_vcpus_are_those_plugged_in():
    assert parse.parse_domain(sample('many_devices')).vcpus == 2


@pytest.mark.parametrize(
    ('name', 'dedicated'),
    [
        ('nova', False),
        ('pinned', True),
        ('partly_pinned', False),
        ('realtime', True),
        ('batch', False),
        ('dedicated_flavor', True),
        ('no_metadata', False),
    ],
)
def test_dedicated_cpus_are_recognised(name, dedicated):
    assert parse.parse_domain(sample(name)).dedicated_cpus is dedicated


@pytest.mark.parametrize(
    ('name', 'message'),
    [
        ('doctype_bomb', 'DOCTYPE'),
        ('no_uuid', 'domain nameless has no <uuid>'),
        ('no_name', 'domain without name has no <name>'),
        ('no_vcpu', 'domain a has no <vcpu>'),
        ('no_memory', "domain a: <memory> is '', expected a whole number"),
        ('odd_unit', "domain a: unknown unit 'furlong'"),
        ('negative_vcpus', "<vcpu> is '-2', expected a whole number >= 1"),
        ('word_vcpus', "<vcpu> is 'two', expected a whole number >= 1"),
        ('no_domain', 'expected a <domain> element, got <network>'),
        ('cut', 'not well-formed'),
    ],
)
def test_a_bad_domain_is_refused_and_the_message_says_why(name, message):
    with pytest.raises(exception.BadDomain) as caught:
        parse.parse_domain(sample(name))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ('given', 'kept'),
    [
        ('x' * 1_000_000, 'x' * 255),
        ('one\ntwo\tthree', 'one two three'),
        ('&lt;/nova:name&gt;', '</nova:name>'),
        ('&lt;!DOC TYPE', '<!DOC TYPE'),
        ('a\u202eb\u009b31m', 'a?b?31m'),
        ('日本', '日本'),
        ('', ''),
    ],
)
def test_a_name_is_cut_and_made_printable(given, kept):
    xml = sample('nova').replace('web-1', given)
    assert parse.parse_domain(xml).display_name == kept


def test_an_escaped_doctype_in_a_name_refuses_nothing():
    xml = sample('nova').replace('web-1', '&lt;!DOCTYPE x')
    assert parse.parse_domain(xml).display_name == '<!DOCTYPE x'


def test_an_owner_id_that_nova_cannot_have_written_is_refused():
    xml = sample('nova').replace('1' * 32, '1' * 256)
    with pytest.raises(exception.BadDomain, match='256 characters'):
        parse.parse_domain(xml)


def test_foreign_metadata_is_not_taken_for_novas():
    xml = sample('nova').replace(
        'http://openstack.org/xmlns/libvirt/nova/1.1', 'http://else.where/'
    )
    assert parse.parse_domain(xml).user_id == instance.UNOWNED


@pytest.mark.parametrize(
    'key', ['5f1c6b7e-0b57-4d3c-9a3e-1f6f6f6b0002', 'plain']
)
def test_an_operator_names_the_owner_by_uuid_or_name(key):
    vm = parse.parse_domain(sample('no_metadata'))
    owned = parse.with_owner(vm, {key: ('bob', 'chemistry')})
    assert (owned.user_id, owned.project_id) == ('bob', 'chemistry')
    assert (owned.user_name, owned.project_name) == ('bob', 'chemistry')


def test_an_operators_mapping_never_overrides_nova():
    vm = parse.parse_domain(sample('nova'))
    assert parse.with_owner(vm, {vm.uuid: ('mallory', 'x')}) is vm


def test_an_unclaimed_vm_stays_unowned():
    vm = parse.parse_domain(sample('no_metadata'))
    assert parse.with_owner(vm, {'other': ('bob', 'x')}) is vm
