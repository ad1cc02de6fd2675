# SPDX-License-Identifier: Apache-2.0

"""Since when VMs are idle.

An idle guest is active now and then: it writes its log, or is backed up at
night. So the mean of an hour counts. A VM that does an hour's allowed work
sooner counts as busy at once.
"""

import dataclasses

WINDOW_S = 3600.0
"""Length of the window for the mean, and longest gap in the observation,
in seconds."""


@dataclasses.dataclass(frozen=True, slots=True)
class QuietLimits:
    """The largest mean work of an idle VM.

    :ivar cpus: part of each of its vCPUs, > 0.
    :ivar rate: bytes per second that it reads, writes and sends, > 0.
    """

    cpus: float
    rate: float


@dataclasses.dataclass(frozen=True, slots=True)
class VmWork:
    """Work of a VM in a period.

    :ivar cpu_s: CPU seconds of each vCPU, including the time it waited for a
        CPU.
    :ivar moved: bytes that it read, wrote and sent.
    """

    cpu_s: float = 0.0
    moved: float = 0.0

    def exceeds(self, limits: QuietLimits, elapsed_s: float) -> bool:
        """Check whether the work is more than an idle VM does in a period."""
        return (
            self.cpu_s >= limits.cpus * elapsed_s
            or self.moved >= limits.rate * elapsed_s
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Quiet:
    """Idle time of a VM; times are seconds since the epoch.

    :ivar since: start of the idle time.
    :ivar begun: start of the present window.
    :ivar seen: end of the observation.
    :ivar work: in the present window.
    """

    since: float
    begun: float
    seen: float
    work: VmWork = VmWork()

    @classmethod
    def fresh(cls, now: float) -> 'Quiet':
        """Return the state of a VM that was not observed before."""
        return cls(now, now, now)

    def updated(
        self, work: VmWork, now: float, limits: QuietLimits
    ) -> 'Quiet':
        """Return the idle time with the work since the last observation.

        It starts again if the VM was not observed for a window, or if the
        clock was set back.

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
