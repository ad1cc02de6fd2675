# SPDX-License-Identifier: Apache-2.0

"""Simulated nodes that users connect, for the tests of policies.

Like :mod:`tests.unit.decide.plant`, but many nodes at once: every node knows
its own VMs and what reports say of the others. Reports may be late and lost.
"""

import dataclasses

import numpy as np

from fairness_lab.ideal import columns
from fairness_lab.ideal import ideal
from fairness_lab.measures import distance
from nova_fairness.decide import array_policy
from nova_fairness.decide import round as decide_round
from nova_fairness.model import resources
from nova_fairness.shares import filling

R = resources.RESOURCES
CPU = resources.CONTROLS.index(resources.ResourceControl.CPU)
CONTROLS = len(resources.CONTROLS)
RATIO = 20.0


@dataclasses.dataclass
class Cloud:
    """Hungry VMs of one size on nodes.

    :ivar capacity: CPUs of each node.
    :ivar vms: (node, user) of each.
    """

    capacity: list[float]
    vms: list[tuple[int, int]]

    def __post_init__(self):
        self.node = np.array([node for node, _ in self.vms])
        self.user = np.array([user for _, user in self.vms])
        self.cpus = np.array(self.capacity, dtype=float)
        self.demand = self.cpus[self.node]
        self.users = int(self.user.max()) + 1
        self.quota = np.full(self.users, self.cpus.sum() / self.users)

    def best(self):
        """Share of each user in the bounded ideal."""

        def column(values):
            rows = np.zeros((len(values), len(R)))
            rows[:, R.index('cpu_time')] = values
            return rows

        wishes = columns.Wishes(
            capacity=column(self.cpus),
            demand=column(self.demand),
            node=self.node,
            user=self.user,
            coupled=np.zeros((len(self.vms), len(R)), dtype=bool),
            size=np.ones((len(self.vms), len(R))),
            quota=column(self.quota),
            exempt=np.zeros(len(self.vms), dtype=bool),
        )
        return ideal.ideal(wishes, 'cpu_time', RATIO).share


def chain(nodes):
    """User k has a VM on node k and on the next one; one more at the end."""
    vms = [(k + side, k) for k in range(nodes - 1) for side in (0, 1)]
    return Cloud([1.0] * nodes, [*vms, (0, nodes - 1)])


def ring(nodes):
    """A chain that is closed, of nodes of different size."""
    vms = [((k + side) % nodes, k) for k in range(nodes) for side in (0, 1)]
    return Cloud([1.0 + k % 3 for k in range(nodes)], vms)


def star(nodes):
    """User 0 is everywhere, beside one to three users of each node."""
    vms, user = [], 1
    for node in range(nodes):
        vms.append((node, 0))
        for _ in range(1 + node % 3):
            vms.append((node, user))
            user += 1
    return Cloud([1.0] * nodes, vms)


def drawn(nodes, users, per_node, seed):
    """VMs of users drawn evenly, on nodes of different size."""
    generator = np.random.default_rng(seed)
    owners = generator.integers(0, users, nodes * per_node)
    _, owners = np.unique(owners, return_inverse=True)
    capacity = generator.choice([1.0, 2.0, 4.0], nodes)
    vms = [(place // per_node, int(user)) for place, user in enumerate(owners)]
    return Cloud(list(capacity), vms)


@dataclasses.dataclass
class Trace:
    """What happened, one row per round."""

    share: np.ndarray
    weights: np.ndarray
    used: np.ndarray

    def lacking(self, best):
        """What the worst user lacks, by round."""
        return distance.largest_lack(
            self.share, np.tile(best, (len(self.share), 1))
        )

    def overshoot(self, best):
        return distance.overshoot(
            self.share, np.tile(best, (len(self.share), 1))
        )


class _Reports:
    """What each node knows of the others: (receiver, sender, user)."""

    def __init__(self, cloud, loss, late, seed):
        self._cloud = cloud
        self._loss, self._late = loss, late
        self._random = np.random.default_rng(seed)
        self._sent = []
        self._known = None

    def heaviness(self, used):
        cloud, nodes = self._cloud, len(self._cloud.cpus)
        own = np.zeros((nodes, cloud.users))
        np.add.at(own, (cloud.node, cloud.user), used)
        self._sent.append(own)
        sent = np.broadcast_to(
            self._sent[max(0, len(self._sent) - 1 - self._late)],
            (nodes, nodes, cloud.users),
        )
        if self._known is None:
            self._known = sent.copy()
        arrived = self._random.random((nodes, nodes)) >= self._loss
        self._known[arrived] = sent[arrived]
        self._known[np.arange(nodes), np.arange(nodes)] = own
        total = self._known.sum(axis=1)
        return total[cloud.node, cloud.user] / cloud.quota[cloud.user]


def run(cloud, policy, *, rounds=40, noise=0.0, loss=0.0, late=0, seed=1):
    """Run all nodes: an interval passes, then every node decides."""
    count, nodes = len(cloud.vms), len(cloud.cpus)
    generator = np.random.default_rng(seed)
    reports = _Reports(cloud, loss, late, seed)
    weights = np.ones((count, CONTROLS))
    memory, smoothed, rows = policy.initial_memory(count, nodes), None, []
    for _ in range(rounds):
        got, _ = filling.fill(
            cloud.cpus, cloud.node, cloud.demand, weights[:, CPU]
        )
        share = np.bincount(cloud.user, got, cloud.users) / cloud.quota
        rows.append((share, weights[:, CPU].copy(), got.sum()))
        seen = got * (1 + noise * generator.standard_normal(count))
        smoothed = seen if smoothed is None else (smoothed + seen) / 2
        wanting = np.zeros((count, CONTROLS), dtype=bool)
        wanting[:, CPU] = got < cloud.demand - 1e-9
        contended = np.zeros((nodes, CONTROLS), dtype=bool)
        contended[:, CPU] = np.bincount(cloud.node, minlength=nodes) > 1
        crowd = array_policy.SituationArrays(
            node=cloud.node,
            nodes=nodes,
            heaviness=reports.heaviness(smoothed),
            user=cloud.user,
            vcpus=np.ones(count, dtype=np.int64),
            contended=contended,
            wanting=wanting,
        )
        wished, memory = policy.decide(crowd, weights, memory, 10.0)
        wished = decide_round.bound_weights(wished, weights, RATIO, 4.0)
        wished = np.round(wished * 1024) / 1024
        small = np.abs(wished - weights) <= 0.01 * weights
        weights = np.where(small, weights, wished)
    return Trace(*(np.array(column) for column in zip(*rows, strict=True)))
