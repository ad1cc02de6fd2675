# SPDX-License-Identifier: Apache-2.0

"""Heaviness of VMs on other nodes by a metric that no report contains."""

import numpy as np

from nova_fairness.measure import foresight as measure_foresight
from nova_fairness.measure import metric as metric_base
from nova_fairness.measure import totals
from nova_fairness.model import round as round_model
from nova_fairness.shares import grouping


def estimated_elsewhere(
    host: str,
    reported: str,
    measured: round_model.MeasuredRound,
    of_all: metric_base.Totals,
    metric: metric_base.Metric,
) -> metric_base.Heaviness:
    """Estimate the heaviness of users' VMs on other nodes, (u,).

    Reports contain the use of each user and the heaviness by the metric in
    force only. All use of a user on a node counts as one VM.

    :param host: name of this node.
    :param reported: name of the metric in force.
    :param of_all: (u) totals of the round.
    :param metric: another metric.
    :raises PluginMisbehaved: if the metric fails.
    """
    view = measured.view
    known = measure_foresight.cells_of_reports(
        view, measured.usage.interval_s, reported
    )
    weighing = measure_foresight.HeavinessProbe(
        metric, known, of_all.quota, of_all.supply
    )
    hosts = [item.host for item in totals.usable_reports(view, reported)]
    others = known.node != hosts.index(host)
    heavy = np.where(others, weighing.instances(known.used), 0.0)
    return grouping.sum_by(known.user, heavy, of_all.user_count)
