# SPDX-License-Identifier: Apache-2.0

"""Creates all objects of a node's agent from its configuration."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import logging
import pathlib
import time
from typing import Any
import uuid

from oslo_config import cfg

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.agent import operations
from nova_fairness.agent import settings as settings_module
from nova_fairness.agent.comms import guest_notices
from nova_fairness.agent.comms import peering as peering_module
from nova_fairness.agent.explain import history as weight_history
from nova_fairness.agent.inputs import active_settings
from nova_fairness.agent.inputs import best_effort as best_effort_module
from nova_fairness.agent.inputs import cluster_shares
from nova_fairness.agent.inputs import nova_facts
from nova_fairness.agent.inputs import preferences as preferences_module
from nova_fairness.agent.inputs import spending_rates
from nova_fairness.agent.round import cycle
from nova_fairness.agent.round import decision
from nova_fairness.agent.round import measurement
from nova_fairness.agent.round import preview
from nova_fairness.agent.steering import controls as controls_module
from nova_fairness.agent.steering import weight_check
from nova_fairness.agent.watch import cpu_shortfall
from nova_fairness.agent.watch import idle
from nova_fairness.apply import applier as applier_module
from nova_fairness.apply import control
from nova_fairness.apply import found_values
from nova_fairness.collect import counters
from nova_fairness.collect import inventory
from nova_fairness.collect import node as node_collect
from nova_fairness.measure import idleness
from nova_fairness.model import node as node_model
from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from nova_fairness.runtime import guard as guard_module
from nova_fairness.runtime import state_file

LOG = logging.getLogger(__name__)
_ALONE = nova_facts.NoCloud()


@dataclasses.dataclass(frozen=True)
class AgentParts:
    """All objects of one agent process, to run and to close at the end.

    :ivar memory: the file that stores the memory of the policies.
    :ivar regime: the settings in force; it is updated before each round.
    :ivar boot_id: identifier of this run of the agent.
    :ivar cloud: facts from the cloud that the node belongs to.
    :ivar best_effort: reads which VMs get only leftover resources.
    :ivar notices: sends eviction notices to guests; ``None`` if that is off.
    """

    node_cycle: cycle.Cycle
    cycle_parts: cycle.NodeCycleParts
    memory: state_file.PolicyMemory
    found: found_values.FoundValues
    controls: controls_module.Controls
    pressure: controls_module.PressureWatch
    peering: peering_module.Peering
    regime: active_settings.Regime
    orders: active_settings.SettingOrders
    preferences: preferences_module.Preferences
    boot_id: str
    cloud: nova_facts.CloudFacts
    best_effort: best_effort_module.BestEffort
    notices: guest_notices.Notices | None

    @property
    def state_files(
        self,
    ) -> tuple[state_file.StateFile | found_values.FoundValues, ...]:
        """All files that keep state over a restart of the agent."""
        return (
            self.found,
            self.memory,
            self.orders.state_file,
            self.preferences.state_file,
            *self.peering.state_files,
        )

    def operations(
        self,
        newest_round: Callable[[], round_model.Round | None],
        history: weight_history.WeightHistory,
        previewer: preview.Previewer,
    ) -> operations.AgentOperations:
        """Return the object that answers calls to the agent.

        :param newest_round: returns the last finished round, ``None`` before
            the first.
        :param history: weights of this node's VMs in the last hour.
        :param previewer: computes previews from the rounds that it was given.
        """
        return operations.AgentOperations(
            operations.Sources(
                boot_id=self.boot_id,
                peering=self.peering,
                regime=self.regime,
                orders=self.orders,
                preferences=self.preferences,
                newest_round=newest_round,
                clock=time.monotonic,
                history=history,
                previewer=previewer,
            )
        )

    def warm_up(self) -> None:
        """Start the privileged helper processes before the first round."""
        controls_module.start_helpers(
            [
                item.kind
                for item in self.controls.built
                if item.availability()[0]
            ]
        )


def node_resources(conf: cfg.ConfigOpts) -> node_model.NodeResources:
    """Read the resources that the node has.

    :raises ConfigurationError: if an option has an unusable value.
    :raises CollectError: if the node cannot be read.
    """
    group = conf.fairness_node
    return node_collect.read_node_resources(
        host=conf.fairness.host,
        cpus=settings_module.parse_cpus(group.cpus),
        speed_factor=group.cpu_speed_factor,
        disk_read_bandwidth=group.disk_read_bandwidth,
        disk_write_bandwidth=group.disk_write_bandwidth,
        network_bandwidth=group.network_bandwidth,
        network_interface=conf.fairness_network.uplink or None,
        reserved_memory_bytes=group.reserved_memory,
    )


def load_plugins(settings: settings_module.Settings) -> cycle.Plugins:
    """Load the configured metric and policy.

    :raises PluginError: if a name is unknown or cannot be loaded.
    """
    return cycle.Plugins(
        metric=plugins.load_metric(settings.metric),
        policy=plugins.load_policy(settings.policy),
    )


def state_directory(conf: cfg.ConfigOpts) -> pathlib.Path:
    """Create the directory for the agent's state, and return its path.

    :raises StateError: if the directory cannot be created.
    """
    path = pathlib.Path(conf.fairness.state_path)
    try:
        path.mkdir(mode=0o750, parents=True, exist_ok=True)
    except OSError as error:
        raise exception.StateError(
            f'[fairness] state_path = {path}: {error.strerror}; '
            'expected a directory that can be written'
        ) from error
    return path


def open_record(
    conf: cfg.ConfigOpts,
) -> tuple[found_values.FoundValues, bool]:
    """Open the file with the values that controls had before the agent.

    :returns: the file, and whether its content was readable. An unreadable
        file is renamed, and the log says so.
    :raises StateError: if another agent uses the file, or it cannot be opened.
    """
    found = found_values.FoundValues(state_directory(conf) / 'found.json')
    if problem := found.load():
        LOG.error('%s', problem)
        return found, False
    return found, True


def build(
    conf: cfg.ConfigOpts, cloud: nova_facts.CloudFacts = _ALONE
) -> AgentParts:
    """Create all parts of the agent without starting any.

    :param cloud: facts from the cloud that the node belongs to.
    :raises FairnessError: if an option, a plugin or the host cannot be used.
    """
    settings = settings_module.from_conf(conf)
    loaded = load_plugins(settings)
    owners = settings_module.read_owners(conf.fairness.owners_file)
    site = _site(conf, owners, cloud)
    boot_id, path = str(uuid.uuid4()), site.state_path
    memory, orders = _saved_states(path)
    found, _ = open_record(conf)
    peering = peering_module.connect(conf, boot_id, path)
    cloud, spent = _with_cluster_shares(conf, cloud, peering, path)
    best_effort = best_effort_module.connect(conf, peering, path)
    controls = controls_module.build_controls(site)
    preferences = _preferences(conf, path)
    guard = guard_module.Guard(settings.metric_deadline_s)
    cycle_parts = cycle.NodeCycleParts(
        inventory=site.inventory,
        counters=counters.CounterReader(),
        measurement=_measurement(site, peering, guard, boot_id, cloud, spent),
        decision=_decision(site, controls, guard, memory),
        applier=applier_module.Applier(controls.built, found),
        guard=guard,
        node=site.node,
        pressure=controls.pressure_if_needed(site.pressure),
        preferences=preferences.current,
        missing=controls.missing,
        **_optional_parts(site, controls, best_effort),
    )
    return AgentParts(
        node_cycle=cycle.Cycle(cycle_parts, settings, loaded),
        cycle_parts=cycle_parts,
        memory=memory,
        found=found,
        controls=controls,
        pressure=site.pressure,
        peering=peering,
        regime=_regime(settings, orders, peering),
        orders=orders,
        preferences=preferences,
        boot_id=boot_id,
        cloud=cloud,
        best_effort=best_effort,
        notices=guest_notices.connect(conf, peering, path),
    )


def _with_cluster_shares(
    conf: cfg.ConfigOpts,
    cloud: nova_facts.CloudFacts,
    peering: peering_module.Peering,
    path: pathlib.Path,
) -> tuple[nova_facts.CloudFacts, measurement.Rates]:
    """Add the shares and spending rates of the cluster service to a cloud."""
    cloud = cluster_shares.connect(conf, cloud, peering, path)
    return spending_rates.connect(conf, cloud, peering, path)


def _preferences(
    conf: cfg.ConfigOpts, path: pathlib.Path
) -> preferences_module.Preferences:
    return preferences_module.Preferences(
        path / 'preferences.json', conf.fairness.preferences_file
    )


def _saved_states(
    path: pathlib.Path,
) -> tuple[state_file.PolicyMemory, active_settings.SettingOrders]:
    """Open the state files of policies and of the pause."""
    return (
        state_file.PolicyMemory(path / 'policies.json'),
        active_settings.SettingOrders(path / 'paused.json'),
    )


def _optional_parts(
    site: controls_module.ControlContext,
    controls: controls_module.Controls,
    best_effort: best_effort_module.BestEffort,
) -> dict[str, Any]:
    """Return the optional parts of a cycle: throttles, pins and watchers."""
    options = site.conf.fairness
    cpu = controls.scales.get(resources.ResourceControl.CPU)
    return {
        'best_effort': best_effort.subset_of,
        'throttling': controls.throttling,
        'pinning': controls.pinning,
        'proof': weight_check.WeightCheck(site.node, cpu),
        'idling': idle.IdleMemory(
            state_file.StateFile(site.state_path / 'idle.json', durable=False),
            idleness.QuietLimits(options.idle_cpus, options.idle_rate),
            site.node.speed_factor,
        ),
        'lacking': cpu_shortfall.CpuShortfall(site.node.speed_factor),
    }


def _regime(
    settings: settings_module.Settings,
    orders: active_settings.SettingOrders,
    peering: peering_module.Peering,
) -> active_settings.Regime:
    newest = peering.newest
    return active_settings.Regime(settings, orders, newest, load_plugins)


def _measurement(
    site: controls_module.ControlContext,
    peering: peering_module.Peering,
    guard: guard_module.Guard,
    boot_id: str,
    cloud: nova_facts.CloudFacts,
    spent: measurement.Rates,
) -> measurement.Measurement:
    return measurement.Measurement(
        site.node,
        peering.exchange,
        guard,
        boot_id,
        time.monotonic,
        cloud.weights,
        spent,
    )


def _decision(
    site: controls_module.ControlContext,
    controls: controls_module.Controls,
    guard: guard_module.Guard,
    memory: state_file.PolicyMemory,
) -> decision.Decision:
    return decision.Decision(site.node, guard, controls.scales, memory.load())


def _site(
    conf: cfg.ConfigOpts,
    owners: Mapping[str, tuple[str, str]],
    cloud: nova_facts.CloudFacts = _ALONE,
) -> controls_module.ControlContext:
    return controls_module.ControlContext(
        conf=conf,
        node=node_resources(conf),
        inventory=inventory.VmInventory(
            conf.fairness.connection_uri,
            conf.fairness.reconcile_interval,
            owners=owners,
            describe=cloud.describe,
        ),
        state_path=state_directory(conf),
        pressure=controls_module.PressureWatch(),
    )


@dataclasses.dataclass(frozen=True)
class Restoration:
    """The result of a restoration without an agent.

    :ivar outcomes: one result for each recorded value.
    :ivar problems: messages of all other errors.
    :ivar is_whole: whether the record of found values was readable.
    """

    outcomes: tuple[control.ApplyResult, ...]
    problems: tuple[str, ...]
    is_whole: bool

    @property
    def errors(self) -> list[str]:
        """The messages of all errors."""
        failed = (item.error for item in self.outcomes if item.error)
        return [*failed, *self.problems]


def restore(conf: cfg.ConfigOpts) -> Restoration:
    """Restore every control to the value it had before the agent started.

    :raises StateError: if an agent is running.
    """
    found, is_whole = open_record(conf)
    controls = controls_module.build_controls(_site(conf, {}))
    try:
        applier = applier_module.Applier(controls.built, found)
        outcomes, problems = applier.restore(), applier.problems()
        problems = (*problems, *controls.restore())
        return Restoration(outcomes, problems, is_whole)
    finally:
        controls.close()
        found.close()
