# SPDX-License-Identifier: Apache-2.0

"""Creates the controls of a node, each independently of the others."""

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
_HELPERS = {
    resources.ResourceControl.CPU: privileged.client,
    resources.ResourceControl.MEMORY: privileged.client,
    resources.ResourceControl.DISK: privileged.client,
    resources.ResourceControl.NETWORK: privileged_network.client,
}
NEED_PRESSURE = frozenset(
    {resources.ResourceControl.MEMORY, resources.ResourceControl.DISK}
)
"""The controls that depend on memory and disk pressure."""


class PressureWatch:
    """Reads which VMs wait for memory and disks; stores the newest reading."""

    def __init__(self) -> None:
        self._reader = pressure_collect.PressureReader()
        self.newest: pressure_model.PressureSample | None = None

    def read(
        self, sample: sample_model.Sample
    ) -> pressure_model.PressureSample:
        """Read the pressure of the VMs of a sample."""
        self.newest = None
        self.newest = self._reader.read(sample)
        return self.newest

    def close(self) -> None:
        """Close all file descriptors."""
        self._reader.close()


@dataclasses.dataclass(frozen=True)
class ControlContext:
    """Configuration and node for which controls are created.

    :ivar node: resources of the node.
    :ivar inventory: lists the running VMs, once it is started.
    :ivar state_path: directory of the state files.
    :ivar pressure: reads memory and disk pressure.
    """

    conf: cfg.ConfigOpts
    node: node_model.NodeResources
    inventory: inventory.VmInventory
    state_path: pathlib.Path
    pressure: PressureWatch


@dataclasses.dataclass
class Controls:
    """The controls that this node supports.

    :ivar throttling: of disks without weights; ``None`` without a disk
        control.
    :ivar pinning: of vCPUs; ``None`` without a CPU control.
    :ivar built: one control of each supported kind.
    :ivar scales: conversions to kernel units, of the same kinds.
    :ivar missing: cause why a control of another kind is missing.
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

    def restore(self) -> tuple[str, ...]:
        """Remove all throttles and pins.

        :returns: error messages.
        """
        beside = [self.throttling, self.pinning]
        return tuple(text for item in beside if item for text in item.stop())

    def close(self) -> None:
        """Close file descriptors and release locks."""
        for item in self.built:
            item.close()
        for record in self.records:
            record.close()

    def pressure_if_needed(
        self, pressure: PressureWatch
    ) -> PressureWatch | None:
        """Return the reader of the pressure; ``None`` if no control
        needs it.
        """
        return pressure if NEED_PRESSURE & self.scales.keys() else None

    def open_record(self, path: pathlib.Path) -> found_values.FoundValues:
        """Open another file of found values.

        :raises StateError: if another agent uses it, or it cannot be opened.
        """
        opened = found_values.FoundValues(path)
        self.records.append(opened)
        if problem := opened.load():
            LOG.error('%s', problem)
        return opened


def build_controls(context: ControlContext) -> Controls:
    """Create the controls of this node; log each missing one once.

    :raises StateError: if another agent uses the same state files.
    """
    controls = Controls()
    for kind, builder in _BUILDERS.items():
        try:
            item, scale = builder(context, controls)
        except exception.ControlUnavailable as error:
            controls.missing[kind] = str(error)
            LOG.warning(
                '%s is measured and not steered: %s', kind.value, error
            )
            continue
        controls.built.append(item)
        controls.scales[kind] = scale
    return controls


def start_helpers(kinds: Sequence[resources.ResourceControl]) -> None:
    """Start the privileged helpers of some controls before the first round."""
    for helper in dict.fromkeys(_HELPERS[kind] for kind in kinds):
        try:
            helper.start()
        except exception.ApplyError as error:
            LOG.error('%s', error)


def prepare_helpers(config_files: Sequence[str]) -> None:
    """Set how the helpers are started; call once, after configuration."""
    privileged.client.prepare(config_files)
    privileged_network.client.prepare(config_files, like=privileged.SECTION)


BuiltControl = tuple[control.Control, scale_module.Scale]


def _build_cpu_control(
    context: ControlContext, controls: Controls
) -> BuiltControl:
    item = group_control.CpuShares()
    controls.pinning = pinning_module.Pinning(
        pins.VcpuPins(controls.open_record(context.state_path / 'pins.json'))
    )
    scale = cpu_scale.CpuScale(_VERSIONS[item.version], item.can_idle)
    return item, scale


def _build_memory_control(
    context: ControlContext, controls: Controls
) -> BuiltControl:
    options = context.conf.fairness_memory
    item = memory.MemoryProtection(
        controls.open_record(context.state_path / 'groups.json')
    )
    capacity = context.node.capacity[resources.RESOURCES.index('memory')]
    rules = memory_scale.MemoryRules(
        floor_part=options.floor_part, unprotected_part=options.unspared_part
    )
    return item, memory_scale.MemoryScale(float(capacity), rules)


def _build_disk_control(
    context: ControlContext, controls: Controls
) -> BuiltControl:
    record = controls.open_record(context.state_path / 'disks.json')
    item = disk.DiskWeight(record, lambda: context.pressure.newest)
    options = context.conf.fairness_disk
    controls.throttling = throttling_module.Throttling(
        throttle.DiskThrottle(
            controls.open_record(context.state_path / 'limits.json')
        ),
        is_on=options.throttle,
    )
    return item, disk_scale.DiskScale(item.file_of)


def _build_network_control(
    context: ControlContext, _controls: Controls
) -> BuiltControl:
    options, node = context.conf.fairness_network, context.conf.fairness_node
    # What is only assumed must not become a limit.
    bandwidth = node.network_bandwidth or link_speed.link_speed(
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
        context.inventory.incarnations,
        context.state_path / 'network.json',
    )
    return item, network_scale.NetworkScale(lambda: float(item.capacity))


_BUILDERS: dict[
    resources.ResourceControl,
    Callable[[ControlContext, Controls], BuiltControl],
] = {
    resources.ResourceControl.CPU: _build_cpu_control,
    resources.ResourceControl.MEMORY: _build_memory_control,
    resources.ResourceControl.DISK: _build_disk_control,
    resources.ResourceControl.NETWORK: _build_network_control,
}
