# SPDX-License-Identifier: Apache-2.0

"""Choice between the alternative demands of each request.

Nova asks Placement for dedicated CPUs and then, for the same server, for
shared CPUs. It uses the first alternative for which it finds a host. A plan
chooses one alternative for each request: the first for which hosts have room
now. If no alternative has room, the plan counts for each alternative how many
servers all hosts could run when they are empty. It chooses the alternative
with the largest count, and the first of equal ones. This choice does not
change while other servers start and end, so that a reservation does not change
hosts. The amounts of the chosen alternative are counted, charged and reserved.

A server that needs a resource class that no host has is passed to Nova. Only
Nova knows whether another service provides the class, and returns its error at
once if no service does. A class that is missing for a short time is among the
classes of the snapshot, or the snapshot reports that it does not contain all
classes; then the server waits.
"""

from collections.abc import Iterable
import dataclasses

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.planners import hosts as hosts_module


def with_chosen_alternatives(
    snapshot: cluster.ClusterSnapshot,
) -> cluster.ClusterSnapshot:
    """Return the snapshot with one chosen alternative for each waiting
    request.

    A second call changes nothing. A preemptor has the alternative that its
    reserved hosts provide.
    """
    if not any(_needs_alternative(each) for each in snapshot.requests):
        return snapshot
    chooser = _AlternativeChooser(snapshot)
    requests = tuple(
        dataclasses.replace(each, demand=chooser.choose(each))
        if _needs_alternative(each)
        else each
        for each in snapshot.requests
    )
    return dataclasses.replace(snapshot, requests=requests)


def actions_for_passed_requests(
    waiting: Iterable[tuple[request_model.Request, reason.Why]],
    snapshot: cluster.ClusterSnapshot,
) -> list[cluster.Action]:
    """Return actions that pass requests to Nova which wait only for a resource
    class that no host has.

    Requests that must start together with such a request wait. They can start
    without it in the next plan, so that no request starts before its turn by
    this rule.

    :param waiting: requests with one alternative each, and the reasons why
        they wait.
    """
    known = frozenset(snapshot.classes)
    return [
        cluster.Action(cluster.Verb.PASS, each.uuid, each.version, (), why)
        for each, why in waiting
        if why.reason is reason.Reason.LEFT_TO_NOVA
        and not each.demand.is_of(known)
    ]


def _needs_alternative(request: request_model.Request) -> bool:
    """Whether a request waits, and no alternative has been chosen for it."""
    return request.demand.is_open and (
        request.state is request_model.State.WAITING
    )


class _AlternativeChooser:
    """Chooses alternatives of requests, for the hosts of one snapshot."""

    def __init__(self, snapshot: cluster.ClusterSnapshot) -> None:
        self._snapshot = snapshot
        self._hosts = hosts_module.Hosts(snapshot)
        self._chosen: dict[
            tuple[request_model.Demand, int], request_model.Demand
        ] = {}

    def choose(self, request: request_model.Request) -> request_model.Demand:
        """Return the alternative that is chosen for a request."""
        if not self._snapshot.falls_back:
            return request.demand.alternatives[0]
        promised = self._snapshot.promised.get(request.uuid)
        rows = self._hosts.rows(promised or ())
        if len(rows):
            return request.demand.on(self._classes_of_host(int(rows[0])))
        key = request.demand, len(request.servers)
        if key not in self._chosen:
            self._chosen[key] = self._choose_first_fitting(*key)
        return self._chosen[key]

    def _classes_of_host(self, row: int) -> frozenset[str]:
        """Return the resource classes that a host has."""
        has = self._hosts.capacity[:, row] > 0
        classes = np.array(self._snapshot.classes, dtype=object)
        return frozenset(classes[has])

    def _choose_first_fitting(
        self, demand: request_model.Demand, count: int
    ) -> request_model.Demand:
        known = frozenset(self._snapshot.classes)
        ways = [each for each in demand.alternatives if each.is_of(known)]
        most = []
        for each in ways:
            shape = self._hosts.shape(each)
            free = self._hosts.free[shape.columns][:, shape.rows]
            now = hosts_module.smallest_by_column(
                free // shape.amounts, len(shape.rows)
            )
            if int(now.clip(min=0).sum()) >= count:
                return each
            most.append(min(int(shape.count_when_empty.sum()), count))
        return ways[int(np.argmax(most))] if ways else demand.alternatives[0]
