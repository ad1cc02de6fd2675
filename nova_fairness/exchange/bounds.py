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

"""What is believed of a peer: the largest sizes that an operator expects."""

from collections.abc import Mapping
import dataclasses
from typing import Any

import numpy as np

from nova_fairness import exception
from nova_fairness.model import resources

LARGEST_CAPACITY: Mapping[str, float] = {
    'cpu_time': 1e8,
    'disk_read': 1e12,
    'disk_written': 1e12,
    'net_received': 1e12,
    'net_sent': 1e12,
    'memory': 1e15,
}
"""Of one node, unless configured; above anything built so far."""


@dataclasses.dataclass(frozen=True, eq=False)
class Bounds:
    """Everything that limits what peers can make this node believe or keep.

    :ivar domain: nodes of one domain exchange reports.
    :ivar view_max_age: intervals after which a report is too old.
    :ivar max_users: in one report.
    :ivar max_total_users: rows of all kept reports together.
    :ivar max_peers: hosts that are remembered.
    :ivar capacity: (r,) largest of one node; per second where time-shared.
    :ivar max_heaviness: largest magnitude of a user's heaviness on a node,
        norm units.
    :ivar forget_after_s: a peer that was silent that long is not known any
        more.
    :ivar max_text: characters of any name.
    :ivar max_cpus: of one node.
    :ivar max_instances: VMs of one user on one node.
    :ivar max_interval_s: longest measured interval.
    """

    domain: str = 'nova-fairness'
    view_max_age: float = 3.0
    max_users: int = 10_000
    max_total_users: int = 1_000_000
    max_peers: int = 2_000
    capacity: resources.Vector = dataclasses.field(
        default_factory=lambda: resources.RESOURCES.vector(**LARGEST_CAPACITY)
    )
    max_heaviness: float = 1e6
    forget_after_s: float = 3600.0
    max_text: int = 255
    max_cpus: int = 16_384
    max_instances: int = 100_000
    max_interval_s: float = 86_400.0


def from_options(group: Any) -> Bounds:
    """Freeze the options of ``[fairness_exchange]``.

    :param group: with an attribute for each option.
    :raises ConfigurationError: if a capacity is no positive number or its
        resource is unknown.
    """
    return Bounds(
        domain=group.domain,
        view_max_age=group.view_max_age,
        max_users=group.max_users,
        max_total_users=group.max_total_users,
        max_peers=group.max_peers,
        capacity=_capacity(group.max_peer_capacity),
        max_heaviness=group.max_peer_heaviness,
        forget_after_s=group.forget_peer_after,
    )


def _capacity(configured: Mapping[str, str]) -> resources.Vector:
    known = resources.RESOURCES.names
    if strange := sorted(set(configured) - set(known)):
        raise exception.ConfigurationError(
            f'[fairness_exchange] max_peer_capacity names {strange}; '
            f'expected resources out of {", ".join(known)}'
        )
    given = {name: _positive(name, text) for name, text in configured.items()}
    return resources.RESOURCES.vector(**{**LARGEST_CAPACITY, **given})


def _positive(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not 0 < number <= np.finfo(np.float64).max:
        raise exception.ConfigurationError(
            f'[fairness_exchange] max_peer_capacity = {name}:{text}; '
            'expected a number above 0'
        )
    return number
