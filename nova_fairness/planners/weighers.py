# SPDX-License-Identifier: Apache-2.0

"""Rules that choose the host of a server among the hosts with room.

All rules have the same arguments and return scores, so that the queue, which
starts servers, and the planner that moves servers can use each of them.
Amounts are parts of each host, so that classes and hosts of different size are
comparable.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import types
import zlib

import numpy as np
import numpy.typing as npt

from nova_fairness.model import cluster
from nova_fairness.planners import hosts as hosts_module

Fractions = hosts_module.Fractions

_ODD = np.uint64(0x9E3779B97F4A7C15)
_BITS = np.uint64(29)


@dataclasses.dataclass(frozen=True, eq=False)
class FittingHosts:
    """Hosts that have room for a server.

    :ivar asked: (k, m) amounts that the server needs, > 0.
    :ivar free_after: (k, m) amounts that remain free beside the server, >= 0.
    :ivar keys: (m,) a number that identifies each host.
    :ivar salt: a number that identifies the server.
    """

    asked: Fractions
    free_after: Fractions
    keys: npt.NDArray[np.uint64]
    salt: int


Rule = Callable[[FittingHosts], Fractions]
"""Returns scores, (m,). The host with the lowest score is chosen; of hosts
with equal scores, the first by UUID.
"""


def fullest(seen: FittingHosts) -> Fractions:
    """Score by the free amounts that remain: the host with the highest use
    is chosen (first fit, Baadal).
    """
    total: Fractions = seen.free_after.sum(axis=0)
    return total


def best_fit(seen: FittingHosts) -> Fractions:
    """Score by the sum of squares of the free amounts that remain
    (Panigrahy et al. 2011).
    """
    total: Fractions = (seen.free_after**2).sum(axis=0)
    return total


def dot_product(seen: FittingHosts) -> Fractions:
    """Score by the product of request and free amounts; the largest is
    chosen (Panigrahy et al. 2011).
    """
    total: Fractions = -(seen.asked * (seen.free_after + seen.asked)).sum(
        axis=0
    )
    return total


def cosine(seen: FittingHosts) -> Fractions:
    """Score by the angle between the vectors of free amounts and of the
    request; the smallest is chosen.

    Both are vectors over the classes. The fuller host is taken if directions
    do not differ much.
    """
    free = seen.free_after + seen.asked
    along: Fractions = (seen.asked * free).sum(axis=0)
    square: Fractions = (seen.asked**2).sum(axis=0) * (free**2).sum(axis=0)
    return fullest(seen) * (2.0 - along / square**0.5)


def emptiest(seen: FittingHosts) -> Fractions:
    """Score so that the host with the most free amounts is chosen, which
    spreads servers.
    """
    return -fullest(seen)


def random_fit(seen: FittingHosts) -> Fractions:
    """Return pseudo-random scores, which are always the same for the same
    server.
    """
    with np.errstate(over='ignore'):
        mixed = (seen.keys ^ np.uint64(seen.salt)) * _ODD
        mixed = (mixed ^ (mixed >> _BITS)) * _ODD
    return (mixed >> np.uint64(11)).astype(np.float64)


RULES: Mapping[str, Rule] = types.MappingProxyType(
    {
        'fullest': fullest,
        'best_fit': best_fit,
        'dot_product': dot_product,
        'cosine': cosine,
        'emptiest': emptiest,
        'random': random_fit,
    }
)
"""Rules by the names that operators configure."""


def salt_of(name: str, seed: int = 0) -> int:
    """Return a number that identifies a server, computed from its UUID."""
    return zlib.crc32(name.encode(), seed)


def host_scores(
    hosts: hosts_module.Hosts,
    free: cluster.Amounts,
    shape: hosts_module.Shape,
    index: hosts_module.Rows,
    rule: Rule,
    salt: int = 0,
) -> Fractions:
    """Return the scores of hosts that have room for a server.

    :param free: (c, p) free amounts.
    :param shape: shape of the server.
    :param index: (m,) indices of the hosts in ``shape.rows``.
    :param salt: see :func:`salt_of`.
    """
    rows = shape.rows[index]
    inverse = shape.inverse[:, index]
    left = (free[shape.columns][:, rows] - shape.amounts) * inverse
    return rule(
        FittingHosts(shape.amounts * inverse, left, hosts.keys[rows], salt)
    )


def choose_host(
    hosts: hosts_module.Hosts,
    free: cluster.Amounts,
    shape: hosts_module.Shape,
    rule: Rule,
    salt: int = 0,
    allowed: hosts_module.Marks | None = None,
) -> hosts_module.Rows:
    """Return the row of the host that a rule chooses for one server.

    :param free: (c, p) free amounts.
    :param shape: shape of the server.
    :param salt: see :func:`salt_of`.
    :param allowed: (p,) hosts that may be used; ``None`` for all.
    :returns: one row, or an empty array if no host has room.
    """
    index = hosts_module.fitting_hosts(free, shape, allowed)
    if len(index) > 1:
        scores = host_scores(hosts, free, shape, index, rule, salt)
        least = int(scores.argmin())
        index = index[least : least + 1]
    return shape.rows[index]
