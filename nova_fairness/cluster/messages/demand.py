# SPDX-License-Identifier: Apache-2.0

"""Amounts that one server requests from Placement, as Nova's scheduler
computes them.

The rules are those of ``nova.scheduler.utils.ResourceRequest`` of Nova 34.
Amounts of several groups are added up, and the forbidden traits of a single
group are left out. So a demand is never larger than what Nova requests, and no
possible request is rejected as impossible. Nova also checks conditions that
this module cannot know, such as aggregates of tenants and traits of images.

For a server with the policy ``dedicated`` the scheduler queries twice: for
dedicated CPUs, and without the policies of CPUs and threads. The second answer
counts on hosts without dedicated CPUs: on other hosts Nova's filter of NUMA
cells refuses it. Other requests for dedicated CPUs have no such fallback.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import re
from typing import Any

from nova_fairness import exception
from nova_fairness.cluster.messages import fields
from nova_fairness.model import request

_EXTRA = re.compile(r'(resources|trait)([a-zA-Z0-9_-]{1,64})?:(.*)')
_CLASS = re.compile(r'[A-Z0-9_]{1,255}')
_MB_PER_GB = 1024

_DEDICATED, _MIXED = 'dedicated', 'mixed'
_FALSE = ('', '0', 'false', 'no', 'off', 'n', 'f')

_CHOICES: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    (
        'os:secure_boot',
        'os_secure_boot',
        {'required': 'COMPUTE_SECURITY_UEFI_SECURE_BOOT'},
    ),
    (
        'hw:maxphysaddr_mode',
        'hw_maxphysaddr_mode',
        {
            'passthrough': 'COMPUTE_ADDRESS_SPACE_PASSTHROUGH',
            'emulate': 'COMPUTE_ADDRESS_SPACE_EMULATED',
        },
    ),
    (
        'hw:pci_numa_affinity_policy',
        'hw_pci_numa_affinity_policy',
        {'socket': 'COMPUTE_SOCKET_PCI_NUMA_AFFINITY'},
    ),
)
"""Extra spec, image property, and the trait that each of their values
requires.
"""


class _DemandSum:
    """Sum of the amounts and traits that the parts of a message request."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, int]] = {}
        self.required: set[str] = set()
        self.forbidden: set[str] = set()

    @property
    def amounts(self) -> dict[str, int]:
        """Return the sum of the amounts of all groups, by class."""
        total: dict[str, int] = {}
        for group in self._groups.values():
            for name, amount in group.items():
                total[name] = total.get(name, 0) + amount
        return total

    def set_amount(self, name: str, amount: int, group: str = '') -> None:
        """Set an amount of a group; it replaces an earlier one."""
        self._groups.setdefault(group, {})[name] = amount

    def add_trait(self, trait: str, requirement: object, group: str) -> None:
        """Add a required or forbidden trait; a single group cannot forbid
        one.
        """
        if requirement == 'required':
            self.required.add(trait)
        elif requirement == 'forbidden' and not group:
            self.forbidden.add(trait)


def parse_demand(
    spec: Mapping[str, Any], is_host_forced: bool
) -> request.Demand:
    """Return the demand of one server of a request specification.

    :param spec: fields of a ``RequestSpec``.
    :param is_host_forced: whether ``force_hosts`` of the specification
        applies.
    :raises Unreadable: if the form of the fields is unknown.
    """
    first = _demand_of_query(spec, is_host_forced, is_pinned=True)
    if request.DEDICATED not in dict(first.amounts):
        return first
    flavor = fields.object_fields(spec.get('flavor'), 'Flavor')
    extra = fields.mapping_field(flavor, 'extra_specs')
    if _cpu_policy(extra, _image_properties(spec)) != _DEDICATED:
        return dataclasses.replace(first, fallbacks=())
    second = dataclasses.replace(
        _demand_of_query(spec, is_host_forced, is_pinned=False),
        without=frozenset({request.DEDICATED}),
        fallbacks=(),
    )
    return dataclasses.replace(first, fallbacks=(second,))


def _demand_of_query(
    spec: Mapping[str, Any], is_host_forced: bool, *, is_pinned: bool
) -> request.Demand:
    """Return the demand of one of the two queries of the scheduler.

    :param is_pinned: whether policies of CPUs and threads count.
    """
    flavor = fields.object_fields(spec.get('flavor'), 'Flavor')
    extra = fields.mapping_field(flavor, 'extra_specs')
    image = _image_properties(spec)
    total = _DemandSum()
    _add_extra_specs(total, extra)
    if is_pinned:
        _add_cpu_policy(total, flavor, extra, image)
    _add_request_groups(total, spec)
    _add_flavor_amounts(total, flavor, is_bfv=spec.get('is_bfv') is True)
    _add_devices(total, extra, image)
    for trait in fields.name_list_field(image, 'traits_required'):
        total.required.add(trait)
    destination = _destination(spec)
    return request.Demand(
        amounts=_checked_amounts(total.amounts),
        required=frozenset(total.required),
        forbidden=frozenset(total.forbidden - total.required),
        zone=fields.text_field(spec, 'availability_zone'),
        aggregates=tuple(
            frozenset(filter(None, str(one_of).split(',')))
            for one_of in fields.list_field(destination, 'aggregates')
        ),
        host=_required_host(spec, destination, is_host_forced),
    )


def _image_properties(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the properties of the image; empty without an image."""
    if spec.get('image') is None:
        return {}
    image = fields.object_fields(spec['image'], 'ImageMeta')
    if image.get('properties') is None:
        return {}
    return fields.object_fields(image['properties'], 'ImageMetaProps')


def _add_extra_specs(total: _DemandSum, extra: Mapping[str, Any]) -> None:
    """Add amounts and traits of extra specs such as ``resources:VCPU`` and
    ``trait:NAME``.
    """
    for key, value in extra.items():
        match = _EXTRA.fullmatch(key)
        if not match:
            continue
        kind, group, name = match.groups()
        if kind == 'trait':
            total.add_trait(name, value, group or '')
            continue
        amount = fields.parse_decimal(value)
        # Nova ignores such classes and numbers, too.
        if _CLASS.fullmatch(name) and amount is not None:
            total.set_amount(name, amount, group or '')


def _add_cpu_policy(
    total: _DemandSum,
    flavor: Mapping[str, Any],
    extra: Mapping[str, Any],
    image: Mapping[str, Any],
) -> None:
    """Add dedicated CPUs and traits of the policies of CPUs and threads."""
    policy = _cpu_policy(extra, image)
    vcpus = fields.count_field(flavor, 'vcpus')
    pinned = vcpus
    if policy == _MIXED:
        # Images have no such property in Nova; their realtime mask comes
        # before that of the flavor.
        mask = _text_or_empty(extra, 'hw:cpu_dedicated_mask') or (
            _text_or_empty(image, 'hw_cpu_realtime_mask')
            or _text_or_empty(extra, 'hw:cpu_realtime_mask')
        )
        pinned = _count_masked_cpus(mask, vcpus)
        total.set_amount(request.SHARED, vcpus - pinned)
    if policy in (_DEDICATED, _MIXED):
        isolated = extra.get('hw:emulator_threads_policy') == 'isolate'
        total.set_amount(request.DEDICATED, pinned + isolated)
    threads = _text_or_empty(extra, 'hw:cpu_thread_policy') or _text_or_empty(
        image, 'hw_cpu_thread_policy'
    )
    if threads == 'isolate':
        total.forbidden.add(request.HYPERTHREADING)
    elif threads == 'require':
        total.required.add(request.HYPERTHREADING)


def _cpu_policy(extra: Mapping[str, Any], image: Mapping[str, Any]) -> str:
    """Return the policy of CPUs in the flavor or, without it, in the image."""
    return _text_or_empty(extra, 'hw:cpu_policy') or _text_or_empty(
        image, 'hw_cpu_policy'
    )


def _text_or_empty(holder: Mapping[str, Any], name: str) -> str:
    """Return a value as text; '' if it is missing."""
    return _spec_or_property(holder, name, {}, '')


def _add_request_groups(total: _DemandSum, spec: Mapping[str, Any]) -> None:
    """Add the demand of ports, device profiles and PCI aliases."""
    for number, each in enumerate(
        fields.list_field(spec, 'requested_resources')
    ):
        group = fields.object_fields(each, 'RequestGroup')
        amounts = fields.mapping_field(group, 'resources')
        for name in amounts:
            # Groups of a message are separate from those of its flavor.
            total.set_amount(
                name, fields.count_field(amounts, name), f'message {number}'
            )
        total.required.update(fields.name_list_field(group, 'required_traits'))
    params = spec.get('request_level_params')
    if params is not None:
        levels = fields.object_fields(params, 'RequestLevelParams')
        total.required.update(fields.name_list_field(levels, 'root_required'))
        total.forbidden.update(
            fields.name_list_field(levels, 'root_forbidden')
        )


def _add_flavor_amounts(
    total: _DemandSum, flavor: Mapping[str, Any], is_bfv: bool
) -> None:
    """Add the flavor's own amounts, of classes that no other part named."""
    known = total.amounts
    if not {request.SHARED, request.DEDICATED} & known.keys():
        total.set_amount(request.SHARED, fields.count_field(flavor, 'vcpus'))
    if 'MEMORY_MB' not in known:
        total.set_amount('MEMORY_MB', fields.count_field(flavor, 'memory_mb'))
    if 'DISK_GB' not in known:
        swap_gb = -(-fields.count_field(flavor, 'swap') // _MB_PER_GB)
        root_gb = 0 if is_bfv else fields.count_field(flavor, 'root_gb')
        ephemeral_gb = fields.count_field(flavor, 'ephemeral_gb')
        total.set_amount('DISK_GB', ephemeral_gb + swap_gb + root_gb)


def _add_devices(
    total: _DemandSum, extra: Mapping[str, Any], image: Mapping[str, Any]
) -> None:
    """Add amounts and traits that extra specs and image properties imply."""
    for key, prop, traits in _CHOICES:
        trait = traits.get(_spec_or_property(extra, key, image, prop))
        total.required.update({trait} if trait else ())
    spaces = [
        f'CUSTOM_PMEM_NAMESPACE_{label}' for label in _pmem_labels(extra)
    ]
    for name in spaces:
        total.set_amount(name, spaces.count(name))
    encrypted = _spec_or_property(
        extra, 'hw:mem_encryption', image, 'hw_mem_encryption'
    )
    if encrypted.lower() not in _FALSE:
        total.set_amount('MEM_ENCRYPTION_CONTEXT', 1)
    if extra.get('accel:device_profile'):
        total.required.add('COMPUTE_ACCELERATORS')
    stateless = _spec_or_property({}, '', image, 'hw_firmware_stateless')
    if stateless.lower() not in _FALSE:
        total.required.add('COMPUTE_SECURITY_STATELESS_FIRMWARE')


def _pmem_labels(extra: Mapping[str, Any]) -> Iterator[str]:
    """Yield the normalized labels of persistent memory in ``hw:pmem``."""
    for label in str(extra.get('hw:pmem') or '').split(','):
        if label.strip():
            yield re.sub('[^A-Z0-9_]', '_', label.strip().upper())


def _spec_or_property(
    extra: Mapping[str, Any], key: str, image: Mapping[str, Any], prop: str
) -> str:
    """Return an extra spec or, without it, an image property; '' without
    both.
    """
    value = extra.get(key)
    value = image.get(prop) if value is None else value
    return '' if value is None else str(value)


def _count_masked_cpus(mask: str, vcpus: int) -> int:
    """Return the number of CPUs in a mask such as ``0-3,^2``; ``^0`` means all
    but 0.
    """
    among: set[int] = set()
    without: set[int] = set()
    for part in filter(None, mask.replace(' ', '').split(',')):
        begin, _, end = part.lstrip('^').partition('-')
        first, last = (
            fields.parse_decimal(begin),
            fields.parse_decimal(end or begin),
        )
        if first is None or last is None:
            raise exception.Unreadable(
                'a mask of CPUs must have a form such as 0-3,^2'
            )
        # A mask may name CPUs that the flavor does not have.
        span = range(first, min(last + 1, vcpus))
        (without if part.startswith('^') else among).update(span)
    return len((among or set(range(vcpus if mask else 0))) - without)


def _destination(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of the requested destination; empty without one."""
    if spec.get('requested_destination') is None:
        return {}
    return fields.object_fields(spec['requested_destination'], 'Destination')


def _required_host(
    spec: Mapping[str, Any],
    destination: Mapping[str, Any],
    is_host_forced: bool,
) -> str:
    """Return the only host that is allowed; '' for any host."""
    wanted = fields.text_field(destination, 'host')
    if wanted or not is_host_forced:
        return wanted
    hosts = fields.name_list_field(spec, 'force_hosts')
    return next(iter(hosts), '')


def _checked_amounts(
    amounts: Mapping[str, int],
) -> tuple[tuple[str, int], ...]:
    """Return the amounts above 0, sorted by class.

    :raises Unreadable: if an amount or a class is not valid.
    """
    for name, amount in amounts.items():
        if not _CLASS.fullmatch(name) or not 0 <= amount <= request.LARGEST:
            raise exception.Unreadable(
                'each amount must be a number between 0 and'
                f' {request.LARGEST} of a resource class of Placement'
            )
    return tuple(
        sorted((n, amount) for n, amount in amounts.items() if amount)
    )
