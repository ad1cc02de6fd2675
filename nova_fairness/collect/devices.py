# SPDX-License-Identifier: Apache-2.0

"""Disks and interfaces in domain XML: pure parsing."""

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from nova_fairness.model import instance

# QEMU or its helper moves the data of these by itself.
_UNSEEN_DISKS = frozenset(('network', 'nvme', 'vhostuser', 'vhostvdpa'))
_REMOVABLE = frozenset(('cdrom', 'floppy'))

# A vhost-user or passed-through interface may carry a <target dev>, but no
# device of that name exists in the host's network stack.
_KINDS_WITH_TAP = frozenset(('bridge', 'network', 'ethernet', 'direct'))


def disks(domain: ET.Element) -> Iterator[instance.Disk]:
    """Yield the disks of a domain; not drives without a medium."""
    for element in domain.iterfind('devices/disk'):
        source = _disk_source(element)
        device = element.get('device', 'disk')
        if device in _REMOVABLE and not source:
            continue
        target, driver = element.find('target'), element.find('driver')
        yield instance.Disk(
            target='' if target is None else target.get('dev', ''),
            source=source,
            cache='default'
            if driver is None
            else driver.get('cache', 'default'),
            network=element.get('type') in _UNSEEN_DISKS,
        )


def _disk_source(disk: ET.Element) -> str:
    source = disk.find('source')
    if source is None:
        return ''
    if disk.get('type') == 'network':
        return f'{source.get("protocol", "")}:{source.get("name", "")}'
    if disk.get('type') == 'volume':
        return f'{source.get("pool", "")}/{source.get("volume", "")}'
    for attribute in ('file', 'dev', 'dir', 'path'):
        if value := source.get(attribute):
            return value
    return ''


def nics(domain: ET.Element) -> Iterator[instance.Nic]:
    """Yield the interfaces of a domain."""
    for element in domain.iterfind('devices/interface'):
        kind = element.get('type', '')
        mac, target = element.find('mac'), element.find('target')
        has_tap = kind in _KINDS_WITH_TAP and target is not None
        yield instance.Nic(
            mac='' if mac is None else mac.get('address', '').lower(),
            kind=kind,
            tap=target.get('dev', '')
            if has_tap and target is not None
            else '',
        )
