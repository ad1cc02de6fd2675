# SPDX-License-Identifier: Apache-2.0

"""Planner that moves servers so that fewer hosts are needed, or a request
fits.

A plan depends on the snapshot alone. The state after a plan leads to no
further plan, so servers do not move back and forth. Servers move only where
capacity, units, traits, zones, aggregates and server groups allow it. Servers
that may not move stay, and so does all other use of hosts.
"""

from collections.abc import Iterator
import dataclasses

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import request as request_model
from nova_fairness.planners.consolidation import (
    consolidate as consolidate_module,
)
from nova_fairness.planners.consolidation import displacement
from nova_fairness.planners.consolidation import layout as layout_module
from nova_fairness.planners.consolidation import repack
from nova_fairness.planners.consolidation import rules as rules_module
from nova_fairness.planners.consolidation import swap


def consolidate(
    snapshot: cluster.ClusterSnapshot,
    rules: rules_module.ConsolidationRules = rules_module.USUAL,
) -> rules_module.ConsolidationPlan:
    """Plan moves that empty hosts, the least used first (Baadal)."""
    return consolidate_module.consolidate(snapshot, rules)


def rescue(
    snapshot: cluster.ClusterSnapshot,
    asked: request_model.Request,
    rules: rules_module.ConsolidationRules = rules_module.USUAL,
) -> rules_module.ConsolidationPlan | None:
    """Plan moves that make room for a request that fits on no host.

    :param asked: request that waits for room.
    :returns: moves after which the request fits; ``None`` if no moves were
        found, or they send too much memory.
    """
    layout = layout_module.HostLayout(snapshot, rules.rule)
    allowed = layout.hosts.takes
    shape, count = layout.hosts.shape(asked.demand), len(asked.servers)
    group = asked.group
    apart = None
    if group is not None:
        hosts = layout.hosts.rows(snapshot.member_hosts.get(group.uuid, ()))
        if group.rule is request_model.Rule.APART:
            apart = group
            layout.know(group, hosts)
        else:
            shape = layout.hosts.together([(asked.demand, count)])
            count = 1
            if len(hosts):
                allowed = np.isin(np.arange(len(allowed)), hosts) & allowed
    item = layout_module.item_of(asked.uuid, shape, apart, snapshot.classes)
    new = [layout.add(item) for _ in range(count)]
    first, mark = None, layout.mark()
    for is_settled in _placements(layout, new, allowed, rules.depth):
        plan = (
            rules_module.plan_from_layout(layout, rules, detours=True)
            if is_settled
            else None
        )
        if plan is not None and not rules.is_dear(plan.cost_mb):
            first = plan
            break
        layout.back(mark)
    if first is not None and not first.moves:
        return first
    best = _cheaper_plan(layout, new, allowed, rules, first)
    return None if best is None or rules.is_dear(best.cost_mb) else best


def _cheaper_plan(
    layout: layout_module.HostLayout,
    new: list[int],
    allowed: layout_module.Marks,
    rules: rules_module.ConsolidationRules,
    best: rules_module.ConsolidationPlan | None,
) -> rules_module.ConsolidationPlan | None:
    """Return a plan that sends less memory than ``best``; ``best`` if there
    is none.
    """
    layout.back(0)
    levels = rules.depth.levels - 1
    if len(new) > 1 or levels < 1:
        return best
    depth = dataclasses.replace(rules.depth, levels=levels)
    for cost in swap.place_by_swap(layout, new[0], allowed, depth):
        if best is not None and cost >= best.cost_mb:
            continue
        plan = rules_module.plan_from_layout(layout, rules, detours=True)
        if plan and (best is None or plan.cost_mb < best.cost_mb):
            best = plan
    return best


def _placements(
    layout: layout_module.HostLayout,
    new: list[int],
    allowed: layout_module.Marks,
    depth: displacement.Depth,
) -> Iterator[bool]:
    """Try placements of new items, those with the fewest moves first.

    :returns: for each placement: whether it found hosts for all items.
    """
    yield displacement.place_with_displacement(layout, new, allowed, depth)
    for hosts in range(2, depth.repacked + 1):
        yield displacement.repack_freest_hosts(layout, new, allowed, hosts)
    # Patterns exchange hosts that are alike. An item that must be beside other
    # servers cannot be exchanged to another host.
    if depth.tight and (allowed == layout.hosts.takes).all():
        yield repack.repack_by_patterns(layout, new, allowed, depth.tight)
