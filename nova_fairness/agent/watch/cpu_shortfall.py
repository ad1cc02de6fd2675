# SPDX-License-Identifier: Apache-2.0

"""Watches the CPUs that this node's VMs want, and those that they get.

Means over a history, so that a burst decides nothing: older intervals count
less, by half every :data:`HALF_LIFE_S`. When a VM that used much ends or moves
away, the others have more from then on: their means start again.
"""

from collections.abc import Collection
import dataclasses

from nova_fairness.model import lack
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

HALF_LIFE_S = 900.0
"""After which an interval counts half as much."""

_MUCH = 0.05
"""Part of all that VMs used. If VMs that ended used more, the others have
room, and their history begins again."""

_CPU = resources.RESOURCES.index('cpu_time')


@dataclasses.dataclass(frozen=True, slots=True)
class _Sums:
    """Of one VM, decayed.

    :ivar wanted: CPU-seconds.
    :ivar got: CPU-seconds.
    :ivar weighed_s: seconds that count.
    :ivar seen_s: seconds in all.
    """

    wanted: float = 0.0
    got: float = 0.0
    weighed_s: float = 0.0
    seen_s: float = 0.0


class CpuShortfall:
    """Remembers the history of each VM of this node.

    :param speed_factor: of the node's CPUs.
    """

    def __init__(self, speed_factor: float) -> None:
        self._speed = speed_factor
        self._sums: dict[str, _Sums] = {}

    def add(
        self,
        used: usage_model.Usage,
        wanted: resources.Vector | None,
    ) -> dict[str, lack.MeanLack]:
        """Take note of an interval.

        :param used: by the VMs in it.
        :param wanted: (n, r) what they would have used of a plenty; ``None``
            if not estimated.
        :returns: by key of the incarnation.
        """
        got = used.newest[:, _CPU] / self._speed
        asked = got if wanted is None else wanted[:, _CPU] / self._speed
        kept = 0.5 ** (used.interval_s / HALF_LIFE_S)
        here: dict[str, _Sums] = {}
        is_new = self._is_new({vm.key for vm in used.incarnations})
        for row, vm in enumerate(used.incarnations):
            before = self._sums.get(vm.key, _Sums())
            if is_new:
                before = _Sums(seen_s=before.seen_s)
            here[vm.key] = before
            if used.known[row]:
                here[vm.key] = _Sums(
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

    def _is_new(self, here: Collection[str]) -> bool:
        """Whether what was seen until now says little of those who are left.

        :param here: keys of their incarnations.
        """
        parts = {
            key: each.got / each.weighed_s
            for key, each in self._sums.items()
            if each.weighed_s
        }
        gone = sum(part for key, part in parts.items() if key not in here)
        return gone > _MUCH * sum(parts.values())
