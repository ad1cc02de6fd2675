# SPDX-License-Identifier: Apache-2.0

"""Errors of earlier estimates of starts, and corrections of the next ones.

The first estimate that the owner of a request is told is a promise. Once the
request starts, or gives up, its wait is known. Events that are not foreseen
(:mod:`.estimates`) make starts later than was estimated, in one cloud more
than in another: waits are corrected by these errors. The error of a start
counts as a part of the estimated wait, of a short one as a part of
:data:`_SHORT_S`, as the error of a short wait does not grow with it. The
correction of ``p90`` is the ninth decile of these parts, with one more that is
larger than all, so that the next is within it nine times of ten if it is like
those before it (split conformal prediction: Lei et al., Distribution-free
predictive inference for regression, sections 2.2 and 5.2).
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import math
from typing import NamedTuple

from nova_fairness.model import cluster
from nova_fairness.planners.fairqueue import expected_ends

LEAST = 20
"""Promises that must be known before the next are told by them."""

REMEMBERED = 500
"""Promises whose outcome is known, the newest."""

_SHORT_S = 60.0
"""Cycles and builds take as long, however short the wait is."""


class Promise(NamedTuple):
    """First estimate that the owner of a request was told.

    :ivar made_at: seconds of the epoch.
    :ivar raw_p50_s: estimated wait from then on, before it was corrected.
    :ivar raw_p90_s: the same by which it would start nine times of ten.
    :ivar p50_s: ``raw_p50_s`` corrected, as it was told.
    :ivar p90_s: ``raw_p90_s`` corrected, as it was told.
    """

    made_at: float
    raw_p50_s: float
    raw_p90_s: float
    p50_s: float
    p90_s: float


class PromiseOutcome(NamedTuple):
    """Outcome of a promise.

    :ivar took_s: wait from the promise on; at least that of a request which
        gave up.
    """

    raw_p50_s: float
    raw_p90_s: float
    p50_s: float
    p90_s: float
    took_s: float


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Promises and their outcomes.

    :ivar promises: by UUID of requests that wait.
    :ivar past: the oldest first.
    """

    promises: Mapping[str, Promise] = dataclasses.field(default_factory=dict)
    past: tuple[PromiseOutcome, ...] = ()

    def told(
        self, estimates: Mapping[str, cluster.Estimate], now: float
    ) -> dict[str, cluster.Estimate]:
        """Estimates corrected by what was seen.

        :param now: seconds of the epoch at which they were made.
        """
        if len(self.past) < LEAST:
            return dict(estimates)
        off_50, off_90 = self.corrections()
        told = {}
        for uuid, each in estimates.items():
            p50 = now + _corrected(each.p50 - now, off_50)
            p90 = now + _corrected(each.p90 - now, off_90)
            told[uuid] = cluster.Estimate(p50, max(p50, p90))
        return told

    def promised(
        self, estimates: Mapping[str, cluster.Estimate], now: float
    ) -> 'Calibration':
        """With promises to requests that have none yet.

        :param estimates: as they were made; they are corrected here.
        :param now: seconds of the epoch at which they were made.
        """
        told = self.told(estimates, now)
        new = {
            uuid: Promise(
                now,
                estimates[uuid].p50 - now,
                estimates[uuid].p90 - now,
                each.p50 - now,
                each.p90 - now,
            )
            for uuid, each in told.items()
            if uuid not in self.promises
        }
        if not new:
            return self
        return dataclasses.replace(self, promises={**self.promises, **new})

    def settled(
        self,
        started: Mapping[str, float],
        gave_up: Mapping[str, float],
    ) -> 'Calibration':
        """With the outcomes of some promises; other UUIDs are left out.

        :param started: when requests started, seconds of the epoch, by UUID.
        :param gave_up: when others stopped waiting. One that did so before the
            promised time is no outcome: it might have started in time.
        """
        left, past = dict(self.promises), list(self.past)
        for uuid, at in [*started.items(), *gave_up.items()]:
            promise = left.pop(uuid, None)
            if promise is None:
                continue
            took_s = max(at - promise.made_at, 0.0)
            if uuid in started or took_s > promise.p90_s:
                past.append(PromiseOutcome(*promise[1:], took_s))
        if len(left) == len(self.promises):
            return self
        return Calibration(left, tuple(past[-REMEMBERED:]))

    def corrections(self) -> tuple[float, float]:
        """Parts of waits that ``p50`` and ``p90`` are moved by, any sign.

        0 while fewer than :data:`LEAST` outcomes are known.
        """
        if len(self.past) < LEAST:
            return 0.0, 0.0
        return (
            _quantile(
                [_off(each.took_s, each.raw_p50_s) for each in self.past],
                expected_ends.MEDIAN,
            ),
            _quantile(
                [_off(each.took_s, each.raw_p90_s) for each in self.past],
                expected_ends.LATE,
            ),
        )

    def judged(self) -> cluster.EstimateQuality | None:
        """How good past promises were; ``None`` if nothing is known."""
        if not self.past:
            return None
        count = len(self.past)
        off = sorted(each.took_s - each.p50_s for each in self.past)
        late = sorted(each.took_s - each.p90_s for each in self.past)
        return cluster.EstimateQuality(
            count,
            sum(each.took_s <= each.p50_s for each in self.past) / count,
            sum(each.took_s <= each.p90_s for each in self.past) / count,
            off[math.ceil(expected_ends.MEDIAN * count) - 1],
            late[math.ceil(expected_ends.LATE * count) - 1],
        )


def _off(took_s: float, wait_s: float) -> float:
    """How much longer it took than was estimated, as a part of that."""
    return (took_s - wait_s) / max(wait_s, _SHORT_S)


def _corrected(wait_s: float, off: float) -> float:
    """The wait that is off by such a part of what was estimated."""
    return max(wait_s + off * max(wait_s, _SHORT_S), 0.0)


def _quantile(values: Sequence[float], part: float) -> float:
    """Smallest value that the next is within by this chance, or the largest.

    :param values: not sorted, at least one.
    """
    ordered = sorted(values)
    place = math.ceil(part * (len(ordered) + 1))
    return ordered[min(place, len(ordered)) - 1]
