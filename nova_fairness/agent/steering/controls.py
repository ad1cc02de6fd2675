# SPDX-License-Identifier: Apache-2.0

"""Builds the controls of a node, each for itself."""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import logging
import pathlib

from oslo_config import cfg

from nova_fairness import exception
from nova_fairness.agent.steering import pinning as pinning_module
from nova_fairness.agent.steering import throttling as throttling_module
from nova_fairness.apply import control
from nova_fairness.apply import found_values
from nova_fairness.apply import privileged
from nova_fairness.apply import privileged_network
from nova_fairness.apply.cgroup import control as group_control
from nova_fairness.apply.cgroup import disk
from nova_fairness.apply.cgroup import memory
from nova_fairness.apply.cgroup import pins
from nova_fairness.apply.cgroup import throttle
from nova_fairness.apply.network import control as network
from nova_fairness.apply.network import settings
from nova_fairness.collect import bandwidth as link_speed
from nova_fairness.collect import inventory
from nova_fairness.collect import pressure as pressure_collect
from nova_fairness.decide.controls import cpu as cpu_scale
from nova_fairness.decide.controls import disk as disk_scale
from nova_fairness.decide.controls import memory as memory_scale
from nova_fairness.decide.controls import network as network_scale
from nova_fairness.decide.controls import scale as scale_module
from nova_fairness.model import node as node_model
from nova_fairness.model import pressure as pressure_model
from nova_fairness.model import resources
from nova_fairness.model import sample as sample_model

LOG = logging.getLogger(__name__)

_VERSIONS = {
    1: cpu_scale.CgroupVersion.V1,
    2: cpu_scale.CgroupVersion.V2,
}
_HELPED = {
    resources.ResourceControl.CPU: privileged.door,
    resources.ResourceControl.MEMORY: privileged.door,
    resources.ResourceControl.DISK: privileged.door,
    resources.ResourceControl.NETWORK: privileged_network.door,
}
NEED_PRESSURE = frozenset(
    {resources.ResourceControl.MEMORY, resources.ResourceControl.DISK}
)
"""The controls that it judges."""


class PressureWatch:
    """Reads who waits for memory and disks, and keeps the newest reading."""

    def __init__(self) -> None:
        self._reader = pressure_collect.PressureReader()
        self.newest: pressure_model.PressureSample | None = None

    def read(
        self, sample: sample_model.Sample
    ) -> pressure_model.PressureSample:
        """Read the VMs of a sample."""
        self.newest = None
        self.newest = self._reader.read(sample)
        return self.newest

    def close(self) -> None:
        """Close all descriptors."""
        self._reader.close()


@dataclasses.dataclass(frozen=True)
class Site:
    """Where controls are built.

    :ivar node: what the node has.
    :ivar inventory: knows the VMs that run, once it is started.
    :ivar state_path: where records are kept.
    :ivar pressure: of the node.
    """

    conf: cfg.ConfigOpts
    node: node_model.NodeResources
    inventory: inventory.VmInventory
    state_path: pathlib.Path
    pressure: PressureWatch


@dataclasses.dataclass
class Controls:
    """Controls that this node can steer.

    :ivar throttling: of disks without weights; ``None`` if there is no
        control of disks.
    :ivar pinning: of VCPUs; ``None`` if there is no control of CPUs.

    :ivar built: one control of each kind that exists here.
    :ivar scales: of the same kinds.
    :ivar missing: why there is no control of the other kinds.
    :ivar records: of found values besides those of VMs; locked until closed.
    """

    built: list[control.Control] = dataclasses.field(default_factory=list)
    scales: dict[resources.ResourceControl, scale_module.Scale] = (
        dataclasses.field(default_factory=dict)
    )
    missing: dict[resources.ResourceControl, str] = dataclasses.field(
        default_factory=dict
    )
    records: list[found_values.FoundValues] = dataclasses.field(
        default_factory=list
    )
    throttling: throttling_module.Throttling | None = None
    pinning: pinning_module.Pinning | None = None

    def lift(self) -> tuple[str, ...]:
        """Take back what is in force beside the controls.

        :returns: what went wrong.
        """
        beside = [self.throttling, self.pinning]
        return tuple(text for item in beside if item for text in item.stop())

    def close(self) -> None:
        """Release descriptors and locks."""
        for item in self.built:
            item.close()
        for record in self.records:
            record.close()

    def pressure_if_needed(
        self, pressure: PressureWatch
    ) -> PressureWatch | None:
        """Reader of the pressure, ``None`` if no control needs it."""
        return pressure if NEED_PRESSURE & self.scales.keys() else None

    def record(self, path: pathlib.Path) -> found_values.FoundValues:
        """Open one more record.

        :raises StateError: if another agent has it, or it cannot be opened.
        """
        opened = found_values.FoundValues(path)
        self.records.append(opened)
        if problem := opened.load():
            LOG.error('%s', problem)
        return opened


def build(site: Site) -> Controls:
    """Build the controls of this node; the log names missing ones once.

    :raises StateError: if another agent uses the same records.
    """
    made = Controls()
    for kind, builder in _BUILDERS.items():
        try:
            item, scale = builder(site, made)
        except exception.ControlUnavailable as error:
            made.missing[kind] = str(error)
            LOG.warning(
                '%s is measured and not steered: %s', kind.value, error
            )
            continue
        made.built.append(item)
        made.scales[kind] = scale
    return made


def warm_up(kinds: Sequence[resources.ResourceControl]) -> None:
    """Start the privileged helpers of some controls, so no round has to."""
    for door in dict.fromkeys(_HELPED[kind] for kind in kinds):
        try:
            door.knock()
        except exception.ApplyError as error:
            LOG.error('%s', error)


def prepare(config_files: Sequence[str]) -> None:
    """Choose how the helpers are started; call once, after configuration."""
    privileged.door.prepare(config_files)
    privileged_network.door.prepare(config_files, like=privileged.SECTION)


Built = tuple[control.Control, scale_module.Scale]


def _cpu(site: Site, made: Controls) -> Built:
    item = group_control.CpuShares()
    made.pinning = pinning_module.Pinning(
        pins.VcpuPins(made.record(site.state_path / 'pins.json'))
    )
    scale = cpu_scale.CpuScale(_VERSIONS[item.version], item.can_idle)
    return item, scale


def _memory(site: Site, made: Controls) -> Built:
    options = site.conf.fairness_memory
    item = memory.MemoryProtection(
        made.record(site.state_path / 'groups.json')
    )
    capacity = site.node.capacity[resources.RESOURCES.index('memory')]
    rules = memory_scale.MemoryRules(
        floor_part=options.floor_part, unspared_part=options.unspared_part
    )
    return item, memory_scale.MemoryScale(float(capacity), rules)


def _disk(site: Site, made: Controls) -> Built:
    record = made.record(site.state_path / 'disks.json')
    item = disk.DiskWeight(record, lambda: site.pressure.newest)
    options = site.conf.fairness_disk
    made.throttling = throttling_module.Throttling(
        throttle.DiskThrottle(made.record(site.state_path / 'limits.json')),
        is_on=options.throttle,
    )
    return item, disk_scale.DiskScale(item.file_of)


def _network(site: Site, _made: Controls) -> Built:
    options, node = site.conf.fairness_network, site.conf.fairness_node
    # What is only assumed must not become a limit.
    bandwidth = node.network_bandwidth or link_speed.of_link(
        pathlib.Path('/proc'),
        pathlib.Path('/sys'),
        options.uplink or None,
    )
    item = network.NetworkClasses(
        settings.NetworkSettings(
            layout=settings.SteeringKind(options.layout),
            uplink=options.uplink,
            bandwidth=bandwidth,
            host_rate=options.host_rate,
        ),
        site.inventory.incarnations,
        site.state_path / 'network.json',
    )
    return item, network_scale.NetworkScale(lambda: float(item.capacity))


_BUILDERS: dict[
    resources.ResourceControl, Callable[[Site, Controls], Built]
] = {
    resources.ResourceControl.CPU: _cpu,
    resources.ResourceControl.MEMORY: _memory,
    resources.ResourceControl.DISK: _disk,
    resources.ResourceControl.NETWORK: _network,
}
