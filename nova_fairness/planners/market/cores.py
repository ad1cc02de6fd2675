# SPDX-License-Identifier: Apache-2.0

"""Phase 2 of the market plan: the core on which each VCPU of a server runs.

In the published algorithm (Rajagopalan 2012, figure 2) every VCPU goes to the
cheapest core, and two VCPUs of one server can be on one core while other cores
have none. Here this happens only if the server has more VCPUs than its host
has cores. The rate of a server is divided among its VCPUs, so that it pays
once.
"""

from collections.abc import Iterable

import numpy as np


def assign_cores(
    servers: Iterable[tuple[str, float, int]], cores: int
) -> dict[str, tuple[int, ...]]:
    """Assign a core to each VCPU.

    :param servers: servers of one host: UUID, rate > 0 and VCPUs >= 1 of each.
    :param cores: number of cores of the host, >= 1.
    :returns: cores from 0 up, one per VCPU, by UUID.
    """
    price = np.zeros(cores)
    found = {}
    for uuid, rate, vcpus in sorted(
        servers, key=lambda each: (-each[1], each[0])
    ):
        cheapest = np.argsort(price, kind='stable')
        taken = cheapest[np.arange(vcpus) % cores]
        np.add.at(price, taken, rate / vcpus)
        found[uuid] = tuple(taken.tolist())
    return found
