# SPDX-License-Identifier: Apache-2.0


"""Numbers of VMs that change over time: the levels of generated demand."""

import dataclasses

import numpy as np
import numpy.typing as npt

from fairness_lab.scenario import chance
from fairness_lab.scenario import recipes
from fairness_lab.simulator import model

Scalars = model.Scalars
Indices = model.Indices

_FIRST, _LENGTHS, _KINDS, _TAILS = range(30, 34)
_IDLE_LEVEL = 0.02
_SMALLEST_LEVEL = 0.05


@dataclasses.dataclass(frozen=True, eq=False)
class Track:
    """A number per VM that changes from time to time.

    :ivar vm: (k,) ascending.
    :ivar round: (k,) ascending within a VM.
    :ivar value: (k,) from then on.
    """

    vm: Indices
    round: Indices
    value: Scalars

    @classmethod
    def of(cls, vm: Indices, when: Indices, value: Scalars) -> 'Track':
        """Sort by VM and time."""
        order = np.lexsort([when, vm])
        return cls(vm[order], when[order], value[order])

    def at(self, vm: Indices, when: Indices) -> Scalars:
        """Give the value of some VMs in some rounds."""
        longest = int(max(self.round.max(), when.max(initial=0))) + 1
        keys = self.vm * longest + self.round
        places = np.searchsorted(keys, vm * longest + when, 'right') - 1
        return np.asarray(self.value[places])


def levels(recipe: recipes.Recipe, begin: Indices, end: Indices) -> Track:
    """Draw the level of each VM over its life."""
    kind = _kinds(recipe, len(begin))
    rows = np.arange(len(begin))
    seed = recipe.seed
    first = chance.uniform(seed, _FIRST, rows)
    on = first < recipe.on / (recipe.on + recipe.off)
    idle = first < recipe.idle
    now = begin.copy()
    parts = []
    step = 0
    while rows.size and recipe.demand is not recipes.Demand.CRON:
        drawn = chance.uniform(seed, _LENGTHS, rows, step)
        pareto = chance.uniform(seed, _TAILS, rows, step)
        tailed = _SMALLEST_LEVEL * (1 - pareto) ** (-1 / recipe.tail)
        burst = on[rows] ^ (step % 2 == 1)
        mine = kind[rows]
        level = np.ones(len(rows))
        level[(mine == recipes.Demand.BURSTY.value) & ~burst] = _IDLE_LEVEL
        level[(mine == recipes.Demand.IDLE.value) & idle[rows]] = _IDLE_LEVEL
        heavy = mine == recipes.Demand.HEAVY_TAILED.value
        level[heavy] = np.minimum(tailed[heavy], 1.0)
        parts.append((rows, now[rows], level))
        mean = np.where(
            (mine == recipes.Demand.BURSTY.value) & ~burst,
            recipe.off,
            recipe.on,
        )
        length = np.ceil(-np.log1p(-drawn) * mean).astype(np.intp)
        now[rows] += np.maximum(length, 1)
        lasting = (mine == recipes.Demand.BURSTY.value) | heavy
        rows = rows[lasting & (now[rows] < end[rows])]
        step += 1
    if recipe.demand is recipes.Demand.CRON:
        parts = _jobs(recipe, first, begin, end)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return Track.of(*columns)


def _jobs(
    recipe: recipes.Recipe, first: Scalars, begin: Indices, end: Indices
) -> list[tuple[Indices, Indices, Scalars]]:
    """Let each VM have a job in every period.

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
    recipes.Demand.STEADY,
    recipes.Demand.BURSTY,
    recipes.Demand.IDLE,
    recipes.Demand.HEAVY_TAILED,
)


def _kinds(recipe: recipes.Recipe, count: int) -> npt.NDArray[np.str_]:
    if recipe.demand is not recipes.Demand.MIXED:
        return np.full(count, recipe.demand.value)
    drawn = chance.uniform(recipe.seed, _KINDS, np.arange(count))
    names = np.array([kind.value for kind in _PLAIN])
    return names[(drawn * len(_PLAIN)).astype(np.intp)]
