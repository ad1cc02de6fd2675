# SPDX-License-Identifier: Apache-2.0

"""Builders of idle reclaim, and of the queries to agents about idle
servers.
"""

from collections.abc import Callable

from oslo_config import cfg

from nova_fairness.cluster import agent_reports
from nova_fairness.cluster.assembly import evictions
from nova_fairness.cluster.assembly import ledger
from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.eviction import idle_reclaim as reclaim_module

NOTICE_PART = 1 / 7
"""Notice period of idle servers, as a fraction of option ``idle_after``."""

Made = Callable[[evictor.Evictor], reclaim_module.IdleReclaim]
"""Builds idle reclaim from an evictor."""


def idle_reclaim_builder(conf: cfg.ConfigOpts) -> Made:
    """Return a function that builds idle reclaim. Agents are queried only if
    idle reclaim is on.

    :raises ConfigurationError: if options are invalid, or agents cannot be
        queried.
    """
    rules = _idle_options(conf.fairness_cluster)
    told = _idle_reader(conf, rules).known
    return lambda to: reclaim_module.IdleReclaim(to, told, rules)


def _idle_options(
    options: cfg.ConfigOpts.GroupAttr,
) -> reclaim_module.IdleOptions:
    with evictions.configuration_errors('idle_after'):
        return reclaim_module.IdleOptions(
            options.idle_after,
            # One day of a week: owners of idle servers may be away.
            max(options.end_notice, NOTICE_PART * options.idle_after),
            evictions.time_limit_options(options).actions,
            frozenset(options.idle_spared_projects),
        )


def _idle_reader(
    conf: cfg.ConfigOpts, rules: reclaim_module.IdleOptions
) -> agent_reports.Idle:
    if not rules.after_s:
        return agent_reports.Idle(lambda _: {})
    asked = ledger.build_agent_client(
        conf, f'[fairness_cluster] idle_after = {rules.after_s:g}'
    )
    least_s = reclaim_module.SOONEST * rules.after_s
    return agent_reports.Idle(
        lambda host: asked.call(host, 'get_idle', at_least_s=least_s)
    )
