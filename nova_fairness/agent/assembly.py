# SPDX-License-Identifier: Apache-2.0

"""Builds the rooms of a node's agent from its configuration."""

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
    """The parts of an agent, which it runs and must release.

    :ivar memory: where the policies' memory is saved.
    :ivar regime: what is in force; asked before each round.
    :ivar boot_id: of this run.
    :ivar cloud: that the node is a part of.
    :ivar best_effort: knows which VMs get only what is left over.
    :ivar notices: has guests told that they leave; ``None`` if they are not.
    """

    node_cycle: cycle.Cycle
    rooms: cycle.Rooms
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
        """All that outlives the agent."""
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
        """Server that answers calls.

        :param newest_round: the last finished one, if any.
        :param history: of the weights of this node's VMs.
        :param previewer: that sees the rounds.
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
        """Start the privileged helpers, so that no round has to."""
        controls_module.warm_up(
            [
                item.kind
                for item in self.controls.built
                if item.availability()[0]
            ]
        )


def node_resources(conf: cfg.ConfigOpts) -> node_model.NodeResources:
    """Read what the node has.

    :raises ConfigurationError: if an option cannot be used.
    :raises CollectError: if the node cannot be read.
    """
    group = conf.fairness_node
    return node_collect.read_node_resources(
        host=conf.fairness.host,
        cpus=settings_module.cpus(group.cpus),
        speed_factor=group.cpu_speed_factor,
        disk_read_bandwidth=group.disk_read_bandwidth,
        disk_write_bandwidth=group.disk_write_bandwidth,
        network_bandwidth=group.network_bandwidth,
        network_interface=conf.fairness_network.uplink or None,
        reserved_memory_bytes=group.reserved_memory,
    )


def load_plugins(settings: settings_module.Settings) -> cycle.Plugins:
    """Load what is configured.

    :raises PluginError: if a name is unknown or cannot be loaded.
    """
    return cycle.Plugins(
        metric=plugins.load_metric(settings.metric),
        policy=plugins.load_policy(settings.policy),
    )


def state_directory(conf: cfg.ConfigOpts) -> pathlib.Path:
    """Make sure that the state can be kept.

    :raises StateError: if the directory cannot be made.
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
    """Open the record of the values that controls were found with.

    :returns: the record, and whether it is whole: one that could not be
        understood was moved aside, which the log says.
    :raises StateError: if another agent has it, or it cannot be opened.
    """
    found = found_values.FoundValues(state_directory(conf) / 'found.json')
    if problem := found.load():
        LOG.error('%s', problem)
        return found, False
    return found, True


def build(
    conf: cfg.ConfigOpts, cloud: nova_facts.CloudFacts = _ALONE
) -> AgentParts:
    """Build everything; nothing is started.

    :param cloud: that the node is a part of, if any.
    :raises FairnessError: if an option, a plugin or the host cannot be used.
    """
    settings = settings_module.from_conf(conf)
    loaded = load_plugins(settings)
    owners = settings_module.owners(conf.fairness.owners_file)
    site = _site(conf, owners, cloud)
    boot_id, path = str(uuid.uuid4()), site.state_path
    memory, orders = _memories(path)
    found, _ = open_record(conf)
    peering = peering_module.connect(conf, boot_id, path)
    cloud, spent = _asked(conf, cloud, peering, path)
    best_effort = best_effort_module.connect(conf, peering, path)
    controls = controls_module.build(site)
    preferences = _preferences(conf, path)
    guard = guard_module.Guard(settings.metric_deadline_s)
    rooms = cycle.Rooms(
        inventory=site.inventory,
        counters=counters.CounterReader(),
        measurement=_measurement(site, peering, guard, boot_id, cloud, spent),
        decision=_decision(site, controls, guard, memory),
        applier=applier_module.Applier(controls.built, found),
        guard=guard,
        node=site.node,
        pressure=controls.pressure_if_needed(site.pressure),
        preferences=preferences.stated,
        missing=controls.missing,
        **_beside(site, controls, best_effort),
    )
    return AgentParts(
        node_cycle=cycle.Cycle(rooms, settings, loaded),
        rooms=rooms,
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


def _asked(
    conf: cfg.ConfigOpts,
    cloud: nova_facts.CloudFacts,
    peering: peering_module.Peering,
    path: pathlib.Path,
) -> tuple[nova_facts.CloudFacts, measurement.Rates]:
    """The cloud with what the cluster service is asked for, and rates."""
    cloud = cluster_shares.connect(conf, cloud, peering, path)
    return spending_rates.connect(conf, cloud, peering, path)


def _preferences(
    conf: cfg.ConfigOpts, path: pathlib.Path
) -> preferences_module.Preferences:
    return preferences_module.Preferences(
        path / 'preferences.json', conf.fairness.preferences_file
    )


def _memories(
    path: pathlib.Path,
) -> tuple[state_file.PolicyMemory, active_settings.SettingOrders]:
    """State that outlives a restart of the agent."""
    return (
        state_file.PolicyMemory(path / 'policies.json'),
        active_settings.SettingOrders(path / 'paused.json'),
    )


def _beside(
    site: controls_module.Site,
    controls: controls_module.Controls,
    best_effort: best_effort_module.BestEffort,
) -> dict[str, Any]:
    """Rooms beside the controls: what watches VMs, and limits and pins."""
    options = site.conf.fairness
    cpu = controls.scales.get(resources.ResourceControl.CPU)
    return {
        'best_effort': best_effort.of,
        'throttling': controls.throttling,
        'pinning': controls.pinning,
        'proof': weight_check.Proof(site.node, cpu),
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
    site: controls_module.Site,
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
    site: controls_module.Site,
    controls: controls_module.Controls,
    guard: guard_module.Guard,
    memory: state_file.PolicyMemory,
) -> decision.Decision:
    return decision.Decision(site.node, guard, controls.scales, memory.load())


def _site(
    conf: cfg.ConfigOpts,
    owners: Mapping[str, tuple[str, str]],
    cloud: nova_facts.CloudFacts = _ALONE,
) -> controls_module.Site:
    return controls_module.Site(
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
    """The result of a restoration.

    :ivar outcomes: of each recorded value.
    :ivar problems: what else went wrong.
    :ivar is_whole: whether the record could be understood.
    """

    outcomes: tuple[control.ApplyResult, ...]
    problems: tuple[str, ...]
    is_whole: bool

    @property
    def errors(self) -> list[str]:
        """All that went wrong."""
        failed = (item.error for item in self.outcomes if item.error)
        return [*failed, *self.problems]


def restore(conf: cfg.ConfigOpts) -> Restoration:
    """Restore every control to the value it was found with, without an agent.

    :raises StateError: if an agent runs.
    """
    found, is_whole = open_record(conf)
    controls = controls_module.build(_site(conf, {}))
    try:
        applier = applier_module.Applier(controls.built, found)
        outcomes, problems = applier.restore(), applier.problems()
        problems = (*problems, *controls.lift())
        return Restoration(outcomes, problems, is_whole)
    finally:
        controls.close()
        found.close()
