# SPDX-License-Identifier: Apache-2.0

"""One of the ways in which Nova would hold a server, for every request.

Nova asks Placement for dedicated CPUs and then, for the same server, for
shared ones. It takes the first that it finds. A plan has one way for each
request: the first for which hosts have room now. If none have, it is the way
in which all hosts hold most servers when they are empty, and of equal ones the
first; that stays the same while others start and end, so that a reservation
does not change hosts. The amounts of that way are counted, charged and kept.

A server that asks for a class that no host has is left to Nova: Nova alone
knows whether something else gives it, and tells its error at once if nothing
does. A class that is missing for a moment is among those of the snapshot, or
the snapshot says that it does not know; then the server waits.
"""

from collections.abc import Iterable
import dataclasses

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.planners import hosts as hosts_module


def chosen(snapshot: cluster.ClusterSnapshot) -> cluster.ClusterSnapshot:
    """The cloud with one way for each request; done again, it changes nothing.

    A preemptor has the way of the hosts of its reservation.
    """
    if not any(_is_open(each) for each in snapshot.requests):
        return snapshot
    ways = _Ways(snapshot)
    requests = tuple(
        dataclasses.replace(each, demand=ways.of(each))
        if _is_open(each)
        else each
        for each in snapshot.requests
    )
    return dataclasses.replace(snapshot, requests=requests)


def passed(
    waiting: Iterable[tuple[request_model.Request, reason.Why]],
    snapshot: cluster.ClusterSnapshot,
) -> list[cluster.Action]:
    """Pass requests to Nova that only the lack of a class keeps.

    Others that are to start together with it wait: without it they can start
    in the next plan, and no request gets past the queue with its help.

    :param waiting: requests, with one way each, and why they wait.
    """
    known = frozenset(snapshot.classes)
    return [
        cluster.Action(cluster.Verb.PASS, each.uuid, each.version, (), why)
        for each, why in waiting
        if why.reason is reason.Reason.LEFT_TO_NOVA
        and not each.demand.is_of(known)
    ]


def _is_open(request: request_model.Request) -> bool:
    """Whether a request waits and has no way yet."""
    return request.demand.is_open and (
        request.state is request_model.State.WAITING
    )


class _Ways:
    """Ways of requests, on the hosts of a moment."""

    def __init__(self, snapshot: cluster.ClusterSnapshot) -> None:
        self._snapshot = snapshot
        self._hosts = hosts_module.Hosts(snapshot)
        self._known: dict[
            tuple[request_model.Demand, int], request_model.Demand
        ] = {}

    def of(self, request: request_model.Request) -> request_model.Demand:
        """The way of a request."""
        if not self._snapshot.falls_back:
            return request.demand.alternatives[0]
        promised = self._snapshot.promised.get(request.uuid)
        rows = self._hosts.rows(promised or ())
        if len(rows):
            return request.demand.on(self._classes(int(rows[0])))
        key = request.demand, len(request.servers)
        if key not in self._known:
            self._known[key] = self._first(*key)
        return self._known[key]

    def _classes(self, row: int) -> frozenset[str]:
        """Classes that a host has."""
        has = self._hosts.capacity[:, row] > 0
        classes = np.array(self._snapshot.classes, dtype=object)
        return frozenset(classes[has])

    def _first(
        self, demand: request_model.Demand, count: int
    ) -> request_model.Demand:
        known = frozenset(self._snapshot.classes)
        ways = [each for each in demand.alternatives if each.is_of(known)]
        most = []
        for each in ways:
            shape = self._hosts.shape(each)
            free = self._hosts.free[shape.columns][:, shape.rows]
            now = hosts_module.smallest(free // shape.amounts, len(shape.rows))
            if int(now.clip(min=0).sum()) >= count:
                return each
            most.append(min(int(shape.whole.sum()), count))
        return ways[int(np.argmax(most))] if ways else demand.alternatives[0]
