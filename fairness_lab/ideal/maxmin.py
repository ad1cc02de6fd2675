# SPDX-License-Identifier: Apache-2.0

"""Fair allocations: max-min allocations of nodes' CPUs (pure).

An allocation is max-min fair if no user's part can grow without taking from a
user who has no larger part. Parts are found by filling: a user who wants less
than an equal part gets all of it, and the rest is divided among the others.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import math

Amounts = Mapping[str, float]
"""CPUs, or weights, by name of a VM, a user or a node."""

_MOST_SWEEPS = 1000
_SETTLED = 1e-9


def water_fill(
    capacity: float, demand: Amounts, weight: Amounts
) -> dict[str, float]:
    """Divide a capacity max-min fairly in proportion to weights.

    :param capacity: to divide, >= 0.
    :param demand: what each one wants at most, >= 0.
    :param weight: by the same names, > 0.
    :returns: what each one gets; the sum is the smaller of capacity and
        total demand.
    """
    got: dict[str, float] = {}
    left = capacity
    order = sorted(
        demand, key=lambda name: (demand[name] / weight[name], name)
    )
    for place, name in enumerate(order):
        waiting = math.fsum(weight[other] for other in order[place:])
        part = left * weight[name] / waiting
        got[name] = min(demand[name], part)
        left = max(0.0, left - got[name])
    return got


def fill_up(
    capacity: float, demand: Amounts, weight: Amounts, had: Amounts
) -> dict[str, float]:
    """Divide a capacity among the poorest first; earlier amounts count.

    All who get something and want more end at one level of
    ``(had + got) / weight``; those who had more than that get nothing.

    :param capacity: to divide, >= 0.
    :param demand: what each one wants at most, >= 0.
    :param weight: by the same names, > 0.
    :param had: what each one has already, >= 0.
    :returns: what each one gets; the sum is the smaller of capacity and
        total demand.
    """

    def at(level: float) -> dict[str, float]:
        return {
            name: min(max(level * weight[name] - had[name], 0.0), wanted)
            for name, wanted in demand.items()
        }

    levels = {had[name] / weight[name] for name in demand}
    levels |= {(had[n] + wanted) / weight[n] for n, wanted in demand.items()}
    low = 0.0
    for high in sorted(levels):
        if math.fsum(at(high).values()) >= capacity:
            return at(_level_between(low, high, capacity, at))
        low = high
    return dict(demand)


def _level_between(
    low: float,
    high: float,
    capacity: float,
    at: Callable[[float], Amounts],
) -> float:
    """Find the level between two levels, where the sum is linear."""
    least = math.fsum(at(low).values())
    most = math.fsum(at(high).values())
    if most <= least:
        return high
    return low + (high - low) * (capacity - least) / (most - least)


@dataclasses.dataclass(frozen=True)
class IdealCloud:
    """Nodes, VMs and their wants.

    :ivar capacity: CPUs of each node.
    :ivar demand: CPUs that each VM wants.
    :ivar node: of each VM.
    :ivar owner: user of each VM.
    :ivar user_weight: > 0; a user who is not named weighs 1.
    """

    capacity: Amounts
    demand: Amounts
    node: Mapping[str, str]
    owner: Mapping[str, str]
    user_weight: Amounts

    def weights(self) -> dict[str, float]:
        """Weight of every user who has a VM."""
        users = sorted({self.owner[vm] for vm in self.demand})
        return {user: self.user_weight.get(user, 1.0) for user in users}

    def wanted(self, node: str) -> dict[str, dict[str, float]]:
        """Demand of each VM on a node, by user and VM."""
        found: dict[str, dict[str, float]] = {}
        for vm, wanted in self.demand.items():
            if self.node[vm] == node:
                found.setdefault(self.owner[vm], {})[vm] = wanted
        return found


def allocate(cloud: IdealCloud) -> dict[str, float]:
    """Divide nodes among users, and each user's part among their VMs.

    Users are equal in what they have on all nodes together. A node cannot give
    what it does not have and leaves nothing unused that a user wants there, so
    each node is filled up in turn from the poorest on, what they have
    elsewhere included, until no node changes anything any more. That is where
    the sum of ``total^2 / weight`` over the users is least, which for such
    divisions is the max-min fair one.

    :returns: CPUs that each VM gets: max-min between the users by weight,
        and between the VMs of a user on one node equally.
    """
    weight = cloud.weights()
    wanted = {node: cloud.wanted(node) for node in cloud.capacity}
    got = {node: dict.fromkeys(users, 0.0) for node, users in wanted.items()}
    for _ in range(_MOST_SWEEPS if len(got) > 1 else 1):
        moved = 0.0
        for node, users in wanted.items():
            new = fill_up(
                cloud.capacity[node],
                {user: math.fsum(vms.values()) for user, vms in users.items()},
                weight,
                {
                    user: _amount_on_other_nodes(got, node, user)
                    for user in users
                },
            )
            changes = [abs(new[user] - got[node][user]) for user in users]
            moved = max(moved, *changes, 0.0)
            got[node] = new
        if moved < _SETTLED:
            break
    parts: dict[str, float] = {}
    for node, users in wanted.items():
        for user, vms in users.items():
            even = dict.fromkeys(vms, 1.0)
            parts.update(water_fill(got[node][user], vms, even))
    return {vm: parts[vm] for vm in cloud.demand}


def _amount_on_other_nodes(
    got: Mapping[str, Amounts], node: str, user: str
) -> float:
    return math.fsum(
        users.get(user, 0.0) for name, users in got.items() if name != node
    )


def bounded(
    cloud: IdealCloud,
    fair: Amounts,
    vcpus: Mapping[str, int],
    ratio: float,
) -> dict[str, float]:
    """Largest amount that each user can get if weights are bounded.

    The kernel shares the CPU in proportion to vCPUs x weight, without regard
    to owners. The best for one user on a node is the largest weight for all of
    their VMs and the smallest, ``1 / ratio`` of it, for all others. No user is
    given more there than their max-min part.

    :param fair: CPUs of each VM, of :func:`allocate`.
    :param vcpus: of each VM, >= 1.
    :param ratio: largest to smallest weight, >= 1.
    :returns: CPUs by user.
    """
    result = dict.fromkeys(cloud.weights(), 0.0)
    for node, capacity in cloud.capacity.items():
        users = cloud.wanted(node)
        demand = {vm: cloud.demand[vm] for vms in users.values() for vm in vms}
        for user, mine in users.items():
            weight = {
                vm: vcpus[vm] * (ratio if vm in mine else 1.0) for vm in demand
            }
            most = water_fill(capacity, demand, weight)
            result[user] += min(
                math.fsum(most[vm] for vm in mine),
                math.fsum(fair[vm] for vm in mine),
            )
    return result
