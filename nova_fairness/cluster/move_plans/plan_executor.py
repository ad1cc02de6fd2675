# SPDX-License-Identifier: Apache-2.0

"""Executor of migration plans, one step after another.

A move is stored as started before Nova is called. After a crash, or if Nova
did not answer, the move is in doubt: the migrations in Nova are read before a
call is repeated.
"""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster.move_plans import prechecks
from nova_fairness.cluster.move_plans import registry
from nova_fairness.cluster.openstack import live_migrations
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.store import plans as plans_store
from nova_fairness.model import moments
from nova_fairness.model import plans as model

LOG = logging.getLogger(__name__)

MOVING = 'fairness:moving'
"""Metadata key of a server that is about to be moved: time, UTC, and goal."""

MOVED = 'fairness:moved'
"""Metadata key of a server that a plan moved: time of arrival, UTC, and
goal.
"""

MOST_FAILURES = 3
"""Number of consecutive failed moves after which a plan ends."""

_C, _E, _S = model.PlanCause, model.MoveEvent, model.MoveState


@dataclasses.dataclass(frozen=True, slots=True)
class ExecutionLimits:
    """Limits of simultaneous moves, and of the duration of a move.

    :ivar cloud: largest number of live migrations in the whole cloud, by any
        caller, >= 1.
    :ivar host: largest number of live migrations to or from one host, >= 1.
    :ivar longest_s: seconds after which a live migration is cancelled; 0 for
        never.
    """

    cloud: int = 4
    host: int = 1
    longest_s: float = 0.0


class PlanExecutor:
    """Executes migration plans.

    :param plans: store of plans.
    :param nova: reads servers, and starts live migrations.
    :param mobility: reads the states of migrations.
    :param limits: limits of simultaneous moves.
    :param clock: returns seconds of the epoch.
    """

    def __init__(
        self,
        plans: plans_store.PlanTable,
        nova: nova_module.Nova,
        mobility: live_migrations.LiveMigrations,
        limits: ExecutionLimits,
        clock: Callable[[], float],
    ) -> None:
        self._plans = plans
        self._nova = nova
        self._mobility = mobility
        self._limits = limits
        self._clock = clock
        self._cancelled: set[tuple[str, int]] = set()

    def watch(
        self, plan: model.MigrationPlan, epoch: int
    ) -> model.MigrationPlan:
        """Read the state of moves that have started, and store changes.

        :returns: the plan in its new state.
        :raises StoreError: if a change cannot be written.
        """
        for number, move in enumerate(plan.moves):
            if move.state is _S.MOVING:
                try:
                    plan = self._after_lookup(plan, number, epoch)
                except exception.CloudError as error:
                    LOG.warning('plan %s: %s', plan.uuid, error)
        return plan

    def work(
        self,
        plan: model.MigrationPlan,
        services: Mapping[str, nova_module.ComputeService],
        room: prechecks.HostRoom,
        epoch: int,
        left: Collection[str] = (),
    ) -> model.MigrationPlan:
        """Start moves of a running plan, and check whether the plan has ended.

        :param services: compute services of Nova, by name of the host.
        :param room: free room on hosts, reduced by servers that are being
            moved there.
        :param left: names of servers on the host that the plan empties which
            no move moves away.
        :returns: the plan in its new state.
        :raises StoreError: if a change cannot be written.
        """
        if (step := self._end_of_plan(plan, left)) is not None:
            return self._after_plan_step(plan, *step, epoch)
        free = self._free_slots(plan)
        for number, move in enumerate(plan.moves):
            if move.state is not _S.PENDING:
                continue
            try:
                plan = self._after_begin(
                    plan, number, services, room, free, epoch
                )
            except exception.CloudError as error:
                LOG.warning('plan %s: %s', plan.uuid, error)
        if (step := self._end_of_plan(plan, left)) is not None:
            return self._after_plan_step(plan, *step, epoch)
        return plan

    def _end_of_plan(
        self, plan: model.MigrationPlan, left: Collection[str]
    ) -> tuple[model.PlanEvent, model.PlanCause, str] | None:
        """Return how a plan ends; ``None`` if it continues."""
        ended = sorted(
            (each for each in plan.moves if each.ended_at is not None),
            key=lambda each: each.ended_at or 0.0,
        )
        tried = [each for each in ended if each.asked_at is not None]
        last = tried[-MOST_FAILURES:]
        if all(each.state not in model.UNENDED for each in plan.moves):
            if tried and all(each.state is _S.FAILED for each in tried):
                return model.PlanEvent.FAIL, _C.MANY_FAILED, last[-1].text
            if kept := sorted([*left, *registry.GOALS[plan.goal].kept(plan)]):
                text = (
                    f'{model.shortened_list(kept)} stay on host {plan.subject}'
                )
                return model.PlanEvent.REMAIN, _C.SOME_STAY, text
            return model.PlanEvent.FINISH, _C.ALL_ENDED, ''
        if len(last) == MOST_FAILURES and all(
            each.state is _S.FAILED for each in last
        ):
            return model.PlanEvent.FAIL, _C.MANY_FAILED, last[-1].text
        if self._clock() >= plan.until:
            return model.PlanEvent.EXPIRE, _C.LATE, ''
        return None

    def _free_slots(
        self, plan: model.MigrationPlan
    ) -> collections.Counter[str]:
        """Return the number of live migrations that may start, by host, and
        for the cloud under the key ''.

        :raises CloudError: if running migrations cannot be read.
        """
        count = collections.Counter({'': self._limits.cloud})
        for each in self._running_migrations(plan):
            # The new host is '' while Nova still looks for one.
            count.subtract({'', *each})
        return count

    def _running_migrations(
        self, plan: model.MigrationPlan
    ) -> Iterable[tuple[str, str]]:
        """Return the source and target hosts of running live migrations, by
        any caller.
        """
        seen = {
            each.server: (each.source, each.target)
            for each in self._mobility.running_migrations(self._clock())
        }
        seen |= {
            each.server: (each.source, each.target)
            for each in plan.moves
            if each.state is _S.MOVING
        }
        return seen.values()

    def _may_begin(self, move: model.Move, free: Mapping[str, int]) -> bool:
        host = self._limits.host
        return free[''] > 0 and all(
            free[name] + host > 0 for name in (move.source, move.target)
        )

    def _after_begin(
        self,
        plan: model.MigrationPlan,
        number: int,
        services: Mapping[str, nova_module.ComputeService],
        room: prechecks.HostRoom,
        free: collections.Counter[str],
        epoch: int,
    ) -> model.MigrationPlan:
        """Return the plan after a move was started, skipped or delayed."""
        move = plan.moves[number]
        if registry.GOALS[plan.goal].is_in_vain(plan, move):
            verdict = prechecks.MoveVerdict(_E.SKIP, _C.IN_VAIN)
            return self._after_step(plan, number, verdict, epoch)
        if not self._may_begin(move, free):
            return plan
        is_last = all(
            each.state not in model.UNENDED for each in plan.moves[:number]
        )
        lacks = room.knows(move.server) and not room.fits(
            move.server, move.target
        )
        if lacks and not is_last:
            return plan
        server = self._nova.server(move.server)
        verdict = prechecks.check_start(move, server, services, room, is_last)
        if verdict.event is not _E.ASK:
            return self._after_step(plan, number, verdict, epoch)
        free.subtract(('', move.source, move.target))
        room.take(move.server, move.target)
        return self._request_move(plan, number, epoch)

    def _request_move(
        self, plan: model.MigrationPlan, number: int, epoch: int
    ) -> model.MigrationPlan:
        before = self._mobility.migrations_of_server(plan.moves[number].server)
        newest = max((each.number for each in before), default=0)
        move = dataclasses.replace(plan.moves[number], after=newest)
        asked = move.stepped(_E.ASK, self._clock(), _C.ASKED)
        plan = self._plans.write(plan, plan.with_move(number, asked), epoch)
        # Tell before the move: Nova takes no metadata while a server moves.
        self._notify_owner(plan, asked)
        try:
            self._nova.live_migrate(move.server, move.target)
        except exception.CloudRefused as error:
            # Another caller may have been faster: then the next cycle sees the
            # result.
            verdict = prechecks.MoveVerdict(_E.FAIL, _C.REFUSED, str(error))
            server = self._nova.server(move.server)
            if server is not None and server.task:
                verdict = prechecks.MoveVerdict(_E.RETURN, _C.BUSY)
            return self._after_step(plan, number, verdict, epoch)
        LOG.info(
            'plan %s: server %s moves from %s to %s',
            plan.uuid,
            self._nova.log_name(move.server),
            move.source,
            move.target,
        )
        return plan

    def _after_lookup(
        self, plan: model.MigrationPlan, number: int, epoch: int
    ) -> model.MigrationPlan:
        move, now = plan.moves[number], self._clock()
        server = self._nova.server(move.server)
        migrations = self._mobility.migrations_of_server(move.server)
        verdict = prechecks.check_end(move, server, migrations, now)
        if verdict.event is None and server is not None:
            return self._after_progress(plan, number, epoch)
        return self._after_step(plan, number, verdict, epoch)

    def _after_progress(
        self, plan: model.MigrationPlan, number: int, epoch: int
    ) -> model.MigrationPlan:
        """Store the amount of memory sent so far, and cancel a move that
        takes too long.
        """
        move = plan.moves[number]
        found = self._mobility.progress(move.server)
        if found is None or found.number <= move.after:
            return plan
        took_s = self._clock() - (move.asked_at or 0.0)
        key = (move.server, found.number)
        if 0 < self._limits.longest_s < took_s and key not in self._cancelled:
            self._cancelled.add(key)
            named = self._nova.log_name(move.server)
            LOG.warning('server %s: it moves for %.0f s', named, took_s)
            self._mobility.cancel(move.server, found.number)
        if found.sent_mb <= (move.sent_mb or 0):
            return plan
        seen = dataclasses.replace(move, sent_mb=found.sent_mb)
        return self._plans.write(plan, plan.with_move(number, seen), epoch)

    def _after_step(
        self,
        plan: model.MigrationPlan,
        number: int,
        verdict: prechecks.MoveVerdict,
        epoch: int,
    ) -> model.MigrationPlan:
        """Return the plan after one of its moves made a step, or waits."""
        if verdict.event is None:
            return plan
        before = plan.moves[number]
        move = before.stepped(
            verdict.event, self._clock(), verdict.cause, verdict.text
        )
        if before.state is _S.MOVING:
            # Tell before the step is written: after a crash in between, the
            # owner is told again.
            self._notify_owner(plan, move)
        LOG.info(
            'plan %s: the move of server %s is %s: %s %s',
            plan.uuid,
            self._nova.log_name(move.server),
            move.state.value,
            verdict.cause.value,
            verdict.text,
        )
        return self._plans.write(plan, plan.with_move(number, move), epoch)

    def _notify_owner(
        self, plan: model.MigrationPlan, move: model.Move
    ) -> None:
        """Write metadata that informs the owner of a server about its move.

        The move does not depend on it: a server whose metadata cannot be
        written is moved nevertheless.
        """
        if move.cause is _C.SERVER_GONE:
            return
        at = moments.stamp(self._clock())
        said = f'{at} {plan.goal.value}'
        try:
            if move.state is _S.MOVING:
                self._nova.write_metadata(move.server, {MOVING: said})
                return
            if move.state is _S.MOVED:
                self._nova.write_metadata(move.server, {MOVED: said})
            self._nova.delete_metadata(move.server, MOVING)
        except exception.CloudError as error:
            LOG.warning(
                'server %s: its owner is not told: %s',
                self._nova.log_name(move.server),
                error,
            )

    def _after_plan_step(
        self,
        plan: model.MigrationPlan,
        event: model.PlanEvent,
        cause: model.PlanCause,
        text: str,
        epoch: int,
    ) -> model.MigrationPlan:
        after = plan.stepped(event, self._clock(), cause, text)
        LOG.info(
            'plan %s is %s: %s %s',
            plan.uuid,
            after.state.value,
            cause.value,
            text,
        )
        return self._plans.write(plan, after, epoch)
