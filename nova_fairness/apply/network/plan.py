# SPDX-License-Identifier: Apache-2.0

"""The class of each VM, and the steps to it: pure but for questions."""

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
"""A burst is what passes in one part of so many of a second, so that timers
that are late lose nothing."""

_LEAST_BURST = 16000
_LEAST_QUANTUM = 16000
_ONE_PACKET = 2000
_TRUNK_QUANTUM = 60000
_LARGEST_QUANTUM = 1 << 24

_USUAL_RATIO = 20
"""Largest rate by smallest that bounded weights make; these keep whole packets
before what belongs to no VM gets its proportion."""

LOWEST_RATE, HIGHEST_RATE = 1000, 10**12
"""Rates that a class may have, bytes per second."""

_MOST_IN_BUCKET = 0xFFF

Operation = tuple[str | int, ...]
"""Name and fields, as :mod:`privileged_network` lists them."""

Step = tuple[str, Operation]
"""For which VM, by key, empty for the node; and what is done."""


@dataclasses.dataclass(frozen=True)
class Member:
    """A VM that has a class.

    :ivar minor: number of its class in both trees.
    :ivar filters: MAC address by handle.
    :ivar taps: interfaces on the host.
    :ivar rate: bytes per second in each direction.
    :ivar doubles: its MAC addresses that another VM of the node has too, each
        with the tap behind which it is this VM's.
    """

    minor: int
    filters: Mapping[state.FilterHandle, str]
    taps: tuple[str, ...]
    rate: int
    doubles: Mapping[str, str] = dataclasses.field(default_factory=dict)


Members = Mapping[str, Member]
"""Class of each VM, by key of the incarnation."""


def admitted(
    members: Members,
    key: str,
    nics: Sequence[instance.Nic],
    rate: int,
) -> Member:
    """A class for a VM; one that it has is made for its present interfaces.

    :param key: of the incarnation.
    :param nics: those that can be steered, not empty.
    :param rate: bytes per second.
    :raises WriteRefused: if there are no numbers left, or another VM has a
        class for one of its MAC addresses: their incoming traffic could not be
        told apart, and traffic of one VM must not count as another's.
    """
    nics = [dataclasses.replace(nic, mac=nic.mac.lower()) for nic in nics]
    if why := double(members, key, nics):
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


def double(members: Members, key: str, nics: Sequence[instance.Nic]) -> str:
    """Say which MAC address another VM has a class for; empty if none.

    :param members: who has a class.
    :param key: of the VM that asks.
    :param nics: of that VM.
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


def doubles(
    found: Mapping[str, instance.Incarnation],
) -> Mapping[str, Mapping[str, str]]:
    """MAC addresses that several VMs of a node have; networks permit that.

    :param found: the VMs that run, by key; those without a class count too.
    :returns: by key, each such address with the tap behind which it is this
        VM's.
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


def with_doubles(
    members: Members, told: Mapping[str, Mapping[str, str]]
) -> Members:
    """Members that know which of their MAC addresses others have, too."""
    return {
        key: item
        if item.doubles == told.get(key, {})
        else dataclasses.replace(item, doubles=told.get(key, {}))
        for key, item in members.items()
    }


def _free_minor(members: Iterable[Member]) -> int:
    used = {item.minor for item in members}
    numbers = range(state.FIRST_MINOR, state.LAST_MINOR + 1)
    return _first(numbers, used, 'class')


def _free_number(
    mac: str, used: Iterable[state.FilterHandle]
) -> state.FilterHandle:
    bucket = state.bucket_of(mac)
    taken = {number for found, number in used if found == bucket}
    return bucket, _first(range(1, _MOST_IN_BUCKET + 1), taken, 'filter')


def _first(numbers: Iterable[int], used: set[int], what: str) -> int:
    found = next((n for n in numbers if n not in used), None)
    if found is None:
        raise exception.WriteRefused(f'no number is left for a {what}')
    return found


def has_interfaces(member: Member, nics: Sequence[instance.Nic]) -> bool:
    """Tell whether a VM's classes are made for these interfaces."""
    macs = {nic.mac.lower() for nic in nics}
    taps = {nic.tap for nic in nics}
    return macs == set(member.filters.values()) and taps == set(member.taps)


def with_rates_of(members: Members, tree: state.ClassTree) -> Members:
    """Recorded VMs, with the rates that the kernel holds."""
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
    """Rates whose sum is within the link.

    :returns: who has which rate, and the keys of those that would have made
        it too much: they keep what they had.
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

    :ivar found: those that run, by key, with their interfaces.
    :ivar is_running: whether the process of a key still runs.
    :ivar view: tells which VMs can be steered.
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
    """Classes that VMs shall have; those that ended have none.

    :param before: who has which class.
    :param changes: rates by knob, bytes per second; 0 takes a class away.
    :param capacity: what all rates together may be, bytes per second.
    :returns: who shall have which class, and why, by key, something is not
        as it was asked for.
    """
    after = {
        key: item
        for key, item in before.items()
        if key in running.found or running.is_running(key)
    }
    refused: dict[str, str] = {}
    for change in changes:
        try:
            _change(after, change, running)
        except exception.WriteRefused as error:
            refused[change.knob.incarnation] = str(error)
    after = dict(with_doubles(after, doubles(running.found)))
    kept, excess = within_capacity(before, after, capacity)
    why = f'all rates would exceed {capacity} bytes per second'
    return kept, {**refused, **dict.fromkeys(excess, why)}


def _change(
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
            f'a rate of {change.after}, expected 0 or '
            f'{LOWEST_RATE}..{HIGHEST_RATE}'
        )
    if key not in running.found:
        raise exception.WriteRefused('its interfaces are not known')
    vm = running.found[key].instance
    nics, why = layout.steerable(vm, running.view)
    if not nics:
        raise exception.WriteRefused(f'without effect: {why}')
    members[key] = admitted(members, key, nics, change.after)


@dataclasses.dataclass(frozen=True)
class NetworkTarget:
    """The wanted state of traffic control.

    :ivar uplink: where the tree of the VMs' sent traffic stands; empty if that
        is taken from their taps.
    :ivar at_taps: whether what VMs receive is taken from their taps.
    :ivar rate: of the link, bytes per second in each direction.
    :ivar members: by key of the incarnation; nothing is there without any.
    """

    uplink: str
    at_taps: bool
    rate: int
    members: Mapping[str, Member]

    @property
    def sides(self) -> Mapping[str, str]:
        """Side whose MAC address counts, by device with a tree."""
        if not self.members:
            return {}
        return {
            self.uplink or state.IFB_OUT: state.SOURCE,
            state.IFB_IN: state.DESTINATION,
        }

    @property
    def blocks(self) -> Mapping[int, str]:
        """To which interface each block of the taps leads."""
        return {
            block: name
            for block, name in state.BLOCKS.items()
            if name in self.sides
        }

    @property
    def tap_blocks(self) -> tuple[int, int]:
        """Blocks that each tap has."""
        return state.IN_ONLY if self.uplink else state.BOTH_WAYS

    @property
    def taps(self) -> Mapping[str, str]:
        """Key of the VM of each tap that must lead into the trees."""
        if not self.at_taps:
            return {}
        return {t: k for k, item in self.members.items() for t in item.taps}


def quantum_time(rates: Iterable[int], rest: int = 0) -> float:
    """Seconds for which each class may send in its turn.

    Leftover bandwidth is divided in turns. The quantum of a turn must be at
    least the largest packets, which offloads make; otherwise all classes get
    the same. So the quantum is set for the slowest class. But no quantum may
    be cut off at the kernel's limit, or the fast classes would share alike. In
    that case the slowest class sends one packet in its turn, which is little
    beside the fast ones. The time changes in powers of two, so that it rarely
    changes.

    :param rates: of the VMs, bytes per second.
    :param rest: rate of what belongs to none of them.
    """
    known = [max(1, rate) for rate in rates] or [1]
    smallest, largest = min(known), max(known)
    seconds = 0.002
    while seconds * smallest < _LEAST_QUANTUM:
        seconds *= 2
    while seconds * largest > _LARGEST_QUANTUM or (
        seconds * rest > _LARGEST_QUANTUM
        and seconds * largest > 2 * _USUAL_RATIO * _ONE_PACKET
    ):
        seconds /= 2
    return seconds


def tree_of(target: NetworkTarget) -> state.ClassTree:
    """The classes that both directions shall have, without filters."""
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
    return min(_LARGEST_QUANTUM, max(_ONE_PACKET, int(rate * seconds)))


def burst(rate: int) -> int:
    """Bytes that may pass at once for a rate."""
    return max(_LEAST_BURST, rate // _BURST_PARTS)


def plan(
    kernel: state.Kernel, target: NetworkTarget, own_ingress: str
) -> tuple[Step, ...]:
    """The steps from what is to what shall be, in order.

    :param own_ingress: interface whose ingress qdisc we made, empty if none.
    :returns: nothing if all is as it shall be.
    """
    wanted = tree_of(target)
    owners = {item.minor: key for key, item in target.members.items()}
    steps = [*_removed(kernel, target, own_ingress)]
    for device, side in target.sides.items():
        steps += _made(kernel, target, device)
        present = kernel.trees.get(device, state.NO_TREE)
        told = _told_apart(wanted, target, kernel, device)
        steps += _tree_steps(device, side, present, told, owners)
    steps += _redirected(kernel, target)
    steps += [
        ('', ('no-ifb', name))
        for name in state.IFBS
        if name in kernel.links and name not in target.sides
    ]
    return tuple(steps)


def _told_apart(
    wanted: state.ClassTree,
    target: NetworkTarget,
    kernel: state.Kernel,
    device: str,
) -> state.ClassTree:
    """A tree in which a MAC address of two VMs counts for its own tap only.

    The kernel keeps the interface through which a packet came. Traffic from
    the uplink did not come by a tap, so there such an address leads to no VM's
    class.
    """
    taps = {
        (item.minor, mac): tap
        for item in target.members.values()
        for mac, tap in item.doubles.items()
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


def _removed(
    kernel: state.Kernel, target: NetworkTarget, own_ingress: str
) -> Iterator[Step]:
    """Remove what is ours and shall not be, in the order of use."""
    taps = target.taps
    for name in kernel.links:
        found = kernel.ingress(name)
        if found is not None and state.is_our_clsact(found):
            if name not in taps or found.blocks != target.tap_blocks:
                yield '', ('no-clsact', name)
        elif name != target.uplink or target.at_taps or not target.members:
            yield from _without_ingress(kernel, name, own_ingress)
    for name in kernel.trees:
        if name not in target.sides:
            yield '', ('no-root', name)


def _without_ingress(
    kernel: state.Kernel, name: str, own_ingress: str
) -> Iterator[Step]:
    found, foreign = kernel.redirects.get(name, ('', 0))
    if found == state.IFB_IN:
        yield '', ('no-redirect', name)
    if name == own_ingress and name in kernel.redirects and not foreign:
        yield '', ('no-ingress', name)


def _made(
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
    """Order what differs so that the sum of rates never exceeds the link."""
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


def _redirected(kernel: state.Kernel, target: NetworkTarget) -> Iterator[Step]:
    """Lead traffic into the trees, once they stand."""
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
