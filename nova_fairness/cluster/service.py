# SPDX-License-Identifier: Apache-2.0

"""Main loop of the cluster service: snapshot, plan, execution."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import functools
import threading

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster import collaborators
from nova_fairness.cluster import cycle_parts
from nova_fairness.cluster import pace
from nova_fairness.cluster import quarantine as quarantine_module
from nova_fairness.cluster import snapshot as snapshot_module
from nova_fairness.cluster.admission import intake
from nova_fairness.cluster.admission import interventions
from nova_fairness.cluster.admission import scheduler
from nova_fairness.cluster.admission import sent_requests
from nova_fairness.cluster.admission import start_estimates
from nova_fairness.cluster.eviction import cycle_evictions
from nova_fairness.cluster.eviction import cycle_tasks
from nova_fairness.cluster.eviction import preemption
from nova_fairness.cluster.eviction import time_limits
from nova_fairness.cluster.store import records
from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.model import wording
from nova_fairness.rpc import protocol
from nova_fairness.runtime import heap
from nova_fairness.runtime import quiet_log
from nova_fairness.runtime import supervision

LOG = logging.getLogger(__name__)

_S = request_model.State
_RELEASED = frozenset({_S.SENDING, *request_model.UNSENT})
_K = quarantine_module.InputKind

_OF_CYCLE = 'cycle'
_UNREADABLE = reason.Reason.UNREADABLE
_OPEN = frozenset(_S) - request_model.FINAL
_CLEANED_AT_ONCE = 200
_DELETED_AT_ONCE = 100
"""Largest number of servers deleted in a cycle: Nova has no call that
deletes many.
"""

_DELETED_OF_ONE = 20
"""Largest number of servers of one request that are deleted before other
requests have a turn.
"""

_EXPIRED_AT_ONCE = 500
"""Largest number of requests that expire in a cycle: each needs a write to
the database.
"""

_SWEPT_AT_ONCE = 5
_REMOVED_AT_ONCE = 500
_RESIGNS_IN_S = 5.0
_HEEDS_EVERY_S = 0.5
"""Smallest number of seconds between two cycles that hints start."""


@dataclasses.dataclass(frozen=True)
class ServiceOptions:
    """Options of the queue service.

    :ivar terms: terms on which requests are admitted.
    :ivar pass_unreadable: whether messages that cannot be parsed are sent to
        Nova at once; otherwise they wait for an operator.
    :ivar doubt_s: seconds after which a sent request that Nova does not list
        is looked up.
    :ivar history_s: seconds for which ended requests are stored.
    """

    terms: intake.AdmissionOptions = intake.USUAL
    pass_unreadable: bool = True
    doubt_s: float = 600.0
    history_s: float = 30 * 86400.0


class Service:
    """One process of the cluster service. Other threads may call it.

    :param given: all parts that the service uses.
    :param rules: options of operators.
    :ivar clocks: the present time, and whether it may be wrong.
    :ivar nova: reads servers from Nova.
    :ivar accounts: the present share tree.
    :ivar charging: records what accounts used.
    :ivar chores: tasks that run beside requests in a cycle.
    :ivar cycles: number of cycles that started.
    :ivar cycles_failed: number of cycles that were aborted, or in which a part
        failed.
    :ivar quarantine: inputs that made a cycle fail.
    :ivar trouble: why the last cycle was aborted or late; '' if it was
        complete and in time.
    """

    def __init__(
        self,
        given: collaborators.Collaborators,
        rules: ServiceOptions,
    ) -> None:
        self.accounts, self.charging = given.accounts, given.charging
        self.nova, self.chores = given.nova, given.chores
        self.clocks, self.quarantine = given.clocks, given.quarantine
        self._store, self._election = given.store, given.election
        self._reader, self._executor = given.reader, given.executor
        self._ends, self._leaving = given.ends, given.leaving
        self._making, self._rules = given.making, rules
        self._clock, self._monotonic = given.clocks.now, given.monotonic
        self._planning = scheduler.Scheduler(
            given.plan, given.quarantine, given.monotonic
        )
        self._estimating = start_estimates.StartEstimates(
            given.store, given.plan, given.charging.kept, given.monotonic
        )
        self._said = self._aborted = ''
        self.trouble = ''
        self._is_ready = False
        self._quiet = quiet_log.QuietLog(LOG.logger, given.monotonic)
        self._parts = cycle_parts.CycleParts(
            given.quarantine,
            given.election.renew,
            given.monotonic,
            given.nova.log_name,
        )
        self._sent = sent_requests.SentRequestTracker(
            given, self._parts, rules.doubt_s
        )
        self._beat: supervision.Beat = lambda: None
        self._swept = self._turn = 0
        self._last: start_estimates.LastCycle | None = None
        self._acting = threading.Lock()
        self._hinted = threading.Event()
        self._charged: cluster.ClusterSnapshot | None = None
        self._unread: frozenset[snapshot_module.Named] = frozenset()
        self._unpaid: frozenset[str] = frozenset()
        self.cycles = self.cycles_failed = 0

    def run(
        self,
        stopped: threading.Event,
        interval_s: float,
        manager: supervision.ServiceManager,
    ) -> None:
        """Repeat the cycle until the service is stopped; hints start the next
        cycle earlier.

        :param manager: is notified of each cycle, and of progress in a long
            cycle.
        """
        self._beat = self._election.beat = manager.loop()
        while not stopped.is_set():
            self.cycles += 1
            self._hinted.clear()
            begin_s, pause_s, aborted = self._monotonic(), interval_s, ''
            try:
                leads, took_s = self.cycle(), self._monotonic() - begin_s
                pause_s -= self.estimate(interval_s)
                self._log_cycle(leads, took_s, interval_s)
            except exception.Deposed as error:
                LOG.warning('another process leads now: %s', error)
            except (
                exception.ClusterError,
                exception.PluginMisbehaved,
            ) as error:
                self.cycles_failed += 1
                aborted = self._log_abort(error)
            except Exception as error:  # noqa: BLE001 - no input ends the loop
                self.cycles_failed += 1
                self.quarantine.put(_K.PART, _OF_CYCLE, error)
            else:
                self.cycles_failed += self._parts.left_out
            self._aborted = aborted
            manager.say(self._status())
            self._wait_for_next_cycle(stopped, max(pause_s, 0.0))

    def _status(self) -> str:
        """Return the text for ``systemctl status``."""
        last = self._last
        if self.trouble or last is None:
            return self.trouble or 'waits: another process leads'
        count = len(last.plan.waiting)
        waits = wording.counted(count, 'request waits', 'requests wait')
        return f'leads: {waits}'

    def _log_abort(self, error: exception.FairnessError) -> str:
        """Log that cycles are aborted, once for each class of error."""
        kind = type(error).__name__
        self.trouble = f'cycles: aborted: {error}; each is tried again'
        if kind != self._aborted:
            LOG.warning(
                'cycles: aborted: %s; nothing is lost, each is tried again',
                error,
            )
        return kind

    def _log_cycle(
        self, leads: bool, took_s: float, interval_s: float
    ) -> None:
        """Log that cycles are complete again, or that they take too long."""
        if self._aborted:
            LOG.info('cycles: complete again')
        if leads and not self._is_ready:
            LOG.info('ready: the first cycle took %.1f s', took_s)
        self._is_ready, self.trouble = leads, ''
        if took_s > interval_s:
            self.trouble = (
                f'cycles: late: this one took {took_s:.1f} s, longer than'
                f' [fairness_cluster] interval, {interval_s:g} s'
            )
            self._quiet.warning('late', _OF_CYCLE, self.trouble)

    def hint(self) -> None:
        """Record that the cloud may have changed, so that the next cycle
        starts earlier.

        Cycles read the cloud in any case: hints may arrive late, twice, or
        never.
        """
        self._hinted.set()

    def _wait_for_next_cycle(
        self, stopped: threading.Event, pause_s: float
    ) -> None:
        """Wait until the next cycle is due or a hint arrives; many hints
        start only a few cycles.
        """
        left_s = pause_s
        self._beat()
        while not stopped.wait(min(left_s, _HEEDS_EVERY_S)):
            self._beat()
            left_s -= _HEEDS_EVERY_S
            if left_s <= 0 or self._hinted.is_set():
                return

    def cycle(self) -> bool:
        """Read the cloud, plan, and execute the plan, once. Other calls wait
        until the cycle ends.

        :returns: whether this process is the leader.
        :raises ClusterError: if an essential part fails; the next cycle
            repeats the work.
        """
        with self._acting:
            epoch = self._election.lead()
            if epoch is None:
                self._last = None
                self._planning.require_full_plan()
                self._estimating.reset()
                return False
            self._election.begin()
            try:
                with heap.uncollected():
                    self._execute_cycle(epoch)
            finally:
                self._election.end()
        return True

    def resign(self) -> None:
        """Release the lease, so that another process can lead at once."""
        # A stuck cycle does not block this: the store refuses its writes.
        is_mine = self._acting.acquire(timeout=_RESIGNS_IN_S)
        try:
            self._last = None
            self._election.resign()
        finally:
            if is_mine:
                self._acting.release()

    def estimate(self, pause_s: float) -> float:
        """Estimate the starts of requests, during a part of the pause between
        cycles.

        The next cycle publishes the estimates.

        :returns: seconds that the work took.
        :raises PluginMisbehaved: if the planner misbehaves.
        """
        begin_s, last = self._monotonic(), self._last
        if last is not None:
            work = self._estimating.compute
            given = last.snapshot, last.plan, last.at, pause_s
            try:
                work(*given)
            except exception.PluginMisbehaved:
                raise
            except Exception as error:  # noqa: BLE001 - requests start without
                self._parts.note('estimates', error)
        return self._monotonic() - begin_s

    def last(self) -> start_estimates.LastCycle:
        """Return the state and the plan of the last cycle.

        :raises NotLeading: if this process is not the leader.
        """
        last = self._last
        if last is None:
            raise self._not_leading_error()
        return last

    def leads(self) -> int | None:
        """Return the epoch in which this process is the leader; ``None`` if
        it is not.
        """
        with self._acting:
            return self._election.lead()

    def leads_since(self) -> float:
        """Return the time at which this process became the leader, seconds
        of the epoch.
        """
        return self._election.leads_since

    def cancel(self, uuid: str, why: reason.Why) -> None:
        """Cancel a request that waits to be built; the next cycle deletes its
        servers.

        Nova may need more time to delete them than the caller waits.

        :raises IllegalStep: if the request no longer waits, or is not a build.
        :raises ClusterError: if the request cannot be cancelled now.
        """
        with self._acting:
            record, epoch = self._record_and_epoch(uuid)
            request = record.request
            if request.origin is not request_model.Origin.BUILD:
                raise exception.IllegalStep(
                    f'request {uuid} unshelves, which Nova cannot take back'
                )
            interventions.check_cancellable(record)
            event = request_model.Event.CANCEL
            self._store.step(request, event, epoch, why, self._clock())

    def release(self, uuid: str, *, without_room: bool = False) -> None:
        """Start a request now, before its turn, on hosts with room.

        :param without_room: whether Nova selects the hosts; Nova fails the
            request if no host has room.
        :raises NoRoom: if no host has free room for the request; it waits.
        :raises IllegalStep: if the request was sent to Nova.
        :raises ClusterError: if the request cannot start now.
        """
        with self._acting:
            record, epoch = self._record_and_epoch(uuid)
            interventions.check_unsent(record.request, _RELEASED)
            if record.request.state is _S.SENDING:
                # The caller knows that Nova does not have it.
                self._executor.requeue_unsent(record, epoch)
            elif record.request.state is _S.RESERVED:
                self._executor.requeue_reserved(record, epoch)
            if not without_room:
                self._start_on_free_hosts(uuid)
                return
            record, epoch = self._end_hold(uuid)
            why = reason.why(reason.Reason.SENT)
            self._executor.send_unplanned(record, why, epoch)

    def _start_on_free_hosts(self, uuid: str) -> None:
        """Start a request on hosts with room, like a plan does, with the
        present data of Placement.
        """
        last, now = self._last, self._clock()
        found = self._store.requests(_OPEN)
        known = time_limits.time_limits_by_server(found, now)
        store, names = (
            self._store.leaves,
            preemption.victims_of_reservations(found),
        )
        names |= known.keys()
        with cycle_evictions.follow_evictions(store, names, now) as leaves:
            ends = self._ends.release_times(known, leaves)
            view = self._read_cloud(found, now, ends, is_whole=True)
            view = self._making.with_evictions(view, found, leaves, now)
        record, _ = self._record_and_epoch(uuid)
        waiting = dict(last.plan.waiting) if last else {}
        hosts = interventions.hosts_with_room(
            record, view.snapshot, waiting, found
        )
        waiting.pop(uuid, None)
        record, epoch = self._end_hold(uuid)
        action = interventions.start_action(record.request, hosts)
        planned = cluster.Plan((action,), waiting)
        others = self._executor.forbidden_hosts(planned, found, view)(action)
        self._executor.carry_out(action, record, view, others, epoch)
        left = self._store.request(uuid)
        if left is not None and left.request.state is _S.WAITING:
            raise exception.NoRoom(
                f'request {uuid} is not released: another one took its room'
                ' meanwhile; it waits, try again'
            )

    def _end_hold(self, uuid: str) -> tuple[records.RequestRecord, int]:
        """End the hold of a request that starts now. Returns its record and
        the epoch of the leader.
        """
        record, epoch = self._record_and_epoch(uuid)
        if record.request.hold is None:
            return record, epoch
        end = interventions.unhold_action(request_model.Holder.OPERATOR)
        end(self._intervention_state(record, epoch))
        return self._record_and_epoch(uuid)

    def order(self, uuid: str, order: interventions.Order) -> None:
        """Apply a change by an operator or an owner to a request that waits.

        :raises IllegalStep: if the request no longer waits, or the caller may
            not end its hold.
        :raises ClusterError: if the change cannot be stored now.
        """
        with self._acting:
            record, epoch = self._record_and_epoch(uuid)
            if record.request.state is _S.RESERVED:
                self._executor.requeue_reserved(record, epoch)
                record, epoch = self._record_and_epoch(uuid)
            order(self._intervention_state(record, epoch))
        self.hint()

    def _intervention_state(
        self, record: records.RequestRecord, epoch: int
    ) -> interventions.InterventionState:
        now = self._clock()
        return interventions.InterventionState(
            self._store, record.request, now, epoch, record.room
        )

    def extend(self, uuid: str, by_s: float) -> None:
        """Extend the time limit of the servers of a request.

        :param by_s: seconds, > 0.
        :raises IllegalStep: if the limit cannot be extended, or the servers
            are being evicted.
        :raises ClusterError: if the limit cannot be stored now.
        """
        with self._acting:
            record, epoch = self._record_and_epoch(uuid)
            last, now = self.last(), self._clock()
            leaves = self._store.leaves.newest_of_servers(
                record.request.servers
            ).values()
            left = self._ends.charge_extension(
                record, by_s, last.snapshot, leaves, now
            )
            self._store.extend_time_limit(record.request, by_s, epoch)
            self._last = dataclasses.replace(last, snapshot=left)

    def change(self, do: Callable[[int], None]) -> None:
        """Change stored accounts or groups between two cycles.

        :param do: writes the change, given the epoch of the leader.
        :raises ClusterError: if the change cannot be stored now.
        """
        with self._acting:
            epoch = self._election.lead()
            if epoch is None:
                raise self._not_leading_error()
            do(epoch)

    def drain(self) -> list[records.RequestRecord]:
        """Start all requests that wait, even if they have no room.

        :returns: requests that still wait or are in doubt.
        :raises NotLeading: if another process is the leader.
        :raises ClusterError: if the requests cannot be started now.
        """
        if not self.cycle():
            raise self._not_leading_error()
        why = reason.why(reason.Reason.SENT)
        with self._acting:
            epoch = self._election.lead()
            for record in self._store.requests({_S.WAITING}):
                self._parts.of_one(
                    record, self._executor.send_unplanned, record, why, epoch
                )
        return self._store.requests({_S.SENDING, *request_model.UNSENT})

    def _record_and_epoch(
        self, uuid: str
    ) -> tuple[records.RequestRecord, int]:
        epoch = self._election.lead()
        record = self._store.request(uuid)
        if epoch is None or record is None:
            raise self._not_leading_error()
        return record, epoch

    def _not_leading_error(self) -> exception.NotLeading:
        # A process that gave the lease back is not the one to ask.
        host = self._store.leader().host
        return exception.NotLeading(host or protocol.NOBODY)

    def _execute_cycle(self, epoch: int) -> None:
        holds = self._clocks_disagree()
        self._turn += 1
        now = self._clock()
        self._parts.begin()
        self._parts.do('messages', self._admit_messages, now)
        found = self._requeue_reserved(epoch)
        self._release_stray_reservations(found)
        waiting = sum(each.request.state is _S.WAITING for each in found)
        is_whole = self._planning.begin_cycle(waiting, now)
        ends = self._parts.of_all(
            found, lambda some: time_limits.time_limits_by_server(some, now)
        )
        store, names = (
            self._store.leaves,
            self._parts.of_all(found, preemption.victims_of_reservations),
        )
        with cycle_evictions.follow_evictions(
            store, names | ends.keys(), now
        ) as left:
            self._plan_and_execute(
                found, ends, left, now, epoch, holds, is_whole
            )

    def _plan_and_execute(
        self,
        found: list[records.RequestRecord],
        ends: Mapping[str, time_limits.TimeLimit],
        leaves: cycle_evictions.CycleEvictions,
        now: float,
        epoch: int,
        holds: bool,
        is_whole: bool,
    ) -> None:
        """Read the cloud, plan, and execute the plan for the stored
        requests.
        """
        known = (
            self._parts.do('ends', self._ends.release_times, ends, leaves)
            or {}
        )
        view = self._read_cloud(found, now, known, is_whole)
        view = self._parts.of_all(
            found,
            lambda some: self._making.with_evictions(view, some, leaves, now),
        )
        view = snapshot_module.with_closed_hosts(view, _unknown_hosts(found))
        self._quarantine_unreadable(found)
        self._sent.update_states(found, view.servers, epoch, is_whole)
        self._parts.do(
            'builds', self._estimating.record_delays, found, view.servers, now
        )
        snapshot = self._charge_accounts(view, now, epoch, holds)
        planned = self._planning.plan(snapshot, now)
        snapshot = self._planning.without_quarantined(snapshot)
        self._last = self._cycle_result(snapshot, planned, found, now, epoch)
        self._execute_plan(planned, found, view, epoch, holds)
        if not holds:
            look = (snapshot, planned, found, view.servers, leaves, now, epoch)
            self._run_independent_parts(ends, cycle_tasks.CycleState(*look))
            self._parts.do('history', self._remove_old_records, now)
        self._parts.do(
            'left over', self._clean_up_ended_requests, epoch, holds
        )

    def _quarantine_unreadable(
        self, found: list[records.RequestRecord]
    ) -> None:
        """Quarantine inputs that could not be read in this cycle, and
        release inputs that could.
        """
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
                for name, error in self._store.pop_unreadable_rows().items()
            },
        }
        # An input that is readable again is used at once.
        for key in self._unread - unread.keys():
            self.quarantine.release(*key)
        for key, error in unread.items():
            if not self.quarantine.holds(*key):
                self.quarantine.put(*key, error)
        self._unread = frozenset(unread)

    def _admit_messages(self, now: float) -> None:
        """Create requests from new messages."""
        terms = self._rules.terms
        granted = self.accounts.times(terms.longest_wait_s)
        intake.admit_messages(
            self._store, now, granted, terms.preemptible, self.quarantine
        )

    def _cycle_result(
        self,
        snapshot: cluster.ClusterSnapshot,
        planned: cluster.Plan,
        found: list[records.RequestRecord],
        now: float,
        epoch: int,
    ) -> start_estimates.LastCycle:
        """Return the state and the plan of this cycle, with estimates of
        starts.
        """
        judge, waiting = (
            self._estimating.compare_with_outcomes,
            planned.waiting,
        )
        calibrated = self._parts.do('promises', judge, found, waiting, epoch)
        made = (
            self._parts.do(
                'estimates', self._estimating.current_estimates, now
            )
            or {}
        )
        return start_estimates.LastCycle(
            snapshot, planned, now, tuple(found), made, calibrated
        )

    def _run_independent_parts(
        self,
        ends: Mapping[str, time_limits.TimeLimit],
        look: cycle_tasks.CycleState,
    ) -> None:
        """Run all work on which no start depends; parts that fail are
        skipped.
        """
        beside, epoch = (look.servers, look.leaves), look.epoch
        self._parts.do(
            'ends', self._ends.apply, ends, *beside, look.now, epoch
        )
        self._parts.do('chores', self.chores.apply, look)
        self._parts.do(
            'room', self._making.process_victims, look.found, *beside, epoch
        )
        self._parts.do(
            'leaving', self._leaving.advance_evictions, *beside, epoch
        )

    def _clocks_disagree(self) -> bool:
        """Whether the clocks disagree, so that nothing irreversible may be
        done.
        """
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

    def _clean_up_ended_requests(self, epoch: int, holds: bool) -> None:
        """Delete the servers and reservations that remain of ended
        requests.
        """
        # Requests may have expired because of a wrong time.
        left = [
            record
            for record in self._store.settled_requests_with_message(
                _CLEANED_AT_ONCE, self._turn
            )
            if not (holds and record.request.state is _S.EXPIRED)
        ]
        budget = self._parts.budget(_DELETED_AT_ONCE)
        while left and budget.left:
            unfinished: list[records.RequestRecord] = []
            for record in left:
                self._parts.of_one(
                    record, self._clean_up_request, record, budget, unfinished
                )
            left = unfinished

    def _remove_old_records(self, now: float) -> None:
        before = now - self._rules.history_s
        self._store.remove_ended_requests(before, _REMOVED_AT_ONCE)
        self._store.leaves.remove_ended(before)
        self._store.charges.remove_older(before)

    def _charge_accounts(
        self,
        view: snapshot_module.CloudView,
        now: float,
        epoch: int,
        holds: bool,
    ) -> cluster.ClusterSnapshot:
        """Charge accounts; if that fails, return the snapshot with the charges
        of an earlier cycle.

        Then use and budgets do not change, so that no account gains. If no
        charges are known yet, accounts with a budget start no servers.
        """
        charge = functools.partial(self.charging.charge, holds=holds)
        charged = self._parts.do('charges', charge, view, now, epoch)
        if charged is not None:
            self._charged = charged
            self._quarantine_unknown_budgets(())
            return charged
        snapshot, last = view.snapshot, self._charged
        if last is None or last.classes != snapshot.classes:
            self._quarantine_unknown_budgets(snapshot.accounts)
            return snapshot
        return dataclasses.replace(
            snapshot,
            history=last.history,
            granted=last.granted,
            budgets=last.budgets,
            weights=last.weights,
        )

    def _quarantine_unknown_budgets(
        self, accounts: Iterable[cluster.Account]
    ) -> None:
        """Quarantine accounts that have a budget and unknown spending, and
        release the others.

        :param accounts: accounts whose spending is unknown.
        """
        paying = {e.name for e in accounts if e.budget_hours is not None}
        for name in self._unpaid - paying:
            self.quarantine.release(_K.ACCOUNT, name)
        unknown = exception.BadLedger('it is not known what was spent')
        for name in paying:
            if not self.quarantine.holds(_K.ACCOUNT, name):
                self.quarantine.put(_K.ACCOUNT, name, unknown)
        self._unpaid = frozenset(paying)

    def _clean_up_request(
        self,
        record: records.RequestRecord,
        budget: pace.WorkBudget,
        unfinished: list[records.RequestRecord],
    ) -> None:
        """Delete some servers of an ended request, then its reservations."""
        most = min(budget.left, _DELETED_OF_ONE)
        if not most:
            return
        deleted, is_done = self._executor.clean_up(record, most)
        budget.take(deleted)
        if not is_done:
            unfinished.append(record)

    def _requeue_reserved(self, epoch: int) -> list[records.RequestRecord]:
        """Return reserved requests that were not sent to the waiting state.
        Returns all open requests.
        """
        found = self._store.requests(_OPEN)
        left = [each for each in found if each.request.state is _S.RESERVED]
        for record in left:
            self._parts.of_one(
                record, self._executor.requeue_reserved, record, epoch
            )
        return self._store.requests(_OPEN) if left else found

    def _release_stray_reservations(
        self, found: list[records.RequestRecord]
    ) -> None:
        """Release reservations whose request must not have any; a few per
        cycle.

        Such a reservation remains when a process dies after another process
        became leader.
        """
        for states in ({_S.WAITING}, {_S.STARTING, _S.ACTIVE}):
            some = [each for each in found if each.request.state in states]
            for n in range(min(len(some), _SWEPT_AT_ONCE)):
                record = some[(self._swept + n) % len(some)]
                self._parts.of_one(
                    record,
                    self._executor.release_leftover_room,
                    record.request,
                )
        self._swept += _SWEPT_AT_ONCE

    def _read_cloud(
        self,
        found: list[records.RequestRecord],
        now: float,
        ends: Mapping[str, float],
        is_whole: bool,
    ) -> snapshot_module.CloudView:
        requests = [
            self._ends.with_effective_limit(each.request)
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

    def _execute_plan(
        self,
        planned: cluster.Plan,
        listed: list[records.RequestRecord],
        view: snapshot_module.CloudView,
        epoch: int,
        holds: bool,
    ) -> None:
        do = self._executor.carry_out
        found = {each.request.uuid: each for each in listed}
        others = self._executor.forbidden_hosts(planned, listed, view)
        sends = self._parts.budget(sent_requests.SENT_AT_ONCE)
        ends = self._parts.budget(_EXPIRED_AT_ONCE)
        for action in pace.interleave_by_owner(
            planned.actions, lambda each: found[each.request].request.project
        ):
            record, verb = found[action.request], action.verb
            expires = verb is cluster.Verb.EXPIRE
            if not expires and (
                self.quarantine.holds(_K.REQUEST, action.request)
            ):
                continue
            if holds and verb is not cluster.Verb.START:
                continue
            # The next cycle plans again for the others.
            if not (ends if expires else sends).take():
                continue
            if verb is cluster.Verb.MAKE_ROOM:
                self._parts.of_one(
                    record, self._making.reserve_room, action, record, epoch
                )
                continue
            self._parts.of_one(
                record, do, action, record, view, others(action), epoch
            )
        self._parts.do(
            'reasons', self._write_new_reasons, planned, found, epoch
        )

    def _write_new_reasons(
        self,
        planned: cluster.Plan,
        found: Mapping[str, records.RequestRecord],
        epoch: int,
    ) -> None:
        news = self._planning.changed_reasons(planned, found)
        self._store.write_reasons(news, epoch, self._clock())


def _unknown_hosts(found: Iterable[records.RequestRecord]) -> frozenset[str]:
    """Return the hosts on which servers with unknown amounts start."""
    return frozenset(
        host
        for each in found
        if each.fault and each.request.state in (_S.SENDING, _S.STARTING)
        for host in each.hosts
    )
