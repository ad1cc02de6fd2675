# SPDX-License-Identifier: Apache-2.0

"""Planner of the moves of hosts between batch system and cloud, by the demand
of both.

A plan has at most one action for a host: the next step of its move, or an
action that makes batch system and cloud agree with the stored state of the
host. A host is opened on one side only after it was read as closed and empty
on the other. Therefore both sides never use a host at the same time, even if a
step takes effect late or is executed twice. While one side does not answer, no
host moves.

A host that another program or person closed is not opened here. To hand over
such a host, close it with a reason that begins with :data:`.partition.MARK`.
"""

from collections.abc import Iterator

from nova_fairness.model import border
from nova_fairness.planners.border import demand

_USUAL = demand.BorderRules()

_S, _E, _C = border.HostState, border.HostEvent, border.HostCause
_FIND = {
    border.BorderSide.BATCH: _E.FIND_IN_BATCH,
    border.BorderSide.CLOUD: _E.FIND_IN_CLOUD,
}


def plan(
    snapshot: border.Snapshot,
    now: float,
    rules: demand.BorderRules = _USUAL,
) -> border.BorderPlan:
    """Plan the next actions for hosts, and list the faults that prevent moves.

    :param snapshot: state of hosts, batch system and cloud.
    :param now: seconds of the epoch.
    :param rules: limits that an operator set.
    """
    away = [
        f'{side.value} gives no answer that can be read: nothing moves'
        for side in border.BorderSide
        if snapshot.side(side) is None
    ]
    if away:
        return border.BorderPlan((), tuple(away))
    nodes = sorted(snapshot.nodes, key=lambda node: node.host.name)
    judged = [_HostPlanner(snapshot, node, now, rules) for node in nodes]
    actions = {each.action.host: each.action for each in judged if each.action}
    free = [each.node for each in judged if each.is_free]
    wanted = demand.current_goal(snapshot, now, rules)
    if wanted:
        for node, event in demand.chosen_hosts(
            snapshot, free, wanted, now, rules
        ):
            actions[node.host.name] = _step_action(
                node, event, wanted.cause, wanted.text
            )
    faults = [each.fault for each in judged if each.fault]
    return border.BorderPlan(tuple(actions.values()), tuple(faults))


def _step_action(
    node: border.BorderHost,
    event: border.HostEvent,
    cause: border.HostCause,
    text: str,
    until: float | None = None,
) -> border.BorderAction:
    return border.BorderAction(
        border.BorderVerb.STEP,
        node.host.name,
        node.version,
        None,
        event,
        cause,
        text,
        until,
    )


class _HostPlanner:
    """One host, with the next action for it.

    :ivar action: the action; ``None`` for no action.
    :ivar fault: sentence for operators; '' if there is no fault.
    """

    def __init__(
        self,
        snapshot: border.Snapshot,
        node: border.BorderHost,
        now: float,
        rules: demand.BorderRules,
    ) -> None:
        self.node, self._now, self._rules = node, now, rules
        self.action: border.BorderAction | None = None
        self.fault = ''
        side = border.only_user(node.state)
        if side is None:
            self._find_side(snapshot)
            return
        self._side = side
        self._here = snapshot.place(node, side)
        self._there = snapshot.place(node, side.other)
        if self._there is not None and self._there.used:
            text = f'{side.other.value} uses it, to which it does not belong'
            self._set_step(_E.LOSE, _C.BOTH_SIDES, text)
            self._set_fault(text)
        elif node.state in border.LEAVING:
            self._plan_departure()
        elif node.state in border.ASKED:
            self._accept_or_refuse_move()
        else:
            self._plan_without_move()

    @property
    def is_free(self) -> bool:
        """Whether demand may start a move of the host, or cancel its move."""
        if self.node.state in border.MOVING:
            return self.action is None or (
                self.action.step in (None, _E.ACCEPT)
            )
        stays = self.node.host.fixed or self.fault
        return self.action is None and not stays

    def _set_step(
        self,
        event: border.HostEvent,
        cause: border.HostCause,
        text: str = '',
        until: float | None = None,
    ) -> None:
        self.action = _step_action(self.node, event, cause, text, until)

    def _set_fault(self, text: str) -> None:
        self.fault = f'{self.node.host.name}: {text}'

    def _set_action(
        self,
        verb: border.BorderVerb,
        cause: border.HostCause,
        text: str,
        work: tuple[str, ...] = (),
    ) -> None:
        self.action = border.BorderAction(
            verb,
            self.node.host.name,
            self.node.version,
            self._side,
            None,
            cause,
            text,
            work=work,
        )

    def _find_side(self, snapshot: border.Snapshot) -> None:
        for side in border.BorderSide:
            if snapshot.is_unclear(self.node, side):
                self._set_fault(f'its entry of {side.value} cannot be read')
                return
        users = [
            side
            for side in border.BorderSide
            if (place := snapshot.place(self.node, side)) and place.used
        ]
        if len(users) == 1:
            text = f'{users[0].value} alone uses it'
            self._set_step(_FIND[users[0]], _C.SEEN, text)
        elif users:
            self._set_fault('both sides use it; close one of them')
        else:
            self._set_fault('neither side uses it; open one of them')

    def _obstacle(self) -> str:
        """Return why the host cannot move now; '' if it can."""
        here, there, name = self._here, self._there, self._side.value
        if self.node.host.fixed:
            return 'it is fixed'
        if here is None:
            return f'{name} does not know it'
        if there is None:
            return f'{self._side.other.value} does not know it'
        if not here.takes and not here.ours:
            return f'{name} has it closed by another hand: {here.reason}'
        if not there.ours:
            return (
                f'{self._side.other.value} has it closed by another hand:'
                f' {there.reason}'
            )
        if not there.up:
            return f'its service of {self._side.other.value} is down'
        return ''

    def _plan_without_move(self) -> None:
        here = self._here
        if here is not None and here.ours:
            text = f'it belongs to {self._side.value}'
            self._set_action(border.BorderVerb.OPEN, _C.SEEN, text)
        elif (wrong := self._obstacle()) and not self.node.host.fixed:
            self._set_fault(f'it cannot move: {wrong}')

    def _accept_or_refuse_move(self) -> None:
        wrong = self._obstacle()
        if wrong:
            self._set_step(_E.REFUSE, _C.OBSTACLE, wrong)
            self._set_fault(f'it does not move: {wrong}')
        else:
            until = self._now + self._rules.ttl_s
            self._set_step(_E.ACCEPT, _C.CHECKED, until=until)

    def _plan_departure(self) -> None:
        here = self._here
        is_late = self._now >= (self.node.until or 0.0)
        if self._cancel_if_blocked():
            return
        if here is None or not here.up:
            self._set_fault(
                f'its service of {self._side.value} is away; it waits'
            )
            if is_late:
                self._set_step(_E.EXPIRE, _C.LATE, 'its old side is away')
        elif here.takes:
            text = f'it goes to {self._side.other.value}'
            self._set_action(border.BorderVerb.CLOSE, _C.CHECKED, text)
        elif not here.work:
            self._plan_arrival(is_late)
        elif is_late:
            self._plan_late_work(here)
        else:
            self._plan_clearing(here)

    def _cancel_if_blocked(self) -> bool:
        """Cancel the move if waiting cannot remove its obstacle. Returns
        whether it was cancelled.
        """
        here, there = self._here, self._there
        lasting = (
            self.node.host.fixed
            or there is None
            or not there.ours
            or (here is not None and not here.takes and not here.ours)
        )
        if lasting:
            wrong = self._obstacle()
            self._set_step(_E.CANCEL, _C.OBSTACLE, wrong)
            self._set_fault(f'it stays: {wrong}')
        return lasting

    def _plan_arrival(self, is_late: bool) -> None:
        if self._there is not None and self._there.up:
            self._set_step(_E.ARRIVE, _C.EMPTY, 'nothing is left on it')
        elif is_late:
            self._set_step(_E.EXPIRE, _C.LATE, 'its new side is away')
        else:
            other = self._side.other.value
            self._set_fault(f'its service of {other} is down; it waits')

    def _plan_late_work(self, here: border.SideStatus) -> None:
        names = tuple(sorted(each.name for each in here.work))
        if self._rules.end_vms and self._side is border.BorderSide.CLOUD:
            text = 'their time to live is over'
            self._set_action(border.BorderVerb.END, _C.LATE, text, names)
        else:
            text = f'still there: {", ".join(names)}'
            self._set_step(_E.EXPIRE, _C.LATE, text)
            self._set_fault(f'it stays where it was, {text}')

    def _plan_clearing(self, here: border.SideStatus) -> None:
        names = tuple(sorted(_work_to_send_away(here)))
        if names:
            text = f'their host goes to {self._side.other.value}'
            self._set_action(border.BorderVerb.CLEAR, _C.CHECKED, text, names)


def _work_to_send_away(place: border.SideStatus) -> Iterator[str]:
    for work in place.work:
        if work.way is not border.WorkEnd.ENDS:
            yield work.name
