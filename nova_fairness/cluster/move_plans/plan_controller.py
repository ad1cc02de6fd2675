# SPDX-License-Identifier: Apache-2.0

"""Migration plans have a life: they are found, approved, done, and measured.

This works beside the queue, on the state of the queue's last cycle. At most
one plan is alive at a time. The store says how far it is, so that the next
leader goes on where another died.
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
from nova_fairness.cluster import quarantine
from nova_fairness.cluster import service as service_module
from nova_fairness.cluster.move_plans import candidates
from nova_fairness.cluster.move_plans import goals as goals_module
from nova_fairness.cluster.move_plans import host_power
from nova_fairness.cluster.move_plans import observation
from nova_fairness.cluster.move_plans import outcome
from nova_fairness.cluster.move_plans import plan_executor
from nova_fairness.cluster.move_plans import prechecks
from nova_fairness.cluster.openstack import live_migrations
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import cluster
from nova_fairness.model import plans as model
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.model import tenants

LOG = logging.getLogger(__name__)

STALE_S = 120.0
"""After which what the queue saw last counts for nothing."""

_PART = 0.1
"""Of the time that is spent on looking for moves, at most."""

_SETTLES_S = 20.0
"""After the last move until what was won is measured."""

_OF_CYCLE = quarantine.InputKind.PART
_C, _E, _G, _S = model.PlanCause, model.PlanEvent, model.Goal, model.PlanState
_STARTING = frozenset(
    {request_model.State.SENDING, request_model.State.STARTING}
)


class Mode(enum.Enum):
    """Autonomy of the service. The tokens are an interface."""

    RECOMMEND = 'recommend'
    """It shows plans; they cannot be approved."""

    APPROVE = 'approve'
    """Plans begin when an operator approves them."""

    AUTO = 'auto'
    """Plans begin by themselves."""


@dataclasses.dataclass(frozen=True)
class PlanOptions:
    """Options that operators set.

    :ivar mode: what is done without approval.
    :ivar drafts: which moves are worth it.
    :ivar hold_s: for which moves must have been worth it.
    :ivar lasts_s: after which a plan expires.
    :ivar rest_s: for which a server that was moved, or could not be, does not
        move again.
    :ivar history_s: for which plans that ended are remembered.
    :ivar repack_s: from one plan that repacks all to the next.
    """

    mode: Mode
    drafts: goals_module.GoalOptions
    hold_s: float = 300.0
    lasts_s: float = 6 * 3600.0
    rest_s: float = 6 * 3600.0
    history_s: float = 30 * 86400.0
    repack_s: float = 7 * 86400.0


class PlanController:
    """Migration plans, in the process that acts.

    :param store: where they are.
    :param service: of the queue: says whether this process acts.
    :param nova: where services and servers are; used by this object alone.
    :param mobility: says what moves, and which servers belong together.
    :param moving: carries plans out.
    :param resting: lets empty hosts rest.
    :param rules: options that operators set.
    :param clock: seconds of the epoch.
    :param stopped: event that ends this.
    :param interval_s: seconds between two looks.
    :param lacking: says what servers want of CPUs; ``None`` if no agent is
        asked.
    :param shared: says where hosts stand that batch and cloud share.
    """

    name = 'plans'

    def __init__(
        self,
        store: store_module.Store,
        service: service_module.Service,
        nova: nova_module.Nova,
        mobility: live_migrations.Mobility,
        moving: plan_executor.PlanExecutor,
        resting: host_power.HostPower,
        rules: PlanOptions,
        clock: Callable[[], float],
        stopped: threading.Event,
        interval_s: float,
        lacking: agent_reports.ServerShortfall | None = None,
        shared: observation.Shared = tuple,
    ) -> None:
        self._plans = store.plans
        self._store = store
        self._service = service
        self._looking = observation.PlanObserver(
            store, nova, mobility, rules.rest_s, shared
        )
        self._moving = moving
        self._resting = resting
        self._rules = rules
        self._clock = clock
        self._stopped = stopped
        self._interval_s = interval_s
        self._lacking = lacking
        self._since: dict[tuple[model.Goal, str], float] = {}
        self._again_at = 0.0
        self._last: observation.PlanObservation | None = None
        self._said = ''

    def run(self) -> None:
        """Look and act every so many seconds until stopped."""
        while not self._stopped.is_set():
            said = ''
            try:
                self.cycle()
            except exception.Deposed as error:
                LOG.warning('another process leads now: %s', error)
            except exception.Outdated as error:
                # An operator was faster: the next look sees what is so.
                LOG.info('%s', error)
            except (exception.ClusterError, exception.NotLeading) as error:
                said = f'no plan goes on: {error}'
                if said != self._said:
                    LOG.warning('%s', said)
            except Exception as error:  # noqa: BLE001 - no input ends the loop
                self._service.quarantine.put(_OF_CYCLE, self.name, error)
            self._said = said
            self._stopped.wait(self._interval_s)

    def cycle(self) -> bool:
        """Look once, and do what is next.

        :returns: whether this process acts.
        :raises ClusterError: if nothing can be done now.
        :raises NotLeading: if the queue has not looked at the cloud yet.
        """
        epoch = self._service.leads()
        if epoch is None:
            self._last = None
            return False
        if fault := self._service.clocks.fault:
            raise exception.ClocksDisagree(fault)
        looked = self._look()
        self._last = looked
        plans = self._plans.open()
        for plan in plans:
            self._part(f'plan {plan.uuid}', self._go_on, plan, looked, epoch)
        # Where a move ended just now, the look is from before.
        if not any(each.is_moving for each in plans):
            self._part('new plans', self._plan, looked, epoch)
        self._part('rest of hosts', self._rest, looked)
        self._plans.remove_ended(looked.at - self._rules.history_s)
        return True

    def _part(
        self, name: str, do: Callable[..., None], *arguments: object
    ) -> None:
        """Do a part of a cycle; its failure keeps no other part back."""
        try:
            do(*arguments)
        except (exception.ClusterError, exception.NotLeading):
            raise
        except Exception as error:  # noqa: BLE001 - others go on
            self._service.quarantine.put(_OF_CYCLE, name, error)

    def _rest(self, looked: observation.PlanObservation) -> None:
        self._resting.look(self._seen(looked))

    def last(self) -> observation.PlanObservation:
        """State of the cloud at the last look.

        :raises NotLeading: if this process does not act, or has not looked.
        """
        if self._last is None:
            # It says who acts.
            self._service.last()
            raise exception.NotLeading('this host, which has not looked yet')
        return self._last

    def closing(self) -> frozenset[str]:
        """Names of hosts on which the queue is to start nothing."""
        return self._plans.closing() | self._resting.closing()

    def approve(self, uuid: str) -> model.MigrationPlan:
        """Let a plan begin.

        :raises UnknownPlan: if there is none.
        :raises IllegalStep: if it is not proposed, or plans are only shown.
        :raises ClusterError: if it cannot be done now.
        :raises NotLeading: if this process does not act.
        """
        if self._rules.mode is Mode.RECOMMEND:
            raise exception.IllegalStep(
                'plans are only shown: [fairness_plans] mode is recommend'
            )
        return self._by_hand(uuid, _E.APPROVE)

    def stop(self, uuid: str) -> model.MigrationPlan:
        """End a plan; moves that have begun are not called back.

        :raises UnknownPlan: if there is none.
        :raises IllegalStep: if it has ended.
        :raises ClusterError: if it cannot be done now.
        :raises NotLeading: if this process does not act.
        """
        return self._by_hand(uuid, _E.STOP)

    def empty(self, host: str) -> model.MigrationPlan:
        """Propose a plan that empties a host.

        :param host: its name.
        :raises UnknownHost: if there is none.
        :raises IllegalStep: if another plan has begun, or nothing on the host
            can move.
        :raises ClusterError: if it cannot be done now.
        :raises NotLeading: if this process does not act.
        """
        epoch, looked = self._acts(), self.last()
        hosts = {each.name for each in looked.last.snapshot.providers}
        if host not in hosts:
            raise exception.UnknownHost(f'there is no host {host}')
        alive = self._plans.open()
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
        draft = goals_module.emptied(
            looked.last.snapshot, known, host, self._rules.drafts
        )
        if not draft.moves:
            raise exception.IllegalStep(
                f'nothing on host {host} can move to another one'
                + _said_of(draft.stays)
            )
        for plan in alive:
            if plan.state is not _S.PARTIAL or plan.subject == host:
                self._replace(plan, epoch)
        return self._add(draft, _C.OPERATOR, epoch)

    def _acts(self) -> int:
        epoch = self._service.leads()
        if epoch is None:
            # It says who acts.
            self._service.last()
            raise exception.NotLeading('unknown')
        return epoch

    def _by_hand(
        self, uuid: str, event: model.PlanEvent
    ) -> model.MigrationPlan:
        epoch = self._acts()
        plan = self._plans.plan(uuid)
        if plan is None:
            raise exception.UnknownPlan(f'there is no plan {uuid}')
        text = plan.text if event is _E.APPROVE else ''
        after = plan.stepped(event, self._clock(), _C.OPERATOR, text)
        return self._plans.write(plan, after, epoch)

    def _look(self) -> observation.PlanObservation:
        last, now = self._service.last(), self._clock()
        if now - last.at > STALE_S:
            raise exception.CloudAway(
                f'the queue saw the cloud {now - last.at:.0f} s ago'
            )
        return self._looking.look(last, now)

    def _go_on(
        self,
        plan: model.MigrationPlan,
        looked: observation.PlanObservation,
        epoch: int,
    ) -> None:
        """Lead a plan as far as it goes now."""
        plan = self._moving.watch(plan, epoch)
        if not self._is_wanted(plan):
            after = plan.stepped(_E.EXPIRE, self._clock(), _C.NOT_A_GOAL)
            plan = self._plans.write(plan, after, epoch)
        if plan.state is _S.PROPOSED:
            plan = self._judge(plan, looked, epoch)
        if plan.state is _S.APPROVED:
            plan = self._plans.write(
                plan,
                plan.stepped(_E.BEGIN, self._clock(), plan.cause, plan.text),
                epoch,
            )
        if plan.state is _S.RUNNING:
            room = self._room(plan, looked)
            left = [_named(each) for each in self._left(plan, looked)]
            plan = self._moving.work(plan, looked.services, room, epoch, left)
        if plan.state is _S.PARTIAL:
            plan = self._remaining(plan, looked, epoch)
        has_ended = plan.state is _S.PARTIAL or plan.state in model.FINAL
        is_due = plan.is_open and plan.won is None and not plan.is_moving
        if has_ended and is_due:
            self._measure(plan, looked, epoch)

    def _is_wanted(self, plan: model.MigrationPlan) -> bool:
        """Whether a plan that goes on is for what operators want."""
        goals = {_G.EMPTY, *self._rules.drafts.goals}
        return plan.state in model.FINAL or plan.goal in goals

    def _left(
        self, plan: model.MigrationPlan, looked: observation.PlanObservation
    ) -> list[nova_module.Server]:
        """Servers on the host of a plan that empties it which stay there."""
        if plan.goal is not _G.EMPTY:
            return []
        moved = {each.server for each in plan.moves}
        return [
            each
            for each in looked.known.servers.values()
            if each.host == plan.subject and each.uuid not in moved
        ]

    def _remaining(
        self,
        plan: model.MigrationPlan,
        looked: observation.PlanObservation,
        epoch: int,
    ) -> model.MigrationPlan:
        """The plan of a host that was not empty; it is done once it is."""
        on = {each.host for each in looked.known.servers.values()}
        is_new = looked.last.at < plan.changed_at + _SETTLES_S
        if is_new or plan.subject in on or not self._is_quiet(plan.subject):
            return plan
        after = plan.stepped(_E.FINISH, self._clock(), _C.ALL_ENDED)
        after = dataclasses.replace(after, won=None)
        return self._plans.write(plan, after, epoch)

    def _judge(
        self,
        plan: model.MigrationPlan,
        looked: observation.PlanObservation,
        epoch: int,
    ) -> model.MigrationPlan:
        """Approve a plan, or let it expire, if that is due."""
        now = self._clock()
        if now >= plan.until:
            after = plan.stepped(_E.EXPIRE, now, _C.LATE)
        elif not outcome.is_as_found(
            plan, looked.known.servers, looked.last.plan.waiting
        ):
            after = plan.stepped(_E.EXPIRE, now, _C.NO_USE)
        elif self._rules.mode is Mode.AUTO:
            after = plan.stepped(_E.APPROVE, now, _C.AUTO, plan.text)
        else:
            return plan
        return self._plans.write(plan, after, epoch)

    def _room(
        self, plan: model.MigrationPlan, looked: observation.PlanObservation
    ) -> prechecks.HostRoom:
        # Where all is packed anew some wait on a host that is emptied.
        known = dataclasses.replace(looked.known, stays=(), own=plan.empties)
        if plan.goal is _G.EMPTY:
            known = known.but(plan.subject)
        room = prechecks.HostRoom(candidates.seen(looked.last.snapshot, known))
        for move in plan.moves:
            if move.state is model.MoveState.MOVING:
                room.take(move.server, move.target)
        return room

    def _plan(self, looked: observation.PlanObservation, epoch: int) -> None:
        """Look for moves, less often where that takes long."""
        begun = self._clock()
        if begun < self._again_at:
            return
        self._propose(looked, epoch)
        ended = self._clock()
        self._again_at = ended + max(ended - begun, 0.0) / _PART

    def _propose(
        self, looked: observation.PlanObservation, epoch: int
    ) -> None:
        """Propose the first moves that were worth it for long enough."""
        goals = list(self._rules.drafts.goals)
        alive = [
            each
            for each in self._plans.open()
            # A host that stays closed keeps no goal of other hosts back.
            if each.state not in model.FINAL and each.state is not _S.PARTIAL
        ]
        if any(each.state is not _S.PROPOSED for each in alive) or any(
            each.goal not in goals for each in alive
        ):
            self._since.clear()
            return
        if alive:
            goals = goals[: goals.index(alive[0].goal)]
        if _G.REPACK in goals and not self._may_repack(looked.at):
            goals.remove(_G.REPACK)
        rules = dataclasses.replace(self._rules.drafts, goals=tuple(goals))
        snapshot = candidates.seen(looked.last.snapshot, looked.known)
        seen = goals_module.GoalInput(
            snapshot,
            looked.last.plan.waiting,
            self._tenants(snapshot, looked) if _G.HELP in goals else None,
            self._service.charging.trading.all_rates()
            if _G.MARKET in goals
            else {},
            looked.at,
        )
        found = list(goals_module.drafts(seen, rules))
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
                    self._replace(plan, epoch)
                self._add(draft, _C.FOUND, epoch)
                return

    def _is_outdated(
        self, draft: goals_module.Draft, looked: observation.PlanObservation
    ) -> bool:
        """Whether a server that is to move was pinned, or let go, since."""
        moved = (each.server for each in draft.moves)
        return self._looking.pinned(looked, moved) is not looked.known

    def _may_repack(self, now: float) -> bool:
        """Whether it is long enough since a plan repacked all."""
        return not any(
            each.goal is _G.REPACK and each.state is not _S.EXPIRED
            for each in self._plans.since(now - self._rules.repack_s)
        )

    def _tenants(
        self,
        snapshot: cluster.ClusterSnapshot,
        looked: observation.PlanObservation,
    ) -> tenants.Tenants | None:
        """Wants of servers for CPUs; those that moved lately stay anyway.

        ``None`` while agents have not seen for long enough how moves ended.
        """
        if self._lacking is None:
            return None
        shares = outcome.shares(snapshot)
        found = self._lacking.tenants(snapshot, {}, shares)
        # What agents said may be as old as they are asked seldom.
        seen_s = self._rules.drafts.help.seen_s + agent_reports.LACKING_S
        if looked.at - looked.moved_at < seen_s:
            return None
        return outcome.seen_whole(found, looked.known.servers)

    def _add(
        self, draft: goals_module.Draft, cause: model.PlanCause, epoch: int
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
            'plan %s is proposed: %s %s, %d moves, %d MB %s',
            plan.uuid,
            plan.goal.value,
            plan.subject,
            len(plan.moves),
            plan.promised.memory_mb,
            plan.text,
        )
        return plan

    def _replace(self, plan: model.MigrationPlan, epoch: int) -> None:
        event = {_S.PROPOSED: _E.EXPIRE, _S.PARTIAL: _E.STOP}.get(plan.state)
        if event is not None:
            after = plan.stepped(event, self._clock(), _C.REPLACED)
            self._plans.write(plan, after, epoch)

    def _measure(
        self,
        plan: model.MigrationPlan,
        looked: observation.PlanObservation,
        epoch: int,
    ) -> None:
        """Write what was won by a plan that ended, once it can be seen."""
        ended = [each.ended_at or 0.0 for each in plan.moves]
        since = max([plan.changed_at, *ended])
        if looked.last.at < since + _SETTLES_S:
            return
        is_emptied = plan.goal is _G.EMPTY and plan.state is _S.DONE
        if is_emptied:
            # Some that were to stay may have been deleted since.
            after = dataclasses.replace(plan, empties=(plan.subject,))
        else:
            after = plan
        won = outcome.won(after, looked.last)
        if is_emptied and won.emptied:
            if not self._is_quiet(plan.subject):
                return
            service = looked.services.get(plan.subject)
            if service is not None:
                self._resting.disable_emptied(service, f'by plan {plan.uuid}')
        self._plans.write(plan, dataclasses.replace(after, won=won), epoch)

    def _is_quiet(self, host: str) -> bool:
        """Whether nothing that the queue sent may be on its way to a host."""
        sent = self._store.requests(_STARTING)
        return not any(host in each.hosts for each in sent)

    def _seen(
        self, looked: observation.PlanObservation
    ) -> host_power.HostPowerInput:
        sent = self._store.requests(_STARTING)
        used = {each.host for each in looked.known.servers.values()}
        used |= {host for each in sent for host in each.hosts}
        used |= {
            move.target
            for plan in self._plans.open()
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


def _named(server: nova_module.Server) -> str:
    return server.name or server.uuid


def _said_of(stays: Sequence[model.Stay]) -> str:
    """The first servers that stay and why, to end a sentence."""
    told = [each.sentence for each in stays]
    return ': ' + model.listed(told, '; ') if told else ''
