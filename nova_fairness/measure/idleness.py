# SPDX-License-Identifier: Apache-2.0

"""Since when VMs do next to nothing.

An idle guest wakes up now and then, writes its log, is backed up at night.
Therefore the mean of an hour counts; a VM that did as much as an hour allows
is busy at once.
"""

import dataclasses

WINDOW_S = 3600.0
"""Seconds over which is averaged, and for which a VM may be out of sight."""


@dataclasses.dataclass(frozen=True, slots=True)
class QuietLimits:
    """Work that an idle VM may do, on average.

    :ivar cpus: part of each of its vCPUs, > 0.
    :ivar rate: bytes per second that it reads, writes and sends, > 0.
    """

    cpus: float
    rate: float


@dataclasses.dataclass(frozen=True, slots=True)
class VmWork:
    """Work of a VM in some time.

    :ivar cpu_s: CPU seconds of each vCPU, those that it waited for included.
    :ivar moved: bytes that it read, wrote and sent.
    """

    cpu_s: float = 0.0
    moved: float = 0.0

    def exceeds(self, limits: QuietLimits, elapsed_s: float) -> bool:
        """Tell whether it is more than an idle VM does in so many seconds."""
        return (
            self.cpu_s >= limits.cpus * elapsed_s
            or self.moved >= limits.rate * elapsed_s
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Quiet:
    """How long a VM has been idle; times are seconds of the epoch.

    :ivar since: from then on it was idle.
    :ivar begun: when the present window began.
    :ivar seen: until when the VM was watched.
    :ivar work: in the present window.
    """

    since: float
    begun: float
    seen: float
    work: VmWork = VmWork()

    @classmethod
    def fresh(cls, now: float) -> 'Quiet':
        """A VM with no past."""
        return cls(now, now, now)

    def after(self, work: VmWork, now: float, limits: QuietLimits) -> 'Quiet':
        """Idle time of the VM, updated with its work since the last look.

        It starts again if the VM was not seen for a window, or if its clock
        went back.

        :param work: work of the VM since :attr:`seen`.
        """
        if not 0 <= now - self.seen <= WINDOW_S:
            return self.fresh(now)
        total = VmWork(
            self.work.cpu_s + work.cpu_s, self.work.moved + work.moved
        )
        if total.exceeds(limits, WINDOW_S):
            return self.fresh(now)
        elapsed_s = now - self.begun
        if elapsed_s < WINDOW_S:
            return dataclasses.replace(self, seen=now, work=total)
        busy = total.exceeds(limits, elapsed_s)
        return Quiet(now if busy else self.since, now, now)
