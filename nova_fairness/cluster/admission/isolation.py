# SPDX-License-Identifier: Apache-2.0

"""Planning that one bad input cannot prevent.

A planner works on the whole cloud at once. If it raises an error, a search
finds the requests, accounts, servers or hosts that cause the error. These
inputs are quarantined, and all other inputs are planned in the same cycle.
While nothing is quarantined and no error occurs, this costs nothing.

No account gains from a quarantine: requests of a quarantined account and of
accounts below it wait, limits of accounts remain in force, a quarantined host
gets no server, and the room of a quarantined server stays used, as Placement
reports.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

import numpy as np
import numpy.typing as npt
from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster import culprits
from nova_fairness.cluster import quarantine as quarantine_module
from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request as request_model

LOG = logging.getLogger(__name__)

TRIES = 300
"""Largest number of runs of the planner in one cycle to find bad inputs."""

LASTS_S = 10.0
"""Longest duration of the search for bad inputs, in seconds; shorter than the
lease of a leader.
"""

Planner = Callable[[cluster.ClusterSnapshot, float], cluster.Plan]
Snapshot = cluster.ClusterSnapshot
_Names = Collection[str]
_Use = Mapping[str, npt.NDArray[np.float64]]

_K = quarantine_module.InputKind
_NOT_LOOKED_AT = reason.why(reason.Reason.NOT_PLANNED)


@dataclasses.dataclass(frozen=True)
class _InputKindAccess:
    """Access to the inputs of one kind in a snapshot.

    :ivar kind: kind of the inputs.
    :ivar names: returns the names of all inputs of this kind; related names
        are neighbours.
    :ivar without: returns the snapshot without the inputs of some names.
    """

    kind: quarantine_module.InputKind
    names: Callable[[Snapshot], Sequence[str]]
    without: Callable[[Snapshot, _Names], Snapshot]


class PlannerIsolation:
    """Runs a planner without the inputs that make it fail.

    :param plan: the planner.
    :param quarantine: quarantine of inputs that made the planner fail.
    :param monotonic: returns seconds that never go back.
    """

    def __init__(
        self,
        plan: Planner,
        quarantine: quarantine_module.Quarantine,
        monotonic: Callable[[], float],
    ) -> None:
        self._plan = plan
        self._quarantine = quarantine
        self._monotonic = monotonic
        self._late: frozenset[str] = frozenset()

    def begin_cycle(self) -> None:
        """Begin a cycle: requests that the last cycle left out are planned
        again.
        """
        self._late = frozenset()

    def without_quarantined(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot without quarantined inputs."""
        if self._quarantine.is_empty and not self._late:
            return snapshot
        for facet in _FACETS:
            held = self._quarantine.names(facet.kind)
            if held:
                snapshot = facet.without(snapshot, held)
        if self._late:
            snapshot = _without_requests(snapshot, self._late)
        return snapshot

    def quarantine_culprits(
        self, snapshot: Snapshot, now: float, error: Exception
    ) -> None:
        """Search for the inputs that make the planner fail, and quarantine
        them.

        :param snapshot: snapshot on which the planner failed, without
            quarantined inputs.
        :param error: error that the planner raised.
        :raises Exception: this error, if no input causes it.
        """
        LOG.warning(
            'the planner failed: %s; searching for the request, account,'
            ' server or host that causes it',
            type(error).__name__,
        )
        until_s = self._monotonic() + LASTS_S
        budget = culprits.SearchBudget(TRIES, self._monotonic, until_s)
        for facet in _FACETS:
            names = facet.names(snapshot)
            none = facet.without(snapshot, frozenset(names))
            if not names or self._planner_fails(none, now):
                continue
            if facet.kind is _K.REQUEST:
                self._quarantine_requests(snapshot, now, error, budget)
            else:
                fails = self._failure_test_of_kind(snapshot, now, facet, names)
                blamed, unsure = culprits.find_culprits(names, fails, budget)
                for name in (*blamed, *unsure):
                    self._quarantine.put(facet.kind, name, error)
            return
        raise error

    def with_reasons_for_all(
        self, plan: cluster.Plan, snapshot: Snapshot, now: float
    ) -> cluster.Plan:
        """Return the plan with a position and a reason for every waiting
        request.

        Requests that were left out get the last positions. They expire at
        their usual time.

        :param plan: plan of the snapshot that :meth:`without_quarantined`
            returned.
        :param snapshot: snapshot with all inputs.
        """
        known = plan.waiting.keys() | {each.request for each in plan.actions}
        left = [
            each
            for each in snapshot.requests
            if each.state is request_model.State.WAITING
            and each.uuid not in known
        ]
        if not left:
            return plan
        late = [each for each in left if _is_overdue(each, now)]
        ends = tuple(_expire_action(each, now) for each in late)
        waiting = dict(plan.waiting)
        above = _AccountsAbove(snapshot.accounts)
        for each in left:
            if each not in late:
                why = self._reason_of(each, above)
                waiting[each.uuid] = cluster.Waiting(len(waiting) + 1, why)
        return cluster.Plan((*ends, *plan.actions), waiting)

    def _reason_of(
        self, request: request_model.Request, above: '_AccountsAbove'
    ) -> reason.Why:
        """Return why a request was not planned: its own quarantine, or that of
        an account above it.
        """
        entry = self._quarantine.entry(_K.REQUEST, request.uuid)
        if entry is not None:
            return entry.why
        for name in above.accounts_of_request(request):
            entry = self._quarantine.entry(_K.ACCOUNT, name)
            if entry is not None:
                return entry.why
        return _NOT_LOOKED_AT

    def _planner_fails(self, snapshot: Snapshot, now: float) -> bool:
        """Return whether the planner raises an error on a snapshot."""
        try:
            self._plan(snapshot, now)
        except Exception:  # noqa: BLE001 - that it raises is what is asked
            return True
        return False

    def _failure_test_of_kind(
        self,
        snapshot: Snapshot,
        now: float,
        facet: _InputKindAccess,
        names: _Names,
    ) -> culprits.Fails[str]:
        """Return a function that tests whether the planner fails on the
        snapshot with only some of ``names``.

        Inputs of other kinds stay in the snapshot.
        """

        def fails_with(some: Sequence[str]) -> bool:
            others = frozenset(names) - frozenset(some)
            return self._planner_fails(facet.without(snapshot, others), now)

        return fails_with

    def _quarantine_requests(
        self,
        snapshot: Snapshot,
        now: float,
        error: Exception,
        budget: culprits.SearchBudget,
    ) -> None:
        """Quarantine the requests that make the planner fail; search their
        projects first.

        The search is bounded, and may end before it has tested each request
        alone. Requests that are still suspected are left out of this cycle
        only. The next cycle continues the search without the requests that
        were found.
        """
        by_project = _request_groups_by_project(snapshot)
        every = frozenset(
            u for units in by_project.values() for unit in units for u in unit
        )

        def fails_with(units: Sequence[tuple[str, ...]]) -> bool:
            kept = {uuid for unit in units for uuid in unit}
            some = _without_requests(snapshot, every - kept)
            return self._planner_fails(some, now)

        def fails_with_projects(names: Sequence[str]) -> bool:
            return fails_with([u for name in names for u in by_project[name]])

        projects, late = culprits.find_culprits(
            sorted(by_project), fails_with_projects, budget
        )
        if isinstance(error, exception.PluginMisbehaved) and (
            len(projects) == len(by_project)
        ):
            # The plugin fails on all projects, so no request is to blame.
            raise error
        left = [unit for project in late for unit in by_project[project]]
        for project in projects:
            units, unsure = culprits.find_culprits(
                by_project[project], fails_with, budget
            )
            left += unsure
            for uuid in (uuid for unit in units for uuid in unit):
                self._quarantine.put(_K.REQUEST, uuid, error)
        self._late = frozenset(uuid for unit in left for uuid in unit)


class _AccountsAbove:
    """Index of the accounts above each request.

    :param accounts: accounts of the snapshot; their parents may be missing.
    """

    def __init__(self, accounts: Iterable[cluster.Account]) -> None:
        self._parents = {each.name: each.parent for each in accounts}

    def accounts_of_request(self, request: request_model.Request) -> list[str]:
        """Return the account of a request, its project, and all accounts
        above.
        """
        found = [request.account]
        up: str | None = request.project
        while up is not None and up not in found:
            found.append(up)
            up = self._parents.get(up)
        return found


def _request_groups_by_project(
    snapshot: Snapshot,
) -> dict[str, list[tuple[str, ...]]]:
    """Return the UUIDs of waiting requests by project; requests of one server
    group are one tuple.
    """
    units: dict[tuple[str, str], list[str]] = {}
    for each in snapshot.requests:
        if each.state is request_model.State.WAITING:
            own = each.group.uuid if each.group else each.uuid
            units.setdefault((each.project, own), []).append(each.uuid)
    by_project: dict[str, list[tuple[str, ...]]] = {}
    for (project, _), uuids in units.items():
        by_project.setdefault(project, []).append(tuple(uuids))
    return by_project


def _waiting_uuids(snapshot: Snapshot) -> list[str]:
    """Return the UUIDs of waiting requests."""
    return [
        each.uuid
        for each in snapshot.requests
        if each.state is request_model.State.WAITING
    ]


def _without_requests(snapshot: Snapshot, names: _Names) -> Snapshot:
    """Return the snapshot without some waiting requests; sent requests
    stay.
    """
    left = tuple(
        each
        for each in snapshot.requests
        if each.state is not request_model.State.WAITING
        or each.uuid not in names
    )
    if len(left) == len(snapshot.requests):
        return snapshot
    # Room that is promised to a request in quarantine is not given to others:
    # its victims keep the host closed while they leave, and the promise ends
    # in time.
    return dataclasses.replace(snapshot, requests=left)


def _without_accounts(snapshot: Snapshot, names: _Names) -> Snapshot:
    """Return the snapshot without requests of some accounts, and of accounts
    below them.
    """
    above = _AccountsAbove(snapshot.accounts)
    stopped = {
        each.uuid
        for each in snapshot.requests
        if not set(names).isdisjoint(above.accounts_of_request(each))
    }
    plain = tuple(
        cluster.Account(each.name) if each.name in names else each
        for each in snapshot.accounts
    )
    return dataclasses.replace(
        _without_requests(snapshot, stopped),
        accounts=plain,
        history=_without_names(snapshot.history, names),
        granted=_without_names(snapshot.granted, names),
    )


def _without_names(amounts: _Use, names: _Names) -> _Use:
    """Return the amounts by name, without some names."""
    return {name: each for name, each in amounts.items() if name not in names}


def _without_servers(snapshot: Snapshot, names: _Names) -> Snapshot:
    """Return the snapshot without some servers; the room that they use stays
    used.
    """
    left = tuple(each for each in snapshot.running if each.uuid not in names)
    return dataclasses.replace(
        snapshot, running=left, leaving=snapshot.leaving.difference(names)
    )


def _without_hosts(snapshot: Snapshot, names: _Names) -> Snapshot:
    """Return the snapshot without some hosts."""
    rows = [
        row
        for row, each in enumerate(snapshot.providers)
        if each.name not in names
    ]
    # Promises on unknown hosts stay: a host that could not be read may return.
    gone = {e.name for e in snapshot.providers}.intersection(names)
    have, at = snapshot.inventory, np.array(rows, dtype=np.intp)
    return dataclasses.replace(
        snapshot,
        providers=tuple(snapshot.providers[row] for row in rows),
        inventory=cluster.Inventory(
            have.capacity[at], have.used[at], have.unit[at], have.step[at]
        ),
        running=tuple(e for e in snapshot.running if e.host not in names),
        promised={
            uuid: hosts
            for uuid, hosts in snapshot.promised.items()
            if gone.isdisjoint(hosts)
        },
        member_hosts={
            group: tuple(host for host in hosts if host not in names)
            for group, hosts in snapshot.member_hosts.items()
        },
    )


_FACETS = (
    _InputKindAccess(_K.REQUEST, _waiting_uuids, _without_requests),
    _InputKindAccess(
        _K.ACCOUNT,
        lambda snapshot: sorted(
            {
                *(each.name for each in snapshot.accounts),
                *snapshot.history,
                *snapshot.granted,
            }
        ),
        _without_accounts,
    ),
    _InputKindAccess(
        _K.SERVER,
        lambda snapshot: [each.uuid for each in snapshot.running],
        _without_servers,
    ),
    _InputKindAccess(
        _K.HOST,
        lambda snapshot: [each.name for each in snapshot.providers],
        _without_hosts,
    ),
)


def _is_overdue(request: request_model.Request, now: float) -> bool:
    """Return whether a request has waited too long; ``False`` if its times
    cannot be read.
    """
    times = (request.expires_at, request.asked_at)
    if not all(isinstance(each, int | float) for each in times):
        return False
    return request.expires_at is not None and request.expires_at <= now


def _expire_action(
    request: request_model.Request, now: float
) -> cluster.Action:
    """Return the action that ends the wait of an overdue request."""
    waited_s = max(now - request.asked_at, 0)
    return cluster.Action(
        cluster.Verb.EXPIRE,
        request.uuid,
        request.version,
        (),
        reason.why(reason.Reason.WAITED_TOO_LONG, waited_s=waited_s),
    )
