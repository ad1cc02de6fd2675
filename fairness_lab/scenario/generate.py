# SPDX-License-Identifier: Apache-2.0


"""Random clouds from a seed, with stated distributions.

Every number is drawn by :mod:`fairness_lab.scenario.chance` under a key of its
own, so that the same seed gives the same cloud on every machine.
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from fairness_lab.scenario import chance
from fairness_lab.scenario import cloud as cloud_module
from fairness_lab.scenario import demand as demand_module
from fairness_lab.scenario import recipes
from fairness_lab.scenario import values
from nova_fairness.model import resources

Scalars = cloud_module.Scalars
Indices = cloud_module.Indices

_CPUS, _SPEEDS, _VCPUS, _MEMORY, _WEIGHTS = range(10, 15)
_OWNERS, _LIVES, _MOVES, _TARGETS = range(15, 19)
_AMOUNTS, _COUPLING, _LOOPS = range(20, 23)
_FIRST, _LENGTHS, _KINDS, _TAILS = range(30, 34)
_WHERE = 40

_IDLE_LEVEL = 0.02
_SMALLEST_LEVEL = 0.05


@dataclasses.dataclass(frozen=True, eq=False)
class Track:
    """A number of each VM that changes from time to time.

    :ivar vm: (k,) VM of each change, ascending.
    :ivar round: (k,) round of each change, ascending for each VM.
    :ivar value: (k,) number from this round on.
    """

    vm: Indices
    round: Indices
    value: Scalars

    @classmethod
    def of(cls, vm: Indices, when: Indices, value: Scalars) -> 'Track':
        """Create a track of unsorted values; sort them by VM and round."""
        order = np.lexsort([when, vm])
        return cls(vm[order], when[order], value[order])

    def at(self, vm: Indices, when: Indices) -> Scalars:
        """Return the numbers of some VMs in some rounds."""
        longest = int(max(self.round.max(), when.max(initial=0))) + 1
        keys = self.vm * longest + self.round
        places = np.searchsorted(keys, vm * longest + when, 'right') - 1
        return np.asarray(self.value[places])


def _draw_levels(
    recipe: recipes.CloudRecipe, begin: Indices, end: Indices
) -> Track:
    """Draw the level of each VM over its life."""
    kind = _draw_kinds(recipe, len(begin))
    rows = np.arange(len(begin))
    seed = recipe.seed
    first = chance.uniform(seed, _FIRST, rows)
    on = first < recipe.on / (recipe.on + recipe.off)
    idle = first < recipe.idle
    now = begin.copy()
    parts = []
    step = 0
    while rows.size and recipe.demand is not recipes.DemandPattern.CRON:
        drawn = chance.uniform(seed, _LENGTHS, rows, step)
        pareto = chance.uniform(seed, _TAILS, rows, step)
        tailed = _SMALLEST_LEVEL * (1 - pareto) ** (-1 / recipe.tail)
        burst = on[rows] ^ (step % 2 == 1)
        mine = kind[rows]
        level = np.ones(len(rows))
        level[(mine == recipes.DemandPattern.BURSTY.value) & ~burst] = (
            _IDLE_LEVEL
        )
        level[(mine == recipes.DemandPattern.IDLE.value) & idle[rows]] = (
            _IDLE_LEVEL
        )
        heavy = mine == recipes.DemandPattern.HEAVY_TAILED.value
        level[heavy] = np.minimum(tailed[heavy], 1.0)
        parts.append((rows, now[rows], level))
        mean = np.where(
            (mine == recipes.DemandPattern.BURSTY.value) & ~burst,
            recipe.off,
            recipe.on,
        )
        length = np.ceil(-np.log1p(-drawn) * mean).astype(np.intp)
        now[rows] += np.maximum(length, 1)
        lasting = (mine == recipes.DemandPattern.BURSTY.value) | heavy
        rows = rows[lasting & (now[rows] < end[rows])]
        step += 1
    if recipe.demand is recipes.DemandPattern.CRON:
        parts = _draw_jobs(recipe, first, begin, end)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return Track.of(*columns)


def _draw_jobs(
    recipe: recipes.CloudRecipe, first: Scalars, begin: Indices, end: Indices
) -> list[tuple[Indices, Indices, Scalars]]:
    """Draw a job of each VM in every period.

    :param first: (n,) 0..1, part of a period after which the first begins.
    """
    phase = (first * recipe.period).astype(np.intp)
    parts = []
    for vm, (start, stop) in enumerate(zip(begin, end, strict=True)):
        rounds = np.arange(start, stop)
        on = (rounds - phase[vm]) % recipe.period < recipe.length
        level = np.where(on, 1.0, _IDLE_LEVEL)
        new = np.flatnonzero(np.diff(level, prepend=np.nan) != 0)
        parts.append((np.full(len(new), vm), rounds[new], level[new]))
    return parts


_PLAIN = (
    recipes.DemandPattern.STEADY,
    recipes.DemandPattern.BURSTY,
    recipes.DemandPattern.IDLE,
    recipes.DemandPattern.HEAVY_TAILED,
)


def _draw_kinds(
    recipe: recipes.CloudRecipe, count: int
) -> npt.NDArray[np.str_]:
    if recipe.demand is not recipes.DemandPattern.MIXED:
        return np.full(count, recipe.demand.value)
    drawn = chance.uniform(recipe.seed, _KINDS, np.arange(count))
    names = np.array([kind.value for kind in _PLAIN])
    return names[(drawn * len(_PLAIN)).astype(np.intp)]


def users_of_nodes(recipe: recipes.CloudRecipe) -> list[cloud_module.Indices]:
    """Users who have VMs on each node, by index.

    :returns: for each node the indices of its users, ascending, not empty.
    """
    nodes = np.arange(recipe.nodes)
    if recipe.graph is recipes.Graph.CHAIN:
        return [np.array([node, node + 1]) for node in nodes]
    if recipe.graph is recipes.Graph.STAR:
        return [np.array([0, node + 1]) for node in nodes]
    degree = min(recipe.degree, recipe.nodes)
    users = np.arange(recipe.users)
    keys = chance.uniform(
        recipe.seed, _WHERE, users[:, np.newaxis], nodes[np.newaxis, :]
    )
    chosen = np.argpartition(keys, degree - 1, axis=1)[:, :degree]
    member = np.zeros(keys.shape, dtype=np.bool_)
    member[users[:, np.newaxis], chosen] = True
    # A node that nobody drew has one user: nodes are there for somebody.
    empty = np.flatnonzero(~member.any(axis=0))
    member[empty % recipe.users, empty] = True
    return [np.flatnonzero(member[:, node]) for node in nodes]


def nodes_of_users(
    users_of_nodes: list[cloud_module.Indices], users: int
) -> list[list[int]]:
    """Nodes of each user.

    :param users_of_nodes: as :func:`users_of_nodes` returns them.
    :param users: how many there are.
    """
    result: list[list[int]] = [[] for _ in range(users)]
    for node, present in enumerate(users_of_nodes):
        for user in present:
            result[int(user)].append(node)
    return result


@dataclasses.dataclass(frozen=True, eq=False)
class _VmLives:
    """One row for each VM that ever exists.

    :ivar slot: (n,) place that it takes: one per VM at a time.
    :ivar begin: (n,) first round.
    :ivar end: (n,) first round without it.
    """

    slot: Indices
    begin: Indices
    end: Indices


def generate(
    recipe: recipes.CloudRecipe,
    name: str,
    description: str,
    interval_s: float,
    rounds: int,
) -> cloud_module.Cloud:
    """Draw a cloud."""
    drawn = _CloudDraw(recipe, rounds)
    return drawn.cloud(name, description, interval_s)


class _CloudDraw:
    """Draws the parts of a random cloud."""

    def __init__(self, recipe: recipes.CloudRecipe, rounds: int) -> None:
        self._recipe = recipe
        self._rounds = rounds
        self._slots = recipe.nodes * recipe.vms_per_node
        self._members = users_of_nodes(recipe)
        self._users = int(max(users.max() for users in self._members)) + 1
        self._lives = self._lifetimes()
        self._owner = self._draw_owners()

    def _choice(
        self, choices: tuple[float, ...], key: int, count: int
    ) -> Scalars:
        drawn = chance.uniform(self._recipe.seed, key, np.arange(count))
        places = (drawn * len(choices)).astype(np.intp)
        return np.array(choices, dtype=np.float64)[places]

    def _lifetimes(self) -> _VmLives:
        """Draw geometric lives, until the slots are full to the end."""
        slots = np.arange(self._slots)
        begin = np.zeros(self._slots, dtype=np.intp)
        parts = []
        generation = 0
        while slots.size:
            length = self._draw_life(slots, generation)
            end = np.minimum(begin + length, self._rounds)
            parts.append((slots, begin, end))
            going = end < self._rounds
            slots, begin = slots[going], end[going]
            generation += 1
        columns = [
            np.concatenate(column) for column in zip(*parts, strict=True)
        ]
        return _VmLives(*columns)

    def _draw_life(self, slots: Indices, generation: int) -> Indices:
        churn = self._recipe.churn
        if churn <= 0:
            return np.full(len(slots), self._rounds, dtype=np.intp)
        drawn = chance.uniform(self._recipe.seed, _LIVES, slots, generation)
        whole = np.log1p(-drawn) / np.log1p(-min(churn, 0.999))
        return np.asarray(whole, dtype=np.intp) + 1

    def _draw_owners(self) -> Indices:
        """Draw the user of every slot out of those of its node."""
        result = np.empty(self._slots, dtype=np.intp)
        each = self._recipe.vms_per_node
        for node, users in enumerate(self._members):
            # Every user of a node has a VM there, as far as there are VMs.
            slots = np.arange(node * each, (node + 1) * each)
            part = np.arange(1, len(users) + 1) ** -self._recipe.skew
            edges = np.cumsum(part) / part.sum()
            drawn = chance.uniform(self._recipe.seed, _OWNERS, slots)
            place = np.searchsorted(edges, drawn, 'right')
            place[: len(users)] = np.arange(min(len(users), each))
            result[slots] = users[np.minimum(place, len(users) - 1)]
        return result

    def cloud(
        self, name: str, description: str, interval_s: float
    ) -> cloud_module.Cloud:
        """Put the parts together."""
        lives, recipe = self._lives, self._recipe
        count = len(lives.slot)
        cpus = self._choice(recipe.node_cpus, _CPUS, recipe.nodes)
        speed = self._choice(recipe.node_speeds, _SPEEDS, recipe.nodes)
        specs = self._nodes(cpus, speed)
        vcpus = self._choice(recipe.vcpus, _VCPUS, count)
        memory = self._choice(recipe.memory_mib, _MEMORY, count)
        width = len(str(count - 1))
        return cloud_module.Cloud(
            name=name,
            description=description,
            interval_s=interval_s,
            rounds=self._rounds,
            nodes=tuple(spec.name for spec in specs),
            cpus=cpus,
            speed=speed * values.SPEED,
            capacity=np.array([spec.capacity() for spec in specs]),
            users=tuple(recipes.numbered_names('user', self._users)),
            user_weight=self._choice(
                recipe.user_weights, _WEIGHTS, self._users
            ),
            vms=tuple(f'vm{row:0{width}d}' for row in range(count)),
            user_of_vm=self._owner[lives.slot],
            vcpus=vcpus.astype(np.int64),
            memory_bytes=memory * values.MIB,
            coupled=self._coupled(count),
            loops=self._loops(vcpus),
            changes=self._changes(vcpus, memory, specs),
        )

    def _nodes(self, cpus: Scalars, speed: Scalars) -> list[values.NodeSpec]:
        recipe = self._recipe
        return [
            values.NodeSpec(
                name,
                cpus=float(cpus[node]),
                speed=float(speed[node]),
                memory_mib=recipe.memory_per_cpu_mib * float(cpus[node]),
                disk_mib_s=recipe.disk_mib_s,
                network_mbit_s=recipe.network_mbit_s,
            )
            for node, name in enumerate(recipe.node_names())
        ]

    def _coupled(self, count: int) -> resources.Mask:
        drawn = chance.uniform(self._recipe.seed, _COUPLING, np.arange(count))
        wanted = np.array(
            [
                name in self._recipe.resources
                for name in resources.RESOURCES.names
            ]
        )
        wanted &= resources.RESOURCES.time_shared
        chosen = drawn < self._recipe.coupled
        return np.asarray(chosen[:, np.newaxis] & wanted)

    def _loops(self, vcpus: Scalars) -> cloud_module.Loops | None:
        recipe, count = self._recipe, len(vcpus)
        drawn = chance.uniform(recipe.seed, _LOOPS, np.arange(count))
        together = [bool(row.any()) for row in self._coupled(count)]
        kinds = [
            recipe.loop[int(part * len(recipe.loop))]
            if not coupled
            else demand_module.CpuLoad.CLOSED
            for part, coupled in zip(drawn, together, strict=True)
        ]
        threads = np.full(count, recipe.threads)
        return cloud_module.loops(kinds, threads, vcpus.astype(np.intp))

    def _demand_at_full_level(
        self, vcpus: Scalars, memory: Scalars, specs: list[values.NodeSpec]
    ) -> resources.Vector:
        """Wants of each VM at level 1, (n, r)."""
        registry, recipe = resources.RESOURCES, self._recipe
        count = len(vcpus)
        node = self._lives.slot // recipe.vms_per_node
        capacity = np.array([spec.capacity() for spec in specs])
        columns = np.arange(len(registry))
        drawn = 0.5 + chance.uniform(
            recipe.seed,
            _AMOUNTS,
            np.arange(count)[:, np.newaxis],
            columns[np.newaxis, :],
        )
        full = capacity[node] * drawn * recipe.pressure / recipe.vms_per_node
        wanted = [name in recipe.resources for name in registry.names]
        full *= np.array(wanted)
        idle = cloud_module.IDLE_MEMORY_MIB * values.MIB
        place = registry.index('memory')
        full[:, place] = np.clip(full[:, place], idle, memory * values.MIB)
        cpu = registry.index('cpu_time')
        full[:, cpu] = vcpus if wanted[cpu] else 0.0
        return full

    def _changes(
        self, vcpus: Scalars, memory: Scalars, specs: list[values.NodeSpec]
    ) -> cloud_module.VmChanges:
        lives = self._lives
        full = self._demand_at_full_level(vcpus, memory, specs)
        levels = _draw_levels(self._recipe, lives.begin, lives.end)
        moves = self._draw_moves()
        vm = np.concatenate([levels.vm, moves.vm])
        when = np.concatenate([levels.round, moves.round])
        # Both tracks begin with the VM: once is enough.
        when, vm = np.unique(np.stack([when, vm]), axis=1)
        return self._merge_changes(vm, when, levels, moves, full)

    def _merge_changes(
        self,
        vm: Indices,
        when: Indices,
        levels: Track,
        moves: Track,
        full: resources.Vector,
    ) -> cloud_module.VmChanges:
        """Merge changes of levels and moves into changes of VMs."""
        lives = self._lives
        level = levels.at(vm, when)
        node = moves.at(vm, when).astype(np.intp)
        demand = full[vm] * level[:, np.newaxis]
        memory = resources.RESOURCES.index('memory')
        demand[:, memory] = full[vm, memory]
        ending = np.flatnonzero(lives.end < self._rounds)
        gone = np.zeros((len(ending), demand.shape[1]))
        absent = np.full(len(ending), cloud_module.ABSENT, dtype=np.intp)
        rounds = np.concatenate([when, lives.end[ending]])
        order = np.argsort(rounds, kind='stable')
        return cloud_module.VmChanges(
            round=rounds[order],
            vm=np.concatenate([vm, ending])[order],
            node=np.concatenate([node, absent])[order],
            demand=np.concatenate([demand, gone])[order],
        )

    def _draw_moves(self) -> Track:
        """Draw the node of each VM over time."""
        recipe, lives = self._recipe, self._lives
        home = lives.slot // recipe.vms_per_node
        rows = np.arange(len(home))
        parts = [(rows, lives.begin, home.astype(np.float64))]
        of_user = nodes_of_users(self._members, self._users)
        if recipe.moves > 0:
            for number in range(1, self._rounds):
                alive = rows[(lives.begin < number) & (number < lives.end)]
                drawn = chance.uniform(recipe.seed, _MOVES, number, alive)
                moving = alive[drawn < recipe.moves]
                where = chance.uniform(recipe.seed, _TARGETS, number, moving)
                owners = self._owner[lives.slot[moving]]
                place = [
                    of_user[user][int(part * len(of_user[user]))]
                    for user, part in zip(owners, where, strict=True)
                ]
                when = np.full(len(moving), number, dtype=np.intp)
                parts.append((moving, when, np.array(place, dtype=float)))
        columns = [
            np.concatenate(column) for column in zip(*parts, strict=True)
        ]
        return Track.of(*columns)
