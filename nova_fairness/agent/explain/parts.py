# SPDX-License-Identifier: Apache-2.0

"""The part that each resource has in a heaviness.

A metric gives one number. The part of a resource is the result of the metric
if everything but that resource is taken away. A metric that adds up over the
resources added exactly this part. For any other metric it is how heavy that
resource alone would be.
"""

from collections.abc import Callable
import dataclasses
import logging
import math
import threading
import time
from typing import NamedTuple

import numpy as np

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.decide import policy as policy_base
from nova_fairness.measure import metric as metric_base
from nova_fairness.measure import stages
from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from nova_fairness.model import usage as usage_model
from nova_fairness.runtime import guard as guard_module
from nova_fairness.shares import grouping

LOG = logging.getLogger(__name__)

_RELATIVE = 1e-6
_ABSOLUTE = 1e-9
"""Error of arithmetic up to which two sums count as equal."""


class HeavinessParts(NamedTuple):
    """The parts of the heaviness by which VMs are treated.

    :ivar by_resource: (n, r).
    :ivar elsewhere: (n,) of the owner's VMs on other nodes, which report one
        number for all resources.
    :ivar additive: (n,) whether the heaviness is the sum of all these.
    :ivar reserved: (n, r) like ``by_resource``, if no VM used anything: what a
        metric charges for endowment alone.
    """

    by_resource: resources.Vector
    elsewhere: usage_model.Scalars
    additive: resources.Mask
    reserved: resources.Vector


@dataclasses.dataclass(frozen=True, eq=False)
class MetricInput:
    """Input of both stages of a metric.

    :ivar owner: (n,) index of each VM's user in the totals.
    """

    demands: metric_base.Demands
    totals: metric_base.Totals
    owner: usage_model.Indices

    def only(self, resource: resources.Mask) -> 'MetricInput':
        """Take away everything but some resources."""
        return dataclasses.replace(
            self,
            demands=dataclasses.replace(
                self.demands,
                usage=self.demands.usage * resource,
                endowment=self.demands.endowment * resource,
            ),
            totals=dataclasses.replace(
                self.totals,
                usage=self.totals.usage * resource,
                endowment=self.totals.endowment * resource,
                quota=self.totals.quota * resource,
            ),
        )

    def idle(self) -> 'MetricInput':
        """Take away all usage."""
        return dataclasses.replace(
            self,
            demands=dataclasses.replace(
                self.demands, usage=np.zeros_like(self.demands.usage)
            ),
            totals=dataclasses.replace(
                self.totals, usage=np.zeros_like(self.totals.usage)
            ),
        )


def parts(
    metric: metric_base.Metric, measured: round_model.MeasuredRound
) -> HeavinessParts | None:
    """Say what each resource has in the heaviness of each VM of a node.

    :param metric: the one that was used.
    :returns: ``None`` if what it was given is not known.
    :raises PluginMisbehaved: if the metric fails.
    """
    given = given_to(measured)
    if given is None:
        return None
    by_resource = _each(metric, given)
    elsewhere = _elsewhere(metric, given, measured.instance_heaviness)
    return HeavinessParts(
        by_resource,
        elsewhere,
        np.isclose(
            by_resource.sum(axis=1) + elsewhere,
            measured.heaviness,
            rtol=_RELATIVE,
            atol=_ABSOLUTE,
        ),
        _each(metric, given.idle()),
    )


def _each(metric: metric_base.Metric, given: MetricInput) -> resources.Vector:
    """Weigh the VMs by one resource after another, (n, r)."""
    return np.column_stack(
        [
            _here(metric, given.only(mask))
            for mask in np.eye(len(resources.RESOURCES), dtype=np.bool_)
        ]
    )


def given_to(measured: round_model.MeasuredRound) -> MetricInput | None:
    """Input of the metric; ``None`` if it was not kept."""
    basis = measured.basis
    if basis is None or measured.user_usage is None:
        return None
    return MetricInput(
        metric_base.Demands(
            usage=measured.weighed.amounts,
            endowment=measured.endowment,
            supply=basis.supply,
            node=measured.ownership.node_index,
            user_count=basis.user_count,
            rates=basis.rates,
        ),
        metric_base.Totals(
            instance_heaviness=basis.user_instance_heaviness,
            usage=measured.user_usage,
            endowment=basis.user_endowment,
            quota=measured.quota,
            supply=basis.user_supply,
        ),
        measured.ownership.user_index,
    )


def _here(
    metric: metric_base.Metric, given: MetricInput
) -> metric_base.Heaviness:
    """Weigh the VMs as if their owners had no others."""
    own = stages.instance_stage(metric, given.demands)
    return _treated(metric, given, _summed(given, own), own)


def _elsewhere(
    metric: metric_base.Metric,
    given: MetricInput,
    own: metric_base.Heaviness,
) -> metric_base.Heaviness:
    """Weigh the VMs as if their owners had only the others."""
    nothing = given.only(np.zeros(len(resources.RESOURCES), dtype=np.bool_))
    others = given.totals.instance_heaviness - _summed(given, own)
    return _treated(metric, nothing, others, np.zeros(len(own)))


def _summed(
    given: MetricInput, own: metric_base.Heaviness
) -> metric_base.Heaviness:
    return grouping.sum_by(given.owner, own, given.totals.user_count)


def _treated(
    metric: metric_base.Metric,
    given: MetricInput,
    of_users: metric_base.Heaviness,
    own: metric_base.Heaviness,
) -> metric_base.Heaviness:
    totals = dataclasses.replace(given.totals, instance_heaviness=of_users)
    users = stages.user_stage(metric, totals)
    return stages.combine_stage(metric, users[given.owner], own)


AGAIN_S = 60.0
"""Seconds after which a metric that failed is tried again: one that does for
the rounds was only unlucky, on a busy machine for instance."""

Load = Callable[[str], metric_base.Metric]
LoadPolicy = Callable[[str], policy_base.Policy]


class Explainer:
    """Runs the metric beside the rounds, once for each that is asked about.

    Rounds never wait for it, and a metric that fails here is not taken from
    them: its parts are unknown for a while.

    :param load: of a metric by its name; raises PluginError.
    :param load_policy: of a policy by its name; raises PluginError.
    :param clock: monotonic, seconds.
    :param deadline_s: seconds that the metric may take, > 0.
    """

    def __init__(
        self,
        load: Load = plugins.load_metric,
        deadline_s: float = 1.0,
        load_policy: LoadPolicy = plugins.load_policy,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._failed_s = -math.inf
        self._load = load
        self._load_policy = load_policy
        self._presets: dict[str, policy_base.Preset] = {}
        self._deadline_s = deadline_s
        self._lock = threading.Lock()
        self._guard = guard_module.Guard(deadline_s)
        self._set: tuple[str, int] | None = None
        self._metric: metric_base.Metric | None = None
        self._round: round_model.Round | None = None
        self._parts: HeavinessParts | None = None

    def parts(self, done: round_model.Round) -> HeavinessParts | None:
        """Say what each resource has in the heaviness of each VM.

        :returns: ``None`` if that is not known.
        """
        with self._lock:
            if done is not self._round:
                self._parts = self._computed(done)
                self._round = done
            return self._parts

    def preset(self, done: round_model.Round) -> policy_base.Preset:
        """Say what the weights of a round are."""
        with self._lock:
            if done.policy not in self._presets:
                try:
                    found = self._load_policy(done.policy).preset
                except exception.PluginError:
                    return policy_base.Preset.DEFAULT
                self._presets[done.policy] = found
            return self._presets[done.policy]

    def stop(self) -> None:
        """End the thread; may be called twice."""
        self._guard.stop()

    def _computed(self, done: round_model.Round) -> HeavinessParts | None:
        measured = done.measured
        if measured is None or done.metric in done.quarantined:
            return None
        if self._clock() - self._failed_s < AGAIN_S and self._is_same(done):
            return None
        name = f'the explanation of {done.metric}'
        try:
            metric = self._metric_of(done)
            self._guard.release(name)
            return self._guard.call(name, lambda: parts(metric, measured))
        except exception.PluginError as error:
            LOG.debug('The parts of a heaviness cannot be shown: %s', error)
            self._failed_s = self._clock()
            return None

    def _is_same(self, done: round_model.Round) -> bool:
        return self._set == (done.metric, done.epoch)

    def _metric_of(self, done: round_model.Round) -> metric_base.Metric:
        if self._metric is None or not self._is_same(done):
            self._guard.stop()
            self._guard = guard_module.Guard(self._deadline_s)
            self._metric = None
            self._set = (done.metric, done.epoch)
            self._metric = self._load(done.metric)
        return self._metric
