# SPDX-License-Identifier: Apache-2.0

"""The state of this host's traffic control, as values.

It contains the names, handles and numbers that identify this agent's objects.
"""

from collections.abc import Mapping
import dataclasses
import types

ROOT_HANDLE = 0xFA12
"""Major number of this agent's qdiscs; no system uses it by default."""

PREFERENCE = 0xFA12
"""Preference of all filters of this agent."""

TRUNK = 0x1
"""Minor number of the class with the rate of the link."""

REST = 0xFFFE
"""Minor number of the class for traffic of no steered VM: the host's own
traffic, broadcasts, exempt VMs."""

FIRST_MINOR, LAST_MINOR = 0x10, 0xFFF0
"""Minor numbers of VMs' classes."""

TABLE = 1
"""Number of the hash table of the filters that match MAC addresses."""

BUCKETS = 256

IFB_IN = 'nfair-in'
"""Interface for the traffic that VMs receive."""

IFB_OUT = 'nfair-out'
"""Interface for the traffic that VMs send, where their taps are steered."""

IFBS = (IFB_IN, IFB_OUT)

BLOCK_OUT, BLOCK_IN = 0xFA12, 0xFA13
"""Filter blocks that the taps share: what VMs send, and receive."""

BLOCKS: Mapping[int, str] = types.MappingProxyType(
    {BLOCK_OUT: IFB_OUT, BLOCK_IN: IFB_IN}
)
"""Interface to which a block redirects all traffic."""

SOURCE, DESTINATION = 'src', 'dst'
"""The MAC address that a tree's filters look at."""


@dataclasses.dataclass(frozen=True, slots=True)
class Qdisc:
    """A queueing discipline.

    :ivar kind: such as ``htb``.
    :ivar handle: major number; 0 for one that the kernel created by itself.
    :ivar parent: ``root``, ``ingress`` (incoming and outgoing filters) or
        ``other``.
    :ivar blocks: filter blocks of incoming and of outgoing traffic; zeros if
        there are none.
    """

    kind: str
    handle: int
    parent: str
    blocks: tuple[int, int] = (0, 0)


@dataclasses.dataclass(frozen=True, slots=True)
class Class:
    """A class of a tree; rates in bytes per second, other fields in bytes."""

    rate: int
    ceil: int
    quantum: int


@dataclasses.dataclass(frozen=True, slots=True)
class MacFilter:
    """A filter that assigns a MAC address to a class.

    :ivar mac: lower case, with colons.
    :ivar minor: of the class.
    :ivar tap: interface of the packet's arrival; empty for any.
    """

    mac: str
    minor: int
    tap: str = ''


FilterHandle = tuple[int, int]
"""Bucket, and number in it."""


@dataclasses.dataclass(frozen=True)
class ClassTree:
    """The classes and filters of one direction.

    :ivar classes: by minor number.
    :ivar filters: by handle.
    :ivar has_table: whether the hash table exists and is in use.
    :ivar foreign: number of filters of other programs.
    """

    classes: Mapping[int, Class]
    filters: Mapping[FilterHandle, MacFilter]
    has_table: bool = True
    foreign: int = 0


NO_TREE = ClassTree({}, {}, has_table=False)


@dataclasses.dataclass(frozen=True)
class Kernel:
    """The state of traffic control that was read.

    :ivar links: number of each interface by name.
    :ivar qdiscs: by name of the interface.
    :ivar trees: of this agent, by name of the interface.
    :ivar redirects: target of this agent's redirection and number of other
        filters; by name of an interface with an ingress qdisc, or by number of
        a block.
    """

    links: Mapping[str, int]
    qdiscs: Mapping[str, tuple[Qdisc, ...]]
    trees: Mapping[str, ClassTree]
    redirects: Mapping[str | int, tuple[str, int]]

    def root(self, device: str) -> Qdisc | None:
        """Return the root qdisc of a device; ``None`` if it has none."""
        return self._find_qdisc(device, 'root')

    def ingress(self, device: str) -> Qdisc | None:
        """Return the qdisc that filters a device's incoming traffic."""
        return self._find_qdisc(device, 'ingress')

    def _find_qdisc(self, device: str, parent: str) -> Qdisc | None:
        found = (q for q in self.qdiscs.get(device, ()) if q.parent == parent)
        return next(found, None)


def is_our_root(found: Qdisc | None) -> bool:
    """Check whether a root qdisc is a tree of this agent."""
    return (
        found is not None
        and found.kind == 'htb'
        and found.handle == ROOT_HANDLE
    )


BOTH_WAYS, IN_ONLY = (BLOCK_OUT, BLOCK_IN), (0, BLOCK_IN)
"""Blocks of a tap: of all that a VM sends and receives, or receives only."""


def is_our_clsact(found: Qdisc | None) -> bool:
    """Check whether a tap has only filters of this agent."""
    return (
        found is not None
        and found.kind == 'clsact'
        and found.blocks in (BOTH_WAYS, IN_ONLY)
    )


def is_default(found: Qdisc | None) -> bool:
    """Check whether a root qdisc is the kernel's default or missing."""
    return found is None or found.handle == 0


def bucket_of(mac: str) -> int:
    """Return the hash bucket of a MAC address: its last byte."""
    return int(mac[-2:], 16)
