# SPDX-License-Identifier: Apache-2.0

"""State of this host's traffic control, as values: pure.

Names, handles and numbers that tell our own objects from others.
"""

from collections.abc import Mapping
import dataclasses
import types

ROOT_HANDLE = 0xFA12
"""Major number of our qdiscs: no default of any system."""

PREFERENCE = 0xFA12
"""Of every filter that is ours."""

TRUNK = 0x1
"""Minor number of the class whose rate is that of the link."""

REST = 0xFFFE
"""Minor number of the class of what belongs to no steered VM: the host's own
traffic, broadcasts, VMs that are exempt."""

FIRST_MINOR, LAST_MINOR = 0x10, 0xFFF0
"""Minor numbers of VMs' classes."""

TABLE = 1
"""Number of the hash table of the filters that tell MAC addresses apart."""

BUCKETS = 256

IFB_IN = 'nfair-in'
"""Carries what VMs receive."""

IFB_OUT = 'nfair-out'
"""Carries what VMs send, where that is steered at their taps."""

IFBS = (IFB_IN, IFB_OUT)

BLOCK_OUT, BLOCK_IN = 0xFA12, 0xFA13
"""Filter blocks that the taps share: what VMs send, and receive."""

BLOCKS: Mapping[int, str] = types.MappingProxyType(
    {BLOCK_OUT: IFB_OUT, BLOCK_IN: IFB_IN}
)
"""To which interface a block redirects everything."""

SOURCE, DESTINATION = 'src', 'dst'
"""The MAC address that a tree's filters look at."""


@dataclasses.dataclass(frozen=True, slots=True)
class Qdisc:
    """A queueing discipline.

    :ivar kind: such as ``htb``.
    :ivar handle: major number; 0 for what the kernel made by itself.
    :ivar parent: ``root``, ``ingress`` (both ways in and out of a device) or
        ``other``.
    :ivar blocks: filter blocks of what comes into the host, and of what goes
        out; zeros if there are none.
    """

    kind: str
    handle: int
    parent: str
    blocks: tuple[int, int] = (0, 0)


@dataclasses.dataclass(frozen=True, slots=True)
class Class:
    """A class of a tree; rates in bytes per second, the others in bytes."""

    rate: int
    ceil: int
    quantum: int


@dataclasses.dataclass(frozen=True, slots=True)
class MacFilter:
    """Leads a MAC address to a class.

    :ivar mac: lower case, with colons.
    :ivar minor: of the class.
    :ivar tap: interface through which a packet must have come; empty for any.
    """

    mac: str
    minor: int
    tap: str = ''


FilterHandle = tuple[int, int]
"""Bucket and number in it."""


@dataclasses.dataclass(frozen=True)
class ClassTree:
    """One direction, as it is or as it shall be.

    :ivar classes: by minor number.
    :ivar filters: by handle.
    :ivar has_table: whether the hash table is there and in use.
    :ivar foreign: filters in the tree that are not ours.
    """

    classes: Mapping[int, Class]
    filters: Mapping[FilterHandle, MacFilter]
    has_table: bool = True
    foreign: int = 0


NO_TREE = ClassTree({}, {}, has_table=False)


@dataclasses.dataclass(frozen=True)
class Kernel:
    """The state that was read.

    :ivar links: number of each interface by name.
    :ivar qdiscs: by name of the interface.
    :ivar trees: ours, by name of the interface.
    :ivar redirects: where our filters send everything, by name of an
        interface with an ingress qdisc or by number of a block; with the
        count of other filters there.
    """

    links: Mapping[str, int]
    qdiscs: Mapping[str, tuple[Qdisc, ...]]
    trees: Mapping[str, ClassTree]
    redirects: Mapping[str | int, tuple[str, int]]

    def root(self, device: str) -> Qdisc | None:
        """The root of a device; ``None`` if it has none."""
        return self._at(device, 'root')

    def ingress(self, device: str) -> Qdisc | None:
        """The discipline of a device that filters what comes in."""
        return self._at(device, 'ingress')

    def _at(self, device: str, parent: str) -> Qdisc | None:
        found = (q for q in self.qdiscs.get(device, ()) if q.parent == parent)
        return next(found, None)


def is_our_root(found: Qdisc | None) -> bool:
    """Tell whether a root is a tree of ours."""
    return (
        found is not None
        and found.kind == 'htb'
        and found.handle == ROOT_HANDLE
    )


BOTH_WAYS, IN_ONLY = (BLOCK_OUT, BLOCK_IN), (0, BLOCK_IN)
"""Blocks of a tap: of all that a VM sends and receives, or receives only."""


def is_our_clsact(found: Qdisc | None) -> bool:
    """Tell whether a tap's filters are ours alone."""
    return (
        found is not None
        and found.kind == 'clsact'
        and found.blocks in (BOTH_WAYS, IN_ONLY)
    )


def is_default(found: Qdisc | None) -> bool:
    """Tell whether a root is what the kernel made by itself, or nothing."""
    return found is None or found.handle == 0


def bucket_of(mac: str) -> int:
    """The bucket of a MAC address: its last byte."""
    return int(mac[-2:], 16)
