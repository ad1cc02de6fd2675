# SPDX-License-Identifier: Apache-2.0

"""Errors of earlier estimates of starts, and corrections of the next
estimates.

The first estimate that is shown to the owner of a request is a promise. When
the request starts or gives up, its wait is known. Events that are not foreseen
(:mod:`.estimates`) make starts later than estimated, in some clouds more than
in others. So the next estimates are corrected by past errors. The error of a
start is a part of the estimated wait. For a short wait it is a part of
:data:`_SHORT_S`, since the error of a short wait does not grow with the wait.
The correction of ``p90`` is the ninth decile of these errors and one more that
is larger than all. So the next error is within it nine times of ten, if it has
the distribution of the errors before it (split conformal prediction: Lei et
al., Distribution-free predictive inference for regression, sections 2.2 and
5.2).
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import math
from typing import NamedTuple

from nova_fairness.model import cluster
from nova_fairness.planners.fairqueue import expected_ends

LEAST = 20
"""Smallest number of known outcomes with which estimates are corrected."""

REMEMBERED = 500
"""Largest number of stored outcomes, the newest ones."""

_SHORT_S = 60.0
"""Duration of cycles and builds, seconds; it is part of each wait."""


class Promise(NamedTuple):
    """First estimate that was shown to the owner of a request.

    :ivar made_at: time of the estimate, seconds of the epoch.
    :ivar raw_p50_s: median of the wait after ``made_at``, not corrected.
    :ivar raw_p90_s: ninth decile of this wait, not corrected.
    :ivar p50_s: ``raw_p50_s`` with the correction, as shown.
    :ivar p90_s: ``raw_p90_s`` with the correction, as shown.
    """

    made_at: float
    raw_p50_s: float
    raw_p90_s: float
    p50_s: float
    p90_s: float


class PromiseOutcome(NamedTuple):
    """Outcome of a promise.

    :ivar took_s: wait after the promise; for a request that gave up this is a
        lower bound.
    """

    raw_p50_s: float
    raw_p90_s: float
    p50_s: float
    p90_s: float
    took_s: float


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Promised start times, and their outcomes.

    :ivar promises: promises to waiting requests, by UUID of the request.
    :ivar past: outcomes of past promises, the oldest first.
    """

    promises: Mapping[str, Promise] = dataclasses.field(default_factory=dict)
    past: tuple[PromiseOutcome, ...] = ()

    def told(
        self, estimates: Mapping[str, cluster.Estimate], now: float
    ) -> dict[str, cluster.Estimate]:
        """Return estimates, corrected by the errors of past promises.

        :param now: time of the estimates, seconds of the epoch.
        """
        if len(self.past) < LEAST:
            return dict(estimates)
        off_50, off_90 = self.corrections()
        told = {}
        for uuid, each in estimates.items():
            p50 = now + _corrected_wait(each.p50 - now, off_50)
            p90 = now + _corrected_wait(each.p90 - now, off_90)
            told[uuid] = cluster.Estimate(p50, max(p50, p90))
        return told

    def promised(
        self, estimates: Mapping[str, cluster.Estimate], now: float
    ) -> 'Calibration':
        """Return a copy with promises to requests that have none.

        :param estimates: estimates before correction.
        :param now: time of the estimates, seconds of the epoch.
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
        """Return a copy with the outcomes of some promises.

        UUIDs of requests without a promise are ignored.

        :param started: start times of requests, seconds of the epoch, by UUID.
        :param gave_up: times at which other requests stopped waiting, in the
            same form. A request that stopped before its promised time gives no
            outcome: it might have started in time.
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
        """Return the corrections of ``p50`` and ``p90``, as parts of waits,
        with sign.

        They are 0 while fewer than :data:`LEAST` outcomes are known.
        """
        if len(self.past) < LEAST:
            return 0.0, 0.0
        return (
            _quantile(
                [
                    _relative_error(each.took_s, each.raw_p50_s)
                    for each in self.past
                ],
                expected_ends.MEDIAN,
            ),
            _quantile(
                [
                    _relative_error(each.took_s, each.raw_p90_s)
                    for each in self.past
                ],
                expected_ends.LATE,
            ),
        )

    def judged(self) -> cluster.EstimateQuality | None:
        """Return the quality of past promises; ``None`` if no outcome is
        known.
        """
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


def _relative_error(took_s: float, wait_s: float) -> float:
    """Return the error of an estimated wait, as a part of this wait."""
    return (took_s - wait_s) / max(wait_s, _SHORT_S)


def _corrected_wait(wait_s: float, off: float) -> float:
    """Return an estimated wait plus an error, which is a part of the wait."""
    return max(wait_s + off * max(wait_s, _SHORT_S), 0.0)


def _quantile(values: Sequence[float], part: float) -> float:
    """Return the smallest value that the next value does not exceed with a
    given probability.

    If no value is large enough, this is the largest.

    :param values: values in any order, at least one.
    :param part: the probability, 0 to 1.
    """
    ordered = sorted(values)
    place = math.ceil(part * (len(ordered) + 1))
    return ordered[min(place, len(ordered)) - 1]
