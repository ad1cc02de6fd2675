# SPDX-License-Identifier: Apache-2.0

"""Compares the CPUs that this node's VMs want with those that they get.

The means decay by half every :data:`HALF_LIFE_S`, so that a burst has little
effect. When a VM with large use ends or moves away, more CPU time is free, and
the means of the other VMs start again.
"""

from collections.abc import Collection
import dataclasses

from nova_fairness.model import lack
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

HALF_LIFE_S = 900.0
"""Seconds after which an interval counts half as much."""

_LARGE_PART = 0.05
"""Part of the CPU time of all VMs. If VMs that ended used more, the means of
the other VMs start again."""

_CPU = resources.RESOURCES.index('cpu_time')


@dataclasses.dataclass(frozen=True, slots=True)
class _DecayedSums:
    """Decayed sums of one VM.

    :ivar wanted: CPU-seconds.
    :ivar got: CPU-seconds.
    :ivar weighed_s: decayed seconds.
    :ivar seen_s: seconds without decay.
    """

    wanted: float = 0.0
    got: float = 0.0
    weighed_s: float = 0.0
    seen_s: float = 0.0


class CpuShortfall:
    """Stores the decayed CPU use and wants of each VM on this node.

    :param speed_factor: of the node's CPUs.
    """

    def __init__(self, speed_factor: float) -> None:
        self._speed = speed_factor
        self._sums: dict[str, _DecayedSums] = {}

    def add(
        self,
        used: usage_model.Usage,
        wanted: resources.Vector | None,
    ) -> dict[str, lack.MeanLack]:
        """Add an interval, and return the mean lack of each VM.

        :param used: use of the VMs in the interval.
        :param wanted: (n, r) amounts without competition; ``None`` if not
            estimated.
        :returns: by key of the incarnation.
        """
        got = used.newest[:, _CPU] / self._speed
        asked = got if wanted is None else wanted[:, _CPU] / self._speed
        kept = 0.5 ** (used.interval_s / HALF_LIFE_S)
        here: dict[str, _DecayedSums] = {}
        is_new = self._needs_restart({vm.key for vm in used.incarnations})
        for row, vm in enumerate(used.incarnations):
            before = self._sums.get(vm.key, _DecayedSums())
            if is_new:
                before = _DecayedSums(seen_s=before.seen_s)
            here[vm.key] = before
            if used.known[row]:
                here[vm.key] = _DecayedSums(
                    kept * before.wanted + max(float(asked[row]), got[row]),
                    kept * before.got + float(got[row]),
                    kept * before.weighed_s + used.interval_s,
                    before.seen_s + used.interval_s,
                )
        self._sums = here
        return {
            key: lack.MeanLack(
                each.wanted / each.weighed_s,
                each.got / each.weighed_s,
                each.seen_s,
            )
            for key, each in here.items()
            if each.weighed_s
        }

    def _needs_restart(self, present_keys: Collection[str]) -> bool:
        """Check whether the means are outdated because a large VM left.

        :param present_keys: of the incarnations on this node.
        """
        parts = {
            key: each.got / each.weighed_s
            for key, each in self._sums.items()
            if each.weighed_s
        }
        gone = sum(
            part for key, part in parts.items() if key not in present_keys
        )
        return gone > _LARGE_PART * sum(parts.values())
