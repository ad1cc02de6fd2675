# SPDX-License-Identifier: Apache-2.0

"""Builders of the parts that make and execute migration plans."""

from collections.abc import Callable
from collections.abc import Collection
import threading

from oslo_config import cfg

from nova_fairness import exception
from nova_fairness.cluster import agent_reports
from nova_fairness.cluster import service
from nova_fairness.cluster.assembly import ledger
from nova_fairness.cluster.move_plans import host_power
from nova_fairness.cluster.move_plans import observation
from nova_fairness.cluster.move_plans import plan_controller
from nova_fairness.cluster.move_plans import plan_executor
from nova_fairness.cluster.move_plans import registry
from nova_fairness.cluster.move_plans.goals import empty
from nova_fairness.cluster.openstack import clients
from nova_fairness.cluster.openstack import live_migrations
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.store import store as store_module

_OFF = 'off'


class ClosedHosts:
    """Names of hosts that accept no new servers, collected from several
    sources.
    """

    def __init__(self) -> None:
        self._parts: list[Callable[[], Collection[str]]] = []

    def add(self, part: Callable[[], Collection[str]]) -> None:
        """Add a function that returns names of closed hosts."""
        self._parts.append(part)

    def __call__(self) -> frozenset[str]:
        """Return the names of all closed hosts."""
        return frozenset(name for part in self._parts for name in part())


def plan_options(conf: cfg.ConfigOpts) -> plan_controller.PlanOptions | None:
    """Return the options of migration plans; ``None`` if plans are off.

    :raises ConfigurationError: if options contradict each other.
    """
    options = conf.fairness_plans
    if options.mode == _OFF:
        return None
    goals = registry.configured_goals(options)
    _power_options(options)
    return plan_controller.PlanOptions(
        plan_controller.Mode(options.mode),
        goals,
        empty.EmptyHostGoal.configured(options),
        options.hold,
        options.expiry,
        options.rest,
        conf.fairness_cluster.history,
    )


def _power_options(
    options: cfg.ConfigOpts.GroupAttr,
) -> host_power.HostPowerOptions:
    command = tuple(options.power_command)
    if command and not command[0].startswith('/'):
        raise exception.ConfigurationError(
            '[fairness_plans] power_command must begin with the path of a'
            f' program, got {command[0]!r}'
        )
    return host_power.HostPowerOptions(
        options.disable_empty,
        options.hold,
        options.spare,
        command,
    )


def build_plan_controller(
    conf: cfg.ConfigOpts,
    store: store_module.Store,
    made: service.Service,
    stopped: threading.Event,
) -> plan_controller.PlanController | None:
    """Build the controller of migration plans; ``None`` if plans are off.

    :raises ConfigurationError: see :func:`plan_options`.
    """
    chosen, options = plan_options(conf), conf.fairness_plans
    if chosen is None:
        return None
    # Plans work beside the queue, so they have their own caches of Nova.

    def clock() -> float:
        return made.clocks.now()

    queue = conf.fairness_cluster
    api = clients.connect(queue.cloud, queue.region_name).nova
    nova, mobility = nova_module.Nova(api), live_migrations.LiveMigrations(api)
    limits = plan_executor.ExecutionLimits(
        options.at_once, options.at_once_per_host, options.longest_move
    )
    return plan_controller.PlanController(
        store,
        made,
        nova,
        mobility,
        plan_executor.PlanExecutor(store.plans, nova, mobility, limits, clock),
        host_power.HostPower(nova, _power_options(options), clock),
        chosen,
        clock,
        stopped,
        queue.hosts_interval,
        _shortfall_reader(conf, chosen),
        _shared_hosts_reader(conf, store),
    )


def _shared_hosts_reader(
    conf: cfg.ConfigOpts, store: store_module.Store
) -> observation.Shared:
    """Build the function that returns the hosts between batch system and
    cloud; none without a batch system.
    """
    if not conf.fairness_partition.batch:
        return tuple
    return lambda: store.nodes.read_hosts()[0].values()


def _shortfall_reader(
    conf: cfg.ConfigOpts, chosen: plan_controller.PlanOptions
) -> agent_reports.ServerShortfall | None:
    """Build the reader of CPU shortfalls; ``None`` if no configured goal
    queries agents.
    """
    asking = [each.name.value for each in chosen.goals if each.asks_agents]
    if not asking:
        return None
    option = f'[fairness_plans] goals = {",".join(asking)}'
    asked = ledger.build_agent_client(conf, option)
    return agent_reports.ServerShortfall(
        lambda host: asked.call(host, 'get_lacking')
    )
