# SPDX-License-Identifier: Apache-2.0

"""How simulated VMs get work: closed loops, open loops, thread pools.

Kernels tell for how long VMs waited, and that follows from the way of their
work. *d* is the part of its vCPUs that a VM wants, *r* what it receives.

Closed loop: it runs, waits for input, and runs again. The longer it waits for
a CPU, the less work it gets; it waits for ``1 - r / d`` of the time.

Pool: several such loops on *k* vCPUs. Pressure counts the time in which any
of them waits; as if they did so independently, that is ``1 - (r / d) ** k``.

Open loop: work comes at a rate of its own, and work that is not done is done
later. Let *c* be what the VM receives while it has work. It has some for
``r / c`` of the time and runs in *r* of it: it waits for ``r / c * (1 - c)``.
Where *c* is what the others leave, ``r / c`` is the part of time in which a
queue with processor sharing and several classes of work is not empty of one,
for every distribution of the sizes of requests (F. P. Kelly, *Reversibility
and Stochastic Networks*, 1979, section 3.3).
"""

import dataclasses

import numpy as np

from fairness_lab.node_sim import model
from fairness_lab.scenario import cloud as cloud_module
from nova_fairness.model import resources

_ALL = 1 - 1e-9


@dataclasses.dataclass(frozen=True, eq=False)
class Tick:
    """CPUs that VMs wanted and received in one tick.

    :ivar node: (n,) index of each VM's node.
    :ivar wanted: (n,) CPUs that each wanted.
    :ivar received: (n,) CPUs.
    :ivar vcpus: (n,) CPUs that each could use.
    :ivar share: (n,) > 0, in proportion to which CPUs are divided.
    :ivar cpus: (m,) of each node.
    """

    node: model.Indices
    wanted: model.Scalars
    received: model.Scalars
    vcpus: model.Scalars
    share: model.Scalars
    cpus: model.Scalars

    def stall(self, loop: cloud_module.Loops) -> model.Scalars:
        """Fraction of the time, 0..1, for which each VM waited, (n,).

        :param loop: of these VMs.
        """
        wants = self.wanted > 0
        part = self.received / np.where(wants, self.wanted, 1.0)
        closed = np.where(wants, part.clip(0.0, 1.0), 1.0) ** loop.threads
        stall = np.where(loop.open, self._open_loop_stall(), 1.0 - closed)
        return np.asarray(stall.clip(0.0, 1.0))

    def _open_loop_stall(self) -> model.Scalars:
        rate = self._rate_with_work()
        some = self.received > 0
        working = self.received / np.where(some, rate, 1.0)
        starved = (self.wanted > 0) & ~some
        return np.where(some, working * (1 - rate / self.vcpus), starved)

    def _rate_with_work(self) -> model.Scalars:
        """CPUs that each VM receives while it has work, (n,)."""
        nodes = len(self.cpus)
        used = np.bincount(self.node, self.received, nodes)
        left = (self.cpus - used).clip(0.0)[self.node] + self.received
        lacks = self.received < _ALL * self.wanted
        level = np.zeros(nodes)
        np.maximum.at(
            level,
            self.node[lacks],
            self.received[lacks] / self.share[lacks],
        )
        reach = np.maximum(left, level[self.node] * self.share)
        # Who lacks something has work all the time.
        rate = np.where(lacks, self.received, reach)
        return np.minimum(rate, self.vcpus)


class Backlog:
    """Work of all VMs that arrived and is not done yet.

    :ivar loops: of all VMs.
    """

    def __init__(self, loops: cloud_module.Loops) -> None:
        self.loops = loops
        self._left = np.zeros(len(loops.open))

    def clear(self, rows: model.Indices) -> None:
        """Forget the backlog of VMs that start again."""
        self._left[rows] = 0.0

    def add_backlog(
        self,
        rows: model.Indices,
        demand: resources.Vector,
        most: model.Scalars,
        tick_s: float,
    ) -> resources.Vector:
        """Add the backlog of earlier ticks to the demand of this tick.

        :param demand: (p, r) per second, of some VMs.
        :param most: (p,) CPU time per second that each could use.
        """
        cpu = resources.RESOURCES.index('cpu_time')
        result = demand.copy()
        both = demand[:, cpu] + self._left[rows] / tick_s
        result[:, cpu] = np.maximum(demand[:, cpu], np.minimum(both, most))
        return result

    def advance(
        self,
        rows: model.Indices,
        demand: resources.Vector,
        received: resources.Vector,
        tick_s: float,
    ) -> None:
        """Update the backlog after a tick.

        :param demand: (p, r) per second, what came.
        """
        cpu = resources.RESOURCES.index('cpu_time')
        more = (demand[:, cpu] - received[:, cpu]) * tick_s
        left = (self._left[rows] + more).clip(0.0)
        self._left[rows] = np.where(self.loops.open[rows], left, 0.0)
