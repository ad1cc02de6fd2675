# SPDX-License-Identifier: Apache-2.0

"""Requests that are drawn: seeded, with distributions that are stated.

Every number is drawn by :mod:`fairness_lab.scenario.chance` under a key of its
own, so that the same seed gives the same requests on every machine.
"""

from collections.abc import Sequence
import dataclasses
import enum
import math

import numpy as np

from fairness_lab.queue_sim import workload
from fairness_lab.scenario import chance
from nova_fairness.model import cluster

Floats = workload.Floats

_GAPS, _BURSTS, _USERS, _SIZES, _LIVES, _DELETED, _WHEN = range(1, 8)

_PARETO = 1.5
"""Exponent of heavy tails: the mean is there, the variance is infinite."""


class LifetimeDistribution(enum.Enum):
    """How lifetimes are spread about their mean."""

    FIXED = 'fixed'
    EXPONENTIAL = 'exponential'
    HEAVY_TAILED = 'heavy-tailed'


@dataclasses.dataclass(frozen=True)
class StreamRecipe:
    """Requests of projects of one kind.

    :ivar name: of the project; with a number if there are several.
    :ivar count: of projects.
    :ivar share: of each, >= 0.
    :ivar users: of each, >= 1.
    :ivar demand: part of the cloud that each would hold on average if all it
        asks for started at once, in the class of its largest demand; > 0.
    :ivar sizes: what is asked for, with how often beside the others, > 0.
    :ivar lifetime_s: mean.
    :ivar spread: of lifetimes.
    :ivar burst: mean number of requests that are asked for at once, >= 1,
        drawn geometrically.
    :ivar active_periods_s: begin and end of each period with requests,
        seconds, ascending.
    :ivar deleted: part of requests that their user deletes at any moment
        until a lifetime after asking.
    :ivar preemptible: whether its servers make room for others.
    """

    name: str
    count: int
    share: float
    users: int
    demand: float
    sizes: tuple[tuple[workload.Size, float], ...]
    lifetime_s: float
    spread: LifetimeDistribution
    burst: float
    active_periods_s: tuple[tuple[float, float], ...]
    deleted: float
    preemptible: bool = False


def owners(recipes: Sequence[StreamRecipe]) -> workload.Owners:
    """All projects with their users, in the order of the recipes."""
    projects: list[str] = []
    shares: list[float] = []
    users: list[str] = []
    project: list[int] = []
    for each in recipes:
        for n in range(1, each.count + 1):
            numbered = f'{each.name}-{n}' if each.count > 1 else each.name
            users += [f'user-{m}' for m in range(1, each.users + 1)]
            project += [len(projects)] * each.users
            projects.append(numbered)
            shares.append(each.share)
    return workload.Owners(
        tuple(projects), tuple(shares), tuple(users), tuple(project)
    )


def draw_stream(
    recipes: Sequence[StreamRecipe], capacity: cluster.Amounts, seed: int
) -> workload.Stream:
    """Requests of all projects.

    :param capacity: (c,) of the cloud.
    :param seed: >= 0.
    """
    sizes = list(
        dict.fromkeys(size for each in recipes for size, _ in each.sizes)
    )
    parts: list[tuple[Floats, ...]] = []
    first_user = number = 0
    for each in recipes:
        for _ in range(each.count):
            parts.append(
                _requests_of_project(
                    each, capacity, seed, number, first_user, sizes
                )
            )
            first_user += each.users
            number += 1
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    asked, lifetime, deleted, user, size, marks = columns
    order = np.argsort(asked, kind='stable')
    return workload.Stream(
        asked[order],
        lifetime[order],
        deleted[order],
        user[order].astype(np.int64),
        size[order].astype(np.int64),
        tuple(sizes),
        preemptible=marks[order] > 0 if marks.any() else None,
    )


def _requests_of_project(
    recipe: StreamRecipe,
    capacity: cluster.Amounts,
    seed: int,
    number: int,
    first_user: int,
    sizes: Sequence[workload.Size],
) -> tuple[Floats, ...]:
    """Requests of one project; columns as :class:`.workload.Stream` has."""
    weights = np.array([weight for _, weight in recipe.sizes])
    weights = weights / weights.sum()
    mean = weights @ np.array([size.amounts for size, _ in recipe.sizes])
    each_s = recipe.lifetime_s * float((mean / capacity).max())
    asked = _request_times(recipe, recipe.demand / each_s, seed, number)
    rows = np.arange(len(asked))

    def draw(key: int) -> Floats:
        return chance.uniform(seed, key, number, rows)

    user = first_user + np.floor(draw(_USERS) * recipe.users)
    place = np.array([sizes.index(size) for size, _ in recipe.sizes], float)
    size = place[
        np.searchsorted(np.cumsum(weights)[:-1], draw(_SIZES), 'right')
    ]
    lifetime = _lifetimes(recipe, draw(_LIVES))
    when = asked + draw(_WHEN) * lifetime
    deleted = np.where(draw(_DELETED) < recipe.deleted, when, np.inf)
    marks = np.full(len(asked), float(recipe.preemptible))
    return asked, lifetime, deleted, user, size, marks


def _request_times(
    recipe: StreamRecipe, rate: float, seed: int, number: int
) -> Floats:
    """Moments at which one project asks: bursts of a Poisson process."""
    begin = np.array([start for start, _ in recipe.active_periods_s])
    length = np.array([end - start for start, end in recipe.active_periods_s])
    bursts = length.sum() * rate / recipe.burst
    # Six deviations: nobody will see more.
    rows = np.arange(math.ceil(bursts + 6 * math.sqrt(bursts) + 10))
    gaps = -np.log1p(-chance.uniform(seed, _GAPS, number, rows))
    passed = np.cumsum(gaps) * recipe.burst / rate
    passed = passed[passed < length.sum()]
    ends = np.cumsum(length)
    window = np.searchsorted(ends, passed, 'right')
    moments: Floats = begin[window] + passed - (ends - length)[window]
    if recipe.burst <= 1:
        return moments
    many = chance.uniform(seed, _BURSTS, number, np.arange(len(moments)))
    # Geometric, from 1 on, of that mean.
    counts = np.log1p(-many) // math.log1p(-1 / recipe.burst) + 1
    return np.repeat(moments, counts.astype(np.int64))


def _lifetimes(recipe: StreamRecipe, chances: Floats) -> Floats:
    """(n,) seconds, at least one."""
    mean = recipe.lifetime_s
    if recipe.spread is LifetimeDistribution.FIXED:
        return np.full(len(chances), mean)
    if recipe.spread is LifetimeDistribution.EXPONENTIAL:
        return np.maximum(-np.log1p(-chances) * mean, 1.0)
    shortest = mean * (_PARETO - 1) / _PARETO
    lifetimes: Floats = shortest * (1 - chances) ** (-1 / _PARETO)
    return np.maximum(lifetimes, 1.0)
