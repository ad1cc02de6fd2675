# SPDX-License-Identifier: Apache-2.0

"""The opposite goal: servers are spread so that no host is much fuller.

As VMware's DRS and Watcher's workload stabilization, in small steps: from the
fullest host goes what lowers the sum of the squares of used parts most for
the memory that is sent.
"""

import dataclasses

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.planners.consolidation import layout as layout_module
from nova_fairness.planners.consolidation import rules as rules_module
from nova_fairness.planners.consolidation import waves

Rows = layout_module.Rows
Fractions = layout_module.Fractions

_NOTHING = 1e-9


@dataclasses.dataclass(frozen=True, slots=True)
class BalanceTolerance:
    """When hosts are even enough.

    :ivar spread: a host gives if it uses this much more than all do on
        average, as a part of the host in the class in which it exceeds that
        most.
    """

    spread: float = 0.1


_USUAL = BalanceTolerance()


def balance(
    snapshot: cluster.ClusterSnapshot,
    rules: rules_module.ConsolidationRules = rules_module.USUAL,
    tolerance: BalanceTolerance = _USUAL,
) -> rules_module.ConsolidationPlan:
    """Spread servers until no host is much fuller than others.

    The rule of placement does not count here, nor what is for empty hosts.
    """
    layout = layout_module.HostLayout(snapshot, rules.rule)
    parts: list[list[waves.Step]] = []
    while True:
        step = _step(layout, tolerance)
        if step is None:
            break
        layout.put(*step)
        parts.append([step])
    busy = int(layout.busy.sum())
    found = rules_module.made(layout, rules, parts)
    return found or rules_module.ConsolidationPlan((), (busy, busy))


def _step(
    layout: layout_module.HostLayout, tolerance: BalanceTolerance
) -> waves.Step | None:
    """The best move off the fullest host that can give something."""
    parts, over = _parts(layout), layout.over()
    rows = np.flatnonzero(over > tolerance.spread)
    for row in rows[np.argsort(-over[rows], kind='stable')]:
        found = _best(layout, parts, int(row))
        if found:
            return found
    return None


def _best(
    layout: layout_module.HostLayout, parts: Fractions, row: int
) -> waves.Step | None:
    best, most = None, _NOTHING
    takes = layout.hosts.takes.copy()
    takes[row] = False
    for n in layout.on(row):
        rows = layout.fitting(int(n), takes)
        if not len(rows):
            continue
        amounts = layout.amounts[n][:, np.newaxis]
        inverse = layout.inverse
        gone = amounts[:, 0] * inverse[:, row]
        come = amounts * inverse[:, rows]
        gain = (2 * parts[:, row] - gone) @ gone
        gain = gain - ((2 * parts[:, rows] + come) * come).sum(axis=0)
        target = int(gain.argmax())
        worth = float(gain[target]) / float(layout.cost[n])
        if gain[target] > _NOTHING and worth > most * (1 + _NOTHING):
            best, most = (int(n), int(rows[target])), worth
    return best


def _parts(layout: layout_module.HostLayout) -> Fractions:
    """(c, p) What is used, as a part of what hosts have."""
    parts: Fractions = layout.used * layout.inverse
    return parts
