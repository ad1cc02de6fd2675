# SPDX-License-Identifier: Apache-2.0

"""The part that each resource has in a heaviness.

A metric gives one number. What a resource has in it is what the metric gives
if everything but that resource is taken away: for a metric that adds up over
the resources this is exactly what it added, and for any other it is how heavy
that resource alone would be.
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from nova_fairness.measure import metric as metric_base
from nova_fairness.measure import stages
from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import grouping

_RELATIVE = 1e-6
_ABSOLUTE = 1e-9
"""What arithmetic may lose until a sum counts as another number."""


class Parts(NamedTuple):
    """The parts of the heaviness by which VMs are treated.

    :ivar by_resource: (n, r).
    :ivar elsewhere: (n,) of the owner's VMs on other nodes, which report one
        number for all resources.
    :ivar additive: (n,) whether the heaviness is the sum of all these.
    :ivar reserved: (n, r) like ``by_resource``, if nobody used anything: what
        a metric charges for endowment alone.
    """

    by_resource: resources.Vector
    elsewhere: usage_model.Scalars
    additive: resources.Mask
    reserved: resources.Vector


@dataclasses.dataclass(frozen=True, eq=False)
class _Given:
    """What both stages of a metric were given."""

    demands: metric_base.Demands
    totals: metric_base.Totals
    owner: usage_model.Indices

    def only(self, resource: resources.Mask) -> '_Given':
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

    def idle(self) -> '_Given':
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
    metric: metric_base.Metric, measured: round_model.Measured
) -> Parts | None:
    """Say what each resource has in the heaviness of each VM of a node.

    :param metric: the one that was used.
    :returns: ``None`` if what it was given is not known.
    :raises PluginMisbehaved: if the metric fails.
    """
    given = _given(measured)
    if given is None:
        return None
    by_resource = _each(metric, given)
    elsewhere = _elsewhere(metric, given, measured.instance_heaviness)
    return Parts(
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


def _each(metric: metric_base.Metric, given: _Given) -> resources.Vector:
    """Weigh the VMs by one resource after another, (n, r)."""
    return np.column_stack(
        [
            _here(metric, given.only(mask))
            for mask in np.eye(len(resources.RESOURCES), dtype=np.bool_)
        ]
    )


def _given(measured: round_model.Measured) -> _Given | None:
    basis = measured.basis
    if basis is None or measured.user_usage is None:
        return None
    return _Given(
        metric_base.Demands(
            usage=measured.usage.amounts,
            endowment=measured.endowment,
            supply=basis.supply,
            node=measured.ownership.node_index,
            user_count=basis.user_count,
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


def _here(metric: metric_base.Metric, given: _Given) -> metric_base.Heaviness:
    """Weigh the VMs as if their owners had no others."""
    own = stages.instance_stage(metric, given.demands)
    return _treated(metric, given, _summed(given, own), own)


def _elsewhere(
    metric: metric_base.Metric,
    given: _Given,
    own: metric_base.Heaviness,
) -> metric_base.Heaviness:
    """Weigh the VMs as if their owners had only the others."""
    nothing = given.only(np.zeros(len(resources.RESOURCES), dtype=np.bool_))
    others = given.totals.instance_heaviness - _summed(given, own)
    return _treated(metric, nothing, others, np.zeros(len(own)))


def _summed(
    given: _Given, own: metric_base.Heaviness
) -> metric_base.Heaviness:
    return grouping.sum_by(given.owner, own, given.totals.user_count)


def _treated(
    metric: metric_base.Metric,
    given: _Given,
    of_users: metric_base.Heaviness,
    own: metric_base.Heaviness,
) -> metric_base.Heaviness:
    totals = dataclasses.replace(given.totals, instance_heaviness=of_users)
    users = stages.user_stage(metric, totals)
    return stages.combine_stage(metric, users[given.owner], own)
