# SPDX-License-Identifier: Apache-2.0

"""Planner that spreads servers until no host is used much more than the
average.

It works in small steps, like VMware's DRS and Watcher's workload
stabilization. Each step moves one server off the host with the highest use:
the server whose move lowers the sum of the squares of the used parts most, per
MB of memory that the move sends.
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
    """Largest difference of use between hosts that count as balanced.

    :ivar spread: a host is unbalanced if its use exceeds the average of all
        hosts by more than this, as a part of the host, in the class with the
        largest excess.
    """

    spread: float = 0.1


_USUAL = BalanceTolerance()


def balance(
    snapshot: cluster.ClusterSnapshot,
    rules: rules_module.ConsolidationRules = rules_module.USUAL,
    tolerance: BalanceTolerance = _USUAL,
) -> rules_module.ConsolidationPlan:
    """Plan moves until no host is used much more than the average.

    The placement rule of ``rules``, and its rules for empty hosts, have no
    effect here.
    """
    layout = layout_module.HostLayout(snapshot, rules.rule)
    parts: list[list[waves.Step]] = []
    while True:
        step = _best_move(layout, tolerance)
        if step is None:
            break
        layout.put(*step)
        parts.append([step])
    busy = int(layout.busy.sum())
    found = rules_module.plan_from_layout(layout, rules, parts)
    return found or rules_module.ConsolidationPlan((), (busy, busy))


def _best_move(
    layout: layout_module.HostLayout, tolerance: BalanceTolerance
) -> waves.Step | None:
    """Return the best move off the host with the highest use that has a
    movable server; ``None`` if there is none.
    """
    parts, over = _used_parts(layout), layout.over()
    rows = np.flatnonzero(over > tolerance.spread)
    for row in rows[np.argsort(-over[rows], kind='stable')]:
        found = _best_move_from(layout, parts, int(row))
        if found:
            return found
    return None


def _best_move_from(
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


def _used_parts(layout: layout_module.HostLayout) -> Fractions:
    """Return the used part of the capacity of each host, (c, p)."""
    parts: Fractions = layout.used * layout.inverse
    return parts
