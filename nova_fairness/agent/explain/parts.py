# SPDX-License-Identifier: Apache-2.0

"""The part that each resource has in a heaviness.

A metric returns one number. The part of a resource is the metric's result when
all other resources are set to 0. If a metric is a sum over the resources, the
parts add up to the heaviness. For any other metric, a part is the heaviness of
that resource alone.
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
"""Largest relative difference between two sums that count as equal."""
_ABSOLUTE = 1e-9
"""Largest absolute difference between two sums that count as equal."""


class HeavinessParts(NamedTuple):
    """The parts of the heaviness of each VM.

    :ivar by_resource: (n, r).
    :ivar elsewhere: (n,) heaviness of the owner's VMs on other nodes; reports
        contain one number for all resources.
    :ivar additive: (n,) whether the heaviness is the sum of all these parts.
    :ivar reserved: (n, r) like ``by_resource`` with a usage of 0: the charge
        for the endowment alone.
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

    def only_resources(self, mask: resources.Mask) -> 'MetricInput':
        """Return the input with all other resources set to 0.

        :param mask: (r,) the resources that remain.
        """
        return dataclasses.replace(
            self,
            demands=dataclasses.replace(
                self.demands,
                usage=self.demands.usage * mask,
                endowment=self.demands.endowment * mask,
            ),
            totals=dataclasses.replace(
                self.totals,
                usage=self.totals.usage * mask,
                endowment=self.totals.endowment * mask,
                quota=self.totals.quota * mask,
            ),
        )

    def without_usage(self) -> 'MetricInput':
        """Return the input with all usage set to 0."""
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
    """Return the part of each resource in the heaviness of each VM.

    :param metric: the metric that the round used.
    :returns: ``None`` if the input of the metric is unknown.
    :raises PluginMisbehaved: if the metric fails.
    """
    given = metric_input(measured)
    if given is None:
        return None
    by_resource = _heaviness_by_resource(metric, given)
    elsewhere = _heaviness_elsewhere(
        metric, given, measured.instance_heaviness
    )
    return HeavinessParts(
        by_resource,
        elsewhere,
        np.isclose(
            by_resource.sum(axis=1) + elsewhere,
            measured.heaviness,
            rtol=_RELATIVE,
            atol=_ABSOLUTE,
        ),
        _heaviness_by_resource(metric, given.without_usage()),
    )


def _heaviness_by_resource(
    metric: metric_base.Metric, given: MetricInput
) -> resources.Vector:
    """Run the metric with one resource at a time; return (n, r)."""
    return np.column_stack(
        [
            _heaviness_here(metric, given.only_resources(mask))
            for mask in np.eye(len(resources.RESOURCES), dtype=np.bool_)
        ]
    )


def metric_input(measured: round_model.MeasuredRound) -> MetricInput | None:
    """Return the input of the metric in a round; ``None`` if not stored."""
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


def _heaviness_here(
    metric: metric_base.Metric, given: MetricInput
) -> metric_base.Heaviness:
    """Return the heaviness of the VMs as if their owners had no other VMs."""
    own = stages.instance_stage(metric, given.demands)
    return _combined_heaviness(metric, given, _sum_by_user(given, own), own)


def _heaviness_elsewhere(
    metric: metric_base.Metric,
    given: MetricInput,
    vm_heaviness: metric_base.Heaviness,
) -> metric_base.Heaviness:
    """Return the heaviness of the owners' VMs on other nodes, for each VM."""
    nothing = given.only_resources(
        np.zeros(len(resources.RESOURCES), dtype=np.bool_)
    )
    others = given.totals.instance_heaviness - _sum_by_user(
        given, vm_heaviness
    )
    return _combined_heaviness(
        metric, nothing, others, np.zeros(len(vm_heaviness))
    )


def _sum_by_user(
    given: MetricInput, vm_heaviness: metric_base.Heaviness
) -> metric_base.Heaviness:
    return grouping.sum_by(given.owner, vm_heaviness, given.totals.user_count)


def _combined_heaviness(
    metric: metric_base.Metric,
    given: MetricInput,
    user_heaviness: metric_base.Heaviness,
    vm_heaviness: metric_base.Heaviness,
) -> metric_base.Heaviness:
    totals = dataclasses.replace(
        given.totals, instance_heaviness=user_heaviness
    )
    users = stages.user_stage(metric, totals)
    return stages.combine_stage(metric, users[given.owner], vm_heaviness)


RETRY_AFTER_S = 60.0
"""Seconds until a metric that failed here runs again. A metric that succeeds
in the rounds may have failed here only because the CPUs were busy."""

Load = Callable[[str], metric_base.Metric]
LoadPolicy = Callable[[str], policy_base.Policy]


class Explainer:
    """Computes the parts of the heaviness outside the rounds, on request.

    Rounds never wait for it. A metric that fails here stays in use by the
    rounds; its parts are unknown for a while.

    :param load_metric: loads a metric by its name; raises PluginError.
    :param load_policy: loads a policy by its name; raises PluginError.
    :param clock: monotonic, seconds.
    :param deadline_s: longest run time of the metric in seconds, > 0.
    """

    def __init__(
        self,
        load_metric: Load = plugins.load_metric,
        deadline_s: float = 1.0,
        load_policy: LoadPolicy = plugins.load_policy,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._failed_s = -math.inf
        self._load = load_metric
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
        """Return the part of each resource in the heaviness of each VM.

        :returns: ``None`` if the parts are unknown.
        """
        with self._lock:
            if done is not self._round:
                self._parts = self._compute_parts(done)
                self._round = done
            return self._parts

    def preset(self, done: round_model.Round) -> policy_base.Preset:
        """Return the preset of the policy of a round: how its weights
        count.
        """
        with self._lock:
            if done.policy not in self._presets:
                try:
                    found = self._load_policy(done.policy).preset
                except exception.PluginError:
                    return policy_base.Preset.DEFAULT
                self._presets[done.policy] = found
            return self._presets[done.policy]

    def stop(self) -> None:
        """Stop the thread; may be called twice."""
        self._guard.stop()

    def _compute_parts(self, done: round_model.Round) -> HeavinessParts | None:
        """Run the metric for the parts; ``None`` if it fails or failed
        lately.
        """
        measured = done.measured
        if measured is None or done.metric in done.quarantined:
            return None
        if self._clock() - self._failed_s < RETRY_AFTER_S and self._is_loaded(
            done
        ):
            return None
        name = f'the explanation of {done.metric}'
        try:
            metric = self._load_metric(done)
            self._guard.release(name)
            return self._guard.call(name, lambda: parts(metric, measured))
        except exception.PluginError as error:
            LOG.debug(
                'the parts of the heaviness are not available: %s', error
            )
            self._failed_s = self._clock()
            return None

    def _is_loaded(self, done: round_model.Round) -> bool:
        """Check whether the metric of the round is the loaded one."""
        return self._set == (done.metric, done.epoch)

    def _load_metric(self, done: round_model.Round) -> metric_base.Metric:
        if self._metric is None or not self._is_loaded(done):
            self._guard.stop()
            self._guard = guard_module.Guard(self._deadline_s)
            self._metric = None
            self._set = (done.metric, done.epoch)
            self._metric = self._load(done.metric)
        return self._metric
