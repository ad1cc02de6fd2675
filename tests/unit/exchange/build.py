# SPDX-License-Identifier: Apache-2.0

"""Short ways to make reports, messages and limits."""

import numpy as np

from nova_fairness.exchange import codec
from nova_fairness.exchange import limits
from nova_fairness.model import node
from nova_fairness.model import report
from nova_fairness.model import resources

RESOURCES = resources.RESOURCES
LIMITS = limits.Bounds(max_users=50, max_total_users=200, max_peers=5)


def table(*users, heaviness=0.5, part=0.1):
    """Each user has one VM and a part of a capacity of 100 of everything."""
    count = len(users)
    amounts = np.full((count, len(RESOURCES)), part * 100)
    return report.UserTable(
        tuple(sorted(users)),
        np.full(count, heaviness),
        amounts,
        amounts * 2,
        np.ones(count, dtype=np.int64),
        amounts * 3,
        np.tile(np.arange(2.0 * report.GRADES), (count, 1)),
    )


def node_report(
    host='n1',
    sequence=1,
    *,
    boot_id='boot',
    interval_s=10.0,
    metric='GreedinessMetric',
    users=('anna', 'zoe'),
    **changes,
):
    return report.NodeReport(
        host=host,
        boot_id=boot_id,
        sequence=sequence,
        interval_s=interval_s,
        metric=metric,
        resources=node.NodeResources(
            host=host,
            cpus=changes.get('cpus', (0, 1, 2, 5)),
            speed_factor=2.0,
            capacity=np.full(len(RESOURCES), changes.get('capacity', 100.0)),
        ),
        users=changes.get('table', table(*users)),
    )


def message(**changes):
    """A good message, with some fields replaced."""
    good = codec.encode(node_report())
    return {**good, **changes}


def without(name):
    good = message()
    del good[name]
    return good


def wants_of_table(table):
    """Demand; users who do not tell want what is used."""
    return table.usage if table.wanted is None else table.wanted


def grades(table):
    """The graded vCPUs; who does not tell has none."""
    untold = np.zeros((len(table), 2 * report.GRADES))
    return untold if table.grades is None else table.grades


def same(one, other):
    """Tell whether two reports say the same."""
    mine, theirs = (report.UserTable.of(item.users) for item in (one, other))
    return (
        (one.host, one.boot_id, one.sequence, one.interval_s, one.metric)
        == (
            other.host,
            other.boot_id,
            other.sequence,
            other.interval_s,
            other.metric,
        )
        and one.resources.cpus == other.resources.cpus
        and one.resources.speed_factor == other.resources.speed_factor
        and np.array_equal(one.resources.capacity, other.resources.capacity)
        and mine.ids == theirs.ids
        and np.array_equal(mine.instance_heaviness, theirs.instance_heaviness)
        and np.array_equal(mine.endowment, theirs.endowment)
        and np.array_equal(mine.usage, theirs.usage)
        and np.array_equal(wants_of_table(mine), wants_of_table(theirs))
        and np.array_equal(grades(mine), grades(theirs))
        and np.array_equal(mine.instances, theirs.instances)
    )
