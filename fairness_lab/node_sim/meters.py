# SPDX-License-Identifier: Apache-2.0


"""Readings of agents on their nodes, and the computed usage and load."""

import dataclasses

import numpy as np
import numpy.typing as npt

from fairness_lab.node_sim import knowledge
from fairness_lab.node_sim import model
from fairness_lab.scenario import cloud as cloud_module
from nova_fairness.decide import contention
from nova_fairness.measure import round as measure_round
from nova_fairness.measure import usage as usage_measure
from nova_fairness.model import instance
from nova_fairness.model import resources
from nova_fairness.model import sample
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import waiting


@dataclasses.dataclass(frozen=True, eq=False)
class Readings:
    """Values that agents can read on their nodes.

    :ivar node: (n,) where each VM is, or :data:`.model.ABSENT`.
    :ivar counters: (n, r) cumulative, CPU time in seconds; present memory.
    :ivar stall_s: (n, c) cumulative seconds of waiting.
    :ivar busy_s: (m, c) cumulative seconds, weighed by the part in use.
    :ivar now_s: the time.
    """

    node: model.Indices
    counters: resources.Vector
    stall_s: npt.NDArray[np.float64]
    busy_s: npt.NDArray[np.float64]
    now_s: float


class Meters:
    """Memory of all agents of their readings, as arrays.

    :param cloud: the nodes and VMs.
    :param decay_factor: part of the newest interval in the usage, in (0, 1].
    """

    def __init__(self, cloud: cloud_module.Cloud, decay_factor: float) -> None:
        count, nodes = len(cloud.vms), len(cloud.nodes)
        width, controls = len(resources.RESOURCES), len(resources.CONTROLS)
        self._cloud = cloud
        self._decay_factor = decay_factor
        self._incarnations = _vm_incarnations(cloud)
        self._read = np.full((count, width), np.nan)
        self._read_s = np.full(count, np.nan)
        self._stall_s = np.full((count, controls), np.nan)
        self._busy_s = np.zeros((nodes, controls))
        self._acted_s = np.zeros(nodes)
        self._past = np.zeros((count, width))
        self._known = np.zeros(count, dtype=np.bool_)
        self._wants = measure_round.VmHistory.unknown(count, cloud.interval_s)

    def begin(self, rows: model.Indices, at_s: float | None) -> None:
        """Start to measure VMs.

        :param at_s: time of the first reading of their counters, seconds;
            ``None``: not yet.
        """
        nothing = np.nan if at_s is None else 0.0
        self._read[rows] = nothing
        self._stall_s[rows] = nothing
        self._read_s[rows] = np.nan if at_s is None else at_s
        self._past[rows] = 0.0
        self._known[rows] = False
        self._wants.replace_rows(
            rows, measure_round.VmHistory.unknown(len(rows))
        )

    def supply_of_nodes(self, nodes: model.Indices) -> resources.Vector:
        """Supply of nodes in a round, (k, r)."""
        return resources.RESOURCES.over(
            self._cloud.capacity[nodes], self._cloud.interval_s
        )

    def usage(
        self, rows: model.Indices, node: model.Indices, readings: Readings
    ) -> usage_model.Usage:
        """Use of the VMs since their agents' last round.

        CPU time is measured in seconds and weighed afterwards, because nodes
        differ in speed.
        """
        vms = tuple(self._incarnations[row] for row in rows)
        interval_s = self._cloud.interval_s
        now_s = readings.now_s
        nothing = np.full(len(rows), np.nan)
        past = usage_model.Usage(
            interval_s, vms, self._past[rows], self._known[rows], nothing
        )
        used = usage_measure.usage_between(
            sample.Sample(
                now_s - interval_s,
                vms,
                self._read[rows],
                nothing,
                self._read_s[rows],
            ),
            sample.Sample(
                now_s,
                vms,
                readings.counters[rows],
                nothing,
                np.full(len(rows), now_s),
            ),
            1.0,
            past,
            self._decay_factor,
        )
        self._past[rows] = used.amounts
        self._known[rows] = used.known
        factors = np.ones(used.amounts.shape)
        cpu = resources.RESOURCES.index('cpu_time')
        factors[:, cpu] = self._cloud.speed[node]
        return dataclasses.replace(
            used,
            amounts=used.amounts * factors,
            unsmoothed=used.newest * factors,
        )

    def load(
        self,
        acting: model.Indices,
        rows: model.Indices,
        local: model.Indices,
        usage: usage_model.Usage,
        readings: Readings,
    ) -> contention.ContentionLoad:
        """Waiting of VMs since their agents' last round.

        :param acting: (k,) indices of the nodes that act.
        :param rows: (p,) indices of their VMs.
        :param local: (p,) position of each VM's node in ``acting``.
        """
        elapsed_s = readings.now_s - self._read_s[rows]
        waited_s = readings.stall_s[rows] - self._stall_s[rows]
        since_s = readings.now_s - self._acted_s[acting]
        worked_s = readings.busy_s[acting] - self._busy_s[acting]
        return contention.ContentionLoad(
            node=local,
            vcpus=self._cloud.vcpus[rows],
            used=usage.amounts,
            stall=np.clip(waited_s / elapsed_s[:, np.newaxis], 0.0, 1.0),
            ready=usage.known,
            cpus=self._cloud.cpus[acting],
            supply=self.supply_of_nodes(acting),
            interval_s=self._cloud.interval_s,
            busy=np.clip(worked_s / since_s[:, np.newaxis], 0.0, 1.0),
        )

    def judge(
        self,
        rows: model.Indices,
        node: model.Indices,
        usage: usage_model.Usage,
        load: contention.ContentionLoad,
    ) -> tuple[resources.Vector, contention.ContentionLoad]:
        """Estimate what VMs want, and which of them wait.

        :returns: (p, r), and the load with who waits for a CPU.
        """
        one_cpu = self._cloud.speed[node] * self._cloud.interval_s
        found = measure_round.judge_wants(
            self._interval(usage, load, one_cpu),
            self._wants.select(rows),
            usage.newest,
            one_cpu,
            self._cloud.interval_s,
        )
        self._wants.replace_rows(rows, found.past)
        return found.wanted, dataclasses.replace(load, waiting=found.waiting)

    def _interval(
        self,
        usage: usage_model.Usage,
        load: contention.ContentionLoad,
        one_cpu: model.Scalars,
    ) -> waiting.Interval:
        cpu = resources.RESOURCES.index('cpu_time')
        column = resources.CONTROLS.index(resources.ResourceControl.CPU)
        return waiting.Interval(
            node=load.node,
            used=usage.newest[:, cpu] / one_cpu,
            stall=load.stall[:, column],
            most=np.minimum(load.vcpus, load.cpus[load.node]),
            ready=load.ready,
            cpus=load.cpus,
            busy=load.busy[:, column],
        )

    def store_readings(
        self, batch: knowledge.ActingNodes, readings: Readings
    ) -> None:
        """Keep the readings of this round for the next one."""
        rows, acting = batch.rows, batch.acting
        self._read[rows] = readings.counters[rows]
        self._read_s[rows] = readings.now_s
        self._stall_s[rows] = readings.stall_s[rows]
        self._busy_s[acting] = readings.busy_s[acting]
        self._acted_s[acting] = readings.now_s


def _vm_incarnations(cloud: cloud_module.Cloud) -> list[instance.Incarnation]:
    """Create the VM objects that the measure room expects."""
    return [
        instance.Incarnation(
            instance.Instance(name, name, int(vcpus), int(memory)), 1, row
        )
        for row, (name, vcpus, memory) in enumerate(
            zip(cloud.vms, cloud.vcpus, cloud.memory_bytes, strict=True)
        )
    ]
