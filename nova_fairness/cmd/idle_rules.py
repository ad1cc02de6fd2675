# SPDX-License-Identifier: Apache-2.0

"""Idle servers: what operators chose of them, and which agents are asked."""

from collections.abc import Callable

from oslo_config import cfg

from nova_fairness import exception
from nova_fairness.cluster import agent_reports
from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.eviction import idle_reclaim
from nova_fairness.cluster.store import leaves as leaves_module
from nova_fairness.cmd import leave_rules
from nova_fairness.cmd import ledger
from nova_fairness.model import eviction

Made = Callable[
    [leaves_module.Leaves, evictor.Evictor], idle_reclaim.IdleReclaim
]
"""Makes what says who leaves, of how far servers have and what lets them."""


def chosen(conf: cfg.ConfigOpts) -> Made:
    """Rules of idle reclaim; agents are asked only if it is on.

    :raises ConfigurationError: if they cannot be used, or agents not asked.
    """
    rules = _rules(conf.fairness_cluster)
    told = _agents(conf, rules).known
    return lambda leaves, to: idle_reclaim.IdleReclaim(leaves, to, told, rules)


def _rules(options: cfg.ConfigOpts.GroupAttr) -> idle_reclaim.IdleOptions:
    actions = tuple(map(eviction.EvictionAction, options.idle_actions))
    if not actions:
        raise exception.ConfigurationError(
            '[fairness_cluster] idle_actions must name at least one'
        )
    with leave_rules.checked('idle_after, idle_notice'):
        return idle_reclaim.IdleOptions(
            options.idle_after,
            options.idle_notice,
            actions,
            frozenset(options.idle_spared_projects),
        )


def _agents(
    conf: cfg.ConfigOpts, rules: idle_reclaim.IdleOptions
) -> agent_reports.Idle:
    if not rules.after_s:
        return agent_reports.Idle(lambda _: {})
    asked = ledger.agents(
        conf, f'[fairness_cluster] idle_after = {rules.after_s:g}'
    )
    least_s = idle_reclaim.SOONEST * rules.after_s
    return agent_reports.Idle(
        lambda host: asked.call(host, 'get_idle', at_least_s=least_s)
    )
