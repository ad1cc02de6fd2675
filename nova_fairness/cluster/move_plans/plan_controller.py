# SPDX-License-Identifier: Apache-2.0

"""Controller of migration plans: it proposes, approves, executes and measures
them.

The controller works beside the queue, on the state of the queue's last cycle.
At most one plan is open at a time. The store contains the state of the plan,
so that the next leader can continue it.
"""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import enum
import threading
import uuid as uuid_module

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster import agent_reports
from nova_fairness.cluster import host_controller
from nova_fairness.cluster import service as service_module
from nova_fairness.cluster.move_plans import candidates
from nova_fairness.cluster.move_plans import host_power
from nova_fairness.cluster.move_plans import observation
from nova_fairness.cluster.move_plans import outcome
from nova_fairness.cluster.move_plans import plan_executor
from nova_fairness.cluster.move_plans import prechecks
from nova_fairness.cluster.move_plans import registry
from nova_fairness.cluster.move_plans.goals import empty as empty_module
from nova_fairness.cluster.move_plans.goals import goal as goal_module
from nova_fairness.cluster.openstack import live_migrations
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import plans as model
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.model import wording

LOG = logging.getLogger(__name__)

STALE_S = 120.0
"""Seconds after which the state of the queue's last cycle is too old to be
used.
"""

_PART = 0.1
"""Largest fraction of time that the search for moves may use."""

_SETTLES_S = 20.0
"""Seconds from the last move until the outcome is measured."""

_EMPTYING = empty_module.EmptyHostGoal()
_C, _E, _S = model.PlanCause, model.PlanEvent, model.PlanState
_STARTING = frozenset(
    {request_model.State.SENDING, request_model.State.STARTING}
)


class Mode(enum.Enum):
    """Steps that happen without an operator. The values are those of an
    option: do not change them.
    """

    RECOMMEND = 'recommend'
    """Plans are only shown; they cannot be approved."""

    APPROVE = 'approve'
    """Plans start when an operator approves them."""

    AUTO = 'auto'
    """Plans start without approval."""


@dataclasses.dataclass(frozen=True)
class PlanOptions:
    """Options of migration plans.

    :ivar mode: what happens without an operator.
    :ivar goals: goals of plans, the most important one first.
    :ivar emptying: goal of plans that empty a host which an operator selects.
    :ivar hold_s: seconds for which moves must stay worth a plan before the
        plan is proposed.
    :ivar lasts_s: seconds after which a plan expires.
    :ivar rest_s: seconds after a move, or a failed move, during which its
        server is not moved again.
    :ivar history_s: seconds for which ended plans are stored.
    """

    mode: Mode
    goals: tuple[goal_module.PlanGoal, ...] = ()
    emptying: empty_module.EmptyHostGoal = _EMPTYING
    hold_s: float = 300.0
    lasts_s: float = 6 * 3600.0
    rest_s: float = 6 * 3600.0
    history_s: float = 30 * 86400.0


class PlanController(
    host_controller.HostController[observation.PlanObservation]
):
    """Controls migration plans, if this process is the leader.

    :param store: store of the plans.
    :param service: service of the queue; it may be the leader.
    :param nova: lists services and servers; no other object uses it.
    :param mobility: reads running migrations and server groups.
    :param moving: executes plans.
    :param resting: disables and powers down empty hosts.
    :param rules: options of operators.
    :param clock: returns seconds of the epoch.
    :param stopped: event that ends the loop of the controller.
    :param interval_s: seconds between two cycles.
    :param lacking: reads the CPU that servers want and get; ``None`` if no
        agent is queried.
    :param shared: returns the states of hosts that the batch system and the
        cloud share.
    """

    name = 'plans'
    idle = 'plans: none goes on'

    def __init__(
        self,
        store: store_module.Store,
        service: service_module.Service,
        nova: nova_module.Nova,
        mobility: live_migrations.LiveMigrations,
        moving: plan_executor.PlanExecutor,
        resting: host_power.HostPower,
        rules: PlanOptions,
        clock: Callable[[], float],
        stopped: threading.Event,
        interval_s: float,
        lacking: agent_reports.ServerShortfall | None = None,
        shared: observation.Shared = tuple,
    ) -> None:
        super().__init__(service, stopped, interval_s)
        self._plans = store.plans
        self._store = store
        self._looking = observation.PlanObserver(
            store, nova, mobility, rules.rest_s, shared
        )
        self._moving = moving
        self._resting = resting
        self._rules = rules
        self._clock = clock
        self._lacking = lacking
        self._since: dict[tuple[model.Goal, str], float] = {}
        self._again_at = 0.0

    def cycle(self) -> bool:
        """Read the state of the cloud once, and execute the next steps.

        :returns: whether this process is the leader.
        :raises ClusterError: if the cycle cannot be done now.
        :raises NotLeading: if the queue has not read the cloud yet.
        """
        epoch = self._epoch()
        if epoch is None:
            self._last = None
            return False
        looked = self._observe()
        self._last = looked
        plans = self._plans.open_plans()
        for plan in plans:
            self._run_part(
                f'plan {plan.uuid}', self._advance_plan, plan, looked, epoch
            )
        # If a move ended just now, the observation is older than its end.
        if not any(each.is_moving for each in plans):
            self._run_part('new plans', self._search_moves, looked, epoch)
        self._run_part('rest of hosts', self._disable_empty_hosts, looked)
        self._plans.remove_ended(looked.at - self._rules.history_s)
        self._log_new_faults(())
        return True

    def _disable_empty_hosts(
        self, looked: observation.PlanObservation
    ) -> None:
        self._resting.look(self._power_input(looked))

    def closing(self) -> frozenset[str]:
        """Return the names of hosts on which the queue must start nothing."""
        return (
            self._plans.hosts_to_empty(registry.CLOSING)
            | self._plans.hosts_in_use_by_plans(registry.HOLDING)
            | self._resting.closing()
        )

    def approve(self, uuid: str) -> model.MigrationPlan:
        """Approve a plan, so that its moves start.

        :raises UnknownPlan: if there is no such plan.
        :raises IllegalStep: if the plan is not proposed, or plans are only
            shown.
        :raises ClusterError: if the step cannot be stored now.
        :raises NotLeading: if this process is not the leader.
        """
        if self._rules.mode is Mode.RECOMMEND:
            raise exception.IllegalStep(
                'plans are only shown: [fairness_plans] mode is recommend'
            )
        return self._apply_manual_event(uuid, _E.APPROVE)

    def stop(self, uuid: str) -> model.MigrationPlan:
        """End a plan; moves that have started are not cancelled.

        :raises UnknownPlan: if there is no such plan.
        :raises IllegalStep: if the plan has ended.
        :raises ClusterError: if the step cannot be stored now.
        :raises NotLeading: if this process is not the leader.
        """
        return self._apply_manual_event(uuid, _E.STOP)

    def empty(self, host: str) -> model.MigrationPlan:
        """Propose a plan that moves all servers off a host.

        :param host: name of the host.
        :raises UnknownHost: if there is no such host.
        :raises IllegalStep: if another plan has started, or no server on the
            host can be moved.
        :raises ClusterError: if the plan cannot be stored now.
        :raises NotLeading: if this process is not the leader.
        """
        epoch, looked = self._require_epoch(), self.last()
        hosts = {each.name for each in looked.last.snapshot.providers}
        if host not in hosts:
            raise exception.UnknownHost(f'there is no host {host}')
        alive = self._plans.open_plans()
        for plan in alive:
            if plan.state in (_S.APPROVED, _S.RUNNING):
                raise exception.IllegalStep(
                    f'plan {plan.uuid} is {plan.state.value}: stop it before'
                )
        there = (
            each.uuid
            for each in looked.known.servers.values()
            if each.host == host
        )
        known = self._looking.pinned(looked, there).but(host)
        draft = self._rules.emptying.emptied(looked.last.snapshot, known, host)
        if not draft.moves:
            raise exception.IllegalStep(
                f'nothing on host {host} can move to another one'
                + _stay_texts(draft.stays)
            )
        for plan in alive:
            if plan.state is not _S.PARTIAL or plan.subject == host:
                self._replace_plan(plan, epoch)
        return self._add_plan(draft, _C.OPERATOR, epoch)

    def _apply_manual_event(
        self, uuid: str, event: model.PlanEvent
    ) -> model.MigrationPlan:
        epoch = self._require_epoch()
        plan = self._plans.read_plan(uuid)
        if plan is None:
            raise exception.UnknownPlan(f'there is no plan {uuid}')
        if event not in model.STEPS[plan.state]:
            ended = sum(each.state not in model.UNENDED for each in plan.moves)
            raise exception.IllegalStep(
                f'plan {uuid} is {plan.state.value} already: {ended} of'
                f' {wording.counted(len(plan.moves), "move")} ended'
            )
        text = plan.text if event is _E.APPROVE else ''
        after = plan.stepped(event, self._clock(), _C.OPERATOR, text)
        return self._plans.write(plan, after, epoch)

    def _observe(self) -> observation.PlanObservation:
        last, now = self._service.last(), self._clock()
        if now - last.at > STALE_S:
            raise exception.CloudAway(
                f'the queue saw the cloud {now - last.at:.0f} s ago'
            )
        return self._looking.look(last, now)

    def _advance_plan(
        self,
        plan: model.MigrationPlan,
        looked: observation.PlanObservation,
        epoch: int,
    ) -> None:
        """Execute all steps of a plan that are possible now."""
        plan = self._moving.watch(plan, epoch)
        if not self._is_wanted(plan):
            after = plan.stepped(_E.EXPIRE, self._clock(), _C.NOT_A_GOAL)
            plan = self._plans.write(plan, after, epoch)
        if plan.state is _S.PROPOSED:
            plan = self._approve_or_expire(plan, looked, epoch)
        if plan.state is _S.APPROVED:
            plan = self._plans.write(
                plan,
                plan.stepped(_E.BEGIN, self._clock(), plan.cause, plan.text),
                epoch,
            )
        if plan.state is _S.RUNNING:
            room = self._host_room(plan, looked)
            left = registry.GOALS[plan.goal].left(
                plan, looked.known.servers.values()
            )
            plan = self._moving.work(plan, looked.services, room, epoch, left)
        if plan.state is _S.PARTIAL:
            plan = self._finish_partial_plan(plan, looked, epoch)
        has_ended = plan.state is _S.PARTIAL or plan.state in model.FINAL
        is_due = plan.is_open and plan.won is None and not plan.is_moving
        if has_ended and is_due:
            self._measure_outcome(plan, looked, epoch)

    def _is_wanted(self, plan: model.MigrationPlan) -> bool:
        """Whether a plan has ended, or its goal is still configured."""
        goals = (self._rules.emptying, *self._rules.goals)
        return plan.state in model.FINAL or any(
            plan.goal is each.name for each in goals
        )

    def _finish_partial_plan(
        self,
        plan: model.MigrationPlan,
        looked: observation.PlanObservation,
        epoch: int,
    ) -> model.MigrationPlan:
        """Return the plan of a host that did not become empty; finish the
        plan when the host is empty.
        """
        on = {each.host for each in looked.known.servers.values()}
        is_new = looked.last.at < plan.changed_at + _SETTLES_S
        if (
            is_new
            or plan.subject in on
            or not self._has_no_pending_start(plan.subject)
        ):
            return plan
        after = plan.stepped(_E.FINISH, self._clock(), _C.ALL_ENDED)
        after = dataclasses.replace(after, won=None)
        return self._plans.write(plan, after, epoch)

    def _approve_or_expire(
        self,
        plan: model.MigrationPlan,
        looked: observation.PlanObservation,
        epoch: int,
    ) -> model.MigrationPlan:
        """Approve a proposed plan or let it expire, if its mode, age or use
        requires that.
        """
        now = self._clock()
        if now >= plan.until:
            after = plan.stepped(_E.EXPIRE, now, _C.LATE)
        elif not outcome.is_still_useful(
            plan, looked.known.servers, looked.last.plan.waiting
        ):
            after = plan.stepped(_E.EXPIRE, now, _C.NO_USE)
        elif self._rules.mode is Mode.AUTO:
            after = plan.stepped(_E.APPROVE, now, _C.AUTO, plan.text)
        else:
            return plan
        return self._plans.write(plan, after, epoch)

    def _host_room(
        self, plan: model.MigrationPlan, looked: observation.PlanObservation
    ) -> prechecks.HostRoom:
        # When all servers are repacked, some wait on a host that is being
        # emptied.
        known = dataclasses.replace(looked.known, stays=(), own=plan.empties)
        if registry.GOALS[plan.goal].holds_host:
            known = known.but(plan.subject)
        room = prechecks.HostRoom(
            candidates.with_movable_demands(looked.last.snapshot, known)
        )
        for move in plan.moves:
            if move.state is model.MoveState.MOVING:
                room.take(move.server, move.target)
        return room

    def _search_moves(
        self, looked: observation.PlanObservation, epoch: int
    ) -> None:
        """Search for moves. After a long search, the next one starts later."""
        begun = self._clock()
        if begun < self._again_at:
            return
        self._propose_draft(looked, epoch)
        ended = self._clock()
        self._again_at = ended + max(ended - begun, 0.0) / _PART

    def _propose_draft(
        self, looked: observation.PlanObservation, epoch: int
    ) -> None:
        """Propose the first draft that has been worth a plan for long
        enough.
        """
        goals = self._rules.goals
        names = [each.name for each in goals]
        alive = [
            each
            for each in self._plans.open_plans()
            # A host that stays closed does not block goals of other hosts.
            if each.state not in model.FINAL and each.state is not _S.PARTIAL
        ]
        if any(each.state is not _S.PROPOSED for each in alive) or any(
            each.goal not in names for each in alive
        ):
            self._since.clear()
            return
        if alive:
            goals = goals[: names.index(alive[0].goal)]
        found = list(goal_module.all_drafts(goals, self._goal_input(looked)))
        self._since = {
            (each.goal, each.subject): self._since.get(
                (each.goal, each.subject), looked.at
            )
            for each in found
        }
        for draft in found:
            since = self._since[draft.goal, draft.subject]
            if looked.at - since >= self._rules.hold_s:
                if self._is_outdated(draft, looked):
                    return
                for plan in alive:
                    self._replace_plan(plan, epoch)
                self._add_plan(draft, _C.FOUND, epoch)
                return

    def _goal_input(
        self, looked: observation.PlanObservation
    ) -> goal_module.GoalInput:
        return goal_module.GoalInput(
            candidates.with_movable_demands(
                looked.last.snapshot, looked.known
            ),
            looked.last.plan.waiting,
            looked.at,
            looked.known.servers,
            looked.moved_at,
            self._lacking,
            lambda: self._service.charging.trading.all_rates(),
            self._plans.open_or_changed_since,
        )

    def _is_outdated(
        self, draft: goal_module.Draft, looked: observation.PlanObservation
    ) -> bool:
        """Whether the zone pin of a server that would be moved has changed."""
        moved = (each.server for each in draft.moves)
        return self._looking.pinned(looked, moved) is not looked.known

    def _add_plan(
        self, draft: goal_module.Draft, cause: model.PlanCause, epoch: int
    ) -> model.MigrationPlan:
        now = self._clock()
        plan = model.MigrationPlan(
            str(uuid_module.uuid4()),
            draft.goal,
            draft.subject,
            now,
            now,
            now + self._rules.lasts_s,
            draft.moves,
            draft.empties,
            draft.promised,
            cause=cause,
            text=draft.text,
            stays=draft.stays,
        )
        self._plans.add(plan, epoch)
        LOG.info(
            'plan %s is proposed: %s %s, %s, %d MB %s',
            plan.uuid,
            plan.goal.value,
            plan.subject,
            wording.counted(len(plan.moves), 'move'),
            plan.promised.memory_mb,
            plan.text,
        )
        return plan

    def _replace_plan(self, plan: model.MigrationPlan, epoch: int) -> None:
        event = {_S.PROPOSED: _E.EXPIRE, _S.PARTIAL: _E.STOP}.get(plan.state)
        if event is not None:
            after = plan.stepped(event, self._clock(), _C.REPLACED)
            self._plans.write(plan, after, epoch)

    def _measure_outcome(
        self,
        plan: model.MigrationPlan,
        looked: observation.PlanObservation,
        epoch: int,
    ) -> None:
        """Store the outcome of an ended plan, after a cycle of the queue
        has shown it.
        """
        ended = [each.ended_at or 0.0 for each in plan.moves]
        since = max([plan.changed_at, *ended])
        if looked.last.at < since + _SETTLES_S:
            return
        holds_host = registry.GOALS[plan.goal].holds_host
        is_emptied = holds_host and plan.state is _S.DONE
        if is_emptied:
            # Servers that were to stay may have been deleted since.
            after = dataclasses.replace(plan, empties=(plan.subject,))
        else:
            after = plan
        won = outcome.measured_outcome(after, looked.last)
        if is_emptied and won.emptied:
            if not self._has_no_pending_start(plan.subject):
                return
            service = looked.services.get(plan.subject)
            if service is not None:
                self._resting.disable_emptied(service, f'by plan {plan.uuid}')
        self._plans.write(plan, dataclasses.replace(after, won=won), epoch)

    def _has_no_pending_start(self, host: str) -> bool:
        """Whether no request that was sent to Nova may still start on a
        host.
        """
        sent = self._store.requests(_STARTING)
        return not any(host in each.hosts for each in sent)

    def _power_input(
        self, looked: observation.PlanObservation
    ) -> host_power.HostPowerInput:
        sent = self._store.requests(_STARTING)
        used = {each.host for each in looked.known.servers.values()}
        used |= {host for each in sent for host in each.hosts}
        used |= {
            move.target
            for plan in self._plans.open_plans()
            for move in plan.moves
            if move.state in model.UNENDED
        }
        last = looked.last
        return host_power.HostPowerInput(
            last.snapshot,
            last.at,
            looked.services,
            used,
            [
                each
                for each in last.snapshot.requests
                if each.uuid in last.plan.waiting
                and last.plan.waiting[each.uuid].why.reason
                in reason.ROOM_HELPS
                and not each.is_preemptible
            ],
            looked.shared,
        )


def _stay_texts(stays: Sequence[model.Stay]) -> str:
    """Return the reasons of the first servers that stay, as the end of a
    sentence.
    """
    told = [each.sentence for each in stays]
    return ': ' + model.shortened_list(told, '; ') if told else ''
