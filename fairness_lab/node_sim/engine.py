# SPDX-License-Identifier: Apache-2.0


"""Simulate rounds in which VMs run and agents steer.

Pure: the same cloud and the same agents give the same rounds, bit by bit. A
round is divided into ticks, at which agents can act; demand and place of VMs
change at the begin of a round only, and weights at the end of a tick.
"""

from collections.abc import Iterator
import dataclasses
from typing import Any

import numpy as np

from fairness_lab.node_sim import agents
from fairness_lab.node_sim import kernel
from fairness_lab.node_sim import loops
from fairness_lab.node_sim import meters
from fairness_lab.node_sim import model
from fairness_lab.scenario import cloud as cloud_module
from nova_fairness.measure import endowment
from nova_fairness.model import resources


def simulate(
    cloud: cloud_module.Cloud, setup: model.Setup
) -> Iterator[model.RoundMoment]:
    """Run a cloud, round by round.

    :returns: every round; its arrays are good until the next is asked for.
    :raises PluginMisbehaved: if a metric or policy fails.
    """
    world = _World(cloud, setup)
    for number in range(cloud.rounds):
        yield world.round(number)


class _World:
    """State of the cloud: where VMs are, what they want and what they used."""

    def __init__(self, cloud: cloud_module.Cloud, setup: model.Setup) -> None:
        count, nodes = len(cloud.vms), len(cloud.nodes)
        width, controls = len(resources.RESOURCES), len(resources.CONTROLS)
        self._cloud = cloud
        self._setup = setup
        self._fleet = agents.AgentFleet(cloud, setup)
        self._node = np.full(count, cloud_module.ABSENT, dtype=np.intp)
        self._asked = np.zeros((count, width))
        self._counters = np.zeros((count, width))
        self._stall_s = np.zeros((count, controls))
        self._busy_s = np.zeros((nodes, controls))
        self._demand = np.zeros((count, width))
        self._phase = (
            np.full(nodes, setup.ticks - 1)
            if setup.phase is None
            else setup.phase
        )
        self._protected = (
            setup.policy_plugin is not None
            and resources.ResourceControl.MEMORY in setup.controls
        )
        self._now_s = 0.0
        self._backlog = (
            None if cloud.loops is None else loops.Backlog(cloud.loops)
        )

    def round(self, number: int) -> model.RoundMoment:
        """Run one round."""
        changed = self._apply_changes(number)
        rows = np.flatnonzero(self._node != cloud_module.ABSENT)
        mean = np.zeros(self._demand.shape)
        down = self._cloud.silent
        for part in range(self._setup.ticks):
            outcome = self._run_kernels(rows)
            mean[rows] += outcome.received / self._setup.ticks
            self._now_s = self._cloud.interval_s * (
                number + (part + 1) / self._setup.ticks
            )
            acts = self._phase == part
            if down is not None:
                acts = acts & ~down[number]
            self._fleet.run_rounds(
                np.flatnonzero(acts),
                number * self._setup.ticks + part,
                self._readings(),
            )
        return self._moment(number, changed, mean)

    def _apply_changes(self, number: int) -> bool:
        """Apply the changes of a round: places and demands of VMs."""
        every = self._cloud.changes
        begin, end = np.searchsorted(every.round, [number, number + 1])
        if begin == end:
            return False
        # Where a VM changes twice, the later entry is the one that counts.
        vm = every.vm[begin:end][::-1]
        vm, first = np.unique(vm, return_index=True)
        place = end - 1 - first
        came = self._node[vm] != every.node[place]
        self._node[vm] = every.node[place]
        self._asked[vm] = every.demand[place]
        self._start_vms(vm[came], number)
        self._demand = self._bounded_demand()
        return True

    def _start_vms(self, rows: model.Indices, number: int) -> None:
        self._counters[rows] = 0.0
        self._stall_s[rows] = 0.0
        if self._backlog is not None:
            self._backlog.clear(rows)
        self._fleet.begin(rows, 0.0 if number == 0 else None)

    def _bounded_demand(self) -> resources.Vector:
        """Demand of each VM, at most what it could use alone."""
        cloud, cpu = self._cloud, resources.RESOURCES.index('cpu_time')
        rows = np.flatnonzero(self._node != cloud_module.ABSENT)
        node = self._node[rows]
        most = cloud.capacity[node].copy()
        most[:, cpu] = self._usable_cpu_rates(rows)
        memory = resources.RESOURCES.index('memory')
        most[:, memory] = cloud.memory_bytes[rows]
        asked = self._asked[rows].copy()
        asked[:, cpu] *= cloud.speed[node]
        result = np.zeros(self._demand.shape)
        result[rows] = np.minimum(asked, most)
        return result

    def _shares(self, rows: model.Indices) -> resources.Vector:
        return kernel.shares_by_resource(
            self._fleet.steering.held[rows], self._cloud.memory_bytes[rows]
        )

    def _run_kernels(self, rows: model.Indices) -> kernel.KernelResults:
        """Run the VMs for a tick, and update their counters."""
        cloud, node, demand = self._cloud, self._node[rows], self._demand[rows]
        tick_s = cloud.interval_s / self._setup.ticks
        if self._backlog is not None:
            demand = self._backlog.add_backlog(
                rows, demand, self._usable_cpu_rates(rows), tick_s
            )
        if self._setup.allocator is None:
            outcome = kernel.run(
                cloud, rows, node, demand, self._shares(rows), self._protected
            )
        else:
            received = self._setup.allocator(self._round_demand(rows, demand))
            outcome = kernel.measure_results(
                cloud.capacity, node, received, demand
            )
        if self._backlog is not None:
            self._backlog.advance(
                rows, self._demand[rows], outcome.received, tick_s
            )
            outcome = self._apply_loops(
                rows, self._backlog.loops.of_rows(rows), demand, outcome
            )
        time_shared = resources.RESOURCES.time_shared
        cpu = resources.RESOURCES.index('cpu_time')
        used = outcome.received * tick_s
        used[:, cpu] /= cloud.speed[node]
        self._counters[rows] = np.where(
            time_shared, self._counters[rows] + used, outcome.received
        )
        self._stall_s[rows] += outcome.stall * tick_s
        self._busy_s += outcome.busy * tick_s
        return outcome

    def _usable_cpu_rates(self, rows: model.Indices) -> model.Scalars:
        """CPU time per second that each VM could use, (p,)."""
        cloud, node = self._cloud, self._node[rows]
        cpus = np.minimum(cloud.vcpus[rows], cloud.cpus[node])
        return np.asarray(cpus * cloud.speed[node])

    def _apply_loops(
        self,
        rows: model.Indices,
        loop: cloud_module.Loops,
        demand: resources.Vector,
        outcome: kernel.KernelResults,
    ) -> kernel.KernelResults:
        """Compute how long VMs wait for the CPU, by their kind of loop."""
        cloud, node = self._cloud, self._node[rows]
        speed, cpu = cloud.speed[node], resources.RESOURCES.index('cpu_time')
        tick = loops.Tick(
            node=node,
            wanted=demand[:, cpu] / speed,
            received=outcome.received[:, cpu] / speed,
            vcpus=self._usable_cpu_rates(rows) / speed,
            share=self._shares(rows)[:, cpu],
            cpus=cloud.cpus,
        )
        stall = outcome.stall.copy()
        column = resources.CONTROLS.index(resources.ResourceControl.CPU)
        alone = ~cloud.coupled[rows, cpu]
        stall[alone, column] = tick.stall(loop)[alone]
        return dataclasses.replace(outcome, stall=stall)

    def _round_demand(
        self, rows: model.Indices, demand: resources.Vector
    ) -> model.RoundDemand:
        cloud, node = self._cloud, self._node[rows]
        return model.RoundDemand(
            node=node,
            user=cloud.user_of_vm[rows],
            demand=demand,
            coupled=cloud.coupled[rows],
            endowment=endowment.endowments(
                cloud.vcpus[rows],
                cloud.memory_bytes[rows],
                node,
                cloud.capacity,
            ),
            capacity=cloud.capacity,
            users=len(cloud.users),
        )

    def _readings(self) -> meters.Readings:
        return meters.Readings(
            node=self._node,
            counters=self._counters,
            stall_s=self._stall_s,
            busy_s=self._busy_s,
            now_s=self._now_s,
        )

    def _moment(
        self, number: int, changed: bool, received: resources.Vector
    ) -> model.RoundMoment:
        fleet, memory = self._fleet, self._cloud.memory_bytes
        moment = model.RoundMoment(
            round=number,
            time_s=self._cloud.interval_s * (number + 1),
            changed=changed,
            node=self._node,
            demand=self._demand,
            received=received,
            weights=fleet.steering.weights,
            shares=kernel.shares_by_resource(fleet.steering.held, memory),
            neutral=kernel.shares_by_resource(fleet.steering.neutral, memory),
            heaviness=fleet.heaviness,
            user_heaviness=fleet.user_heaviness(),
            contended=fleet.contended,
            wanting=fleet.wanting,
            capacity=self._cloud.capacity,
            resting=fleet.net.resting,
        )
        return _read_only(moment)


def _read_only(moment: model.RoundMoment) -> model.RoundMoment:
    """Views that cannot be written."""
    views: dict[str, Any] = {}
    for field in dataclasses.fields(moment):
        value = getattr(moment, field.name)
        if isinstance(value, np.ndarray):
            views[field.name] = value.view()
            views[field.name].setflags(write=False)
    return dataclasses.replace(moment, **views)
