# SPDX-License-Identifier: Apache-2.0

"""Calls of users and operators to the cluster service."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import datetime as dt
import math
from typing import Any

import numpy as np

from nova_fairness import exception
from nova_fairness.cluster import service as service_module
from nova_fairness.cluster.accounts import fields
from nova_fairness.cluster.admission import interventions
from nova_fairness.cluster.admission import start_estimates
from nova_fairness.cluster.api import border as border_module
from nova_fairness.cluster.api import plans
from nova_fairness.cluster.api import spending_groups
from nova_fairness.cluster.border import controller
from nova_fairness.cluster.eviction import at_risk
from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.move_plans import plan_controller
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import cluster
from nova_fairness.model import eviction
from nova_fairness.model import queue
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.model import risk
from nova_fairness.rpc import requests as interface
from nova_fairness.runtime import signatures as signatures_module
from nova_fairness.shares import overview
from nova_fairness.shares import tree as tree_module
from nova_fairness.shares import windows

_FIELDS = {
    'time_limit': 'time_limit_s',
    'longest_wait': 'longest_wait_s',
    'budget': 'budget_hours',
    'funds': 'funds',
    **{name: name for name in (*fields.AMOUNTS, 'windows')},
}
"""Fields of accounts by what answers call them."""

_OPEN = frozenset(request_model.State) - request_model.FINAL

_Notices = Mapping[str, Mapping[str, str]]


class ClusterOperations(
    plans.PlanOperations,
    spending_groups.GroupOperations,
    interface.ClusterCalls,
):
    """Answers of the process that acts.

    :param store: of requests.
    :param service: that acts, or does not.
    :param signatures: by which agents know the share tree; ``None`` where
        peers have no keys.
    :param partitioning: that moves hosts; ``None`` if none move.
    :param planned: that moves servers; ``None`` if none move.
    """

    def __init__(
        self,
        store: store_module.Store,
        service: service_module.Service,
        signatures: signatures_module.Signatures | None = None,
        partitioning: controller.BorderController | None = None,
        planned: plan_controller.PlanController | None = None,
    ) -> None:
        self._partitioning = partitioning
        self._planned = planned
        super().__init__(service, signatures)
        self._store = store
        self._tree: tuple[cluster.ClusterSnapshot, interface.Answer] | None
        self._tree = None
        self._asked: (
            tuple[start_estimates.LastCycle, frozenset[str], _Notices] | None
        ) = None

    def requests(
        self,
        project: str | None,
        marker: str | None,
        limit: int,
        preemptible: bool | None = None,
        audience: reason.Audience = interface.OPERATOR,
    ) -> interface.Answer:
        """Requests that have not ended, the oldest first."""
        self._service.last()
        found = [
            each
            for each in self._store.requests(_OPEN)
            if project in (None, each.request.project)
            and preemptible in (None, each.request.is_preemptible)
        ]
        if marker is not None:
            after = _order(self._known(marker))
            found = [each for each in found if _order(each) > after]
        return {
            'requests': self._told(found[:limit], audience),
            'more': len(found) > limit,
        }

    def request(
        self, uuid: str, audience: reason.Audience = interface.OPERATOR
    ) -> interface.Answer:
        """One request."""
        [told] = self._told([self._known(uuid)], audience)
        return {'request': told}

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

    def release(
        self, uuid: str, without_room: bool = False
    ) -> interface.Answer:
        """Start a request whatever the plan is."""
        self._known(uuid)
        self._service.release(uuid, without_room=without_room)
        return self.request(uuid)

    def first(self, uuid: str) -> interface.Answer:
        """Put a request before all others of its band."""
        return self._ordered(uuid, interventions.first)

    def unfirst(self, uuid: str) -> interface.Answer:
        """Let a request stand where the order puts it."""
        return self._ordered(uuid, interventions.unfirst)

    def hold(
        self, uuid: str, by_operator: bool, why: str | None = None
    ) -> interface.Answer:
        """Keep a request from starting."""
        return self._ordered(
            uuid, interventions.hold(_holder(by_operator), why or '')
        )

    def unhold(self, uuid: str, by_operator: bool) -> interface.Answer:
        """Let a request start in its turn."""
        return self._ordered(uuid, interventions.unhold(_holder(by_operator)))

    def _ordered(
        self, uuid: str, order: interventions.Order
    ) -> interface.Answer:
        self._known(uuid)
        self._service.order(uuid, order)
        return self.request(uuid)

    def capacity(self, project: str | None = None) -> interface.Answer:
        """How full the cloud is, and what starts now."""
        last = self._service.last()
        snapshot = last.snapshot
        flavors = self._service.nova.flavors(project)
        takes = np.array([each.takes for each in snapshot.providers], bool)
        inventory = snapshot.inventory
        free = np.maximum(inventory.capacity - inventory.used, 0)[takes]
        unit = inventory.unit[takes]
        alone = np.minimum(free, unit)
        return {
            'hosts_count': int(takes.sum()),
            'waiting_count': len(last.plan.waiting),
            'seen_at': _time(last.at),
            'estimates': last.calibrated
            and dataclasses.asdict(last.calibrated),
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
                for name, amounts in sorted(flavors.items())
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
                raise exception.UnknownAccount(f'there is no account {marker}')
            start = names.index(marker) + 1
        end = start + limit
        return {
            'shares': [_standing(each) for each in found[start:end]],
            'more': len(found) > end,
        }

    def set_share(self, name: str, share: float | None) -> interface.Answer:
        """Set the share of an account."""
        self._change(name, {'share': share})
        return {'account': name, 'share': share}

    def extend(self, uuid: str, by_s: float) -> interface.Answer:
        """Let servers of a request run longer."""
        self._known(uuid)
        self._service.extend(uuid, by_s)
        return self.request(uuid)

    def limits(
        self, project: str | None, marker: str | None, limit: int
    ) -> interface.Answer:
        """Accounts that have limits of their own."""
        snapshot, now = self._service.last().snapshot, self._service.last().at
        accounts, budgets = snapshot.accounts, snapshot.budgets
        names = tree_module.below(accounts, project)
        found = [
            {
                **_limits(each, budgets, now),
                'funds_left': self._trading.left(each.name),
            }
            for each in sorted(accounts, key=lambda each: each.name)
            if each.name in names and _has_limits(each)
        ]
        found = [each for each in found if each['account'] > (marker or '')]
        return {'limits': found[:limit], 'more': len(found) > limit}

    def set_limits(
        self, name: str, limits: Mapping[str, Any]
    ) -> interface.Answer:
        """Set limits of an account."""
        if unknown := limits.keys() - _FIELDS.keys():
            raise exception.BadArgument(
                f'there are no limits {", ".join(sorted(unknown))}, there is'
                f' {", ".join(_FIELDS)}'
            )
        values = {_FIELDS[key]: value for key, value in limits.items()}
        self._change(name, values)
        return {'account': name, **limits}

    def preemptions(
        self,
        project: str | None,
        marker: str | None,
        limit: int,
        audience: reason.Audience = interface.OPERATOR,
    ) -> interface.Answer:
        """Times that servers were to make room, the newest first."""
        self._service.last()
        if marker is not None:
            self.preemption(marker)
        leaves = self._store.leaves
        found = leaves.preemptions(project, marker, limit + 1)
        return {
            'preemptions': [
                queue.turn_facts(each, audience, project or '')
                for each in found[:limit]
            ],
            'more': len(found) > limit,
        }

    def preemption(
        self,
        uuid: str,
        project: str | None = None,
        audience: reason.Audience = interface.OPERATOR,
    ) -> interface.Answer:
        """One time that a server was to make room."""
        self._service.last()
        found = self._store.leaves.preemption(uuid)
        if found is None:
            raise exception.UnknownPreemption(f'there is no preemption {uuid}')
        return {'preemption': queue.turn_facts(found, audience, project or '')}

    def border(self) -> interface.Answer:
        """Hosts and wants of both sides of the border."""
        moving = self._moving()
        nodes = moving.nodes().values()
        aimed = self._store.nodes.aimed().hosts
        return {'partition': border_module.border(moving.last(), nodes, aimed)}

    def hosts(self, marker: str | None, limit: int) -> interface.Answer:
        """Hosts between batch and cloud, by name."""
        moving = self._moving()
        snapshot, nodes = moving.last().snapshot, moving.nodes()
        found = [name for name in sorted(nodes) if name > (marker or '')]
        return {
            'hosts': [
                border_module.host(nodes[name], snapshot)
                for name in found[:limit]
            ],
            'more': len(found) > limit,
        }

    def host(self, name: str) -> interface.Answer:
        """One host, with what runs there and its history."""
        moving = self._moving()
        node = moving.nodes().get(name)
        if node is None:
            raise exception.UnknownHost(
                f'host {name} is not in [fairness_partition] hosts_file'
            )
        told = border_module.host_in_full(node, moving.last().snapshot)
        return {'host': told}

    def move(self, name: str) -> interface.Answer:
        """Send a host to the other side."""
        self._moving().move(name)
        return self.host(name)

    def stay(self, name: str) -> interface.Answer:
        """Let a host stay that is on its way."""
        self._moving().cancel(name)
        return self.host(name)

    def aim(self, hosts: int | None) -> interface.Answer:
        """Say how many hosts the cloud is to have."""
        self._moving().aim(hosts)
        return {'target': hosts}

    def _moving(self) -> controller.BorderController:
        if self._partitioning is None:
            raise exception.UnknownHost(
                'no host moves between batch and cloud here:'
                ' [fairness_partition] batch names no batch system'
            )
        return self._partitioning

    def tree(self, known: str) -> interface.Answer:
        """Shares of all accounts, made once for all agents that ask."""
        snapshot, kept = self._service.last().snapshot, self._tree
        if kept is None or kept[0] is not snapshot:
            made = _tree(snapshot)
            if self._signatures:
                made |= self._signatures.signed_tree(made['version'])
            self._tree = kept = snapshot, made
        told = kept[1]
        return {**told, 'accounts': None} if told['version'] == known else told

    def preemptible(self, servers: Sequence[str]) -> interface.Answer:
        """Say which of some servers are preemptible."""
        found = sorted(self._of_agents()[0].intersection(servers))
        signed = self._signed(signatures_module.PREEMPTIBLE, servers, found)
        return {'servers': found, **signed}

    def notices(self, servers: Sequence[str]) -> interface.Answer:
        """Say what guests of some servers are told."""
        known = self._of_agents()[1]
        found = {each: known[each] for each in servers if each in known}
        signed = self._signed(signatures_module.NOTICES, servers, found)
        return {'notices': found, **signed}

    def _of_agents(self) -> tuple[frozenset[str], _Notices]:
        """Preemptible servers and notices, made once a cycle for all."""
        last, kept = self._service.last(), self._asked
        if kept is None or kept[0] is not last:
            preemptible = records.preemptible(last.records)
            self._asked = kept = last, preemptible, self._every_notice()
        return kept[1], kept[2]

    def _every_notice(self) -> _Notices:
        found = {
            uuid: at_risk.told(each)
            for uuid, each in self._service.chores.warnings.told.items()
        }
        for uuid, leave in self._store.leaves.found(eviction.LIVE).items():
            if told := evictor.told(leave):
                found[uuid] = told
        return found

    def _signed(
        self, what: str, servers: Sequence[str], answer: object
    ) -> dict[str, Any]:
        if self._signatures is None:
            return {}
        return self._signatures.signed_answer(what, servers, answer)

    def _change(self, name: str, values: Mapping[str, Any]) -> None:
        accounts = self._service.accounts
        self._service.change(
            lambda epoch: accounts.change(name, values, epoch)
        )

    def _told(
        self, found: Sequence[records.RequestRecord], audience: reason.Audience
    ) -> list[dict[str, Any]]:
        last = self._service.last()
        servers = [uuid for each in found for uuid in each.request.servers]
        leaves = self._store.leaves.of(servers)
        risks = self._service.chores.warnings.told
        return [_told(each, last, leaves, risks, audience) for each in found]

    def _known(self, uuid: str) -> records.RequestRecord:
        found = self._store.request(uuid)
        if found is None:
            raise exception.UnknownRequest(f'there is no request {uuid}')
        return found


def _tree(snapshot: cluster.ClusterSnapshot) -> dict[str, Any]:
    accounts = [
        {
            'name': each.account.name,
            'parent': each.account.parent,
            'share': float(each.account.share),
            # Finer is new in every cycle, and would be sent in every one.
            'fair_share': round(each.factor, 2),
        }
        for each in overview.standings(snapshot)
    ]
    return {'version': tree_module.version(accounts), 'accounts': accounts}


def _limits(
    account: cluster.Account, budgets: cluster.Budgets | None, now: float
) -> dict[str, Any]:
    own = {
        key: fields.written(field, getattr(account, field))
        for key, field in _FIELDS.items()
    }
    left = budgets.left.get(account.name) if budgets else None
    return {
        'account': account.name,
        'parent': account.parent,
        **own,
        'budget_left': max(left[0], 0.0) / 3600.0 if left else None,
        'budget_until': _time(budgets.ends[0]) if budgets and left else None,
        'opens_at': _time(_opens(account, now)),
        **({'fault': account.fault} if account.fault else {}),
    }


def _opens(account: cluster.Account, now: float) -> float | None:
    at = windows.opens(account.windows, now)
    return None if at == math.inf else at


def _has_limits(account: cluster.Account) -> bool:
    return bool(account.fault) or any(
        getattr(account, field) not in (None, ()) for field in _FIELDS.values()
    )


def _standing(standing: overview.AccountStanding) -> dict[str, Any]:
    account = standing.account
    return {
        'name': account.name,
        'parent': account.parent,
        'share': account.share,
        'normalised_share': standing.part,
        'used': dict(standing.used),
        'fair_share': standing.factor,
        'vanished': account.vanished,
    }


def _order(record: records.RequestRecord) -> tuple[float, str]:
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


def _told(
    record: records.RequestRecord,
    last: start_estimates.LastCycle,
    leaves: Mapping[str, eviction.Eviction],
    risks: Mapping[str, risk.Risk],
    audience: reason.Audience,
) -> dict[str, Any]:
    request = record.request
    left = [leaves[uuid] for uuid in request.servers if uuid in leaves]
    warned = [risks[uuid] for uuid in request.servers if uuid in risks]
    ends_at = None
    if request.state is request_model.State.ACTIVE:
        ends_at = request.ends_at(record.changed_at)
    place = _place(request, last)
    estimate = last.estimates.get(request.uuid) if place else None
    # What the store was told last may be older than the plan.
    why = place.why if place else record.why
    if request.hold is not None and request.state is request_model.State.HELD:
        why = request.hold.why
    return {
        **queue.facts(request, why, audience),
        'summary': [
            *queue.summary(request, why, place, estimate, audience),
            *queue.ending(ends_at, left, audience),
            *queue.risking(warned, audience),
        ],
        'position': place.position if place else None,
        'factors': dict(place.factors) if place else {},
        'reserved_at': _time(
            place.reserved.at if place and place.reserved else None
        ),
        'estimated_start': {
            'p50': _time(estimate.p50),
            'p90': _time(estimate.p90),
        }
        if estimate
        else None,
        'asked_at': _time(request.asked_at),
        'since': _time(record.changed_at),
        'expires_at': _time(request.expires_at),
        'time_limit': request.time_limit_s,
        'extended': request.extended_s,
        'ends_at': _time(ends_at),
        'leaving': [queue.leave_facts(each, audience) for each in left],
        'at_risk': [queue.risk_facts(each, audience) for each in warned],
    }


def _place(
    request: request_model.Request, last: start_estimates.LastCycle
) -> cluster.Waiting | None:
    """Where a request stands; one that is held stands nowhere.

    A plan from before the end of a hold says nothing of it.
    """
    if request.state is not request_model.State.HELD or request.hold:
        return None
    place = last.plan.waiting.get(request.uuid)
    if place is not None and place.why.reason in reason.HOLDS:
        return None
    return place


def _holder(by_operator: bool) -> request_model.Holder:
    holder = request_model.Holder
    return holder.OPERATOR if by_operator else holder.OWNER


def _time(at_s: float | None) -> str | None:
    if at_s is None:
        return None
    return dt.datetime.fromtimestamp(at_s, dt.UTC).isoformat(
        timespec='seconds'
    )
