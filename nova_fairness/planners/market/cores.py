# SPDX-License-Identifier: Apache-2.0

"""Phase 2: which cores of its host the VCPUs of a server run on.

As published (Rajagopalan 2012, figure 2) every VCPU goes to the cheapest core,
and two of one server can meet while other cores are free of it. Here they
meet only if the server has more VCPUs than its host has cores. A server's
rate is divided among its VCPUs, so that it pays once.
"""

from collections.abc import Iterable

import numpy as np


def assigned(
    servers: Iterable[tuple[str, float, int]], cores: int
) -> dict[str, tuple[int, ...]]:
    """Say on which core each VCPU runs.

    :param servers: of one host: UUID, rate > 0 and VCPUs >= 1 of each.
    :param cores: of the host, >= 1.
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
