# SPDX-License-Identifier: Apache-2.0

"""Prices of preemptible servers: the cost of their eviction.

The price of a victim is a sum. The first summand is the lost work: the
victim's part of the cloud, in the class with the largest weighted part, times
the seconds since it began. The second is for the account: for each grade by
which its excess is below the largest excess of all accounts, it is the part of
the victim times a number of seconds. The third is a minute of one host for
each server.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import request as request_model
from nova_fairness.planners import hosts as hosts_module
from nova_fairness.planners.preemption import candidates
from nova_fairness.planners.preemption import over_share

_EACH_S = 60.0
"""Cost of each evicted server, in seconds of one host."""


@dataclasses.dataclass(frozen=True, slots=True)
class EvictionCandidate:
    """Servers that are evicted together: one server, or all servers of a
    server group.

    :ivar servers: the servers, in the order of their UUIDs.
    :ivar place: row of their account in the share tree.
    """

    servers: tuple[cluster.Running, ...]
    place: int


def list_candidates(
    snapshot: cluster.ClusterSnapshot,
    levels: over_share.ShareLevels,
    now: float,
    least_s: float,
) -> list[EvictionCandidate]:
    """Return all candidates, in an order that depends only on UUIDs.

    All servers of a group may leave, or none.

    :param least_s: least seconds that each server must have run.
    """
    hosts = {each.name for each in snapshot.providers}
    together: dict[tuple[str, str], list[cluster.Running]] = {}
    for each in sorted(snapshot.running, key=lambda each: each.uuid):
        if each.band is request_model.Band.PREEMPTIBLE:
            key = (each.project, each.group) if each.group else ('', each.uuid)
            together.setdefault(key, []).append(each)
    return [
        EvictionCandidate(
            tuple(those), levels.place(those[0].project, those[0].user)
        )
        for those in together.values()
        if all(
            each.host in hosts
            and each.uuid not in snapshot.leaving
            and now - each.since >= least_s
            for each in those
        )
    ]


def victim_candidates(
    snapshot: cluster.ClusterSnapshot,
    levels: over_share.ShareLevels,
    hosts: hosts_module.Hosts,
    listed: Sequence[EvictionCandidate],
    now: float,
    step_s: float,
) -> candidates.VictimCandidates:
    """Return the hosts with their free amounts, and the price of each
    candidate.

    :param hosts: hosts of the cloud.
    :param listed: candidates that may be evicted.
    :param now: seconds of the epoch.
    :param step_s: seconds of lost work that a grade costs; see
        :meth:`.over_share.Levels.grades`.
    """
    owners = sorted({each.place for each in listed})
    owner = np.array([owners.index(e.place) for e in listed], dtype=np.intp)
    party, parts = _server_parts(snapshot, listed)
    since = np.array([s.since for each in listed for s in each.servers])
    size = parts.max(axis=1, initial=0.0)
    work = _sum_by_candidate(
        party, size * np.maximum(now - since, 0.0), len(listed)
    )
    taken = lost_parts(snapshot, listed).max(axis=1, initial=0.0)
    grades = levels.grades()[owners]
    behind = (grades.max(initial=0.0) - grades)[owner]
    each_s = _EACH_S / max(len(snapshot.providers), 1)
    counts = np.array([len(each.servers) for each in listed], dtype=float)
    share = np.array([levels.part(place) for place in owners])[owner]
    entries = list(_candidate_amounts(snapshot, hosts, listed))
    return candidates.VictimCandidates(
        free=hosts.free,
        party=np.array([v for v, _, _ in entries], dtype=np.intp),
        row=np.array([row for _, row, _ in entries], dtype=np.intp),
        amounts=np.array([e for _, _, e in entries], np.int64).reshape(
            -1, len(snapshot.classes)
        ),
        servers=tuple(tuple(s.uuid for s in e.servers) for e in listed),
        owner=owner,
        since=np.array([min(s.since for s in e.servers) for e in listed]),
        price=work + step_s * behind * taken + each_s * counts,
        level=levels.level[owners],
        step=np.divide(
            taken, share, out=np.zeros(len(listed)), where=share > 0
        ),
        now=now,
    )


def lost_parts(
    snapshot: cluster.ClusterSnapshot, listed: Sequence[EvictionCandidate]
) -> candidates.Floats:
    """Return the weighted parts of the cloud that owners lose with candidates,
    (v, c).

    The weights are those of :func:`.over_share.class_weights`.
    """
    party, parts = _server_parts(snapshot, listed)
    return (
        np.array(
            [
                _sum_by_candidate(party, parts[:, c], len(listed))
                for c in range(parts.shape[1])
            ]
        )
        .reshape(parts.shape[1], len(listed))
        .T
    )


def _server_parts(
    snapshot: cluster.ClusterSnapshot, listed: Sequence[EvictionCandidate]
) -> tuple[candidates.Rows, candidates.Floats]:
    """Return the candidate of each server, (s,), and the weighted part of the
    cloud of the server, (s, c).

    The weights are those of :func:`.over_share.class_weights`.
    """
    capacity = snapshot.inventory.capacity.sum(axis=0, dtype=np.float64)
    column = {name: c for c, name in enumerate(snapshot.classes)}
    servers = [(v, s) for v, e in enumerate(listed) for s in e.servers]
    amounts = np.zeros((len(servers), len(column)))
    for at, (_, server) in enumerate(servers):
        for name, amount in server.amounts:
            if name in column:
                amounts[at, column[name]] = amount
    party = np.array([v for v, _ in servers], dtype=np.intp)
    parts = np.divide(
        amounts, capacity, out=np.zeros_like(amounts), where=capacity > 0
    )
    return party, parts * over_share.class_weights(snapshot)


def _sum_by_candidate(
    party: candidates.Rows, values: candidates.Floats, count: int
) -> candidates.Floats:
    return np.bincount(party, values, minlength=count).astype(np.float64)


def _candidate_amounts(
    snapshot: cluster.ClusterSnapshot,
    hosts: hosts_module.Hosts,
    listed: Sequence[EvictionCandidate],
) -> Iterator[tuple[int, int, cluster.Amounts]]:
    row = {name: at for at, name in enumerate(hosts.names)}
    for v, each in enumerate(listed):
        by_row: dict[int, cluster.Amounts] = {}
        for server in each.servers:
            at = row[server.host]
            amounts = cluster.amounts_vector(
                dict(server.amounts), snapshot.classes
            )
            by_row[at] = by_row.get(at, 0) + amounts
        for at, amounts in sorted(by_row.items()):
            yield v, at, amounts
