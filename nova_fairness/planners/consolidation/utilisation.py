# SPDX-License-Identifier: Apache-2.0

"""Results of moves: hosts in use, and how unevenly they are used."""

from collections.abc import Iterable
import dataclasses

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import plans
from nova_fairness.planners import weighers
from nova_fairness.planners.consolidation import layout as layout_module


@dataclasses.dataclass(frozen=True, slots=True)
class Figures:
    """A cloud in a few numbers.

    :ivar busy: names of hosts on which something is in use.
    :ivar spread: how much more the fullest host uses than all do on average,
        as a part of the host in the class in which it exceeds that most; 0
        without hosts.
    """

    busy: frozenset[str]
    spread: float


def figures(snapshot: cluster.ClusterSnapshot) -> Figures:
    """Hosts in use, and how much fuller than all one is."""
    layout = layout_module.HostLayout(snapshot, weighers.fullest)
    names = layout.hosts.names
    busy = [names[row] for row in np.flatnonzero(layout.busy)]
    return Figures(
        frozenset(busy),
        max(float(layout.over().max(initial=0.0)), 0.0),
    )


def after(
    snapshot: cluster.ClusterSnapshot, moves: Iterable[plans.Move]
) -> cluster.ClusterSnapshot:
    """The cloud once servers have moved, in the order of the moves."""
    rows = {each.name: row for row, each in enumerate(snapshot.providers)}
    at = {each.uuid: each for each in snapshot.running}
    used = snapshot.inventory.used.copy()
    for move in moves:
        server = at[move.server]
        amounts = cluster.vector(dict(server.amounts), snapshot.classes)
        used[rows[server.host]] -= amounts
        used[rows[move.target]] += amounts
        at[move.server] = dataclasses.replace(server, host=move.target)
    return dataclasses.replace(
        snapshot,
        inventory=dataclasses.replace(snapshot.inventory, used=used),
        running=tuple(at.values()),
    )
