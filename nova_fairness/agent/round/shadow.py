# SPDX-License-Identifier: Apache-2.0

"""Measures finished rounds with a second metric, which is never used.

A thread of its own does it after a round, so that no round waits for it.
"""

from collections.abc import Callable
import dataclasses
import logging
import queue
import threading
from typing import NamedTuple

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.agent import settings as settings_module
from nova_fairness.agent.explain import parts
from nova_fairness.agent.round import elsewhere
from nova_fairness.measure import metric as metric_base
from nova_fairness.measure import round as measure_round
from nova_fairness.measure import stages
from nova_fairness.model import round as round_model
from nova_fairness.model import usage as usage_model
from nova_fairness.runtime import guard as guard_module
from nova_fairness.shares import grouping

LOG = logging.getLogger(__name__)

NOT_MEASURED = 'this round measured nothing'
STILL_BUSY = 'left out in this round: it was busy with an earlier one'
STOPPING = 'left out in this round: the agent stops'

LARGEST_PART = 0.5
"""Largest part of the interval that the metric may take, so that it ends
before the next round."""

_MEANWHILE = (
    'it is the shadow metric, so nothing depends on it; to try it earlier,'
    ' reload the configuration'
)

_STOP_S = 10.0
"""Longest wait for the thread at the end, in seconds."""

Load = Callable[[str], metric_base.Metric]
Finish = Callable[[round_model.Round], None]


class _HeavinessArrays(NamedTuple):
    """Heaviness by one metric.

    :ivar instance_stage: (n,) heaviness of the VMs in the instance stage.
    :ivar final: (n,) final heaviness of the VMs.
    :ivar users: (u,) heaviness of the users.
    """

    instance_stage: usage_model.Scalars
    final: usage_model.Scalars
    users: usage_model.Scalars


class _Job(NamedTuple):
    done: round_model.Round
    settings: settings_module.Settings


class ShadowMeasurement:
    """Computes the shadow metric of rounds on a thread of its own.

    A metric that fails or is slow is put into a quarantine of its own, with
    the same rules as those of the metric in force.

    :param finish: called with each added round, in their order, when its
        shadow metric was computed or left out.
    :param load: loads a metric by its name; raises PluginError.
    """

    def __init__(
        self, finish: Finish, load: Load = plugins.load_metric
    ) -> None:
        self._finish = finish
        self._load = load
        self._guard = guard_module.Guard(1.0, meanwhile=_MEANWHILE)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._retry = threading.Event()
        self._loaded: tuple[str, metric_base.Metric | str] = ('', '')
        self._newest: round_model.ShadowHeaviness | None = None

    @property
    def newest(self) -> round_model.ShadowHeaviness | None:
        """The newest result; ``None`` without a shadow metric."""
        return self._newest

    def add(
        self, done: round_model.Round, settings: settings_module.Settings
    ) -> bool:
        """Measure a round; never waits.

        :returns: whether ``finish`` will be called with the round; not before
            a shadow metric is configured.
        """
        if self._thread is None:
            if not settings.shadow_metric:
                return False
            self._thread = threading.Thread(
                target=self._run_jobs, name='shadow metric', daemon=True
            )
            self._thread.start()
        self._jobs.put(_Job(done, settings))
        return True

    def retry(self) -> None:
        """End the quarantine of the metric, and load it again."""
        self._retry.set()

    def stop(self) -> None:
        """Stop the thread after its present call; may be called twice."""
        self._stopping.set()
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join(_STOP_S)
        self._guard.stop()

    def _run_jobs(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                self._newest = self._measure_job(job)
                self._finish(
                    dataclasses.replace(job.done, shadow=self._newest)
                )
            except Exception:
                # Later rounds are measured after any error.
                LOG.exception('Shadow metric: a round could not be finished')

    def _measure_job(self, job: _Job) -> round_model.ShadowHeaviness | None:
        name = job.settings.shadow_metric
        if not name:
            return None
        try:
            return self._compute_heaviness(job, name)
        except exception.FairnessError as error:
            problem = str(error)
        except Exception as error:
            LOG.exception('Shadow metric %s: not computed', name)
            problem = f'{name}: {type(error).__name__}: {error}'
        return round_model.ShadowHeaviness(name, job.done.number, problem)

    def _compute_heaviness(
        self, job: _Job, name: str
    ) -> round_model.ShadowHeaviness:
        """Compute the heaviness of a round.

        :raises FairnessError: with the reason if it is left out.
        """
        done, measured = job.done, job.done.measured
        if self._stopping.is_set():
            raise exception.StateError(STOPPING)
        if not self._jobs.empty():
            raise exception.StateError(STILL_BUSY)
        metric = self._metric(name)
        if measured is None:
            raise exception.StateError(NOT_MEASURED)
        if name == done.metric:
            arrays = _arrays_in_force(measured)
        else:
            self._guard.deadline_s = min(
                job.settings.metric_deadline_s,
                LARGEST_PART * job.settings.interval_s,
            )
            arrays = self._guard.call(
                name, lambda: _compute_arrays(done, measured, metric)
            )
        return _shadow_heaviness(name, done.number, measured, arrays)

    def _metric(self, name: str) -> metric_base.Metric:
        """Return the loaded metric.

        A metric that cannot be loaded is tried again after :meth:`retry`.

        :raises PluginError: if it cannot be loaded.
        """
        if self._loaded[0] != name or self._retry.is_set():
            self._retry.clear()
            self._guard.release(name)
            self._loaded = name, self._load_or_problem(name)
        _, found = self._loaded
        if isinstance(found, str):
            raise exception.PluginError(found)
        return found

    def _load_or_problem(self, name: str) -> metric_base.Metric | str:
        try:
            return self._load(name)
        except exception.PluginError as error:
            LOG.error('[fairness] shadow_metric: %s', error)
            return str(error)


def _arrays_in_force(measured: round_model.MeasuredRound) -> _HeavinessArrays:
    return _HeavinessArrays(
        measured.instance_heaviness,
        measured.heaviness,
        measured.user_heaviness,
    )


def _compute_arrays(
    done: round_model.Round,
    measured: round_model.MeasuredRound,
    metric: metric_base.Metric,
) -> _HeavinessArrays:
    """Run all stages of a metric on the input of a round.

    :raises PluginMisbehaved: if the metric fails in any stage.
    :raises StateError: if the input was not kept.
    """
    given = parts.metric_input(measured)
    if given is None:
        raise exception.StateError(NOT_MEASURED)
    own = stages.instance_stage(metric, given.demands)
    others = elsewhere.estimated_elsewhere(
        done.node.host, done.metric, measured, given.totals, metric
    )
    here = grouping.sum_by(given.owner, own, given.totals.user_count)
    of_users, final = measure_round.run_user_stages(
        metric,
        dataclasses.replace(given.totals, instance_heaviness=others + here),
        given.owner,
        own,
    )
    return _HeavinessArrays(own, final, of_users)


def _shadow_heaviness(
    name: str,
    round_number: int,
    measured: round_model.MeasuredRound,
    arrays: _HeavinessArrays,
) -> round_model.ShadowHeaviness:
    keys = [vm.key for vm in measured.usage.incarnations]
    return round_model.ShadowHeaviness(
        metric=name,
        round_number=round_number,
        instance_heaviness=dict(
            zip(keys, arrays.instance_stage.tolist(), strict=True)
        ),
        heaviness=dict(zip(keys, arrays.final.tolist(), strict=True)),
        user_heaviness=dict(
            zip(measured.ownership.users, arrays.users.tolist(), strict=True)
        ),
    )
