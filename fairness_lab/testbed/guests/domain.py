# SPDX-License-Identifier: Apache-2.0

"""A laboratory guest, and the domain XML that makes it: pure.

The metadata is the same as Nova's in the domains that it starts, so that an
agent sees no difference.
"""

from collections.abc import Sequence
import dataclasses
import uuid
from xml.etree import ElementTree as ET

from fairness_lab.scenario import values as scenario_module

NOVA_NAMESPACE = 'http://openstack.org/xmlns/libvirt/nova/1.1'

COMMAND_LINE = (
    'console=ttyS0 quiet mitigations=off no_timer_check tsc=reliable panic=-1'
)
"""Kernel options that make an emulated guest boot fast."""

_TRANSLATION_CACHE_MIB = 32
_NAMES = uuid.UUID('5b0c2d9c-50a8-4a3c-9a3f-6a6f5a0b4c11')


@dataclasses.dataclass(frozen=True, slots=True)
class GuestPlacement:
    """Names, files and network of a guest on its node.

    :ivar domain: name of the domain, as Nova forms it.
    :ivar uuid: of the instance.
    :ivar kind: ``qemu`` or ``kvm``.
    :ivar kernel: path of the kernel inside the node.
    :ivar initrd: path of the initial RAM disk inside the node.
    :ivar disks: paths of the disks inside the node.
    :ivar control: path of the socket of the second serial port.
    :ivar console: path of the file of the first serial port.
    :ivar bridge: to which its interfaces are plugged.
    :ivar addresses: of each interface, with prefix lengths.
    """

    domain: str
    uuid: str
    kind: str
    kernel: str
    initrd: str
    disks: Sequence[str]
    control: str
    console: str
    bridge: str
    addresses: Sequence[Sequence[str]]


def owner_id(name: str) -> str:
    """Identifier of a user or project, as Keystone forms them."""
    return uuid.uuid5(_NAMES, name).hex


def xml(spec: scenario_module.Vm, placement: GuestPlacement) -> str:
    """Domain XML of a guest."""
    root = ET.Element('domain', {'type': placement.kind})
    _text(root, 'name', placement.domain)
    _text(root, 'uuid', placement.uuid)
    _add_metadata(root, spec)
    _text(root, 'memory', str(spec.memory_mib), unit='MiB')
    _text(root, 'vcpu', str(spec.vcpus))
    if spec.cputune:
        tune = ET.SubElement(root, 'cputune')
        for name, value in spec.cputune.items():
            _text(tune, name, value)
    _add_boot(root, placement)
    _add_features(root, placement.kind)
    for event in ('on_poweroff', 'on_crash'):
        _text(root, event, 'destroy')
    _add_devices(root, spec, placement)
    return ET.tostring(root, encoding='unicode')


def _text(parent: ET.Element, tag: str, text: str, **attributes: str) -> None:
    ET.SubElement(parent, tag, attributes).text = text


def _add_metadata(root: ET.Element, spec: scenario_module.Vm) -> None:
    ET.register_namespace('nova', NOVA_NAMESPACE)

    def tag(name: str) -> str:
        return f'{{{NOVA_NAMESPACE}}}{name}'

    metadata = ET.SubElement(root, 'metadata')
    instance = ET.SubElement(metadata, tag('instance'))
    ET.SubElement(instance, tag('package'), version='34.0.0')
    _text(instance, tag('name'), spec.name)
    _text(instance, tag('creationTime'), '2026-01-01 00:00:00')
    name = f'lab.{spec.vcpus}.{spec.memory_mib}'
    flavor = ET.SubElement(
        instance, tag('flavor'), name=name, id=str(uuid.uuid5(_NAMES, name))
    )
    sizes = {
        'memory': spec.memory_mib,
        'disk': 1,
        'swap': 0,
        'ephemeral': 0,
        'vcpus': spec.vcpus,
    }
    for field, size in sizes.items():
        _text(flavor, tag(field), str(size))
    extra = ET.SubElement(flavor, tag('extraSpecs'))
    for key, value in spec.extra_specs.items():
        _text(extra, tag('extraSpec'), value, name=key)
    owner = ET.SubElement(instance, tag('owner'))
    _text(owner, tag('user'), spec.user, uuid=owner_id(f'user {spec.user}'))
    project = owner_id(f'project {spec.user}')
    _text(owner, tag('project'), spec.user, uuid=project)


def _add_boot(root: ET.Element, placement: GuestPlacement) -> None:
    boot = ET.SubElement(root, 'os')
    _text(boot, 'type', 'hvm', machine='pc')
    _text(boot, 'kernel', placement.kernel)
    _text(boot, 'initrd', placement.initrd)
    words = [COMMAND_LINE]
    for number, addresses in enumerate(placement.addresses):
        words.append('lab.net=' + ','.join((f'eth{number}', *addresses)))
    _text(boot, 'cmdline', ' '.join(words))


def _add_features(root: ET.Element, kind: str) -> None:
    features = ET.SubElement(root, 'features')
    ET.SubElement(features, 'acpi')
    ET.SubElement(features, 'apic')
    if kind == 'qemu':
        tcg = ET.SubElement(features, 'tcg')
        _text(tcg, 'tb-cache', str(_TRANSLATION_CACHE_MIB), unit='MiB')


def _add_devices(
    root: ET.Element, spec: scenario_module.Vm, placement: GuestPlacement
) -> None:
    devices = ET.SubElement(root, 'devices')
    paths = zip(spec.disks, placement.disks, strict=True)
    for number, (disk, path) in enumerate(paths):
        _add_disk(devices, disk, path, f'vd{chr(ord("a") + number)}')
    for _ in placement.addresses:
        nic = ET.SubElement(devices, 'interface', type='bridge')
        ET.SubElement(nic, 'source', bridge=placement.bridge)
        ET.SubElement(nic, 'model', type='virtio')
    _add_serial(devices, 'file', 0, path=placement.console)
    _add_serial(devices, 'unix', 1, path=placement.control, mode='bind')
    ET.SubElement(devices, 'controller', type='usb', model='none')
    balloon = ET.SubElement(devices, 'memballoon', model='virtio')
    ET.SubElement(balloon, 'stats', period='10')


def _add_disk(
    devices: ET.Element,
    disk: scenario_module.GuestDisk,
    path: str,
    target: str,
) -> None:
    element = ET.SubElement(devices, 'disk', type='file', device='disk')
    driver = {'name': 'qemu', 'type': 'raw', 'cache': disk.cache}
    if disk.io:
        driver['io'] = disk.io
    ET.SubElement(element, 'driver', driver)
    ET.SubElement(element, 'source', file=path)
    ET.SubElement(element, 'target', dev=target, bus='virtio')


def _add_serial(
    devices: ET.Element, kind: str, port: int, **source: str
) -> None:
    serial = ET.SubElement(devices, 'serial', type=kind)
    ET.SubElement(serial, 'source', source)
    ET.SubElement(serial, 'target', port=str(port))
