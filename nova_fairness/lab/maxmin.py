# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What would be fair: max-min allocations of one node's CPU (pure).

An allocation is max-min fair if nobody's part can grow without taking from
somebody who has no more. Parts are found by filling: whoever wants less than
an equal part gets what they want, and the rest is divided among the others.
"""

from collections.abc import Mapping
import math

Amounts = Mapping[str, float]
"""CPUs, or weights, by name of a VM or a user."""


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


def allocate(
    capacity: float,
    demand: Amounts,
    owner: Mapping[str, str],
    user_weight: Amounts,
) -> dict[str, float]:
    """Divide a node among users, and each user's part among their VMs.

    :param capacity: CPUs of the node.
    :param demand: CPUs that each VM wants.
    :param owner: user of each VM.
    :param user_weight: > 0; a user who is not named weighs 1.
    :returns: CPUs that each VM gets: max-min between the users by weight,
        and between the VMs of a user equally.
    """
    by_user: dict[str, dict[str, float]] = {}
    for vm, wanted in demand.items():
        by_user.setdefault(owner[vm], {})[vm] = wanted
    parts = water_fill(
        capacity,
        {user: math.fsum(vms.values()) for user, vms in by_user.items()},
        {user: user_weight.get(user, 1.0) for user in by_user},
    )
    got: dict[str, float] = {}
    for user, vms in by_user.items():
        got.update(water_fill(parts[user], vms, dict.fromkeys(vms, 1.0)))
    return {vm: got[vm] for vm in demand}


def bounded(
    capacity: float,
    demand: Amounts,
    owner: Mapping[str, str],
    user_weight: Amounts,
    vcpus: Mapping[str, int],
    ratio: float,
) -> dict[str, float]:
    """Give the most that each user can get when weights are bounded.

    The kernel shares the CPU in proportion to vCPUs x weight, whoever owns a
    VM. The best that can be done for one user is the largest weight for all
    of their VMs and the smallest, ``1 / ratio`` of it, for all others; and
    nobody is given more than their max-min part.

    :param vcpus: of each VM, >= 1.
    :param ratio: largest to smallest weight, >= 1.
    :returns: CPUs by user.
    """
    fair = allocate(capacity, demand, owner, user_weight)
    result: dict[str, float] = {}
    for user in sorted({owner[vm] for vm in demand}):
        weight = {
            vm: vcpus[vm] * (ratio if owner[vm] == user else 1.0)
            for vm in demand
        }
        most = water_fill(capacity, demand, weight)
        result[user] = min(
            math.fsum(most[vm] for vm in demand if owner[vm] == user),
            math.fsum(fair[vm] for vm in demand if owner[vm] == user),
        )
    return result
