# SPDX-License-Identifier: Apache-2.0

"""Builders of the planner and of the terms of admission."""

from collections.abc import Mapping
from collections.abc import Sequence
import functools
import types

from oslo_config import cfg

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.cluster import quarantine
from nova_fairness.cluster.admission import intake
from nova_fairness.cluster.admission import plugin_fallbacks
from nova_fairness.cluster.admission import scheduler
from nova_fairness.cluster.api import dry_run
from nova_fairness.cluster.assembly import evictions
from nova_fairness.cluster.eviction import preemption
from nova_fairness.cluster.messages import parser
from nova_fairness.model import eviction
from nova_fairness.planners import weighers
from nova_fairness.planners.fairqueue import order as order_module
from nova_fairness.planners.fairqueue import planner
from nova_fairness.planners.preemption import victims as victims_module
from nova_fairness.planners.preemption import watermark

_FALLBACK_ORDERS = ('fair_tree', 'fifo')
"""Orders that replace a failing order; the last one uses no shares."""

_NO_PARAMETERS: Mapping[str, float] = types.MappingProxyType({})


def _load_order(
    conf: cfg.ConfigOpts, set_aside: quarantine.Quarantine
) -> order_module.Order:
    """Load the configured order, and the orders that replace it when it fails.

    :raises ConfigurationError: if the order is unknown, or has no such
        parameters.
    """
    options = conf.fairness_cluster
    try:
        wanted = plugins.load_order(options.order, options.order_parameters)
        found = {options.order: wanted}
        for name in _FALLBACK_ORDERS:
            if name not in found:
                found[name] = plugins.load_order(name)
    except exception.PluginError as error:
        raise exception.ConfigurationError(
            f'[fairness_cluster] order, order_parameters: {error}'
        ) from error
    return plugin_fallbacks.OrderFallbacks(found, set_aside)


def build_planner(
    conf: cfg.ConfigOpts, set_aside: quarantine.Quarantine
) -> scheduler.Planner:
    """Build the planner of the queue, with preemption if that is configured.

    :param set_aside: quarantine for failing orders and failing choices of
        victims.
    :raises ConfigurationError: if a plugin or its parameters are invalid.
    """
    queued = _queue_plan(conf, _load_order(conf, set_aside))
    if not conf.fairness_cluster.room_per_hour:
        return queued
    victims = plugin_fallbacks.VictimFallbacks(
        _load_victim_policies(conf), set_aside
    )
    return _with_preemption(conf, queued, victims)


def build_trial_planner(
    conf: cfg.ConfigOpts,
    set_aside: quarantine.Quarantine,
    order: str | None = None,
    parameters: Mapping[str, float] = _NO_PARAMETERS,
) -> dry_run.TrialPlanner:
    """Build a planner for one dry run, in which a failing plugin ends the run.

    It shares no object with the planner of :func:`build_planner`, and
    quarantines nothing.

    :param set_aside: quarantine, which contains the plugins that fail now.
    :param order: name of the order; ``None`` for the order in force.
    :param parameters: numbers of that order, by name.
    :raises PluginError: if the order is unknown, or has no such parameters.
    """
    if order is None:
        order = _first_working_order(conf, set_aside)
        if order == conf.fairness_cluster.order:
            parameters = conf.fairness_cluster.order_parameters
    made = plugins.load_order(order, parameters)
    queued = _queue_plan(conf, made)
    if not conf.fairness_cluster.room_per_hour:
        return dry_run.TrialPlanner(queued, made, order)
    victims = _load_victim_policies(conf)
    works = _first_working_plugin('victims', list(victims), set_aside)
    queued = _with_preemption(conf, queued, victims[works])
    return dry_run.TrialPlanner(queued, made, order)


def order_in_force(
    conf: cfg.ConfigOpts, set_aside: quarantine.Quarantine
) -> tuple[str, str]:
    """Return the name and the description of the order that is in force.

    :param set_aside: quarantine, which contains the orders that fail now.
    """
    name = _first_working_order(conf, set_aside)
    try:
        return name, plugins.load_order(name).description
    except exception.PluginError:
        # The plugin existed when the service started.
        return name, ''


def _first_working_order(
    conf: cfg.ConfigOpts, set_aside: quarantine.Quarantine
) -> str:
    orders = [conf.fairness_cluster.order, *_FALLBACK_ORDERS]
    return _first_working_plugin('order', orders, set_aside)


def _first_working_plugin(
    kind: str, names: Sequence[str], set_aside: quarantine.Quarantine
) -> str:
    """Return the first plugin that is not in quarantine; the last one if
    all are.
    """
    found = (
        name
        for name in names
        if not set_aside.holds(quarantine.InputKind.PLUGIN, f'{kind} {name}')
    )
    return next(found, names[-1])


def _load_victim_policies(
    conf: cfg.ConfigOpts,
) -> dict[str, victims_module.Victims]:
    """Load the configured choice of victims, and the choice that replaces it
    when it fails.

    :raises ConfigurationError: if the plugin is invalid.
    """
    wanted = conf.fairness_cluster.room_victims
    try:
        return {
            name: plugins.load_victims(name)
            for name in dict.fromkeys((wanted, 'least'))
        }
    except exception.PluginError as error:
        raise exception.ConfigurationError(
            f'[fairness_cluster] room_victims: {error}'
        ) from error


def _with_preemption(
    conf: cfg.ConfigOpts,
    queued: scheduler.Planner,
    victims: victims_module.Victims,
) -> scheduler.Planner:
    """Return a planner that adds preemption to a planner of the queue."""
    options = conf.fairness_cluster
    queued = functools.partial(
        watermark.plan,
        queue=queued,
        upper=evictions.watermark_bounds(options).upper,
    )
    return preemption.Planner(
        queued, victims, evictions.preemption_rules(options)
    )


def _queue_plan(
    conf: cfg.ConfigOpts, order: order_module.Order
) -> scheduler.Planner:
    options = conf.fairness_cluster
    return functools.partial(
        planner.plan,
        order=order,
        backfill=planner.Backfill(
            options.backfill_depth, options.backfill_patience
        ),
        rule=weighers.RULES[options.placement],
    )


def admission_options(conf: cfg.ConfigOpts) -> intake.AdmissionOptions:
    """Return the terms of admission: the longest wait, and the marks of
    preemptible servers.
    """
    options = conf.fairness_cluster
    return intake.AdmissionOptions(
        options.longest_wait or None,
        parser.PreemptibleRules(
            options.preemptible_marks,
            frozenset(options.preemptible_projects),
            frozenset(
                map(eviction.EvictionAction, options.room_owner_actions)
            ),
        ),
    )
