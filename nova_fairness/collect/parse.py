# SPDX-License-Identifier: Apache-2.0

"""Domain XML to an instance: pure parsing.

Names inside the XML are chosen by users of the cloud, so the text is
treated as hostile: a document type is refused, because it could declare
entities that grow without bound, and names are cut and made printable.
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


_NOVA = '{http://openstack.org/xmlns/libvirt/nova/'
_LONGEST = 255  # what Nova's database takes
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
class _Party:
    """A user or project: its id, empty if unknown, and its name."""

    identity: str = ''
    name: str = ''


def parse_domain(xml: str) -> instance.Instance:
    """Build an instance from the XML of a running domain.

    :param xml: as libvirt's ``virDomainGetXMLDesc`` gives it.
    :returns: the instance; owned by :data:`instance.UNOWNED` if the XML
        carries no metadata of Nova.
    :raises exception.BadDomain: if it is no domain, or has no UUID, name,
        vCPUs or memory.
    """
    root = _root(xml)
    name = _required(root, 'name')
    nova = _nova_instance(root)
    flavor = _nova_child(nova, 'flavor')
    specs = _extra_specs(flavor)
    user, project = _owner(nova)
    vcpus = _vcpus(root, name)
    return instance.Instance(
        uuid=_required(root, 'uuid').lower(),
        domain_name=name,
        vcpus=vcpus,
        memory_bytes=_memory_bytes(root, flavor, name),
        user_id=user.identity or instance.UNOWNED,
        project_id=project.identity or instance.UNOWNED,
        user_name=user.name or user.identity or instance.UNOWNED,
        project_name=project.name or project.identity or instance.UNOWNED,
        display_name=_clean(_text(_nova_child(nova, 'name'))),
        flavor='' if flavor is None else _clean(flavor.get('name', '')),
        extra_specs=specs,
        disks=tuple(disks(root)),
        nics=tuple(nics(root)),
        dedicated_cpus=_has_dedicated_cpus(root, vcpus, specs),
    )


def with_owner(
    vm: instance.Instance, owners: Mapping[str, tuple[str, str]]
) -> instance.Instance:
    """A VM, with the owner an operator wrote down if Nova wrote none.

    :param owners: (user, project) by UUID or, failing that, domain name.
    :returns: ``vm`` itself if it has an owner or none is written down.
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


def described(
    vm: instance.Instance, known: instance.Description
) -> instance.Instance:
    """A VM, with what the cloud knows of it if Nova wrote no metadata.

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
        display_name=_clean(known.display_name),
        flavor=_clean(known.flavor),
        extra_specs=types.MappingProxyType(
            {_clean(k): _clean(v) for k, v in known.extra_specs.items()}
        ),
        memory_bytes=known.memory_bytes,
        dedicated_cpus=vm.dedicated_cpus
        or known.extra_specs.get('hw:cpu_policy') in _PINNED_POLICIES,
    )


def _root(xml: str) -> ET.Element:
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
            f'expected a <domain> element, got <{_clean(root.tag)}>'
        )
    return root


def _text(element: ET.Element | None) -> str:
    return '' if element is None else (element.text or '').strip()


def _clean(text: str) -> str:
    """Make a name safe for one line of a log and for a terminal."""
    joined = ' '.join(text[: 4 * _LONGEST].split())[:_LONGEST]
    return ''.join(sign if sign.isprintable() else '?' for sign in joined)


def _required(root: ET.Element, tag: str) -> str:
    value = _text(root.find(tag))
    if not value:
        raise exception.BadDomain(
            f'domain {_clean(_text(root.find("name"))) or "without name"}'
            f' has no <{tag}>'
        )
    return value


def _nova_instance(root: ET.Element) -> ET.Element | None:
    metadata = root.find('metadata')
    return _nova_child(metadata, 'instance')


def _nova_child(parent: ET.Element | None, name: str) -> ET.Element | None:
    """Find a child in Nova's namespace, whatever its version."""
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
            _clean(child.get('name', '')): _clean(_text(child))
            for child in (() if specs is None else specs)
        }
    )


def _owner(nova: ET.Element | None) -> tuple[_Party, _Party]:
    owner = _nova_child(nova, 'owner')
    return _party(owner, 'user'), _party(owner, 'project')


def _party(owner: ET.Element | None, role: str) -> _Party:
    element = _nova_child(owner, role)
    if element is None:
        return _Party()
    identity = element.get('uuid', '').strip()
    if len(identity) > _LONGEST:
        raise exception.BadDomain(
            f'{role} id of {len(identity)} characters, expected at most'
            f' {_LONGEST}'
        )
    return _Party(identity, _clean(_text(element)))


def _number(text: str, what: str, domain: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise exception.BadDomain(
            f'domain {_clean(domain)}: {what} is {_clean(text)!r},'
            ' expected a whole number >= 1'
        )
    return value


def _vcpus(root: ET.Element, domain: str) -> int:
    element = root.find('vcpu')
    if element is None:
        raise exception.BadDomain(f'domain {_clean(domain)} has no <vcpu>')
    present = element.get('current') or _text(element)
    return _number(present, '<vcpu>', domain)


def _memory_bytes(
    root: ET.Element,
    flavor: ET.Element | None,
    domain: str,
) -> int:
    of_flavor = _text(_nova_child(flavor, 'memory'))
    if of_flavor:
        return _number(of_flavor, 'memory of the flavor', domain) * 2**20
    element = root.find('memory')
    amount = _number(_text(element), '<memory>', domain)
    unit = 'KiB' if element is None else element.get('unit', 'KiB')
    if unit not in _UNITS:
        raise exception.BadDomain(
            f'domain {_clean(domain)}: unknown unit {_clean(unit)!r} of'
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
        return len(cpus.numbers(cpuset)) == 1
    except ValueError:
        return False  # libvirt's "0-3,^2" is more than one CPU
