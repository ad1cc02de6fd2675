# SPDX-License-Identifier: Apache-2.0

"""Figures about the use of hosts, before and after moves."""

from collections.abc import Iterable
import dataclasses

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import plans
from nova_fairness.planners import weighers
from nova_fairness.planners.consolidation import layout as layout_module


@dataclasses.dataclass(frozen=True, slots=True)
class UtilisationFigures:
    """Hosts in use, and the inequality of their use.

    :ivar busy: names of hosts in use.
    :ivar spread: largest use of a host beyond the average of all hosts, as a
        part of the host, in the class with the largest excess; 0 without
        hosts.
    """

    busy: frozenset[str]
    spread: float


def utilisation_figures(
    snapshot: cluster.ClusterSnapshot,
) -> UtilisationFigures:
    """Return the hosts in use, and how much the most used host exceeds the
    average.
    """
    layout = layout_module.HostLayout(snapshot, weighers.fullest)
    names = layout.hosts.names
    busy = [names[row] for row in np.flatnonzero(layout.busy)]
    return UtilisationFigures(
        frozenset(busy),
        max(float(layout.over().max(initial=0.0)), 0.0),
    )


def snapshot_after_moves(
    snapshot: cluster.ClusterSnapshot, moves: Iterable[plans.Move]
) -> cluster.ClusterSnapshot:
    """Return the snapshot after moves, in their order."""
    rows = {each.name: row for row, each in enumerate(snapshot.providers)}
    at = {each.uuid: each for each in snapshot.running}
    used = snapshot.inventory.used.copy()
    for move in moves:
        server = at[move.server]
        amounts = cluster.amounts_vector(
            dict(server.amounts), snapshot.classes
        )
        used[rows[server.host]] -= amounts
        used[rows[move.target]] += amounts
        at[move.server] = dataclasses.replace(server, host=move.target)
    return dataclasses.replace(
        snapshot,
        inventory=dataclasses.replace(snapshot.inventory, used=used),
        running=tuple(at.values()),
    )
