# SPDX-License-Identifier: Apache-2.0

"""The best possible allocation: lexicographic max-min over users.

The allocation of an all-knowing divider: no user's share can be raised without
lowering the share of a user who has no larger one. It is free of the weights,
or within reach of weights with a bounded ratio.
"""

from collections.abc import Callable
import dataclasses
import functools
import hashlib

import numpy as np

from fairness_lab.ideal import bounded
from fairness_lab.ideal import columns as columns_module
from fairness_lab.ideal import filling
from fairness_lab.ideal import highs
from fairness_lab.ideal import program as program_module
from nova_fairness import exception
from nova_fairness.model import resources

Floats = program_module.Floats
Places = program_module.Places
Wishes = columns_module.Wishes

DOMINANT = 'dominant'
"""The largest part of a quota that a user has of any resource."""

ASSET = 'asset'
"""The mean part of the quotas that a user has of all resources."""

_MOST_TURNS = 5
_BETTER = 1e-6


@dataclasses.dataclass(frozen=True, eq=False)
class Ideal:
    """The best possible allocation.

    :ivar share: (u,) the chosen share of each user, a whole quota being 1.
    :ivar parts: (u, r) of the quota of each resource.
    :ivar is_strict: ``False`` if weights can give the poorest users more, by
        less than :data:`.bounded.CLEAR`.
    """

    share: Floats
    parts: Floats
    is_strict: bool = True


def check_share(share: str) -> str:
    """Return the name of a share if it is known.

    :raises UnknownShare: otherwise; names those there are.
    """
    known = (DOMINANT, ASSET, *resources.RESOURCES.names)
    if share not in known:
        raise exception.UnknownShare(
            f'there is no share {share!r}, expected one of {", ".join(known)}'
        )
    return share


def share_of(parts: Floats, share: str) -> Floats:
    """Chosen share of users.

    :param parts: (..., r) of the quota of each resource.
    :param share: ``dominant``, ``asset`` or the name of a resource.
    :returns: (...,).
    """
    if share == DOMINANT:
        return np.asarray(parts.max(axis=-1))
    if share == ASSET:
        return np.asarray(parts.mean(axis=-1))
    return np.asarray(parts[..., resources.RESOURCES.index(share)])


def ideal(
    wishes: Wishes,
    share: str = DOMINANT,
    max_weight_ratio: float | None = None,
    solver: filling.Solver = highs.LinearProgram,
    clear: float = bounded.CLEAR,
) -> Ideal:
    """Divide every node so that users are lexicographically max-min fair.

    The amounts of resources that do not make the share are divided in the same
    way, after the shares.

    The largest of several parts is not concave, so that for ``dominant`` the
    resource that counts is fixed for each user: at first the one whose demand
    is the largest part of their quota (dominant resource fairness). A user who
    ends with a larger part of another resource changes to it, as long as the
    sorted shares become better.

    :param share: ``dominant``, ``asset`` or the name of a resource.
    :param max_weight_ratio: of weights that reach the allocation, >= 1;
        ``None`` for any allocation that fits.
    :param solver: of linear programs.
    :param clear: where weights bound: difference of shares below which two
        are equal, relative; 0 for the strict order.
    :raises UnknownShare: if there is no such share.
    :raises SolverFailed: if the solver gives up.
    """
    check_share(share)
    found = columns_module.columns(wishes, alike=max_weight_ratio is not None)
    if max_weight_ratio is None:
        divide = functools.partial(
            _divide_without_limits, wishes, found, solver
        )
    else:
        divide = functools.partial(
            bounded.divide_within_ratio,
            wishes,
            found,
            max_weight_ratio,
            solver,
            clear=clear,
        )
    if share != DOMINANT:
        return _to_ideal(divide(_fixed_share_factors(wishes, share)), share)
    return _dominant_ideal(wishes, divide)


def _to_ideal(division: bounded.BoundedDivision, share: str) -> Ideal:
    parts = division.parts
    return Ideal(share_of(parts, share), parts, division.is_strict)


def _fixed_share_factors(wishes: Wishes, share: str) -> Floats:
    """Factor by which each resource counts, (u, r)."""
    users, kinds = wishes.quota.shape
    if share == ASSET:
        return np.full((users, kinds), 1 / kinds)
    return np.tile(resources.RESOURCES.vector(**{share: 1.0}), (users, 1))


def _dominant_ideal(
    wishes: Wishes, divide: Callable[[Floats], bounded.BoundedDivision]
) -> Ideal:
    chosen = _wanted_parts(wishes).argmax(axis=1)
    best: Ideal | None = None
    for _ in range(_MOST_TURNS):
        found = _to_ideal(
            divide(np.eye(wishes.quota.shape[1])[chosen]), DOMINANT
        )
        parts = found.parts
        if best is not None and not _is_better(found.share, best.share):
            return best
        best = found
        had = parts[np.arange(len(parts)), chosen]
        other = found.share > had + _BETTER
        if not other.any():
            return best
        chosen = np.where(other, parts.argmax(axis=1), chosen)
    assert best is not None  # noqa: S101 - there is at least one turn
    return best


def _is_better(one: Floats, other: Floats) -> bool:
    """Compare sorted shares, the poorest first."""
    difference = np.sort(one) - np.sort(other)
    first = np.flatnonzero(np.abs(difference) > _BETTER)
    return bool(len(first) and difference[first[0]] > 0)


def _wanted_parts(wishes: Wishes) -> Floats:
    """Largest use of each user, as parts of the quotas, (u, r)."""
    users, kinds = wishes.quota.shape
    nodes = len(wishes.capacity)
    there = wishes.node >= 0
    cell = wishes.user[there] * nodes + wishes.node[there]
    most = np.zeros((users, kinds))
    for kind in range(kinds):
        total = np.bincount(
            cell, wishes.demand[there, kind], users * nodes
        ).reshape(users, nodes)
        most[:, kind] = np.minimum(total, wishes.capacity[:, kind]).sum(axis=1)
    return columns_module.fractions_of_quota(wishes.quota, most)


def _divide_without_limits(
    wishes: Wishes,
    found: columns_module.Columns,
    solver: filling.Solver,
    counts: Floats,
) -> bounded.BoundedDivision:
    """Divide without bounds of weights: raise users' shares and parts."""
    rows, cells = columns_module.capacity_limits(found, wishes.capacity)
    program = filling.program_of(
        found, wishes.quota, rows, np.ones(len(cells))
    )
    parts, _ = filling.raise_users(program, counts, solver)
    return bounded.BoundedDivision(parts)


class CachedIdeal:
    """Computes ideals, and keeps those of wants it has seen.

    :param share: as in :func:`ideal`.
    :param max_weight_ratio: as in :func:`ideal`.
    :param clear: as in :func:`ideal`.
    :param most: so many of the newest are remembered.
    """

    def __init__(
        self,
        share: str,
        max_weight_ratio: float | None,
        clear: float = bounded.CLEAR,
        most: int = 512,
    ) -> None:
        self._share = check_share(share)
        self._ratio = max_weight_ratio
        self._clear = clear
        self._most = most
        self._known: dict[bytes, Ideal] = {}

    def __call__(self, wishes: Wishes) -> Ideal:
        """Ideal of these wishes."""
        key = _digest_of_wishes(wishes)
        found = self._known.pop(key, None)
        if found is None:
            found = ideal(wishes, self._share, self._ratio, clear=self._clear)
        self._known[key] = found
        if len(self._known) > self._most:
            self._known.pop(next(iter(self._known)))
        return found


@functools.lru_cache(maxsize=8)
def cached_ideal(
    share: str,
    max_weight_ratio: float | None,
    clear: float = bounded.CLEAR,
) -> CachedIdeal:
    """The cache that all runs share, because many have the same cloud."""
    return CachedIdeal(share, max_weight_ratio, clear)


def _digest_of_wishes(wishes: Wishes) -> bytes:
    digest = hashlib.sha256()
    for field in dataclasses.fields(wishes):
        values = np.ascontiguousarray(getattr(wishes, field.name))
        digest.update(str(values.shape).encode())
        digest.update(values.tobytes())
    return digest.digest()
