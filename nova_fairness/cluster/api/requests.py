# SPDX-License-Identifier: Apache-2.0

"""Answers to the calls of users and operators about requests, shares,
limits and hosts.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import math
import time
from typing import Any

import numpy as np

from nova_fairness import exception
from nova_fairness.cluster import service as service_module
from nova_fairness.cluster.accounts import fields
from nova_fairness.cluster.admission import interventions
from nova_fairness.cluster.admission import start_estimates
from nova_fairness.cluster.api import border as border_module
from nova_fairness.cluster.api import dry_run as dry_run_module
from nova_fairness.cluster.api import history
from nova_fairness.cluster.api import overview as overview_module
from nova_fairness.cluster.api import plans
from nova_fairness.cluster.api import spending_groups
from nova_fairness.cluster.border import controller
from nova_fairness.cluster.eviction import notice_channels
from nova_fairness.cluster.move_plans import plan_controller
from nova_fairness.cluster.move_plans import registry
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import cluster
from nova_fairness.model import eviction
from nova_fairness.model import moments
from nova_fairness.model import plans as plan_model
from nova_fairness.model import queue
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.model import risk
from nova_fairness.model import standing
from nova_fairness.model import waits as waits_model
from nova_fairness.planners.fairqueue import replay
from nova_fairness.rpc import requests as interface
from nova_fairness.runtime import signatures as signatures_module
from nova_fairness.shares import budgets as budgets_module
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
"""Fields of accounts, by their names in answers."""


def _refuse_trial(*_: object) -> dry_run_module.TrialPlanner:
    raise exception.BadArgument('nothing can be tried here')


def _unknown_order() -> tuple[str, str]:
    return '', ''


_MOST_RETURNS = 1000
"""Largest number of requests of one server that are read from the store."""

_Notices = Mapping[str, Mapping[str, str]]


class ClusterOperations(
    plans.PlanOperations,
    spending_groups.GroupOperations,
    interface.ClusterCalls,
):
    """Answers all calls, in the leader.

    :param store: store that contains the requests.
    :param service: service of this process; it may be the leader.
    :param signatures: sign the share tree for agents; ``None`` if the peers
        have no keys.
    :param partitioning: controller that moves hosts between batch system and
        cloud; ``None`` if no hosts move.
    :param planned: controller of migration plans; ``None`` if there are no
        plans.
    :param checks: returns the problems in the environment of the service.
    :param trial: builds a planner that no other thread uses, from the name and
        the parameters of an order, or without arguments for the order in
        force.
    :param order: returns the name and the description of the order in force.
    """

    def __init__(
        self,
        store: store_module.Store,
        service: service_module.Service,
        signatures: signatures_module.Signatures | None = None,
        partitioning: controller.BorderController | None = None,
        planned: plan_controller.PlanController | None = None,
        checks: Callable[[], Sequence[str]] = tuple,
        trial: Callable[..., dry_run_module.TrialPlanner] = _refuse_trial,
        order: Callable[[], tuple[str, str]] = _unknown_order,
    ) -> None:
        self._order_in_force = order
        self._checks = checks
        self._trial = trial
        self._dry_runs = dry_run_module.DryRuns(
            service.charging.kept, time.monotonic
        )
        self._partitioning = partitioning
        self._planned = planned
        super().__init__(service, signatures)
        self._store = store
        self._tree: tuple[cluster.ClusterSnapshot, interface.Answer] | None
        self._tree = None
        self._newest: (
            tuple[start_estimates.LastCycle, Mapping[str, str]] | None
        ) = None
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
        wanted: request_model.RequestFilter | None = None,
    ) -> interface.Answer:
        """Return one page of open requests, or of requests that match a
        filter, the oldest first.
        """
        self._service.last()
        wanted = dataclasses.replace(
            wanted or request_model.RequestFilter(), preemptible=preemptible
        )
        if wanted.unsettled:
            running = self._unsettled_requests()
            wanted = dataclasses.replace(wanted, running=running)
        found = self._search_page(project, wanted, marker, limit)
        return {
            'requests': self._facts_of_requests(found[:limit], audience),
            'more': len(found) > limit,
        }

    def _search_page(
        self,
        project: str | None,
        wanted: request_model.RequestFilter,
        marker: str | None,
        limit: int,
    ) -> list[records.RequestRecord]:
        """Return the requests of a page, and one more request if another
        page follows.
        """
        found: list[records.RequestRecord] = []
        after = (
            None
            if marker is None
            else _sort_key(self._require_request(marker))
        )
        while True:
            some = self._store.page_of_requests(
                project, wanted, after, limit + 1
            )
            found += [
                each
                for each in some
                if each.request.state in request_model.FINAL
                or not self._is_superseded(each.request)
            ]
            if len(found) > limit or len(some) <= limit:
                return found
            after = _sort_key(some[-1])

    def request(
        self,
        uuid: str,
        audience: reason.Audience = interface.OPERATOR,
        events: bool = False,
    ) -> interface.Answer:
        """Return a request by its UUID, or the newest request of a server
        by the UUID of the server.
        """
        record, last = self._require_newest_request(uuid), self._service.last()
        [told] = self._facts_of_requests([record], audience)
        told['waited'] = history.wait_sentence(self._store, record, last.at)
        if events:
            lived = history.lineage(record, self._earlier_requests(record))
            told['events'] = history.event_facts(self._store, lived, audience)
        return {'request': told}

    def waits(
        self, wanted: waits_model.WaitFilter, marker: str | None, limit: int
    ) -> interface.Answer:
        """Return percentiles of waits by project, flavor or reason, sorted
        by name.
        """
        last = self._service.last()
        if wanted.since is None:
            since = last.at - waits_model.USUAL_S
            wanted = dataclasses.replace(wanted, since=since)
        return history.page_of_wait_percentiles(
            self._store, wanted, marker, limit
        )

    def cancel(self, uuid: str, by_operator: bool) -> interface.Answer:
        """Cancel a request that waits to be built, and delete its servers."""
        token = (
            reason.Reason.CANCELLED_BY_OPERATOR
            if by_operator
            else reason.Reason.TAKEN_BACK
        )
        uuid = self._require_newest_request(uuid).request.uuid
        self._service.cancel(uuid, reason.why(token))
        return self.request(uuid)

    def release(
        self, uuid: str, without_room: bool = False
    ) -> interface.Answer:
        """Start a request now, before its turn in the queue."""
        uuid = self._require_newest_request(uuid).request.uuid
        self._service.release(uuid, without_room=without_room)
        return self.request(uuid)

    def first(self, uuid: str) -> interface.Answer:
        """Move a request before all other requests of its priority class."""
        return self._apply_intervention(uuid, interventions.put_first)

    def unfirst(self, uuid: str) -> interface.Answer:
        """Move a request back to the position that the order computes."""
        return self._apply_intervention(uuid, interventions.cancel_put_first)

    def hold(
        self, uuid: str, by_operator: bool, why: str | None = None
    ) -> interface.Answer:
        """Hold a request, so that it does not start."""
        return self._apply_intervention(
            uuid, interventions.hold_action(_holder(by_operator), why or '')
        )

    def unhold(self, uuid: str, by_operator: bool) -> interface.Answer:
        """End the hold of a request."""
        return self._apply_intervention(
            uuid, interventions.unhold_action(_holder(by_operator))
        )

    def _apply_intervention(
        self, uuid: str, order: interventions.Order
    ) -> interface.Answer:
        uuid = self._require_newest_request(uuid).request.uuid
        self._service.order(uuid, order)
        return self.request(uuid)

    def capacity(self, project: str | None = None) -> interface.Answer:
        """Return the use of the cloud, and the number of servers of each
        flavor that could start now.
        """
        last = self._service.last()
        snapshot = last.snapshot
        flavors = self._service.nova.flavor_amounts(project)
        takes = np.array([each.takes for each in snapshot.providers], bool)
        zones = [each.zone for each in snapshot.providers if each.takes]
        inventory = snapshot.inventory
        free = np.maximum(inventory.capacity - inventory.used, 0)[takes]
        unit = inventory.unit[takes]
        alone = np.minimum(free, unit)
        return {
            'hosts_count': int(takes.sum()),
            'waiting_count': len(last.plan.waiting),
            'seen_at': moments.answer(last.at),
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
                    **_start_counts(
                        _fitting_counts(amounts, snapshot, free, unit), zones
                    ),
                }
                for name, amounts in sorted(flavors.items())
            ],
        }

    def status(self) -> interface.Answer:
        """Return the state of the whole service."""
        moving = self._partitioning
        hosts = moving.nodes().values() if moving else ()
        told = overview_module.overview(
            self._service,
            self._store,
            hosts,
            self._checks(),
            self._order_in_force(),
        )
        return {'status': told}

    def shares(
        self, project: str | None, marker: str | None, limit: int
    ) -> interface.Answer:
        """Return one page of the share tree; each account follows its
        parent.
        """
        found = overview.standings(self._service.last().snapshot, project)
        start = 0
        if marker is not None:
            names = [each.account.name for each in found]
            if marker not in names:
                raise exception.UnknownAccount(f'there is no account {marker}')
            start = names.index(marker) + 1
        end = start + limit
        return {
            'shares': [
                _standing_of_account(each) for each in found[start:end]
            ],
            'more': len(found) > end,
        }

    def set_share(self, name: str, share: float | None) -> interface.Answer:
        """Set the share of an account."""
        self._change_account(name, {'share': share})
        return {'account': name, 'share': share}

    def extend(self, uuid: str, by_s: float) -> interface.Answer:
        """Extend the time limit of the servers of a request."""
        uuid = self._require_newest_request(uuid).request.uuid
        self._service.extend(uuid, by_s)
        return self.request(uuid)

    def limits(
        self, project: str | None, marker: str | None, limit: int
    ) -> interface.Answer:
        """Return one page of the accounts that have limits."""
        snapshot, now = self._service.last().snapshot, self._service.last().at
        accounts, budgets = snapshot.accounts, snapshot.budgets
        names = tree_module.below(accounts, project)
        found = [
            {
                **_limit_facts(each, budgets, now),
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
        self._change_account(name, _field_values(limits, _FIELDS))
        return {'account': name, **limits}

    def try_account(
        self,
        name: str,
        values: Mapping[str, Any],
        reader: interface.DryRunReader,
    ) -> interface.Answer:
        """Forecast the effect of a change of the share or the limits of an
        account.
        """
        last, accounts = self._service.last(), self._service.accounts
        self._dry_runs.require_free()
        fields_set = _field_values(values, {'share': 'share', **_FIELDS})
        accounts.require(name, fields_set)
        snapshot = dry_run_module.with_changed_accounts(
            last.snapshot, *accounts.tried(name, fields_set)
        )
        if 'budget_hours' in fields_set:
            left = self._service.charging.budgets(snapshot, last.at)
            snapshot = dataclasses.replace(snapshot, budgets=left)
        # Limits do not count in a replay, so it would show no change.
        past = self._recently_sent(last.at) if 'share' in values else ()
        return self._compare_plans(snapshot, self._trial(), last, reader, past)

    def try_order(
        self,
        name: str,
        parameters: Mapping[str, float],
        reader: interface.DryRunReader,
    ) -> interface.Answer:
        """Forecast the effect of using another order."""
        last = self._service.last()
        self._dry_runs.require_free()
        try:
            plan = self._trial(name, parameters)
        except exception.PluginError as error:
            raise exception.BadArgument(str(error)) from error
        past = self._recently_sent(last.at)
        return self._compare_plans(last.snapshot, plan, last, reader, past)

    def _recently_sent(self, now: float) -> list[replay.PastRequest]:
        """Return the requests that were sent to Nova in the last seven
        days.
        """
        since = now - waits_model.USUAL_S
        found = self._store.waits.sent_requests(
            since, dry_run_module.MOST_PAST
        )
        return [
            replay.PastRequest(
                record.request,
                sent_at,
                max(_end_time(record, now) - sent_at, 0.0),
            )
            for record, sent_at in found
        ]

    def _compare_plans(
        self,
        snapshot: cluster.ClusterSnapshot,
        plan: dry_run_module.TrialPlanner,
        last: start_estimates.LastCycle,
        reader: interface.DryRunReader,
        past: Sequence[replay.PastRequest],
    ) -> interface.Answer:
        """Compare the plan of the last cycle with that of a changed state
        or planner.
        """
        working = self._trial()
        found = self._dry_runs.compare(
            dry_run_module.QueueTrial(last.snapshot, working),
            dry_run_module.QueueTrial(snapshot, plan),
            last.at,
            past,
        )
        told = dry_run_module.comparison_facts(
            found, reader.project, reader.most, reader.audience
        )
        begin = {
            'seen_at': moments.answer(last.at),
            'order': working.name,
            'order_description': working.order.description,
        }
        return {'dry_run': {**begin, **told}}

    def preemptions(
        self,
        project: str | None,
        marker: str | None,
        limit: int,
        audience: reason.Audience = interface.OPERATOR,
    ) -> interface.Answer:
        """Return one page of evictions that made room for requests, the
        newest first.
        """
        self._service.last()
        if marker is not None:
            self.preemption(marker)
        leaves = self._store.leaves
        found = leaves.preemptions(project, marker, limit + 1)
        return {
            'preemptions': [
                queue.eviction_facts_with_outcome(
                    each, audience, project or ''
                )
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
        """Return one eviction that made room for a request."""
        self._service.last()
        found = self._store.leaves.preemption(uuid)
        if found is None:
            raise exception.UnknownPreemption(f'there is no preemption {uuid}')
        return {
            'preemption': queue.eviction_facts_with_outcome(
                found, audience, project or ''
            )
        }

    def border(self) -> interface.Answer:
        """Return the demand and the hosts of batch system and cloud."""
        moving = self._require_border_controller()
        nodes = moving.nodes().values()
        aimed = self._store.nodes.read_target().hosts
        return {
            'partition': border_module.border_facts(
                moving.last(), nodes, aimed
            )
        }

    def hosts(self, marker: str | None, limit: int) -> interface.Answer:
        """Return one page of the hosts between batch system and cloud,
        sorted by name.
        """
        moving = self._require_border_controller()
        snapshot, nodes = moving.last().snapshot, moving.nodes()
        found = [name for name in sorted(nodes) if name > (marker or '')]
        return {
            'hosts': [
                border_module.host_facts(nodes[name], snapshot)
                for name in found[:limit]
            ],
            'more': len(found) > limit,
        }

    def host(self, name: str) -> interface.Answer:
        """Return one host, with the work on it and its history."""
        moving = self._require_border_controller()
        node = moving.nodes().get(name)
        if node is None:
            raise exception.UnknownHost(
                f'host {name} is not in [fairness_partition] hosts_file'
            )
        told = border_module.full_host_facts(node, moving.last().snapshot)
        return {'host': told}

    def move(self, name: str) -> interface.Answer:
        """Move a host from the batch system to the cloud, or back."""
        self._require_border_controller().move(name)
        return self.host(name)

    def stay(self, name: str) -> interface.Answer:
        """Cancel the move of a host."""
        self._require_border_controller().cancel(name)
        return self.host(name)

    def aim(self, hosts: int | None) -> interface.Answer:
        """Set the number of hosts that the cloud is to have."""
        self._require_border_controller().aim(hosts)
        return {'target': hosts}

    def _require_border_controller(self) -> controller.BorderController:
        if self._partitioning is None:
            raise exception.UnknownHost(
                'this service moves no hosts between batch and cloud:'
                ' [fairness_partition] batch names no batch system'
            )
        return self._partitioning

    def tree(self, known: str) -> interface.Answer:
        """Return the shares of all accounts, which are computed once for
        all agents.
        """
        snapshot, kept = self._service.last().snapshot, self._tree
        if kept is None or kept[0] is not snapshot:
            made = _share_tree_facts(snapshot)
            if self._signatures:
                made |= self._signatures.signed_tree(made['version'])
            self._tree = kept = snapshot, made
        told = kept[1]
        return {**told, 'accounts': None} if told['version'] == known else told

    def preemptible(self, servers: Sequence[str]) -> interface.Answer:
        """Return which of the given servers are preemptible."""
        found = sorted(
            self._preemptible_and_notices()[0].intersection(servers)
        )
        signed = self._signature_fields(
            signatures_module.PREEMPTIBLE, servers, found
        )
        return {'servers': found, **signed}

    def notices(self, servers: Sequence[str]) -> interface.Answer:
        """Return the eviction notices for the guests of the given servers."""
        known = self._preemptible_and_notices()[1]
        found = {each: known[each] for each in servers if each in known}
        signed = self._signature_fields(
            signatures_module.NOTICES, servers, found
        )
        return {'notices': found, **signed}

    def _preemptible_and_notices(self) -> tuple[frozenset[str], _Notices]:
        """Return all preemptible servers and all notices for guests,
        computed once a cycle.
        """
        last, kept = self._service.last(), self._asked
        if kept is None or kept[0] is not last:
            preemptible = records.preemptible_servers(last.records)
            self._asked = kept = last, preemptible, self._guest_notices()
        return kept[1], kept[2]

    def _guest_notices(self) -> _Notices:
        return notice_channels.texts_for_agents(
            self._store.leaves.newest_in_states(eviction.LIVE).values(),
            self._service.chores.warnings.told.values(),
        )

    def _signature_fields(
        self, what: str, servers: Sequence[str], answer: object
    ) -> dict[str, Any]:
        if self._signatures is None:
            return {}
        return self._signatures.signed_answer(what, servers, answer)

    def _change_account(self, name: str, values: Mapping[str, Any]) -> None:
        # A process that does not act says so before it asks Keystone.
        self._service.last()
        accounts = self._service.accounts
        accounts.require(name, values)
        self._service.change(
            lambda epoch: accounts.change(name, values, epoch)
        )

    def _facts_of_requests(
        self, found: Sequence[records.RequestRecord], audience: reason.Audience
    ) -> list[dict[str, Any]]:
        last = self._service.last()
        servers = [uuid for each in found for uuid in each.request.servers]
        leaves = self._store.leaves.newest_of_servers(servers)
        risks = self._service.chores.warnings.told
        moves = _Moves.of(
            self._store.plans.open_plans() if self._planned else ()
        )
        return [
            _request_facts(each, last, leaves, risks, audience, moves)
            for each in found
        ]

    def _unsettled_requests(self) -> frozenset[str]:
        """Return the UUIDs of requests with servers that move, are being
        evicted or are evicted.
        """
        states = eviction.GOING | {eviction.EvictionState.GONE}
        moves = _Moves.of(
            self._store.plans.open_plans() if self._planned else ()
        )
        servers = {*self._store.leaves.newest_in_states(states), *moves.moving}
        newest = self._newest_of_servers()
        return frozenset(newest[uuid] for uuid in servers if uuid in newest)

    def _is_superseded(self, request: request_model.Request) -> bool:
        newest = self._newest_of_servers()
        return all(
            newest.get(uuid, request.uuid) != request.uuid
            for uuid in request.servers
        )

    def _newest_of_servers(self) -> Mapping[str, str]:
        """Return the UUID of the newest request by UUID of the server,
        computed once a cycle.
        """
        last, kept = self._service.last(), self._newest
        if kept is None or kept[0] is not last:
            found = request_model.newest_by_server(
                each.request for each in last.records
            )
            by_server = {uuid: each.uuid for uuid, each in found.items()}
            self._newest = kept = last, by_server
        return kept[1]

    def _require_newest_request(self, uuid: str) -> records.RequestRecord:
        newest = self._newest_of_servers().get(uuid)
        known = self._store.request(uuid)
        if newest is None:
            return self._newest_ended_request(uuid, known)
        if known is None or self._is_superseded(known.request):
            return self._require_request(newest)
        return known

    def _newest_ended_request(
        self, uuid: str, known: records.RequestRecord | None
    ) -> records.RequestRecord:
        """Return the newest request of a server that has no open request.

        The UUID of a build is that of its first server.
        """
        if known is not None and not _has_ended(known, uuid):
            return known
        since = None if known is None else known.request.asked_at
        found = self._requests_of_server(uuid, since)
        newest = request_model.newest_by_server(each.request for each in found)
        if uuid not in newest:
            return self._require_request(uuid)
        return next(each for each in found if each.request is newest[uuid])

    def _requests_of_server(
        self, uuid: str, since: float | None = None
    ) -> list[records.RequestRecord]:
        wanted = request_model.RequestFilter(
            frozenset(request_model.State), server=uuid, since=since
        )
        return self._store.page_of_requests(None, wanted, None, _MOST_RETURNS)

    def _earlier_requests(
        self, record: records.RequestRecord
    ) -> Sequence[records.RequestRecord]:
        """Return the requests that may have been earlier requests of the
        same servers.
        """
        if record.request.state in request_model.FINAL:
            return self._requests_of_server(record.request.servers[0])
        return self._service.last().records

    def _require_request(self, uuid: str) -> records.RequestRecord:
        found = self._store.request(uuid)
        if found is None:
            raise exception.UnknownRequest(f'there is no request {uuid}')
        return found


def _has_ended(record: records.RequestRecord, server: str) -> bool:
    """Whether a record is an ended build that contains a server."""
    is_over = record.request.state in request_model.FINAL
    return is_over and server in record.request.servers


def _end_time(record: records.RequestRecord, now: float) -> float:
    """Return the time at which a request ended; the present time if it has
    not ended.
    """
    is_over = record.request.state in request_model.FINAL
    return record.changed_at if is_over else now


def _field_values(
    given: Mapping[str, Any], known: Mapping[str, str]
) -> dict[str, Any]:
    """Return values by field of an account.

    :param given: values, by the names of fields in answers.
    :param known: fields of an account, by their names in answers.
    :raises BadArgument: if a field is unknown.
    """
    if unknown := given.keys() - known.keys():
        raise exception.BadArgument(
            f'there are no limits {", ".join(sorted(unknown))}, there is'
            f' {", ".join(known)}'
        )
    return {known[key]: value for key, value in given.items()}


def _share_tree_facts(snapshot: cluster.ClusterSnapshot) -> dict[str, Any]:
    accounts = [
        {
            'name': each.account.name,
            'parent': each.account.parent,
            'share': float(each.account.share),
            # More digits would change in every cycle, and be sent to all
            # agents.
            'fair_share': round(each.factor, 2),
        }
        for each in overview.standings(snapshot)
    ]
    return {
        'version': tree_module.accounts_hash(accounts),
        'accounts': accounts,
    }


def _limit_facts(
    account: cluster.Account, budgets: cluster.Budgets | None, now: float
) -> dict[str, Any]:
    own = {
        key: fields.json_value(field, getattr(account, field))
        for key, field in _FIELDS.items()
    }
    return {
        'account': account.name,
        'parent': account.parent,
        **own,
        **_budget_facts(account, budgets),
        'opens_at': moments.answer(_next_opening(account, now)),
        **({'fault': account.fault} if account.fault else {}),
    }


def _budget_facts(
    account: cluster.Account, found: cluster.Budgets | None
) -> dict[str, Any]:
    """Return the budget of the current period, in unit-hours: used,
    committed and remaining.
    """
    names = ('budget_used', 'budget_committed', 'budget_left')
    divided = budgets_module.budget_parts(account, found)
    if found is None or divided is None:
        return dict.fromkeys((*names, 'budget_until'))
    hours = [each / budgets_module.HOUR_S for each in divided]
    until = moments.answer(found.ends[0])
    return {**dict(zip(names, hours, strict=True)), 'budget_until': until}


def _next_opening(account: cluster.Account, now: float) -> float | None:
    at = windows.next_opening(account.windows, now)
    return None if at == math.inf else at


def _has_limits(account: cluster.Account) -> bool:
    return bool(account.fault) or any(
        getattr(account, field) not in (None, ()) for field in _FIELDS.values()
    )


def _standing_of_account(standing: overview.AccountStanding) -> dict[str, Any]:
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


def _sort_key(record: records.RequestRecord) -> tuple[float, str]:
    return record.request.asked_at, record.request.uuid


def _fitting_counts(
    amounts: Mapping[str, int],
    snapshot: cluster.ClusterSnapshot,
    free: cluster.Amounts,
    unit: cluster.Amounts,
) -> cluster.Amounts:
    """Return the number of servers of one flavor that fit on each host now,
    regardless of the limits of projects.

    :param free: (p, c) free amounts of each host.
    :param unit: (p, c) largest amount that one server may have on each host.
    :returns: (p,) number of servers for each host.
    """
    columns = {name: c for c, name in enumerate(snapshot.classes)}
    wanted = {name: amount for name, amount in amounts.items() if amount > 0}
    if not wanted or not wanted.keys() <= columns.keys():
        return np.zeros(len(free), np.int64)
    whole = [
        np.where(unit[:, columns[name]] >= n, free[:, columns[name]] // n, 0)
        for name, n in wanted.items()
    ]
    fitting: cluster.Amounts = np.min(whole, axis=0)
    return fitting


def _start_counts(
    fitting: cluster.Amounts, zones: Sequence[str]
) -> dict[str, Any]:
    """Return the number of servers of one flavor that could start now, in all
    zones and by zone.

    :param fitting: (p,) number of servers that fit on each host.
    :param zones: (p,) availability zone of each host; '' if it is unknown.
        Such a host counts in no zone.
    """
    by_zone = dict.fromkeys(sorted({*zones} - {''}), 0)
    for zone, count in zip(zones, fitting, strict=True):
        if zone:
            by_zone[zone] += int(count)
    return {'starts': int(fitting.sum()), 'zones': by_zone}


@dataclasses.dataclass(frozen=True)
class _Moves:
    """Servers that are being migrated, and requests for which a migration plan
    is proposed.

    :ivar moving: UUIDs of servers that are being migrated.
    :ivar proposed: UUID of the plan that waits for approval, by UUID of the
        request.
    """

    moving: frozenset[str]
    proposed: Mapping[str, str]

    @classmethod
    def of(cls, found: Sequence[plan_model.MigrationPlan]) -> '_Moves':
        moving = frozenset(
            move.server
            for plan in found
            for move in plan.moves
            if move.state is plan_model.MoveState.MOVING
        )
        proposed = {
            plan.subject: plan.uuid
            for plan in found
            if registry.GOALS[plan.goal].is_for_request
            and plan.state is plan_model.PlanState.PROPOSED
        }
        return cls(moving, proposed)


def _request_facts(
    record: records.RequestRecord,
    last: start_estimates.LastCycle,
    leaves: Mapping[str, eviction.Eviction],
    risks: Mapping[str, risk.EvictionRisk],
    audience: reason.Audience,
    moves: _Moves,
) -> dict[str, Any]:
    request = record.request
    left = [leaves[uuid] for uuid in request.servers if uuid in leaves]
    warned = [risks[uuid] for uuid in request.servers if uuid in risks]
    ends_at = None
    if request.state is request_model.State.ACTIVE:
        ends_at = request.ends_at(record.changed_at)
    place = _queue_position(request, last)
    estimate = last.estimates.get(request.uuid) if place else None
    why = _present_reason(record, place, left, last)
    known = standing.StandingFacts(
        place, estimate, left, moves.moving, moves.proposed.get(request.uuid)
    )
    return {
        **_standing_facts(request, why, known, audience),
        **queue.request_facts(request, why, audience),
        'summary': [
            *queue.request_sentences(request, why, place, estimate, audience),
            *queue.eviction_sentences(ends_at, left, audience),
            *queue.risk_sentences(warned, audience),
        ],
        'position': place.position if place else None,
        'factors': dict(place.factors) if place else {},
        'reserved_at': moments.answer(
            place.reserved.at if place and place.reserved else None
        ),
        'estimated_start': _estimate_facts(estimate),
        'asked_at': moments.answer(request.asked_at),
        'since': moments.answer(record.changed_at),
        'expires_at': moments.answer(request.expires_at),
        'time_limit': request.time_limit_s,
        'extended': request.extended_s,
        'ends_at': moments.answer(ends_at),
        'leaving': [queue.eviction_facts(each, audience) for each in left],
        'at_risk': [queue.risk_facts(each, audience) for each in warned],
    }


def _estimate_facts(
    estimate: cluster.Estimate | None,
) -> dict[str, Any] | None:
    if estimate is None:
        return None
    return {
        'p50': moments.answer(estimate.p50),
        'p90': moments.answer(estimate.p90),
    }


def _standing_facts(
    request: request_model.Request,
    why: reason.Why,
    known: standing.StandingFacts,
    audience: reason.Audience,
) -> dict[str, str]:
    word, status = standing.request_standing(request, why, known, audience)
    return {'standing': word.value, 'status': status}


def _present_reason(
    record: records.RequestRecord,
    place: cluster.Waiting | None,
    left: Sequence[eviction.Eviction],
    last: start_estimates.LastCycle,
) -> reason.Why:
    """Return the reason why a request is in its state now; the stored
    reason may be older.
    """
    request = record.request
    if request.state is request_model.State.WAITING:
        if request.hold is not None:
            return request.hold.why
        if not last.is_valid_for(request):
            return reason.why(reason.Reason.NOT_PLANNED)
    if request.state is request_model.State.ACTIVE:
        for each in left:
            if each.state in eviction.GOING or standing.is_away(each):
                return each.why
    return place.why if place else record.why


def _queue_position(
    request: request_model.Request, last: start_estimates.LastCycle
) -> cluster.Waiting | None:
    """Return the position of a waiting request in the last plan; ``None`` for
    held requests.

    A plan is ignored if it was made before the hold ended, or before the
    request was put first.
    """
    if request.state is not request_model.State.WAITING or request.hold:
        return None
    place = last.plan.waiting.get(request.uuid)
    if place is not None and place.why.reason in reason.HOLDS:
        return None
    return place if last.is_valid_for(request) else None


def _holder(by_operator: bool) -> request_model.Holder:
    holder = request_model.Holder
    return holder.OPERATOR if by_operator else holder.OWNER
