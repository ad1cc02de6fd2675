# SPDX-License-Identifier: Apache-2.0

"""The loop of the cluster tier: snapshot, plan, execute."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools
import threading
from typing import TypeVar

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster import clocks as clocks_module
from nova_fairness.cluster import culprits
from nova_fairness.cluster import leader_election
from nova_fairness.cluster import pace
from nova_fairness.cluster import quarantine as quarantine_module
from nova_fairness.cluster import snapshot as snapshot_module
from nova_fairness.cluster.accounts import accounts as accounts_module
from nova_fairness.cluster.admission import dispatcher
from nova_fairness.cluster.admission import intake
from nova_fairness.cluster.admission import interventions
from nova_fairness.cluster.admission import scheduler
from nova_fairness.cluster.admission import start_estimates
from nova_fairness.cluster.eviction import cycle_tasks
from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.eviction import preemption
from nova_fairness.cluster.eviction import time_limits
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import store as store_module
from nova_fairness.cluster.usage import charging as charging_module
from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.rpc import protocol
from nova_fairness.runtime import heap

LOG = logging.getLogger(__name__)

_S = request_model.State
_RELEASED = frozenset({_S.SENDING, *request_model.UNSENT})
_K = quarantine_module.InputKind
_T = TypeVar('_T')
_Seen = tuple[records.RequestRecord, list[nova_module.Server]]
"""A request, and those of its servers that are there."""

_OF_CYCLE = 'cycle'
_TRIES = 100
"""How often a part of a cycle is done to find who makes it fail."""
_UNREADABLE = reason.Reason.UNREADABLE
_OPEN = frozenset(_S) - request_model.FINAL
_CLEANED_AT_ONCE = 200
_DELETED_AT_ONCE = 100
"""Servers: Nova has no call that deletes many."""

_DELETED_OF_ONE = 20
"""Servers of one request before others have their turn."""

_SENT_AT_ONCE = 200
"""Requests: the calls for one do not depend on its servers."""

_EXPIRED_AT_ONCE = 500
"""Requests: each is a write to the database."""

_ASKED_AT_ONCE = 200
"""Servers that lists lack."""

_ASKS_AGAIN_S = 60.0
"""After it was asked about a request in doubt in vain."""

_ENOUGH = 20
"""Servers of one request that say how it is."""

_CALLS_OF_ONE = 5
"""For sending one request."""

_WORKS_S = 10.0
"""Each kind of work of a cycle ends after that, and goes on in the next."""

_SWEPT_AT_ONCE = 5
_REMOVED_AT_ONCE = 500
_RESIGNS_IN_S = 5.0
_HEEDS_EVERY_S = 0.5
"""Cycles that hints begin are as far apart at least."""


@dataclasses.dataclass(frozen=True)
class ServiceOptions:
    """Options that operators set.

    :ivar terms: on which requests are taken.
    :ivar pass_unreadable: whether messages that cannot be read are sent at
        once, as without the queue; else they wait for an operator.
    :ivar doubt_s: after which it is looked whether Nova lacks what was sent
        and shows nothing of it.
    :ivar history_s: for which ended requests are remembered.
    """

    terms: intake.AdmissionTerms = intake.USUAL
    pass_unreadable: bool = True
    doubt_s: float = 600.0
    history_s: float = 30 * 86400.0


class Service:
    """One process of the cluster tier; others may ask it while it works.

    :param store: of messages and requests.
    :param election: says whether this process acts.
    :param accounts: the share tree of the moment.
    :param reader: of the cloud.
    :param charging: keeps what accounts used.
    :param executor: of plans.
    :param nova: see :attr:`nova`.
    :param ends: says whose time is up.
    :param chores: see :attr:`chores`.
    :param leaving: lets servers leave.
    :param making: makes room.
    :param plan: the planner.
    :param clock: seconds of the epoch.
    :param monotonic: seconds that never go back.
    :param rules: what operators chose.
    :param clocks: see :attr:`clocks`; ``None`` makes them of these two.
    :param quarantine: see :attr:`quarantine`; ``None`` makes an empty one.

    :ivar clocks: say the time, and whether it may be wrong.
    :ivar nova: where servers are looked at.
    :ivar accounts: as given.
    :ivar charging: as given.
    :ivar chores: what is done beside requests.
    :ivar cycles: number of those that were begun.
    :ivar cycles_failed: number of those that ended early, or left a part out.
    :ivar quarantine: of what made it fail.
    """

    def __init__(
        self,
        store: store_module.Store,
        election: leader_election.Election,
        accounts: accounts_module.Accounts,
        reader: snapshot_module.CloudReader,
        charging: charging_module.LedgerKeeper,
        executor: dispatcher.Executor,
        nova: nova_module.Nova,
        ends: time_limits.TimeLimits,
        chores: cycle_tasks.CycleTasks,
        leaving: evictor.Evictor,
        making: preemption.PreemptionController,
        plan: scheduler.Planner,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        rules: ServiceOptions,
        clocks: clocks_module.Clocks | None = None,
        quarantine: quarantine_module.Quarantine | None = None,
    ) -> None:
        self._store = store
        self._election = election
        self.accounts = accounts
        self._reader = reader
        self.charging = charging
        self._executor = executor
        self.nova = nova
        self.chores = chores
        self._ends, self._leaving, self._making = ends, leaving, making
        self.quarantine = quarantine or quarantine_module.Quarantine(monotonic)
        self._planning = scheduler.Scheduler(plan, self.quarantine, monotonic)
        self.clocks = clocks or clocks_module.Clocks(
            clock, monotonic, store.time
        )
        self._clock, self._said = self.clocks.now, ''
        self._monotonic, self._rules = monotonic, rules
        self._estimating = start_estimates.StartEstimates(
            store, plan, charging.kept, monotonic
        )
        self._doubted: dict[str, float] = {}
        self._swept = self._turn = 0
        self._last: start_estimates.LastCycle | None = None
        self._acting = threading.Lock()
        self._hinted = threading.Event()
        self._charged: cluster.ClusterSnapshot | None = None
        self._left_out = False
        self._unread: frozenset[snapshot_module.Named] = frozenset()
        self._unpaid: frozenset[str] = frozenset()
        self.cycles = self.cycles_failed = 0

    def run(self, stopped: threading.Event, interval_s: float) -> None:
        """Do a cycle every so many seconds until stopped; sooner at hints."""
        while not stopped.is_set():
            self.cycles += 1
            self._hinted.clear()
            pause_s = interval_s
            try:
                self.cycle()
                pause_s -= self.estimate(interval_s)
            except exception.Deposed as error:
                LOG.warning('another process leads now: %s', error)
            except (
                exception.ClusterError,
                exception.PluginMisbehaved,
            ) as error:
                self.cycles_failed += 1
                LOG.warning('cycle aborted: %s', error)
            except Exception as error:  # noqa: BLE001 - no input ends the loop
                self.cycles_failed += 1
                self.quarantine.put(_K.PART, _OF_CYCLE, error)
            else:
                self.cycles_failed += self._left_out
            self._rest(stopped, max(pause_s, 0.0))

    def hint(self) -> None:
        """Say that the cloud may have changed.

        It is looked at either way: hints may come late, twice, or never.
        """
        self._hinted.set()

    def _rest(self, stopped: threading.Event, pause_s: float) -> None:
        """Wait for the next cycle; many hints begin no more than a few."""
        left_s = pause_s
        while not stopped.wait(min(left_s, _HEEDS_EVERY_S)):
            left_s -= _HEEDS_EVERY_S
            if left_s <= 0 or self._hinted.is_set():
                return

    def cycle(self) -> bool:
        """Look once, plan once, and do it; calls of others wait meanwhile.

        :returns: whether this process leads.
        :raises ClusterError: if something without which nothing can be done
            fails; nothing is lost.
        """
        with self._acting:
            epoch = self._election.lead()
            if epoch is None:
                self._last = None
                self._planning.forget()
                self._estimating.forget()
                return False
            self._election.begin()
            try:
                with heap.uncollected():
                    self._act(epoch)
            finally:
                self._election.end()
        return True

    def resign(self) -> None:
        """End leading, and let the next process lead at once."""
        # Who is stuck keeps nobody from it: the epoch refuses their writes.
        is_mine = self._acting.acquire(timeout=_RESIGNS_IN_S)
        try:
            self._last = None
            self._election.resign()
        finally:
            if is_mine:
                self._acting.release()

    def estimate(self, pause_s: float) -> float:
        """Use a part of a pause for estimates of starts.

        The next cycle tells them.

        :returns: seconds that it took.
        :raises PluginMisbehaved: if the planner does.
        """
        begin_s, last = self._monotonic(), self._last
        if last is not None:
            work = self._estimating.work
            given = last.snapshot, last.plan, last.at, pause_s
            try:
                work(*given)
            except exception.PluginMisbehaved:
                raise
            except Exception as error:  # noqa: BLE001 - requests start without
                self._note('estimates', error)
        return self._monotonic() - begin_s

    def last(self) -> start_estimates.LastCycle:
        """State and plan of the last cycle.

        :raises NotLeading: if this process does not act.
        """
        last = self._last
        if last is None:
            raise self._not_leading()
        return last

    def leads(self) -> int | None:
        """The epoch in which this process acts; ``None`` if it does not."""
        with self._acting:
            return self._election.lead()

    def cancel(self, uuid: str, why: reason.Why) -> None:
        """Take a build back that waits; the next cycle deletes its servers.

        Nova may take longer to delete them than the caller waits.

        :raises IllegalStep: if it does not wait any more, or is no build.
        :raises ClusterError: if it cannot be done now.
        """
        with self._acting:
            record, epoch = self._asked_about(uuid)
            request = record.request
            if request.origin is not request_model.Origin.BUILD:
                raise exception.IllegalStep(
                    f'request {uuid} unshelves, which Nova cannot take back'
                )
            event = request_model.Event.CANCEL
            self._store.step(request, event, epoch, why, self._clock())

    def release(self, uuid: str, *, without_room: bool = False) -> None:
        """Start a request whatever the plan is, where it has room now.

        :param without_room: whether Nova is to look for room itself: it
            destroys the request if it finds none.
        :raises NoRoom: if there is no room beside what others have; it waits.
        :raises IllegalStep: if Nova has it already.
        :raises ClusterError: if it cannot be done now.
        """
        with self._acting:
            record, epoch = self._asked_about(uuid)
            interventions.check_unsent(record.request, _RELEASED)
            if record.request.state is _S.SENDING:
                # Whoever asks knows that Nova does not have it.
                self._executor.return_unsent(record, epoch)
            elif record.request.state is _S.RESERVED:
                self._executor.put_back(record, epoch)
            if not without_room:
                self._start_where_room_is(uuid)
                return
            record, epoch = self._let_go(uuid)
            why = reason.why(reason.Reason.SENT)
            self._executor.send_unplanned(record, why, epoch)

    def _start_where_room_is(self, uuid: str) -> None:
        """Start a request as a plan does, by what Placement says now."""
        last, now = self._last, self._clock()
        found = self._store.requests(_OPEN)
        known = time_limits.ends(found, now)
        view = self._view(found, now, self._ends.known(known), is_whole=True)
        view = self._making.seen(view, found, now)
        record, _ = self._asked_about(uuid)
        waiting = dict(last.plan.waiting) if last else {}
        hosts = interventions.room(record, view.snapshot, waiting, found)
        waiting.pop(uuid, None)
        record, epoch = self._let_go(uuid)
        action = interventions.start(record.request, hosts)
        planned = cluster.Plan((action,), waiting)
        others = self._executor.apart(planned, found, view)(action)
        self._executor.carry_out(action, record, view, others, epoch)
        left = self._store.request(uuid)
        if left is not None and left.request.state is _S.HELD:
            raise exception.NoRoom(
                f'request {uuid} is not released: another one took its room'
                ' meanwhile; it waits, try again'
            )

    def _let_go(self, uuid: str) -> tuple[records.RequestRecord, int]:
        """End the hold of a request that starts now."""
        record, epoch = self._asked_about(uuid)
        if record.request.hold is None:
            return record, epoch
        end = interventions.unhold(request_model.Holder.OPERATOR)
        end(self._given(record, epoch))
        return self._asked_about(uuid)

    def order(self, uuid: str, order: interventions.Order) -> None:
        """Do what an operator or an owner orders for a request that waits.

        :raises IllegalStep: if it waits no longer, or another one's hold is
            to end.
        :raises ClusterError: if it cannot be done now.
        """
        with self._acting:
            record, epoch = self._asked_about(uuid)
            if record.request.state is _S.RESERVED:
                self._executor.put_back(record, epoch)
                record, epoch = self._asked_about(uuid)
            order(self._given(record, epoch))
        self.hint()

    def _given(
        self, record: records.RequestRecord, epoch: int
    ) -> interventions.InterventionState:
        now = self._clock()
        return interventions.InterventionState(
            self._store, record.request, now, epoch, record.room
        )

    def extend(self, uuid: str, by_s: float) -> None:
        """Let servers of a request run longer.

        :param by_s: seconds, > 0.
        :raises IllegalStep: if they may not, or leave already.
        :raises ClusterError: if it cannot be done now.
        """
        with self._acting:
            record, epoch = self._asked_about(uuid)
            last, now = self.last(), self._clock()
            left = self._ends.extended(record, by_s, last.snapshot, now)
            self._store.extend(record.request, by_s, epoch)
            self._last = dataclasses.replace(last, snapshot=left)

    def change(self, do: Callable[[int], None]) -> None:
        """Change what is stored of accounts or groups, between two cycles.

        :param do: is given the epoch of the leader.
        :raises ClusterError: if it cannot be done now.
        """
        with self._acting:
            epoch = self._election.lead()
            if epoch is None:
                raise self._not_leading()
            do(epoch)

    def drain(self) -> list[records.RequestRecord]:
        """Start all that waits, also what there is no room for.

        :returns: requests that wait still or are in doubt.
        :raises NotLeading: if another process leads.
        :raises ClusterError: if it cannot be done now.
        """
        if not self.cycle():
            raise self._not_leading()
        why = reason.why(reason.Reason.SENT)
        with self._acting:
            epoch = self._election.lead()
            for record in self._store.requests({_S.HELD}):
                self._try(
                    record, self._executor.send_unplanned, record, why, epoch
                )
        return self._store.requests({_S.SENDING, *request_model.UNSENT})

    def _asked_about(self, uuid: str) -> tuple[records.RequestRecord, int]:
        epoch = self._election.lead()
        record = self._store.request(uuid)
        if epoch is None or record is None:
            raise self._not_leading()
        return record, epoch

    def _not_leading(self) -> exception.NotLeading:
        holder = self._store.leader().holder
        # Who gave the lease back is not to be asked.
        return exception.NotLeading(
            holder.rpartition(':')[0] or protocol.NOBODY
        )

    def _act(self, epoch: int) -> None:
        holds = self._holds()
        self._turn += 1
        now = self._clock()
        self._left_out = False
        self._part('messages', self._take_in, now)
        found = self._put_back(epoch)
        self._sweep(found)
        waiting = sum(each.request.state is _S.HELD for each in found)
        is_whole = self._planning.begin(waiting, now)
        ends = self._of_all(found, lambda some: time_limits.ends(some, now))
        known = self._part('ends', self._ends.known, ends) or {}
        view = self._view(found, now, known, is_whole)
        view = self._of_all(
            found, lambda some: self._making.seen(view, some, now)
        )
        view = snapshot_module.closed(view, _unknown_hosts(found))
        self._note_unread(found)
        self._watch(found, view, epoch, is_whole)
        self._part('builds', self._estimating.see, found, view.servers, now)
        snapshot = self._charge(view, now, epoch, holds)
        planned = self._planning.plan(snapshot, now)
        snapshot = self._planning.sound(snapshot)
        self._last = self._seen(snapshot, planned, found, now, epoch)
        self._do(planned, found, view, epoch, holds)
        if not holds:
            self._do_beside(ends, planned, found, snapshot, view, now, epoch)
            self._part('history', self._forget_old, now)
        self._part('left over', self._clean, epoch, holds)

    def _note_unread(self, found: list[records.RequestRecord]) -> None:
        """Set aside what could not be read in this cycle."""
        unread: dict[snapshot_module.Named, Exception] = {
            **self._reader.unreadable,
            **{
                (_K.REQUEST, each.request.uuid): each.fault
                for each in found
                if each.fault
            },
            **{
                (_K.ACCOUNT, name): error
                for name, error in self.accounts.unreadable().items()
            },
            **{
                (_K.ROW, name): error
                for name, error in self._store.unreadable().items()
            },
        }
        # What can be read again is used at once.
        for key in self._unread - unread.keys():
            self.quarantine.release(*key)
        for key, error in unread.items():
            if not self.quarantine.holds(*key):
                self.quarantine.put(*key, error)
        self._unread = frozenset(unread)

    def _take_in(self, now: float) -> None:
        """Make requests of messages that came."""
        terms = self._rules.terms
        granted = self.accounts.times(terms.longest_wait_s)
        intake.take_in(
            self._store, now, granted, terms.preemptible, self.quarantine
        )

    def _seen(
        self,
        snapshot: cluster.ClusterSnapshot,
        planned: cluster.Plan,
        found: list[records.RequestRecord],
        now: float,
        epoch: int,
    ) -> start_estimates.LastCycle:
        """State and plan of this cycle, with estimates of starts."""
        judge, waiting = self._estimating.judge, planned.waiting
        calibrated = self._part('promises', judge, found, waiting, epoch)
        made = self._part('estimates', self._estimating.made, now) or {}
        return start_estimates.LastCycle(
            snapshot, planned, now, tuple(found), made, calibrated
        )

    def _do_beside(
        self,
        ends: Mapping[str, time_limits.TimeLimit],
        planned: cluster.Plan,
        found: list[records.RequestRecord],
        snapshot: cluster.ClusterSnapshot,
        view: snapshot_module.CloudView,
        now: float,
        epoch: int,
    ) -> None:
        """Do all that no start waits for; each part that fails is left out."""
        servers = view.servers
        look = (snapshot, planned, found, servers, now, epoch)
        self._part('ends', self._ends.apply, ends, servers, now, epoch)
        self._part('chores', self.chores.apply, cycle_tasks.CycleState(*look))
        self._part('room', self._making.work, found, servers, epoch)
        self._part('leaving', self._leaving.work, servers, epoch)

    def _holds(self) -> bool:
        """Whether clocks disagree, so that nothing irreversible is done."""
        fault = self.clocks.look()
        if fault and not self._said:
            LOG.error(
                '%s; nothing expires, leaves, or is deleted or charged until'
                ' clocks agree: mend the clock of this host or of the'
                ' database',
                fault,
            )
        elif self._said and not fault:
            LOG.warning('clocks agree again: all goes on')
        self._said = fault
        return bool(fault)

    def _clean(self, epoch: int, holds: bool) -> None:
        """Leave nothing of requests that ended."""
        # What expired may have done so by a wrong time.
        left = [
            record
            for record in self._store.left_over(_CLEANED_AT_ONCE, self._turn)
            if not (holds and record.request.state is _S.EXPIRED)
        ]
        budget = self._budget(_DELETED_AT_ONCE)
        while left and budget.left:
            unfinished: list[records.RequestRecord] = []
            for record in left:
                self._try(record, self._clean_some, record, budget, unfinished)
            left = unfinished

    def _forget_old(self, now: float) -> None:
        before = now - self._rules.history_s
        self._store.remove_ended(before, _REMOVED_AT_ONCE)
        self._store.leaves.remove_ended(before)
        self._store.charges.remove(before)

    def _part(
        self, name: str, do: Callable[..., _T], *arguments: object
    ) -> _T | None:
        """Do a part of a cycle; its failure keeps no other part back.

        :returns: what it gives; ``None`` if it failed.
        """
        try:
            return do(*arguments)
        except quarantine_module.PASSES:
            raise
        except exception.CloudError:
            # Nova or Placement is away: other parts would fare no better.
            raise
        except Exception as error:  # noqa: BLE001 - all others are done
            self._note(name, error)
            return None

    def _note(self, name: str, error: Exception) -> None:
        """Take note of a part of a cycle that failed."""
        self._left_out = True
        self.quarantine.put(_K.PART, name, error)

    def _of_all(
        self,
        found: list[records.RequestRecord],
        do: Callable[[Sequence[records.RequestRecord]], _T],
    ) -> _T:
        """Do something with all requests but those that it fails on."""
        try:
            return do(found)
        except (*quarantine_module.PASSES, exception.CloudError):
            raise
        except Exception as error:
            if _fails(do, ()):
                # No request is to blame.
                raise
            budget = culprits.SearchBudget(
                _TRIES, self._monotonic, self._monotonic() + 5.0
            )
            blamed, unsure = culprits.found(
                found, lambda some: _fails(do, some), budget
            )
            for record in blamed:
                self.quarantine.put(_K.REQUEST, record.request.uuid, error)
            known = {each.request.uuid for each in (*blamed, *unsure)}
            return do([e for e in found if e.request.uuid not in known])

    def _charge(
        self,
        view: snapshot_module.CloudView,
        now: float,
        epoch: int,
        holds: bool,
    ) -> cluster.ClusterSnapshot:
        """Charge accounts; if that fails, the last known state goes on.

        Use and budgets stand still then, so that no account gains by it. Where
        nothing is known yet, nothing of accounts with a budget starts.
        """
        charge = functools.partial(self.charging.charge, holds=holds)
        charged = self._part('charges', charge, view, now, epoch)
        if charged is not None:
            self._charged = charged
            self._stop_paying(())
            return charged
        snapshot, last = view.snapshot, self._charged
        if last is None or last.classes != snapshot.classes:
            self._stop_paying(snapshot.accounts)
            return snapshot
        return dataclasses.replace(
            snapshot,
            history=last.history,
            granted=last.granted,
            budgets=last.budgets,
            weights=last.weights,
        )

    def _stop_paying(self, accounts: Iterable[cluster.Account]) -> None:
        """Set accounts with a budget aside, and no others any more."""
        paying = {e.name for e in accounts if e.budget_hours is not None}
        for name in self._unpaid - paying:
            self.quarantine.release(_K.ACCOUNT, name)
        unknown = exception.BadLedger('it is not known what was spent')
        for name in paying:
            if not self.quarantine.holds(_K.ACCOUNT, name):
                self.quarantine.put(_K.ACCOUNT, name, unknown)
        self._unpaid = frozenset(paying)

    def _clean_some(
        self,
        record: records.RequestRecord,
        budget: pace.WorkBudget,
        unfinished: list[records.RequestRecord],
    ) -> None:
        """Delete some servers of a request, and all else if none are left."""
        most = min(budget.left, _DELETED_OF_ONE)
        if not most:
            return
        deleted, is_done = self._executor.clean_up(record, most)
        budget.take(deleted)
        if not is_done:
            unfinished.append(record)

    def _budget(self, most: int) -> pace.WorkBudget:
        return pace.WorkBudget(most, _WORKS_S, self._monotonic)

    def _put_back(self, epoch: int) -> list[records.RequestRecord]:
        """Let wait what was reserved and not sent; say what there is."""
        found = self._store.requests(_OPEN)
        left = [each for each in found if each.request.state is _S.RESERVED]
        for record in left:
            self._try(record, self._executor.put_back, record, epoch)
        return self._store.requests(_OPEN) if left else found

    def _sweep(self, found: list[records.RequestRecord]) -> None:
        """Free room of requests that must not keep any, some each time.

        A leader that was deposed while it kept room, and died then, left it.
        """
        for states in ({_S.HELD}, {_S.STARTING, _S.ACTIVE}):
            some = [each for each in found if each.request.state in states]
            for n in range(min(len(some), _SWEPT_AT_ONCE)):
                record = some[(self._swept + n) % len(some)]
                self._try(record, self._executor.forget_room, record.request)
        self._swept += _SWEPT_AT_ONCE

    def _view(
        self,
        found: list[records.RequestRecord],
        now: float,
        ends: Mapping[str, float],
        is_whole: bool,
    ) -> snapshot_module.CloudView:
        requests = [
            self._ends.foreseen(each.request)
            for each in found
            if self._rules.pass_unreadable
            or each.why.reason is not _UNREADABLE
        ]
        given = {
            each.request.uuid: each.hosts
            for each in found
            if each.request.state in (_S.SENDING, _S.STARTING)
        }
        return self._reader.read(requests, given, now, ends, is_whole)

    def _watch(
        self,
        found: list[records.RequestRecord],
        view: snapshot_module.CloudView,
        epoch: int,
        is_whole: bool,
    ) -> None:
        """Look up how dispatched requests went on, and deleted servers."""
        servers = view.servers
        seen: list[_Seen] = []
        absent = []
        for record in found:
            request = record.request
            there = [
                servers[uuid] for uuid in request.servers if uuid in servers
            ]
            if there:
                seen.append((record, there))
            elif request.state not in request_model.UNSENT or (
                is_whole
                and request.state is _S.HELD
                and not record.fault
                and record.why.reason is not _UNREADABLE
            ):
                absent.append(record)
        self._follow(seen, epoch)
        self._look_for(absent, epoch)

    def _follow(self, seen: list[_Seen], epoch: int) -> None:
        """Look how requests are whose servers are there, as many as in time.

        The others follow in the next cycle.
        """
        sends, asks = self._budget(_SENT_AT_ONCE), self._budget(_ASKED_AT_ONCE)
        why = reason.why(reason.Reason.SENT)
        for record, there in pace.in_turn(
            seen, lambda each: _project(each[0]), self._turn
        ):
            request = record.request
            if not asks.is_in_time:
                return
            if request.state not in request_model.UNSENT:
                self._try(record, self._judge, record, there, asks, epoch)
            elif _is_decided(request, there) and sends.take():
                # Nova has it, as after an old backup was restored: it is not
                # sent, and followed from now on.
                send = self._executor.send_unplanned
                self._try(record, send, record, why, epoch)

    def _look_for(
        self, absent: list[records.RequestRecord], epoch: int
    ) -> None:
        """Ask for servers that lists lack, some in each cycle.

        A list may be old or partial: a server is gone only if it was asked
        for, or was listed as deleted. A server that Nova said to be gone is
        not asked for again, so that large requests end, too.
        """
        begin = self._turn * _ASKED_AT_ONCE % max(len(absent), 1)
        budget = self._budget(_ASKED_AT_ONCE)
        for record in pace.in_turn(
            absent[begin:] + absent[:begin], _project, self._turn
        ):
            self._try(record, self._look_for_one, record, budget, epoch)

    def _look_for_one(
        self,
        record: records.RequestRecord,
        budget: pace.WorkBudget,
        epoch: int,
    ) -> None:
        is_held = record.request.state is _S.HELD
        there: list[nova_module.Server] = []
        for uuid in record.request.servers:
            if self.nova.is_gone(uuid):
                continue
            if not budget.take():
                return
            found = self.nova.server(uuid)
            if found:
                there.append(found)
                if is_held or len(there) == _ENOUGH:
                    break
        if not is_held:
            self._judge(record, there, budget, epoch)
        elif not there and budget.take(_CALLS_OF_ONE):
            why = reason.why(reason.Reason.SERVER_DELETED)
            self._executor.send_unplanned(record, why, epoch, is_gone=True)

    def _judge(
        self,
        record: records.RequestRecord,
        there: list[nova_module.Server],
        budget: pace.WorkBudget,
        epoch: int,
    ) -> None:
        request = record.request
        if request.state is _S.SENDING:
            self._executor.forget_room(request)
        happened = dispatcher.judged(record, there)
        if happened is not None:
            event, why = happened
            self._store.step(request, event, epoch, why, self._clock())
        elif request.state is not _S.ACTIVE and not any(
            each.is_settled for each in there
        ):
            # One that runs is not settled while it is to be unshelved.
            self._doubt(record, there, budget, epoch)
            return
        self._doubted.pop(request.uuid, None)

    def _doubt(
        self,
        record: records.RequestRecord,
        there: list[nova_module.Server],
        budget: pace.WorkBudget,
        epoch: int,
    ) -> None:
        """Resolve a request in doubt: it is not known whether Nova has it.

        :param budget: of servers that are asked for.
        """
        request = record.request
        if not there:
            # With servers that are gone it only cleans up; those of what
            # cannot be read are unknown.
            if not request.is_unread:
                self._executor.return_unsent(record, epoch)
            return
        now_s = self._monotonic()
        since_s = now_s - self._doubted.setdefault(request.uuid, now_s)
        is_due = since_s >= self._rules.doubt_s
        if not is_due or not budget.take(len(request.servers)):
            return
        there = self._executor.present(request)
        if any(each.is_settled for each in there) or (
            not self._executor.take_back(record, epoch)
        ):
            why = reason.why(
                reason.Reason.IN_DOUBT,
                since_s=max(self._clock() - record.changed_at, 0),
            )
            if why.reason is not record.why.reason:
                self._store.tell([(request, why)], epoch)
            # Others are asked about meanwhile.
            pause_s = min(_ASKS_AGAIN_S, self._rules.doubt_s)
            self._doubted[request.uuid] += pause_s
            return
        del self._doubted[request.uuid]

    def _do(
        self,
        planned: cluster.Plan,
        listed: list[records.RequestRecord],
        view: snapshot_module.CloudView,
        epoch: int,
        holds: bool,
    ) -> None:
        do = self._executor.carry_out
        found = {each.request.uuid: each for each in listed}
        others = self._executor.apart(planned, listed, view)
        sends = self._budget(_SENT_AT_ONCE)
        ends = self._budget(_EXPIRED_AT_ONCE)
        for action in pace.in_turn(
            planned.actions, lambda each: _project(found[each.request])
        ):
            record, verb = found[action.request], action.verb
            expires = verb is cluster.Verb.EXPIRE
            if not expires and (
                self.quarantine.holds(_K.REQUEST, action.request)
            ):
                continue
            if holds and verb is not cluster.Verb.START:
                continue
            # Others are planned for again in the next cycle.
            if not (ends if expires else sends).take():
                continue
            if verb is cluster.Verb.MAKE_ROOM:
                self._try(record, self._making.promise, action, record, epoch)
                continue
            self._try(record, do, action, record, view, others(action), epoch)
        self._part('reasons', self._tell, planned, found, epoch)

    def _tell(
        self,
        planned: cluster.Plan,
        found: Mapping[str, records.RequestRecord],
        epoch: int,
    ) -> None:
        self._store.tell(self._planning.news(planned, found), epoch)

    def _try(
        self,
        record: records.RequestRecord,
        do: Callable[..., None],
        *arguments: object,
    ) -> None:
        """Do something for one request; its failure keeps no other back."""
        self._election.renew()
        try:
            do(*arguments)
        except quarantine_module.PASSES:
            raise
        except exception.ClusterError as error:
            LOG.warning('request %s: %s', record.request.uuid, error)
        except Exception as error:  # noqa: BLE001 - others go on
            self.quarantine.put(_K.REQUEST, record.request.uuid, error)


def _is_decided(
    request: request_model.Request, there: list[nova_module.Server]
) -> bool:
    """Whether Nova has decided on a build that waits."""
    return (
        request.state is _S.HELD
        and request.origin is request_model.Origin.BUILD
        and any(each.is_settled for each in there)
    )


def _unknown_hosts(found: Iterable[records.RequestRecord]) -> frozenset[str]:
    """Hosts where something starts whose amounts are not known."""
    return frozenset(
        host
        for each in found
        if each.fault and each.request.state in (_S.SENDING, _S.STARTING)
        for host in each.hosts
    )


def _fails(
    do: Callable[[Sequence[records.RequestRecord]], object],
    some: Sequence[records.RequestRecord],
) -> bool:
    try:
        do(some)
    except Exception:  # noqa: BLE001 - that it raises is what is asked
        return True
    return False


def _project(record: records.RequestRecord) -> str:
    return record.request.project
