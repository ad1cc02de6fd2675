# SPDX-License-Identifier: Apache-2.0

"""A simulated node: a kernel that shares CPUs by weight. No effects.

It is there for trying out scenarios and metrics without root. It knows
weights, demand and time, and nothing of caches, queues or interrupts.
"""

import dataclasses
import math
import uuid

import numpy as np

from fairness_lab.ideal import maxmin
from fairness_lab.scenario import demand
from fairness_lab.scenario import values as scenario_module
from fairness_lab.testbed.guests import domain
from nova_fairness.model import instance
from nova_fairness.model import node as node_model
from nova_fairness.model import resources
from nova_fairness.model import sample

TICK_S = 0.1
SHARES_OF_VCPU = 1024

_MIB = 1 << 20
_SPEED = 1000.0
_IDLE_MEMORY = 64 * _MIB
_LOOPS = (demand.CpuLoad.CLOSED, demand.CpuLoad.POOL)


@dataclasses.dataclass
class FakeVm:
    """A simulated VM.

    :ivar incarnation: what the agent sees of it.
    :ivar shares: CPU shares.
    :ivar demand: CPUs that it wants.
    :ivar loops: whether it wants them in closed loops.
    :ivar frozen: whether it stands still.
    :ivar counters: (r,) what it used so far, and its present memory.
    :ivar stall_s: seconds for which it waited for a CPU.
    :ivar rates: (r,) what it uses of everything but CPU, per second.
    """

    incarnation: instance.Incarnation
    shares: int
    demand: float = 0.0
    loops: bool = False
    frozen: bool = False
    counters: resources.Vector = dataclasses.field(
        default_factory=resources.RESOURCES.vector
    )
    stall_s: float = 0.0
    rates: resources.Vector = dataclasses.field(
        default_factory=resources.RESOURCES.vector
    )


class FakeNode:
    """A simulated node and its VMs.

    :param spec: what it is.
    """

    def __init__(self, spec: scenario_module.NodeSpec) -> None:
        self.spec = spec
        self.vms: dict[str, FakeVm] = {}
        self.now_s = 0.0
        self._busy_s = 0.0
        self._starts = 0
        disk = spec.disk_mib_s * _MIB
        network = spec.network_mbit_s * 1e6 / 8
        self.resources = node_model.NodeResources(
            host=spec.name,
            cpus=spec.cpu_numbers,
            speed_factor=_SPEED,
            capacity=resources.RESOURCES.vector(
                cpu_time=spec.cpus * _SPEED,
                disk_read=disk,
                disk_written=disk,
                net_received=network,
                net_sent=network,
                memory=float(spec.memory_mib * _MIB),
            ),
        )

    def add(self, vm: scenario_module.Vm) -> None:
        """Start a VM."""
        self._starts += 1
        described = instance.Instance(
            uuid=str(uuid.uuid5(uuid.NAMESPACE_DNS, vm.name)),
            domain_name=f'instance-{self._starts:08x}',
            vcpus=vm.vcpus,
            memory_bytes=int(vm.memory_mib) * _MIB,
            user_id=domain.owner_id(f'user {vm.user}'),
            project_id=domain.owner_id(f'project {vm.user}'),
            user_name=vm.user,
            project_name=vm.user,
            display_name=vm.name,
        )
        incarnation = instance.Incarnation(
            described, self._starts, self._starts
        )
        made = FakeVm(incarnation, SHARES_OF_VCPU * vm.vcpus)
        made.counters[resources.RESOURCES.index('memory')] = _IDLE_MEMORY
        self.vms[vm.name] = made

    def load(self, vm: str, step: demand.DemandStep) -> None:
        """Tell a VM what it wants from now on."""
        made = self.vms[vm]
        vcpus = float(made.incarnation.instance.vcpus)
        if step.cpu is not None:
            made.demand = min(step.cpu, vcpus)
            made.loops = step.cycle is not None and step.cycle.load in _LOOPS
        if step.memory_mib is not None:
            place = resources.RESOURCES.index('memory')
            made.counters[place] = _IDLE_MEMORY + step.memory_mib * _MIB
        rates = {
            'disk_read': (step.disk_read_mib_s, _MIB),
            'disk_written': (step.disk_write_mib_s, _MIB),
            'net_sent': (step.net_send_mbit_s, 1e6 / 8),
        }
        for name, (rate, unit) in rates.items():
            if rate is not None:
                place = resources.RESOURCES.index(name)
                most = self.resources.capacity[place]
                made.rates[place] = min(rate * unit, most)

    def advance(self, to_s: float) -> None:
        """Let time pass.

        :param to_s: seconds since the node started, not before now.
        """
        while self.now_s < to_s:
            step_s = min(TICK_S, to_s - self.now_s)
            self._tick(step_s)
            self.now_s += step_s
            if math.isclose(self.now_s, to_s, abs_tol=1e-9):
                self.now_s = to_s

    def _tick(self, step_s: float) -> None:
        cpu = resources.RESOURCES.index('cpu_time')
        awake = {n: vm for n, vm in self.vms.items() if not vm.frozen}
        got = maxmin.water_fill(
            self.spec.cpus,
            {name: vm.demand for name, vm in awake.items()},
            {name: float(vm.shares) for name, vm in awake.items()},
        )
        for name, vm in awake.items():
            vm.counters += vm.rates * step_s
            vm.counters[cpu] += got[name] * step_s
            vm.stall_s += _stall(vm, got[name]) * step_s
        self._busy_s += sum(got.values()) * step_s

    def sample(self) -> sample.Sample:
        """Read all counters, as the agent's collectors would."""
        vms = sorted(
            self.vms.values(), key=lambda vm: vm.incarnation.instance.uuid
        )
        busy = np.full(max(self.spec.cpu_numbers) + 1, np.nan)
        busy[list(self.spec.cpu_numbers)] = self._busy_s / self.spec.cpus
        return sample.Sample(
            time_s=self.now_s,
            incarnations=tuple(vm.incarnation for vm in vms),
            totals=np.array([vm.counters for vm in vms]).reshape(
                len(vms), len(resources.RESOURCES)
            ),
            cpu_stall_s=np.array([vm.stall_s for vm in vms]),
            read_at_s=np.full(len(vms), self.now_s),
            cpu_busy_s=busy,
        )


def _stall(vm: FakeVm, got: float) -> float:
    """The part of the time for which a VM waits.

    A closed loop that lacks something still thinks for a while; who is behind
    the clock always has something to do.
    """
    if got >= vm.demand:
        return 0.0
    vcpus = float(vm.incarnation.instance.vcpus)
    return 1 - got / (vm.demand if vm.loops else vcpus)
