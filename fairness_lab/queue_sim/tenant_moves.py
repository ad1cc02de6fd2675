# SPDX-License-Identifier: Apache-2.0

"""Owners who lack CPUs while others have room, and servers that move for them.

The node simulator runs the cloud with agents that steer weights; plans are
made of the wants and uses of servers over some rounds. Between two spells of
rounds servers move, by some way to choose them.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from fairness_lab.measures import running
from fairness_lab.node_sim import engine
from fairness_lab.queue_sim import workload
from fairness_lab.scenario import chance
from fairness_lab.scenario import cloud as cloud_module
from fairness_lab.scenario import values
from nova_fairness.model import cluster
from nova_fairness.model import resources
from nova_fairness.model import tenants
from nova_fairness.planners.tenants import planner
from nova_fairness.shares import filling

Row = dict[str, Any]
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

NODES, CPUS, MEMORY_MIB, RATIO = 12, 8, 65_536, 16
OWNERS, SERVERS = 12, 52
PERIOD_ROUNDS, UNCOUNTED_ROUNDS = 60, 10
"""Rounds of a spell, and the first of them, which do not count."""

PERIODS, MOST_MOVES, SEEDS = 6, 4, 12
"""Spells of a run, moves between two of them, and clouds that are drawn."""

_BURST = 10
"""Rounds for which a server wants the same."""

_OWNER, _NODE, _SIZE, _KIND, _ON = range(5)
_CPU = resources.RESOURCES.index('cpu_time')
_SIZES = (1, 2, 4, 8)
_KINDS = (0.05, 0.2, 0.5, 1.0)
"""Part of the time for which servers want all of their VCPUs; else 5 %."""

_IDLE_FRACTION = 0.05


@dataclasses.dataclass(frozen=True, eq=False)
class DrawnServers:
    """Servers that are drawn; those of an owner lie near each other.

    :ivar owner: (n,) index.
    :ivar vcpus: (n,).
    :ivar busy_fraction: (n,) part of the time in which all VCPUs are wanted.
    :ivar seed: of what they want when.
    """

    owner: Rows
    vcpus: npt.NDArray[np.int64]
    busy_fraction: Floats
    seed: int

    @classmethod
    def drawn(cls, seed: int) -> tuple['DrawnServers', Rows]:
        """Draw a cloud, and the first node of each server, (n,)."""
        rows = np.arange(SERVERS)

        def pick(key: int, count: int) -> Rows:
            drawn = chance.uniform(seed, key, rows) * count
            return np.asarray(drawn.astype(np.intp))

        owner = pick(_OWNER, OWNERS)
        sizes, kinds = np.array(_SIZES), np.array(_KINDS)
        vcpus, on = sizes[pick(_SIZE, 4)], kinds[pick(_KIND, 4)]
        # A third of the cloud for each owner: some lie where many are.
        near = (chance.uniform(seed, _NODE, owner, 0) * NODES).astype(np.intp)
        at = (near + pick(_NODE, NODES // 3)) % NODES
        return cls(owner, vcpus, on, seed), at

    def wanted(self, first: int) -> Floats:
        """Return the CPUs that each server wants in each burst, (k, n).

        :param first: number of the first burst.
        """
        bursts = first + np.arange(PERIOD_ROUNDS // _BURST)[:, np.newaxis]
        rows = np.arange(len(self.owner))
        drawn = chance.uniform(self.seed, _ON, bursts, rows)
        part = np.where(drawn < self.busy_fraction, 1.0, _IDLE_FRACTION)
        return np.asarray(part * self.vcpus)

    def scenario(self, at: Rows, wanted: Floats) -> cloud_module.Cloud:
        """Create the scenario of a period for the node simulator.

        :param at: (n,) nodes.
        :param wanted: (k, n) CPUs in each burst.
        """
        names = [f'vm-{n:03}' for n in range(len(self.owner))]
        nodes = [f'node-{n:02}' for n in range(NODES)]
        changes = [
            cloud_module.VmChange(
                burst * _BURST,
                name,
                nodes[at[n]],
                resources.RESOURCES.vector(cpu_time=wanted[burst, n]),
            )
            for burst in range(len(wanted))
            for n, name in enumerate(names)
        ]
        story = cloud_module.ScenarioDraft(
            'tenants',
            'owners who lack CPUs while others have room',
            10.0,
            PERIOD_ROUNDS,
            tuple(
                values.NodeSpec(each, CPUS, memory_mib=MEMORY_MIB)
                for each in nodes
            ),
            {},
            tuple(
                values.Vm(
                    name,
                    f'user-{self.owner[n]:02}',
                    vcpus=int(self.vcpus[n]),
                    memory_mib=self._memory(n),
                )
                for n, name in enumerate(names)
            ),
            tuple(changes),
        )
        return story.cloud()

    def snapshot(self, at: Rows) -> cluster.ClusterSnapshot:
        """Return the snapshot of the cloud for planners."""
        names = [f'node-{n:02}' for n in range(NODES)]
        capacity = np.tile([MEMORY_MIB, CPUS * RATIO], (NODES, 1))
        used = np.zeros_like(capacity)
        running = []
        for n, node in enumerate(at):
            one = workload.Size(int(self.vcpus[n]), self._memory(n))
            used[node] += one.amounts
            running.append(
                cluster.Running(
                    names[node],
                    'p',
                    one.demand.amounts,
                    0.0,
                    uuid=f'vm-{n:03}',
                    demand=one.demand,
                )
            )
        return cluster.ClusterSnapshot(
            workload.CLASSES,
            tuple(cluster.Provider(each, each) for each in names),
            cluster.Inventory(capacity, used, capacity, used * 0 + 1),
            running=tuple(running),
        )

    def _memory(self, n: int) -> int:
        return 1024 * int(self.vcpus[n])


@dataclasses.dataclass(frozen=True, eq=False)
class SimulatedPeriod:
    """Observations of one period: means over its rounds, CPUs.

    :ivar wanted: by servers.
    :ivar received: by them.
    :ivar weight: that their kernels hold in the end.
    :ivar last_round: what was wanted and got in the last round, (2, n).
    """

    wanted: Floats
    received: Floats
    weight: Floats
    last_round: Floats

    def levels(self, cloud: DrawnServers) -> Floats:
        """Return the part of the entitled amount that each owner got, (u,)."""
        wanted, got = (
            np.bincount(cloud.owner, each, OWNERS).astype(np.float64)
            for each in (self.wanted, self.received)
        )
        total = np.array([float(NODES * CPUS)])
        due, _ = filling.fill(
            total, np.zeros(OWNERS, np.intp), wanted, np.ones(OWNERS)
        )
        return np.minimum(got[due > 0] / due[due > 0], 1.0)


def simulate_period(
    cloud: DrawnServers, at: Rows, first: int
) -> SimulatedPeriod:
    """Simulate one period of a cloud, and return what was observed."""
    scenario = cloud.scenario(at, cloud.wanted(first))
    setup = running.setup(
        cloud_module.Experiment(scenario, values.AgentSpec()),
        running.RunOptions(),
    )
    sums = np.zeros((2, SERVERS))
    for moment in engine.simulate(scenario, setup):
        now = np.stack([moment.demand[:, _CPU], moment.received[:, _CPU]])
        now = now / values.SPEED
        if moment.round >= UNCOUNTED_ROUNDS:
            sums += now / (PERIOD_ROUNDS - UNCOUNTED_ROUNDS)
        weight = moment.shares[:, _CPU].copy()
    return SimulatedPeriod(sums[0], sums[1], weight, now)


MoveChoice = Callable[[DrawnServers, Rows, SimulatedPeriod], Rows]
"""Returns the nodes of servers after the moves, (n,), for their nodes before
and the observations of a period.
"""


def no_moves(_cloud: DrawnServers, at: Rows, _seen: SimulatedPeriod) -> Rows:
    """Move no server: only weights help owners."""
    return at


def move_busiest(
    _cloud: DrawnServers, at: Rows, seen: SimulatedPeriod
) -> Rows:
    """Move the busiest servers from the fullest to the emptiest hosts.

    As balancers of load do, which know no owners.
    """
    at = at.copy()
    for _ in range(MOST_MOVES):
        asked = np.bincount(at, seen.wanted, NODES)
        source, target = int(asked.argmax()), int(asked.argmin())
        on = np.flatnonzero(at == source)
        fits = on[asked[target] + seen.wanted[on] < asked[source]]
        if asked[source] <= CPUS or not len(fits):
            break
        at[fits[seen.received[fits].argmax()]] = target
    return at


def _plan_and_move(
    cloud: DrawnServers, at: Rows, wanted: Floats, got: Floats, weight: Floats
) -> Rows:
    wants = {
        f'vm-{n:03}': tenants.ServerWant(
            f'{owner}', float(wanted[n]), float(got[n]), float(weight[n])
        )
        for n, owner in enumerate(cloud.owner)
    }
    snapshot = cloud.snapshot(at)
    cpus = {each.name: float(CPUS) for each in snapshot.providers}
    given = tenants.Tenants(snapshot, wants, cpus)
    plan = planner.plan(given, 0.0, planner.TenantRules(most=MOST_MOVES))
    after = at.copy()
    for move in plan.plan.moves:
        after[int(move.server[3:])] = int(move.target[5:])
    return after


def move_for_tenants(
    cloud: DrawnServers, at: Rows, seen: SimulatedPeriod
) -> Rows:
    """Move servers as the planner of this product does."""
    return _plan_and_move(cloud, at, seen.wanted, seen.received, seen.weight)


def move_for_tenants_by_last_round(
    cloud: DrawnServers, at: Rows, seen: SimulatedPeriod
) -> Rows:
    """Move servers as the planner, with the data of the last round only."""
    wanted, got = seen.last_round
    return _plan_and_move(cloud, at, wanted, got, seen.weight)


MOVE_CHOICES: Mapping[str, MoveChoice] = {
    'no moves': no_moves,
    'the busiest': move_busiest,
    'for tenants': move_for_tenants,
    'for tenants, by one round': move_for_tenants_by_last_round,
}
"""Rules that choose the servers to move, by name."""


def run(seed: int, name: str) -> tuple[list[Floats], int]:
    """Simulate a run; return levels of owners in each spell, and the moves.

    :param seed: of the cloud.
    :param name: of :data:`MOVE_CHOICES`.
    """
    cloud, at = DrawnServers.drawn(seed)
    levels, moves = [], 0
    for spell in range(PERIODS):
        seen = simulate_period(cloud, at, spell * (PERIOD_ROUNDS // _BURST))
        levels.append(seen.levels(cloud))
        after = MOVE_CHOICES[name](cloud, at, seen)
        if spell < PERIODS - 1:
            moves += int((after != at).sum())
            at = after
    return levels, moves


def tables(seed: int, count: int = SEEDS) -> dict[str, list[Row]]:
    """Compare the rules of :data:`MOVE_CHOICES`, on average over clouds.

    :param seed: seed of the first cloud.
    :param count: number of clouds.
    """
    rows = []
    for name in MOVE_CHOICES:
        runs = [run(seed + n, name) for n in range(count)]
        worst = np.array([[each.min() for each in one] for one, _ in runs])
        mean = np.array([one[-1].mean() for one, _ in runs])
        rows.append(
            {
                'moves': name,
                'worst-off before %': _percent(worst[:, 0].mean()),
                'worst-off after %': _percent(worst[:, -1].mean()),
                'lowest after %': _percent(worst[:, -1].min()),
                'all after %': _percent(mean.mean()),
                'servers moved': round(
                    float(np.mean([moves for _, moves in runs])), 1
                ),
            }
        )
    return {'tenants': rows}


def _percent(part: float) -> float:
    return round(100 * float(part), 1)
