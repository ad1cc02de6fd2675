# SPDX-License-Identifier: Apache-2.0

"""Dry runs: forecasts of the effect of a change of shares, limits or the
order.

The state of the last cycle is planned twice, without and with the change, by
planners that no other thread uses. A dry run writes nothing, holds no lock of
the service, and quarantines nothing.

A dry run computes for as long as several cycles take. Therefore it runs on its
own thread with a deadline, one at a time. The next one starts only after a
pause of the same length, so that cycles have at least half of the computing
time.
"""

from collections.abc import Callable
from collections.abc import Generator
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools
import math
import threading
from typing import Any
from typing import NamedTuple
from typing import TypeVar

import numpy as np
from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster.admission import scheduler
from nova_fairness.model import cluster
from nova_fairness.model import moments
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.model import waits as waits_model
from nova_fairness.planners.fairqueue import estimates
from nova_fairness.planners.fairqueue import order as order_module
from nova_fairness.planners.fairqueue import replay
from nova_fairness.runtime import guard

LOG = logging.getLogger(__name__)

DEADLINE_S = 25.0
"""Time limit of a dry run, seconds; nova-api waits longer than this."""

ESTIMATED_BY_S = (6.0, 12.0)
"""Deadlines of the start estimates without and with the change, seconds
after the dry run begins. A dry run that misses a deadline returns no
estimates.
"""

REPLAYED_BY_S = (17.0, 22.0)
"""Deadlines of the replays of past requests without and with the change,
seconds after the dry run begins.
"""

MOST_PAST = 500
"""Largest number of past requests that are replayed; the newest ones."""

MOST_PROJECTS = 50
"""Largest number of projects with past waits in an answer; those with the
most requests.
"""

SAMPLES = 10
"""Number of simulated futures of the cloud for each estimate, half as many
as in the service.
"""

_BUSY = (
    'dry run: not begun: another dry run is running or has just ended; try'
    ' again in a few seconds'
)
_FAILED = (
    'dry run: ended without a result: {}; nothing was changed, and the log of'
    ' the service has the cause'
)
_TOO_SLOW = (
    'dry run: ended after {:g} s without a result: the queue is too long for'
    ' it; nothing was changed'
)

_T = TypeVar('_T')


class TrialPlanner(NamedTuple):
    """A planner for one dry run, with its order.

    :ivar plan: plans the queue.
    :ivar order: order that the planner uses.
    :ivar name: name of the order.
    """

    plan: scheduler.Planner
    order: order_module.Order
    name: str


@dataclasses.dataclass(frozen=True, eq=False)
class QueueTrial:
    """A state of the cloud, and the planner that plans it in a dry run.

    :ivar snapshot: state of the cloud.
    :ivar planner: planner that no other thread uses.
    """

    snapshot: cluster.ClusterSnapshot
    planner: TrialPlanner


@dataclasses.dataclass(frozen=True, slots=True)
class Forecast:
    """Planned outcome for one request.

    :ivar verb: planned action, such as a start; ``None`` if the request waits.
    :ivar waits: position in the queue, and reason of the wait; ``None`` if the
        request does not wait.
    :ivar estimate: estimated time of the start; ``None`` if unknown.
    """

    verb: cluster.Verb | None
    waits: cluster.Waiting | None
    estimate: cluster.Estimate | None = None

    @property
    def is_limited(self) -> bool:
        """Whether the request waits for something other than room on hosts,
        such as a limit.
        """
        waits = self.waits
        return waits is not None and waits.why.reason in reason.LIMITED

    @property
    def starts(self) -> bool:
        """Whether the request starts now."""
        return self.verb in (cluster.Verb.START, cluster.Verb.PASS)


Forecasts = Mapping[str, Forecast]
"""Forecasts by UUID of the request."""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Forecasts of the same requests without and with a change.

    :ivar requests: waiting requests of the snapshot.
    :ivar before: forecasts of all these requests without the change.
    :ivar after: forecasts of all these requests with the change.
    :ivar past: replayed past requests; empty if there was no replay.
    :ivar waits: for each replay, without and with the change: seconds that
        each past request waits, by UUID.
    """

    requests: Sequence[request_model.Request]
    before: Forecasts
    after: Forecasts
    past: Sequence[replay.PastRequest] = ()
    waits: tuple[replay.Waits, ...] = ()


class DryRuns:
    """Executes dry runs, one at a time.

    :param kept: decay of the past use of accounts.
    :param monotonic: returns monotonic time, seconds.
    :param deadline_s: time limit of a dry run, > 0, seconds.
    """

    def __init__(
        self,
        kept: estimates.Kept,
        monotonic: Callable[[], float],
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._kept = kept
        self._monotonic = monotonic
        self._deadline_s = deadline_s
        self._working = threading.Lock()
        self._rests_until_s = -math.inf

    def compare(
        self,
        before: QueueTrial,
        after: QueueTrial,
        now: float,
        past: Sequence[replay.PastRequest] = (),
    ) -> Comparison:
        """Plan both trials, and compare the outcome of each request.

        :param now: time of both snapshots, seconds of the epoch.
        :param past: requests to replay in both trials.
        :raises Busy: if another dry run is running, or has just ended.
        :raises IllegalStep: if the dry run failed, or missed its deadline.
        """
        return self._run_alone(
            lambda: self._compare_within_deadline(before, after, now, past)
        )

    def require_free(self) -> None:
        """Check that a dry run may start now. Callers check it before they
        prepare the dry run.

        :raises Busy: if another dry run is running, or has just ended.
        """
        if self._working.locked() or self._is_pausing():
            raise exception.Busy(_BUSY)

    def _is_pausing(self) -> bool:
        return self._monotonic() < self._rests_until_s

    def _run_alone(self, work: Callable[[], _T]) -> _T:
        """Run a function on its own thread, with the deadline, while no
        other dry run runs.
        """
        self._acquire_run_lock()
        runner = guard.Runner(self._deadline_s, _no_thread_times)
        try:
            return runner.run(functools.partial(self._run_and_unlock, work))
        except exception.PluginTooSlow as error:
            raise exception.IllegalStep(
                _TOO_SLOW.format(self._deadline_s)
            ) from error
        except Exception as error:
            LOG.warning('dry run: it failed', exc_info=error)
            why = type(error).__name__
            raise exception.IllegalStep(_FAILED.format(why)) from error
        finally:
            runner.stop()

    def _acquire_run_lock(self) -> None:
        """Acquire the lock that prevents other dry runs.

        :raises Busy: if another dry run is running, or has just ended.
        """
        if not self._working.acquire(blocking=False):
            raise exception.Busy(_BUSY)
        if self._is_pausing():
            self._working.release()
            raise exception.Busy(_BUSY)

    def _run_and_unlock(self, work: Callable[[], _T]) -> _T:
        """Run a function, then release the lock and begin a pause as long as
        the run.

        A run that missed its deadline prevents other dry runs until it ends.
        """
        begin_s = self._monotonic()
        try:
            return work()
        finally:
            end_s = self._monotonic()
            self._rests_until_s = end_s + (end_s - begin_s)
            self._working.release()

    def _compare_within_deadline(
        self,
        before: QueueTrial,
        after: QueueTrial,
        now: float,
        past: Sequence[replay.PastRequest],
    ) -> Comparison:
        waiting = [
            each
            for each in before.snapshot.requests
            if each.state is request_model.State.WAITING
        ]
        begin_s, trials = self._monotonic(), (before, after)
        plans = [e.planner.plan(e.snapshot, now) for e in trials]
        known = self._results_within_deadline(
            [
                estimates.estimate_starts(
                    trial.snapshot,
                    plan,
                    now,
                    trial.planner.plan,
                    self._kept,
                    # Both trials draw the same lifetimes.
                    np.random.default_rng(0),
                    samples=SAMPLES,
                )
                for trial, plan in zip(trials, plans, strict=True)
            ],
            [begin_s + by_s for by_s in ESTIMATED_BY_S],
        )
        first, second = (
            _forecasts_by_uuid(waiting, plan, each)
            for plan, each in zip(plans, known or ({}, {}), strict=True)
        )
        if not past:
            return Comparison(waiting, first, second)
        replayed = self._results_within_deadline(
            [
                replay.replay_waits(
                    past, e.snapshot, e.planner.order, self._kept
                )
                for e in trials
            ],
            [begin_s + by_s for by_s in REPLAYED_BY_S],
        )
        if replayed is None:
            return Comparison(waiting, first, second)
        return Comparison(waiting, first, second, past, tuple(replayed))

    def _results_within_deadline(
        self,
        steps: Sequence[Generator[None, None, _T]],
        until_s: Sequence[float],
    ) -> list[_T] | None:
        """Return the results of two computations; ``None`` if one of them
        misses its deadline.

        One result alone would look as if the change caused the difference.
        """
        found = []
        for each, end_s in zip(steps, until_s, strict=True):
            while self._monotonic() < end_s:
                try:
                    next(each)
                except StopIteration as done:
                    found.append(done.value)
                    break
            else:
                return None
        return found


def _no_thread_times(_: int) -> guard.ThreadTimes:
    """Return no CPU time and no waiting time, so that the deadline counts
    elapsed time on a busy host, too.
    """
    return guard.ThreadTimes(0.0, 0.0, runnable=False)


def with_changed_accounts(
    snapshot: cluster.ClusterSnapshot,
    before: Iterable[cluster.Account],
    after: Iterable[cluster.Account],
) -> cluster.ClusterSnapshot:
    """Return a snapshot in which accounts that differ between two lists have
    their new values.

    Other accounts do not change.
    """
    old = {each.name: each for each in before}
    new = {each.name: each for each in after}
    changed = {
        name: each for name, each in new.items() if old.get(name) != each
    }
    gone = old.keys() - new.keys()
    kept = [
        changed.pop(each.name, each)
        for each in snapshot.accounts
        if each.name not in gone
    ]
    accounts = (*kept, *changed.values())
    return dataclasses.replace(snapshot, accounts=accounts)


def _forecasts_by_uuid(
    requests: Iterable[request_model.Request],
    plan: cluster.Plan,
    known: Mapping[str, cluster.Estimate],
) -> Forecasts:
    verbs = {each.request: each.verb for each in plan.actions}
    found = {}
    for each in requests:
        waits = plan.waiting.get(each.uuid)
        verb = None if waits else verbs.get(each.uuid)
        found[each.uuid] = Forecast(verb, waits, known.get(each.uuid))
    return found


def comparison_facts(
    found: Comparison,
    project: str | None,
    most: int,
    audience: reason.Audience,
) -> dict[str, Any]:
    """Return a comparison as values of JSON types.

    :param project: project whose requests the answer names; ``None`` for all
        projects.
    :param most: largest number of named requests.
    :param audience: role of the reader, which decides about the details of
        reasons.
    """
    first, second = (
        _queue_positions(found.before),
        _queue_positions(found.after),
    )
    ranks = {
        each.uuid: (first[each.uuid], second[each.uuid])
        for each in found.requests
    }
    shown = _first_requests(found, ranks, project, most)
    return {
        'requests_count': len(ranks),
        'starts_before_count': _count_starts(found.before),
        'starts_after_count': _count_starts(found.after),
        'sooner_count': sum(
            after < before for before, after in ranks.values()
        ),
        'later_count': sum(after > before for before, after in ranks.values()),
        'not_named_count': len(ranks) - len(shown),
        'past_waits': _past_waits(found, project, most),
        'requests': [
            {
                'uuid': each.uuid,
                'project_id': each.project,
                'user_id': each.user,
                'servers': list(each.servers),
                'before': _forecast_facts(
                    found.before[each.uuid], each, audience
                ),
                'after': _forecast_facts(
                    found.after[each.uuid], each, audience
                ),
            }
            for each in shown
        ],
    }


def _queue_positions(found: Forecasts) -> dict[str, int]:
    """Return the position of each request in the queue, from 1; 0 if the
    request does not wait.

    Requests that wait for something other than room on hosts come last.
    """
    turns = sorted(
        (each.is_limited, each.waits.position, uuid)
        for uuid, each in found.items()
        if each.waits
    )
    ranks = {uuid: n for n, (_, _, uuid) in enumerate(turns, 1)}
    return {uuid: ranks.get(uuid, 0) for uuid in found}


def _count_starts(found: Forecasts) -> int:
    return sum(each.starts for each in found.values())


def _first_requests(
    found: Comparison,
    ranks: Mapping[str, tuple[int, int]],
    project: str | None,
    most: int,
) -> list[request_model.Request]:
    """Return the requests that are first in the queue without or with the
    change, sorted by their new position.

    :param ranks: positions without and with the change, by UUID.
    :param most: largest number of returned requests.
    """
    seen = [each for each in found.requests if project in (None, each.project)]

    def place(each: request_model.Request) -> tuple[int, int, str]:
        before, after = ranks[each.uuid]
        return after, before, each.uuid

    def best(each: request_model.Request) -> tuple[int, int, str]:
        after, before, uuid = place(each)
        return min(after, before), after, uuid

    return sorted(sorted(seen, key=best)[:most], key=place)


def _past_waits(
    found: Comparison, project: str | None, most: int
) -> dict[str, Any] | None:
    """Return percentiles of the waits of past requests: of all requests,
    and by project; ``None`` without a replay.
    """
    if not found.past:
        return None
    by_project: dict[str, list[str]] = {}
    for each in found.past if most else ():
        if project in (None, each.request.project):
            uuids = by_project.setdefault(each.request.project, [])
            uuids.append(each.request.uuid)
    largest = sorted(by_project.items(), key=lambda e: (-len(e[1]), e[0]))
    return {
        'since': moments.answer(min(each.sent_at for each in found.past)),
        **_wait_percentiles(found, [each.request.uuid for each in found.past]),
        'projects': [
            {'project_id': name, **_wait_percentiles(found, uuids)}
            for name, uuids in largest[:MOST_PROJECTS]
        ],
    }


def _wait_percentiles(
    comparison: Comparison, uuids: Sequence[str]
) -> dict[str, Any]:
    """Return percentiles of the waits of some requests, by nearest rank, as
    in ``wait list``.
    """
    told: dict[str, Any] = {'requests_count': len(uuids)}
    for when, waits in zip(('before', 'after'), comparison.waits, strict=True):
        spans = sorted(waits[uuid] for uuid in uuids)
        told[when] = {
            f'p{part}': spans[math.ceil(part * len(spans) / 100) - 1]
            for part in waits_model.PERCENTILES
        }
    return told


_STATES = {
    None: 'waits',
    cluster.Verb.START: 'starts',
    cluster.Verb.PASS: 'starts',
    cluster.Verb.EXPIRE: 'expires',
    cluster.Verb.MAKE_ROOM: 'waits',
}


def _forecast_facts(
    forecast: Forecast,
    request: request_model.Request,
    audience: reason.Audience,
) -> dict[str, Any]:
    waits, estimate = forecast.waits, forecast.estimate
    read = (
        reason.readable_reason(waits.why, audience, request.project)
        if waits
        else None
    )
    return {
        'state': _STATES[forecast.verb],
        'position': waits.position if waits else None,
        'estimated_start': estimate
        and {
            'p50': moments.answer(estimate.p50),
            'p90': moments.answer(estimate.p90),
        },
        'reason': read and read.reason.value,
        'explanation': read and read.sentence,
    }
