# SPDX-License-Identifier: Apache-2.0

"""The class of each VM, and the steps that create it."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from nova_fairness import exception
from nova_fairness.apply.network import layout
from nova_fairness.apply.network import state
from nova_fairness.model import allocation
from nova_fairness.model import instance

_BURST_PARTS = 500
"""A burst is the traffic of one second divided by this number, so that a
late timer loses no bandwidth."""

_MIN_BURST = 16000
_MIN_QUANTUM = 16000
_ONE_PACKET = 2000
_TRUNK_QUANTUM = 60000
_MAX_QUANTUM = 1 << 24

_MAX_RATE_RATIO = 20
"""Largest ratio of two rates with bounded weights. Within this ratio
every class sends whole packets."""

LOWEST_RATE, HIGHEST_RATE = 1000, 10**12
"""Rates that a class may have, bytes per second."""

_MAX_BUCKET_ENTRIES = 0xFFF

Operation = tuple[str | int, ...]
"""Name and fields, as :mod:`privileged_network` lists them."""

Step = tuple[str, Operation]
"""Key of the VM, empty for the node; and the operation."""


@dataclasses.dataclass(frozen=True)
class Member:
    """A VM that has a class.

    :ivar minor: number of its class in both trees.
    :ivar filters: MAC address by filter handle.
    :ivar taps: its interfaces on the host.
    :ivar rate: bytes per second in each direction.
    :ivar duplicates: its MAC addresses that another VM of the node also has,
        each with this VM's tap.
    """

    minor: int
    filters: Mapping[state.FilterHandle, str]
    taps: tuple[str, ...]
    rate: int
    duplicates: Mapping[str, str] = dataclasses.field(default_factory=dict)


Members = Mapping[str, Member]
"""The class of each VM, by key of the incarnation."""


def with_class(
    members: Members,
    key: str,
    nics: Sequence[instance.Nic],
    rate: int,
) -> Member:
    """Return the class of a VM, new or adapted to its present interfaces.

    :param key: of the incarnation.
    :param nics: the steerable interfaces, not empty.
    :param rate: bytes per second.
    :raises WriteRefused: if all numbers are in use, or another VM has a class
        for one of the MAC addresses: their incoming traffic could not be
        separated.
    """
    nics = [dataclasses.replace(nic, mac=nic.mac.lower()) for nic in nics]
    if why := duplicate_mac(members, key, nics):
        raise exception.WriteRefused(f'{key} gets no network class: {why}')
    known = members.get(key)
    if known is not None and has_interfaces(known, nics):
        return dataclasses.replace(known, rate=rate)
    others = [item for name, item in members.items() if name != key]
    minor = _free_minor(others) if known is None else known.minor
    old = {} if known is None else known.filters
    used = {handle for item in others for handle in item.filters} | set(old)
    filters: dict[state.FilterHandle, str] = {}
    for mac in dict.fromkeys(nic.mac for nic in nics):
        kept = [handle for handle, found in old.items() if found == mac]
        handle = kept[0] if kept else _free_number(mac, used)
        filters[handle] = mac
        used.add(handle)
    taps = tuple(dict.fromkeys(nic.tap for nic in nics))
    return Member(minor, filters, taps, rate)


def duplicate_mac(
    members: Members, key: str, nics: Sequence[instance.Nic]
) -> str:
    """Return an error if another VM has a class for a MAC address.

    :param members: VMs with a class.
    :param key: of the VM to check.
    :param nics: of that VM.
    :returns: empty if there is no such address.
    """
    macs = {nic.mac.lower() for nic in nics}
    for other, item in members.items():
        found = sorted(macs & set(item.filters.values()))
        if found and other != key:
            return (
                f'it has the MAC address {found[0]}, and so has {other} on '
                f'this node, which has a class already; give one of them '
                f'another address'
            )
    return ''


def duplicate_macs(
    found: Mapping[str, instance.Incarnation],
) -> Mapping[str, Mapping[str, str]]:
    """Return the MAC addresses that several VMs of a node have.

    :param found: the running VMs by key, also those without a class.
    :returns: by key, each such address with the VM's tap.
    """
    owners: dict[str, set[str]] = {}
    for key, item in found.items():
        for nic in item.instance.nics:
            owners.setdefault(nic.mac.lower(), set()).add(key)
    several = {mac for mac, keys in owners.items() if mac and len(keys) > 1}
    told: dict[str, dict[str, str]] = {}
    for key, item in found.items():
        for nic in item.instance.nics:
            if nic.mac.lower() in several:
                told.setdefault(key, {}).setdefault(nic.mac.lower(), nic.tap)
    return told


def with_duplicates(
    members: Members, told: Mapping[str, Mapping[str, str]]
) -> Members:
    """Return the members with their duplicate MAC addresses."""
    return {
        key: item
        if item.duplicates == told.get(key, {})
        else dataclasses.replace(item, duplicates=told.get(key, {}))
        for key, item in members.items()
    }


def _free_minor(members: Iterable[Member]) -> int:
    used = {item.minor for item in members}
    numbers = range(state.FIRST_MINOR, state.LAST_MINOR + 1)
    return _first_unused(numbers, used, 'class')


def _free_number(
    mac: str, used: Iterable[state.FilterHandle]
) -> state.FilterHandle:
    bucket = state.bucket_of(mac)
    taken = {number for found, number in used if found == bucket}
    return bucket, _first_unused(
        range(1, _MAX_BUCKET_ENTRIES + 1), taken, 'filter'
    )


def _first_unused(numbers: Iterable[int], used: set[int], what: str) -> int:
    found = next((n for n in numbers if n not in used), None)
    if found is None:
        raise exception.WriteRefused(f'all numbers for a {what} are in use')
    return found


def has_interfaces(member: Member, nics: Sequence[instance.Nic]) -> bool:
    """Check whether a VM's class was created for these interfaces."""
    macs = {nic.mac.lower() for nic in nics}
    taps = {nic.tap for nic in nics}
    return macs == set(member.filters.values()) and taps == set(member.taps)


def with_rates_of(members: Members, tree: state.ClassTree) -> Members:
    """Return recorded members with the rates in the kernel."""
    nothing = state.Class(LOWEST_RATE, 0, 0)
    return {
        key: dataclasses.replace(
            item, rate=tree.classes.get(item.minor, nothing).rate
        )
        for key, item in members.items()
    }


def within_capacity(
    before: Members, after: Members, capacity: int
) -> tuple[Members, frozenset[str]]:
    """Limit the sum of the rates to the capacity of the link.

    :returns: the members, and the keys of the VMs whose rates stay as they
        were because the sum would be too large.
    """
    if sum(item.rate for item in after.values()) <= capacity:
        return after, frozenset()
    kept: dict[str, Member] = {}
    refused: set[str] = set()
    left = capacity - sum(
        min(item.rate, before[key].rate if key in before else 0)
        for key, item in after.items()
    )
    for key, item in sorted(after.items(), key=lambda pair: pair[1].minor):
        had = before[key].rate if key in before else 0
        grown = item.rate - had
        if grown <= max(0, left):
            left -= max(0, grown)
            kept[key] = item
            continue
        refused.add(key)
        if key in before:
            kept[key] = dataclasses.replace(item, rate=had)
    return kept, frozenset(refused)


@dataclasses.dataclass(frozen=True)
class NetworkVms:
    """Facts about the VMs.

    :ivar found: the running VMs with their interfaces, by key.
    :ivar is_running: checks whether the process of a key still runs.
    :ivar view: facts that decide which VMs can be steered.
    """

    found: Mapping[str, instance.Incarnation]
    is_running: Callable[[str], bool]
    view: layout.NetworkFacts


def members_wanted(
    before: Members,
    changes: Sequence[allocation.Change],
    running: NetworkVms,
    capacity: int,
) -> tuple[Members, dict[str, str]]:
    """Return the classes that VMs shall have; VMs that ended get none.

    :param before: present members.
    :param changes: rates by knob, bytes per second; 0 removes a class.
    :param capacity: largest sum of all rates, bytes per second.
    :returns: the wanted members, and the cause of each refused change by key.
    """
    after = {
        key: item
        for key, item in before.items()
        if key in running.found or running.is_running(key)
    }
    refused: dict[str, str] = {}
    for change in changes:
        try:
            _apply_change(after, change, running)
        except exception.WriteRefused as error:
            refused[change.knob.incarnation] = str(error)
    after = dict(with_duplicates(after, duplicate_macs(running.found)))
    kept, excess = within_capacity(before, after, capacity)
    why = f'all rates would exceed {capacity} bytes per second'
    return kept, {**refused, **dict.fromkeys(excess, why)}


def _apply_change(
    members: dict[str, Member],
    change: allocation.Change,
    running: NetworkVms,
) -> None:
    key = change.knob.incarnation
    if change.after == 0:
        members.pop(key, None)
        return
    if not LOWEST_RATE <= change.after <= HIGHEST_RATE:
        raise exception.WriteRefused(
            f'rate {change.after}: expected 0 or {LOWEST_RATE}..{HIGHEST_RATE}'
        )
    if key not in running.found:
        raise exception.WriteRefused('the interfaces of the VM are unknown')
    vm = running.found[key].instance
    nics, why = layout.steerable(vm, running.view)
    if not nics:
        raise exception.WriteRefused(f'without effect: {why}')
    members[key] = with_class(members, key, nics, change.after)


@dataclasses.dataclass(frozen=True)
class NetworkTarget:
    """The wanted state of traffic control.

    :ivar uplink: interface with the tree for sent traffic; empty if sent
        traffic is redirected from the taps.
    :ivar at_taps: whether received traffic is redirected from the taps.
    :ivar rate: of the link, bytes per second in each direction.
    :ivar members: by key of the incarnation; without any, nothing is created.
    """

    uplink: str
    at_taps: bool
    rate: int
    members: Mapping[str, Member]

    @property
    def sides(self) -> Mapping[str, str]:
        """Whether source or destination MAC addresses select the class,
        by device.
        """
        if not self.members:
            return {}
        return {
            self.uplink or state.IFB_OUT: state.SOURCE,
            state.IFB_IN: state.DESTINATION,
        }

    @property
    def blocks(self) -> Mapping[int, str]:
        """The interface to which each filter block of the taps redirects."""
        return {
            block: name
            for block, name in state.BLOCKS.items()
            if name in self.sides
        }

    @property
    def tap_blocks(self) -> tuple[int, int]:
        """The filter blocks of each tap."""
        return state.IN_ONLY if self.uplink else state.BOTH_WAYS

    @property
    def taps(self) -> Mapping[str, str]:
        """The key of the VM of each tap that must redirect into the trees."""
        if not self.at_taps:
            return {}
        return {t: k for k, item in self.members.items() for t in item.taps}


def quantum_time(rates: Iterable[int], rest: int = 0) -> float:
    """Return the seconds for which each class may send in its turn.

    Leftover bandwidth is divided in turns. The quantum of a turn must be at
    least the largest packets, which offloads create; otherwise all classes get
    the same. So the slowest class decides the time. But no quantum may exceed
    the kernel's limit, or fast classes would get equal parts. In that case the
    slowest class sends one packet in its turn. The time changes in powers of
    two, so that it rarely changes.

    :param rates: of the VMs, bytes per second.
    :param rest: rate of the traffic that belongs to no VM.
    """
    known = [max(1, rate) for rate in rates] or [1]
    smallest, largest = min(known), max(known)
    seconds = 0.002
    while seconds * smallest < _MIN_QUANTUM:
        seconds *= 2
    while seconds * largest > _MAX_QUANTUM or (
        seconds * rest > _MAX_QUANTUM
        and seconds * largest > 2 * _MAX_RATE_RATIO * _ONE_PACKET
    ):
        seconds /= 2
    return seconds


def wanted_tree(target: NetworkTarget) -> state.ClassTree:
    """Return the classes and filters that both directions shall have."""
    rates = {item.minor: item.rate for item in target.members.values()}
    left = max(1, target.rate - sum(rates.values()))
    seconds = quantum_time(rates.values(), left)
    classes = {
        minor: state.Class(rate, target.rate, _quantum(rate, seconds))
        for minor, rate in {state.REST: left, **rates}.items()
    }
    trunk = state.Class(target.rate, target.rate, _TRUNK_QUANTUM)
    filters = {
        handle: state.MacFilter(mac, item.minor)
        for item in target.members.values()
        for handle, mac in item.filters.items()
    }
    return state.ClassTree({state.TRUNK: trunk, **classes}, filters)


def _quantum(rate: int, seconds: float) -> int:
    return min(_MAX_QUANTUM, max(_ONE_PACKET, int(rate * seconds)))


def burst(rate: int) -> int:
    """Return the bytes that may pass at once at a rate."""
    return max(_MIN_BURST, rate // _BURST_PARTS)


def plan_steps(
    kernel: state.Kernel, target: NetworkTarget, own_ingress: str
) -> tuple[Step, ...]:
    """Return the steps from the present to the wanted state, in sequence.

    :param own_ingress: interface whose ingress qdisc this agent created; empty
        if none.
    :returns: empty if nothing differs.
    """
    wanted = wanted_tree(target)
    owners = {item.minor: key for key, item in target.members.items()}
    steps = [*_removal_steps(kernel, target, own_ingress)]
    for device, side in target.sides.items():
        steps += _creation_steps(kernel, target, device)
        present = kernel.trees.get(device, state.NO_TREE)
        told = _with_tap_filters(wanted, target, kernel, device)
        steps += _tree_steps(device, side, present, told, owners)
    steps += _redirect_steps(kernel, target)
    steps += [
        ('', ('no-ifb', name))
        for name in state.IFBS
        if name in kernel.links and name not in target.sides
    ]
    return tuple(steps)


def _with_tap_filters(
    wanted: state.ClassTree,
    target: NetworkTarget,
    kernel: state.Kernel,
    device: str,
) -> state.ClassTree:
    """Return a tree in which a duplicate MAC address counts for its own tap
    only.

    The kernel stores the interface of a packet's arrival. Traffic from the
    uplink arrived at no tap, so there such an address selects no VM's class.
    """
    taps = {
        (item.minor, mac): tap
        for item in target.members.values()
        for mac, tap in item.duplicates.items()
    }
    if not taps:
        return wanted
    knows_taps = target.at_taps or device == target.uplink
    filters: dict[state.FilterHandle, state.MacFilter] = {}
    for handle, item in wanted.filters.items():
        tap = taps.get((item.minor, item.mac))
        if tap is None:
            filters[handle] = item
        elif knows_taps and tap in kernel.links:
            filters[handle] = dataclasses.replace(item, tap=tap)
    return dataclasses.replace(wanted, filters=filters)


def _removal_steps(
    kernel: state.Kernel, target: NetworkTarget, own_ingress: str
) -> Iterator[Step]:
    """Yield steps that remove this agent's unwanted objects, users first."""
    taps = target.taps
    for name in kernel.links:
        found = kernel.ingress(name)
        if found is not None and state.is_our_clsact(found):
            if name not in taps or found.blocks != target.tap_blocks:
                yield '', ('no-clsact', name)
        elif name != target.uplink or target.at_taps or not target.members:
            yield from _ingress_removal(kernel, name, own_ingress)
    for name in kernel.trees:
        if name not in target.sides:
            yield '', ('no-root', name)


def _ingress_removal(
    kernel: state.Kernel, name: str, own_ingress: str
) -> Iterator[Step]:
    found, foreign = kernel.redirects.get(name, ('', 0))
    if found == state.IFB_IN:
        yield '', ('no-redirect', name)
    if name == own_ingress and name in kernel.redirects and not foreign:
        yield '', ('no-ingress', name)


def _creation_steps(
    kernel: state.Kernel, target: NetworkTarget, device: str
) -> Iterator[Step]:
    if device != target.uplink and device not in kernel.links:
        yield '', ('ifb', device)
    if device not in kernel.trees:
        yield '', ('root', device)


def _tree_steps(
    device: str,
    side: str,
    present: state.ClassTree,
    wanted: state.ClassTree,
    owners: Mapping[int, str],
) -> Iterator[Step]:
    if not present.has_table:
        yield '', ('table', device, side)
    for handle, found in present.filters.items():
        if wanted.filters.get(handle) != found:
            yield (
                owners.get(found.minor, ''),
                ('no-filter', device, *handle),
            )
    for minor in present.classes.keys() - wanted.classes.keys():
        yield '', ('no-class', device, minor)
    for minor in _shrinking_first(present, wanted):
        item = wanted.classes[minor]
        yield (
            owners.get(minor, ''),
            _class_operation(device, minor, item),
        )
    for handle, mac_filter in wanted.filters.items():
        if present.filters.get(handle) != mac_filter:
            yield (
                owners.get(mac_filter.minor, ''),
                _filter_operation(device, side, handle[1], mac_filter),
            )


def _filter_operation(
    device: str, side: str, number: int, item: state.MacFilter
) -> Operation:
    fields = device, side, item.mac, number, item.minor
    return (
        ('tap-filter', *fields, item.tap) if item.tap else ('filter', *fields)
    )


def _shrinking_first(
    present: state.ClassTree, wanted: state.ClassTree
) -> Sequence[int]:
    """Sort changed classes so that the sum of rates never exceeds the link."""
    nothing = state.Class(0, 0, 0)

    def growth(minor: int) -> tuple[bool, int, int]:
        before = present.classes.get(minor, nothing).rate
        grown = wanted.classes[minor].rate - before
        return minor != state.TRUNK, grown, minor

    different = (
        minor
        for minor, item in wanted.classes.items()
        if present.classes.get(minor) != item
    )
    return sorted(different, key=growth)


def _class_operation(device: str, minor: int, item: state.Class) -> Operation:
    bursts = burst(item.rate), burst(item.ceil)
    rates = item.rate, item.ceil
    return 'class', device, minor, *rates, *bursts, item.quantum


def _redirect_steps(
    kernel: state.Kernel, target: NetworkTarget
) -> Iterator[Step]:
    """Yield steps that redirect traffic into the trees."""
    if not target.members:
        return
    if not target.at_taps:
        if target.uplink not in kernel.redirects:
            yield '', ('ingress', target.uplink)
        if kernel.redirects.get(target.uplink, ('', 0))[0] != state.IFB_IN:
            yield '', ('redirect', target.uplink)
        return
    kept = 0
    for tap, key in target.taps.items():
        found = kernel.ingress(tap)
        if found is None or found.blocks != target.tap_blocks:
            yield key, ('clsact', tap, *target.tap_blocks)
        else:
            kept += 1
    for block, name in target.blocks.items():
        # A block goes, with its filter, when the last tap that has it goes.
        if not kept or kernel.redirects.get(block, ('', 0))[0] != name:
            yield '', ('block', block)
