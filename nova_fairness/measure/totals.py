# SPDX-License-Identifier: Apache-2.0

"""Sums per user: of one node for its report, and over all reports."""

from collections.abc import Mapping
import functools
import itertools
import types
from typing import NamedTuple

import numpy as np

from nova_fairness.measure import metric as metric_base
from nova_fairness.measure import quota
from nova_fairness.model import report
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import grouping

_NO_WEIGHTS: Mapping[str, float] = types.MappingProxyType({})


class CombinedTotals(NamedTuple):
    """Totals of all nodes together.

    :ivar users: ids, sorted; row order of ``totals``.
    :ivar totals: of the users; its supply includes overcommit.
    :ivar supply: (r,) sum of the nodes, without overcommit.
    """

    users: tuple[str, ...]
    totals: metric_base.Totals
    supply: resources.Vector


def sum_by_user(
    owners: usage_model.Ownership,
    instance_heaviness: metric_base.Heaviness,
    endowment: resources.Vector,
    usage: resources.Vector,
    wanted: resources.Vector | None = None,
    grades: resources.Vector | None = None,
    exempt: resources.Vector | None = None,
) -> report.UserTable:
    """Sum the VMs of each user for a node's report.

    :param owners: of the n VMs; users without a VM are left out.
    :param instance_heaviness: (n,) of the instance stage.
    :param endowment: (n, r).
    :param usage: (n, r).
    :param wanted: (n, r) of :func:`.wants.wanted`; ``None`` leaves it out of
        the report.
    :param grades: (u, 2g) of :func:`.demand_buckets.grades_of_node`; ``None``
        leaves them out.
    :param exempt: (u, 2g) grades of VMs that are not steered, if any.
    :returns: totals by user id, sorted by id.
    """
    index, count = owners.user_index, len(owners.users)
    heavy = grouping.sum_by(index, instance_heaviness, count)
    endowed = grouping.sum_by(index, endowment, count)
    used = grouping.sum_by(index, usage, count)
    instances = np.bincount(index, minlength=count)
    present = np.flatnonzero(instances)
    return report.UserTable(
        ids=tuple(owners.users[row] for row in present),
        instance_heaviness=heavy[present],
        endowment=endowed[present],
        usage=used[present],
        instances=instances[present],
        wanted=None
        if wanted is None
        else grouping.sum_by(index, wanted, count)[present],
        grades=None if grades is None else grades[present],
        exempt=None if exempt is None else exempt[present],
    )


def sum_rows(
    user: usage_model.Indices,
    instance_heaviness: metric_base.Heaviness,
    endowment: resources.Vector,
    usage: resources.Vector,
    quotas: resources.Vector,
    supply: resources.Vector,
) -> metric_base.Totals:
    """Sum rows of one or more nodes: of VMs, or of users in reports.

    :param user: (n,) index of each row's user.
    :param instance_heaviness: (n,) of the instance stage.
    :param endowment: (n, r).
    :param usage: (n, r).
    :param quotas: (u, r) of :func:`quota.divide_by_weights`, in the users'
        sequence.
    :param supply: (r,) with overcommit.
    """
    count = len(quotas)
    return metric_base.Totals(
        instance_heaviness=grouping.sum_by(user, instance_heaviness, count),
        usage=grouping.sum_by(user, usage, count),
        endowment=grouping.sum_by(user, endowment, count),
        quota=quotas,
        supply=supply,
    )


def usable_reports(
    view: report.View, metric: str
) -> tuple[report.NodeReport, ...]:
    """Return the reports of the same metric, which can be added up.

    Numbers of different metrics are not comparable. So the users and the
    supply of a node with another metric do not count.
    """
    reports = view.reports.values()
    return tuple(item for item in reports if item.metric == metric)


def known_users(view: report.View, metric: str) -> tuple[str, ...]:
    """Return the ids of all users of a view's usable reports, sorted."""
    return index_of_users(
        tuple(_user_ids(item.users) for item in usable_reports(view, metric))
    )[0]


def supply_of_nodes(
    view: report.View, interval_s: float, metric: str
) -> resources.Vector:
    """Return the amounts that the nodes of a view provide in an interval.

    :returns: (r,) without overcommit; zeros without a usable report.
    """
    rates = [item.resources.capacity for item in usable_reports(view, metric)]
    if not rates:
        return resources.RESOURCES.vector()
    total: resources.Vector = np.array(rates).sum(axis=0)
    return resources.RESOURCES.over(total, interval_s)


def combine_reports(
    view: report.View,
    interval_s: float,
    metric: str,
    quota_weights: Mapping[str, float] = _NO_WEIGHTS,
    overcommit: resources.Vector | None = None,
) -> CombinedTotals:
    """Add up the reports of a view.

    Nodes may measure at different intervals: time-shared amounts are scaled to
    ``interval_s``. Heaviness does not depend on the interval.

    :param view: the newest report of each node.
    :param interval_s: interval of the result in seconds, > 0.
    :param metric: name of the metric whose reports are added up.
    :param quota_weights: by user id, > 0; the default is 1.
    :param overcommit: (r,) factors > 0; ``None`` means 1 for all.
    :raises ValueError: if a weight or factor is out of range.
    """
    supply = supply_of_nodes(view, interval_s, metric)
    reports = usable_reports(view, metric)
    tables = [report.UserTable.of(item.users) for item in reports]
    users, index = index_of_users(tuple(table.ids for table in tables))
    scales = [interval_s / item.interval_s for item in reports]
    scale = np.repeat(np.array(scales), [len(table) for table in tables])
    weights = np.array([quota_weights.get(user, 1.0) for user in users])
    factors = np.ones(len(supply)) if overcommit is None else overcommit
    totals = sum_rows(
        index,
        _concatenate([item.instance_heaviness for item in tables]),
        scale_to_interval([item.endowment for item in tables], scale),
        scale_to_interval([item.usage for item in tables], scale),
        quota.divide_by_weights(supply, weights),
        quota.with_overcommit(supply, factors),
    )
    return CombinedTotals(users, totals, supply)


Ids = tuple[str, ...]


def _user_ids(users: Mapping[str, report.UserTotals]) -> Ids:
    return users.ids if isinstance(users, report.UserTable) else tuple(users)


# Users come and go far less often than rounds: the newest layouts are kept,
# with the own node and without it.
@functools.lru_cache(maxsize=4)
def index_of_users(ids: tuple[Ids, ...]) -> tuple[Ids, usage_model.Indices]:
    """Return all users, sorted, and the index of each row's user.

    :param ids: of the users of each node.
    :returns: all users, and the index of each row, one node after another.
    """
    users = tuple(sorted(set().union(*ids)))
    place = {user: row for row, user in enumerate(users)}
    places = map(place.__getitem__, itertools.chain.from_iterable(ids))
    index = np.fromiter(places, dtype=np.intp)
    index.setflags(write=False)
    return users, index


def _concatenate(parts: list[resources.Vector]) -> resources.Vector:
    return np.concatenate(parts) if parts else np.zeros(0)


def scale_to_interval(
    parts: list[resources.Vector], scale: usage_model.Scalars
) -> resources.Vector:
    """Scale amounts of different intervals to one interval, (n, r)."""
    registry = resources.RESOURCES
    stacked = _concatenate(parts).reshape(len(scale), len(registry))
    return np.where(
        registry.time_shared, stacked * scale[:, np.newaxis], stacked
    )
