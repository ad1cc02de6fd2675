# SPDX-License-Identifier: Apache-2.0

"""What users and operators can ask the cluster service for."""

from collections.abc import Mapping
import datetime as dt
from typing import Any

import numpy as np

from nova_fairness import exception
from nova_fairness.cluster import service as service_module
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import cluster
from nova_fairness.model import queue
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.rpc import requests as interface
from nova_fairness.shares import overview

_OPEN = frozenset(request_model.State) - request_model.FINAL


class Operations(interface.Operations):
    """Answers of the process that acts.

    :param store: of requests.
    :param service: that acts, or does not.
    """

    def __init__(
        self, store: store_module.Store, service: service_module.Service
    ) -> None:
        self._store = store
        self._service = service

    def requests(
        self, project: str | None, marker: str | None, limit: int
    ) -> interface.Answer:
        """Requests that have not ended, the oldest first."""
        last = self._service.last()
        found = [
            each
            for each in self._store.requests(_OPEN)
            if project is None or each.request.project == project
        ]
        if marker is not None:
            after = _order(self._known(marker))
            found = [each for each in found if _order(each) > after]
        return {
            'requests': [_told(each, last.plan) for each in found[:limit]],
            'more': len(found) > limit,
        }

    def request(self, uuid: str) -> interface.Answer:
        """One request."""
        return {'request': _told(self._known(uuid), self._service.last().plan)}

    def cancel(self, uuid: str, by_operator: bool) -> interface.Answer:
        """Take a build back that waits, and delete its servers."""
        token = (
            reason.Reason.CANCELLED_BY_OPERATOR
            if by_operator
            else reason.Reason.TAKEN_BACK
        )
        self._known(uuid)
        self._service.cancel(uuid, reason.why(token))
        return self.request(uuid)

    def release(self, uuid: str) -> interface.Answer:
        """Start a request whatever the plan is."""
        self._known(uuid)
        self._service.release(uuid)
        return self.request(uuid)

    def capacity(self) -> interface.Answer:
        """How full the cloud is, and what starts now."""
        last = self._service.last()
        snapshot = last.snapshot
        takes = np.array([each.takes for each in snapshot.providers], bool)
        inventory = snapshot.inventory
        free = np.maximum(inventory.capacity - inventory.used, 0)[takes]
        unit = inventory.unit[takes]
        alone = np.minimum(free, unit)
        return {
            'hosts_count': int(takes.sum()),
            'waiting_count': len(last.plan.waiting),
            'seen_at': _time(last.at),
            'classes': [
                {
                    'name': name,
                    'capacity': int(inventory.capacity[takes, c].sum()),
                    'used': int(inventory.used[takes, c].sum()),
                    'largest': int(alone[:, c].max(initial=0)),
                }
                for c, name in enumerate(snapshot.classes)
            ],
            'flavors': [
                {
                    'name': name,
                    'starts': _fitting(amounts, snapshot, free, unit),
                }
                for name, amounts in sorted(self._service.flavors().items())
            ],
        }

    def shares(
        self, project: str | None, marker: str | None, limit: int
    ) -> interface.Answer:
        """The share tree, those below an account after it."""
        found = overview.standings(self._service.last().snapshot, project)
        start = 0
        if marker is not None:
            names = [each.account.name for each in found]
            if marker not in names:
                raise exception.UnknownAccount(f'there is no {marker}')
            start = names.index(marker) + 1
        end = start + limit
        return {
            'shares': [_standing(each) for each in found[start:end]],
            'more': len(found) > end,
        }

    def _known(self, uuid: str) -> records.Record:
        found = self._store.request(uuid)
        if found is None:
            raise exception.UnknownRequest(f'there is no request {uuid}')
        return found


def _standing(standing: overview.Standing) -> dict[str, Any]:
    account = standing.account
    return {
        'name': account.name,
        'parent': account.parent,
        'share': account.share,
        'normalised_share': standing.part,
        'used': dict(standing.used),
        'fair_share': standing.factor,
    }


def _order(record: records.Record) -> tuple[float, str]:
    return record.request.asked_at, record.request.uuid


def _fitting(
    amounts: Mapping[str, int],
    snapshot: cluster.ClusterSnapshot,
    free: cluster.Amounts,
    unit: cluster.Amounts,
) -> int:
    """Servers of one shape that fit now, whatever projects may have.

    :param free: (p, c) what each host has left.
    :param unit: (p, c) the most of it that one server can have.
    """
    columns = {name: c for c, name in enumerate(snapshot.classes)}
    wanted = {name: amount for name, amount in amounts.items() if amount > 0}
    if not wanted or not wanted.keys() <= columns.keys() or not len(free):
        return 0
    whole = [
        np.where(unit[:, columns[name]] >= n, free[:, columns[name]] // n, 0)
        for name, n in wanted.items()
    ]
    return int(np.min(whole, axis=0).sum())


def _told(record: records.Record, plan: cluster.Plan) -> dict[str, Any]:
    request = record.request
    place = plan.waiting.get(request.uuid)
    waits = request.state is request_model.State.HELD
    return {
        **queue.facts(request, record.why),
        'position': place.position if waits and place else None,
        'asked_at': _time(request.asked_at),
        'since': _time(record.changed_at),
        'expires_at': _time(request.expires_at),
    }


def _time(at_s: float | None) -> str | None:
    if at_s is None:
        return None
    return dt.datetime.fromtimestamp(at_s, dt.UTC).isoformat(
        timespec='seconds'
    )
