# SPDX-License-Identifier: Apache-2.0

"""Wants of VMs over time, and the ways in which they want the CPU."""

import dataclasses
import enum
import math

MAXIMUM = math.inf
"""Demand for as much as there is."""


class CpuLoad(enum.Enum):
    """Way in which a VM wants the CPU.

    :cvar OPEN: by the clock; work that is not done in time is left.
    :cvar CLOSED: a thread on each vCPU runs, waits, and runs again.
    :cvar POOL: a number of threads do the same, on any free vCPU.
    :cvar CRON: work that starts by the clock, and is done however late.
    """

    OPEN = 'open'
    CLOSED = 'closed'
    POOL = 'pool'
    CRON = 'cron'


@dataclasses.dataclass(frozen=True, slots=True)
class DemandCycle:
    """A cycle in which a VM runs and waits by turns.

    :ivar load: its kind.
    :ivar threads: that do so, each for itself, >= 1.
    :ivar wait_s: how long one waits after it has run, on average; with
        :attr:`CpuLoad.CRON` from one begin to the next. > 0, but for
        :attr:`CpuLoad.OPEN` and for simulated VMs that are not told.
    """

    load: CpuLoad
    threads: int
    wait_s: float


@dataclasses.dataclass(frozen=True, slots=True)
class DemandStep:
    """Wants of a VM from a moment on; ``None`` leaves a want unchanged.

    :ivar at_s: seconds since the load began.
    :ivar cpu: CPUs, or :data:`MAXIMUM`; with a cycle, what it would use of a
        plenty.
    :ivar cycle: in which it wants them; ``None`` if that is not said: a real
        guest works by the clock then, a simulated VM as it always does.
    :ivar memory_mib: memory in use, MiB; a real guest touches every page once
        a second.
    :ivar disk_read_mib_s: from ``/dev/vda``, past the guest's cache, MiB/s, or
        ``max``.
    :ivar disk_write_mib_s: to ``/dev/vda``, in the same way.
    :ivar disk_depth: requests under way at once, 1 to 64; more than one are
        at random places.
    :ivar disk_block_kib: size of a request, 4 to 1024 KiB.
    :ivar net_send_mbit_s: UDP to the far end of the uplink, or to the node
        where there is none, Mbit/s, or ``max``.
    :ivar net_receive_mbit_s: UDP from the far end, Mbit/s.
    :ivar tcp_send_flows: connections to the far end that send all they can, 0
        to 16.
    :ivar tcp_receive_flows: connections from the far end that receive all it
        can send, 0 to 16.
    :ivar wake_hz: how often a program of the guest sleeps and wakes, to
        measure how late that is, 1/s.
    :ivar every_s: from one time to the next at which a simulated VM wants
        the CPU, seconds; 0: all the time.
    :ivar for_s: how long it wants it each time, seconds, below ``every_s``.
    """

    at_s: float
    cpu: float | None = None
    memory_mib: float | None = None
    disk_read_mib_s: float | None = None
    disk_write_mib_s: float | None = None
    disk_depth: int = 1
    disk_block_kib: int = 64
    net_send_mbit_s: float | None = None
    net_receive_mbit_s: float | None = None
    tcp_send_flows: int | None = None
    tcp_receive_flows: int | None = None
    wake_hz: float | None = None
    cycle: DemandCycle | None = None
    every_s: float = 0.0
    for_s: float = 0.0

    @property
    def loads_network(self) -> bool:
        """Whether the step sets any load of the network."""
        rates = self.net_send_mbit_s, self.net_receive_mbit_s
        flows = self.tcp_send_flows, self.tcp_receive_flows
        return any(told is not None for told in (*rates, *flows))
