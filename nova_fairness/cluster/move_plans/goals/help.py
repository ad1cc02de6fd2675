# SPDX-License-Identifier: Apache-2.0

"""Goal ``help``: the owner who gets the smallest part of the CPU due to it
gets more.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
from typing import Self

from oslo_config import cfg

from nova_fairness.cluster import agent_reports
from nova_fairness.cluster.move_plans.goals import goal
from nova_fairness.cluster.openstack import nova
from nova_fairness.model import cluster
from nova_fairness.model import plans as model
from nova_fairness.model import tenants
from nova_fairness.planners.tenants import planner
from nova_fairness.shares import overview

_USUAL = planner.USUAL


@dataclasses.dataclass(frozen=True)
class HelpGoal(goal.PlanGoal):
    """Plans moves by which owners get more of the CPU that is due to them.

    :ivar rules: bounds of the search for moves.
    """

    name = model.Goal.HELP
    asks_agents = True

    rules: planner.TenantRules = _USUAL

    @classmethod
    def configured(cls, options: cfg.ConfigOpts.GroupAttr) -> Self:
        """Build the goal from the options of ``[fairness_plans]``."""
        return cls(
            planner.TenantRules(
                margin=options.margin,
                seen_s=options.seen_for,
                concurrency=goal.simultaneous_move_limits(options),
            )
        )

    def drafts(self, seen: goal.GoalInput) -> Iterator[goal.Draft]:
        """Yield moves by which the owner with the lowest level gets enough
        more CPU.
        """
        wants = self._wanted_cpus(seen)
        if wants is None:
            return
        found = planner.plan(wants, seen.at, self.rules)
        if found.helped:
            first = found.helped[0].owner
            draft = goal.build_draft(self.name, first, wants.cloud, found.plan)
            told = [
                f'{each.owner} gets {each.level[1]:.2f} in place of'
                f' {each.level[0]:.2f} of what is due'
                for each in found.helped
            ]
            yield dataclasses.replace(draft, text=model.shortened_list(told))

    def _wanted_cpus(self, seen: goal.GoalInput) -> tenants.Tenants | None:
        """Return the CPU that servers want. ``None`` until agents have
        measured long enough after the last move.
        """
        if seen.lacking is None:
            return None
        found = seen.lacking.tenants(
            seen.snapshot, {}, _due_shares(seen.snapshot)
        )
        # A report of an agent may be as old as the interval between two
        # reports.
        seen_s = self.rules.seen_s + agent_reports.LACKING_S
        if seen.at - seen.moved_at < seen_s:
            return None
        return _without_blind_hosts(found, seen.servers)


def _without_blind_hosts(
    found: tenants.Tenants, servers: Mapping[str, nova.Server]
) -> tenants.Tenants:
    """Return the wants, without hosts that have a running server which no
    agent has measured yet.

    The wants of such a server are unknown, so that its host seems to have
    room.
    """
    blind = {
        each.host
        for each in found.cloud.running
        if each.uuid not in found.wants
        and each.uuid in servers
        and servers[each.uuid].status == 'ACTIVE'
    }
    cpus = {host: n for host, n in found.cpus.items() if host not in blind}
    return dataclasses.replace(found, cpus=cpus)


def _due_shares(snapshot: cluster.ClusterSnapshot) -> dict[str, float]:
    """Return the part of the cloud that is due to each owner, > 0, by
    project and user.
    """
    found: dict[str, float] = {}
    for each in overview.standings(snapshot):
        # An identifier of a user may hold a slash, that of a project none.
        project, slash, user = each.account.name.partition('/')
        owner = user if slash else project
        found[owner] = found.get(owner, 0.0) + each.part
    return {owner: part for owner, part in found.items() if part > 0}
