# SPDX-License-Identifier: Apache-2.0

"""Parses the XML of a libvirt domain to an instance.

Users of the cloud choose names inside the XML, so the text is untrusted. A
document type is refused, because it could declare entities that grow without
bound. Names are truncated and made printable.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import types
from xml.etree import ElementTree as ET

from nova_fairness import exception
from nova_fairness.model import cpus
from nova_fairness.model import instance

# QEMU or its helper moves the data of these by itself.
_USER_SPACE_DISKS = frozenset(('network', 'nvme', 'vhostuser', 'vhostvdpa'))
_REMOVABLE = frozenset(('cdrom', 'floppy'))

# A vhost-user or passed-through interface may carry a <target dev>, but no
# device of that name exists in the host's network stack.
_KINDS_WITH_TAP = frozenset(('bridge', 'network', 'ethernet', 'direct'))


def parse_disks(domain: ET.Element) -> Iterator[instance.Disk]:
    """Yield the disks of a domain, without empty removable drives."""
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
            network=element.get('type') in _USER_SPACE_DISKS,
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


def parse_nics(domain: ET.Element) -> Iterator[instance.Nic]:
    """Yield the network interfaces of a domain."""
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


_NOVA = '{http://openstack.org/xmlns/libvirt/nova/'
_MAX_NAME_LENGTH = 255  # what Nova's database takes
_REALTIME = frozenset(('fifo', 'rr'))
_PINNED_POLICIES = frozenset(('dedicated', 'mixed'))

_UNITS: Mapping[str, int] = types.MappingProxyType(
    {
        'b': 1,
        'bytes': 1,
        'KB': 10**3,
        'k': 2**10,
        'KiB': 2**10,
        'MB': 10**6,
        'M': 2**20,
        'MiB': 2**20,
        'GB': 10**9,
        'G': 2**30,
        'GiB': 2**30,
        'TB': 10**12,
        'T': 2**40,
        'TiB': 2**40,
    }
)


@dataclasses.dataclass(frozen=True, slots=True)
class _Owner:
    """A user or project: its ID, empty if unknown, and its name."""

    identity: str = ''
    name: str = ''


def parse_domain(xml: str) -> instance.Instance:
    """Create an instance from the XML of a running domain.

    :param xml: as returned by libvirt's ``virDomainGetXMLDesc``.
    :returns: the instance; its owner is :data:`instance.UNOWNED` without
        metadata of Nova.
    :raises exception.BadDomain: if the text is no domain, or has no UUID,
        name, vCPUs or memory.
    """
    root = _parse_xml(xml)
    name = _required_text(root, 'name')
    nova = _nova_instance(root)
    flavor = _nova_child(nova, 'flavor')
    specs = _extra_specs(flavor)
    user, project = _owners(nova)
    vcpus = _vcpus(root, name)
    return instance.Instance(
        uuid=_required_text(root, 'uuid').lower(),
        domain_name=name,
        vcpus=vcpus,
        memory_bytes=_memory_bytes(root, flavor, name),
        user_id=user.identity or instance.UNOWNED,
        project_id=project.identity or instance.UNOWNED,
        user_name=user.name or user.identity or instance.UNOWNED,
        project_name=project.name or project.identity or instance.UNOWNED,
        display_name=_printable(_element_text(_nova_child(nova, 'name'))),
        flavor='' if flavor is None else _printable(flavor.get('name', '')),
        extra_specs=specs,
        disks=tuple(parse_disks(root)),
        nics=tuple(parse_nics(root)),
        dedicated_cpus=_has_dedicated_cpus(root, vcpus, specs),
    )


def with_owner(
    vm: instance.Instance, owners: Mapping[str, tuple[str, str]]
) -> instance.Instance:
    """Return a VM with the configured owner if Nova wrote none.

    :param owners: (user, project) by UUID or, second, domain name.
    :returns: ``vm`` itself if it has an owner or none is configured.
    """
    if vm.user_id != instance.UNOWNED:
        return vm
    owner = owners.get(vm.uuid) or owners.get(vm.domain_name)
    if owner is None:
        return vm
    user, project = owner
    return dataclasses.replace(
        vm,
        user_id=user,
        project_id=project,
        user_name=user,
        project_name=project,
    )


def with_description(
    vm: instance.Instance, known: instance.Description
) -> instance.Instance:
    """Return a VM with the cloud's facts if Nova wrote no metadata.

    :returns: ``vm`` itself if it has an owner.
    """
    if vm.user_id != instance.UNOWNED:
        return vm
    return dataclasses.replace(
        vm,
        user_id=known.user_id,
        project_id=known.project_id,
        user_name=known.user_id,
        project_name=known.project_id,
        display_name=_printable(known.display_name),
        flavor=_printable(known.flavor),
        extra_specs=types.MappingProxyType(
            {
                _printable(k): _printable(v)
                for k, v in known.extra_specs.items()
            }
        ),
        memory_bytes=known.memory_bytes,
        dedicated_cpus=vm.dedicated_cpus
        or known.extra_specs.get('hw:cpu_policy') in _PINNED_POLICIES,
    )


def _parse_xml(xml: str) -> ET.Element:
    if '<!DOCTYPE' in xml:
        raise exception.BadDomain(
            'domain XML has a DOCTYPE, which libvirt never writes'
        )
    try:
        root = ET.fromstring(xml)  # noqa: S314 - no DOCTYPE
    except ET.ParseError as error:
        raise exception.BadDomain(
            f'domain XML is not well-formed: {error}'
        ) from error
    if root.tag != 'domain':
        raise exception.BadDomain(
            f'expected a <domain> element, got <{_printable(root.tag)}>'
        )
    return root


def _element_text(element: ET.Element | None) -> str:
    return '' if element is None else (element.text or '').strip()


def _printable(text: str) -> str:
    """Return a name in one line of printable characters, for logs and
    terminals.
    """
    joined = ' '.join(text[: 4 * _MAX_NAME_LENGTH].split())[:_MAX_NAME_LENGTH]
    return ''.join(sign if sign.isprintable() else '?' for sign in joined)


def _required_text(root: ET.Element, tag: str) -> str:
    value = _element_text(root.find(tag))
    if not value:
        raise exception.BadDomain(
            'domain '
            f'{_printable(_element_text(root.find("name"))) or "without name"}'
            f' has no <{tag}>'
        )
    return value


def _nova_instance(root: ET.Element) -> ET.Element | None:
    metadata = root.find('metadata')
    return _nova_child(metadata, 'instance')


def _nova_child(parent: ET.Element | None, name: str) -> ET.Element | None:
    """Return a child element in Nova's namespace of any version."""
    for child in () if parent is None else parent:
        space, _, tag = child.tag.rpartition('}')
        if tag == name and space.startswith(_NOVA):
            return child
    return None


def _extra_specs(
    flavor: ET.Element | None,
) -> Mapping[str, str]:
    specs = _nova_child(flavor, 'extraSpecs')
    return types.MappingProxyType(
        {
            _printable(child.get('name', '')): _printable(_element_text(child))
            for child in (() if specs is None else specs)
        }
    )


def _owners(nova: ET.Element | None) -> tuple[_Owner, _Owner]:
    owner = _nova_child(nova, 'owner')
    return _owner_element(owner, 'user'), _owner_element(owner, 'project')


def _owner_element(owner: ET.Element | None, role: str) -> _Owner:
    element = _nova_child(owner, role)
    if element is None:
        return _Owner()
    identity = element.get('uuid', '').strip()
    if len(identity) > _MAX_NAME_LENGTH:
        raise exception.BadDomain(
            f'{role} id of {len(identity)} characters, expected at most'
            f' {_MAX_NAME_LENGTH}'
        )
    return _Owner(identity, _printable(_element_text(element)))


def _positive_integer(text: str, what: str, domain: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise exception.BadDomain(
            f'domain {_printable(domain)}: {what} is {_printable(text)!r},'
            ' expected a whole number >= 1'
        )
    return value


def _vcpus(root: ET.Element, domain: str) -> int:
    element = root.find('vcpu')
    if element is None:
        raise exception.BadDomain(f'domain {_printable(domain)} has no <vcpu>')
    present = element.get('current') or _element_text(element)
    return _positive_integer(present, '<vcpu>', domain)


def _memory_bytes(
    root: ET.Element,
    flavor: ET.Element | None,
    domain: str,
) -> int:
    of_flavor = _element_text(_nova_child(flavor, 'memory'))
    if of_flavor:
        return (
            _positive_integer(of_flavor, 'memory of the flavor', domain)
            * 2**20
        )
    element = root.find('memory')
    amount = _positive_integer(_element_text(element), '<memory>', domain)
    unit = 'KiB' if element is None else element.get('unit', 'KiB')
    if unit not in _UNITS:
        raise exception.BadDomain(
            f'domain {_printable(domain)}: unknown unit '
            f'{_printable(unit)!r} of'
            f' <memory>, expected one of {", ".join(_UNITS)}'
        )
    return amount * _UNITS[unit]


def _has_dedicated_cpus(
    root: ET.Element, vcpus: int, specs: Mapping[str, str]
) -> bool:
    if specs.get('hw:cpu_policy') in _PINNED_POLICIES:
        return True
    for element in root.iterfind('cputune/vcpusched'):
        if element.get('scheduler') in _REALTIME:
            return True
    alone = {
        element.get('vcpu')
        for element in root.iterfind('cputune/vcpupin')
        if _is_one_cpu(element.get('cpuset', ''))
    }
    return all(str(number) in alone for number in range(vcpus))


def _is_one_cpu(cpuset: str) -> bool:
    try:
        return len(cpus.parse_cpus(cpuset)) == 1
    except ValueError:
        return False  # libvirt's "0-3,^2" is more than one CPU
