# SPDX-License-Identifier: Apache-2.0

"""Builders of the parts that evict servers, from options."""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib

from oslo_config import cfg

from nova_fairness import exception
from nova_fairness.cluster.eviction import at_risk
from nova_fairness.cluster.eviction import cycle_tasks
from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.eviction import idle_reclaim
from nova_fairness.cluster.eviction import notice_channels
from nova_fairness.cluster.eviction import preemption as preemption_module
from nova_fairness.cluster.eviction import retirement
from nova_fairness.cluster.eviction import time_limits
from nova_fairness.cluster.eviction import watermark as watermark_module
from nova_fairness.cluster.openstack import clients
from nova_fairness.cluster.openstack import glance
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.openstack import placement
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import cluster
from nova_fairness.model import eviction
from nova_fairness.planners.preemption import planner as preemption
from nova_fairness.planners.preemption import risk
from nova_fairness.planners.preemption import watermark

_ALL = 10**9
"""Number of servers that stands for all servers: all of them may retire."""


@contextlib.contextmanager
def configuration_errors(names: str) -> Iterator[None]:
    """Convert a ValueError into a ConfigurationError that names the options.

    Range checks of options do not reject NaN.
    """
    try:
        yield
    except ValueError as error:
        raise exception.ConfigurationError(
            f'[fairness_cluster] {names}: {error}'
        ) from error


def eviction_timeouts(
    options: cfg.ConfigOpts.GroupAttr,
) -> evictor.EvictionTimeouts:
    """Return the notice period and the patience of evictions.

    :raises ConfigurationError: if they are out of range.
    """
    with configuration_errors('end_notice, end_patience'):
        return evictor.EvictionTimeouts(
            options.end_notice, options.end_patience
        )


def build_evictor(
    how_long: evictor.EvictionTimeouts,
    store: store_module.Store,
    nova: nova_module.Nova,
    room: placement.Placement,
    cloud: clients.CloudClients,
    clock: Callable[[], float],
) -> evictor.Evictor:
    """Build the evictor of a cloud.

    :param clock: returns the present time, seconds of the epoch.
    """
    return evictor.Evictor(
        store.leaves,
        nova,
        room,
        glance.Images(cloud.glance, store.pseudonyms),
        clock,
        how_long,
        notice_channels.channels_before_steps(nova),
    )


def time_limit_options(
    options: cfg.ConfigOpts.GroupAttr,
) -> time_limits.TimeLimitOptions:
    """Return the options of evictions at a time limit.

    :raises ConfigurationError: if they are not valid.
    """
    actions = tuple(map(eviction.EvictionAction, options.end_actions))
    if not actions:
        raise exception.ConfigurationError(
            '[fairness_cluster] end_actions must name at least one'
        )
    return time_limits.TimeLimitOptions(actions, options.longest_extension)


def preemption_options(
    options: cfg.ConfigOpts.GroupAttr,
) -> preemption_module.PreemptionOptions:
    """Return the options of evictions that make room for a request.

    :raises ConfigurationError: if they are not valid.
    """
    actions = tuple(map(eviction.EvictionAction, options.room_actions))
    if not any(each.frees for each in actions):
        raise exception.ConfigurationError(
            '[fairness_cluster] room_actions must name shelve,'
            ' snapshot_delete or delete: other actions free no room'
        )
    count = len(actions) + bool(options.room_owner_actions) + 1
    lasts_s = options.end_notice + count * options.end_patience
    return preemption_module.PreemptionOptions(
        actions,
        lasts_s,
        options.end_patience,
        options.room_in_vain,
        options.end_notice,
        options.room_per_hour or None,
    )


def at_risk_options(
    options: cfg.ConfigOpts.GroupAttr,
) -> at_risk.AtRiskOptions:
    """Return the options of warnings for servers that may be evicted next."""
    most = options.room_at_risk if options.room_per_hour else 0
    return at_risk.AtRiskOptions(most)


def preemption_rules(
    options: cfg.ConfigOpts.GroupAttr,
) -> preemption.PreemptionRules:
    """Return the rules that decide which servers may be evicted for a request.

    :raises ConfigurationError: if a number is out of range.
    """
    with configuration_errors('room_*'):
        return preemption.PreemptionRules(
            patience_s=options.room_patience,
            least_run_s=options.room_least_run,
            per_hour=options.room_per_hour,
            by_shares=options.room_margin != 0,
            margin=options.room_margin or preemption.USUAL.margin,
        )


def watermark_bounds(
    options: cfg.ConfigOpts.GroupAttr,
) -> watermark.WatermarkBounds:
    """Return the bounds of the part of the cloud that remains free.

    :raises ConfigurationError: if they are out of range.
    """
    with configuration_errors('room_kept_free, room_freed'):
        return watermark.WatermarkBounds(
            options.room_kept_free, options.room_freed
        )


def cycle_tasks_builder(
    options: cfg.ConfigOpts.GroupAttr,
    idling: Callable[[evictor.Evictor], idle_reclaim.IdleReclaim],
) -> Callable[
    [store_module.Store, nova_module.Nova, evictor.Evictor],
    cycle_tasks.CycleTasks,
]:
    """Return a function that builds the tasks that run beside requests in each
    cycle.

    :param idling: builds the eviction of idle servers from an evictor.
    :raises ConfigurationError: if options are not valid.
    """
    warned, actions, lower = (
        at_risk_options(options),
        preemption_options(options).actions,
        0.0,
    )
    retires = options.room_per_hour > 0 and options.room_retire
    if options.room_per_hour:
        lower = watermark_bounds(options).lower
    freed = watermark_module.WatermarkOptions(
        lower, actions, preemption_rules(options)
    )
    retired, next_ones = (
        retirement.RetirementOptions(retires, actions),
        next_victims_finder(options),
    )

    def made(
        store: store_module.Store,
        nova: nova_module.Nova,
        to: evictor.Evictor,
    ) -> cycle_tasks.CycleTasks:
        return cycle_tasks.CycleTasks(
            idling(to),
            at_risk.RiskWarnings(
                store, notice_channels.channels_before_steps(nova), warned
            ),
            next_ones,
            retirement.Retirement(nova, to, retired),
            watermark_module.Watermark(to, freed),
        )

    return made


def next_victims_finder(
    options: cfg.ConfigOpts.GroupAttr,
) -> cycle_tasks.Following:
    """Return a function that finds the servers that are the next to be
    evicted.

    :raises ConfigurationError: see :func:`preemption_rules`.
    """
    rules, most = preemption_rules(options), at_risk_options(options).most
    if options.room_per_hour and options.room_retire:
        most = _ALL

    def found(
        snapshot: cluster.ClusterSnapshot, plan: cluster.Plan, now: float
    ) -> list[risk.NextVictim]:
        return risk.next_victims(snapshot, plan, now, rules, most)

    return found
