# SPDX-License-Identifier: Apache-2.0

"""Prometheus metrics and notifications of migration plans."""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
from typing import Any

from nova_fairness.model import moments
from nova_fairness.model import plans as model
from nova_fairness.observe import families
from nova_fairness.observe import notices

VERSION = '1.0'
"""Version of the payloads of plans. The minor version rises when fields are
added.
"""


@dataclasses.dataclass(frozen=True)
class PlansStatus:
    """State of all migration plans.

    :ivar entered: number of plans that this process put into a state, by goal
        and state.
    :ivar moves: number of moves that this process put into a state, by state
        and cause.
    :ivar seen_at: time at which hosts and servers were last read, seconds of
        the epoch; ``None`` if this process is not the leader.
    :ivar moving: number of servers that move at present.
    :ivar resting: number of empty hosts that are disabled.
    """

    entered: Mapping[tuple[str, str], int]
    moves: Mapping[tuple[str, str], int]
    seen_at: float | None = None
    moving: int = 0
    resting: int = 0


def metrics(plans: PlansStatus) -> families.Metrics:
    """Yield the metrics of plans; a process that is not the leader yields only
    the counters.
    """
    yield families.metric('plan_entered_plans', sorted(plans.entered.items()))
    yield families.metric('plan_entered_moves', sorted(plans.moves.items()))
    if plans.seen_at is None:
        return
    yield families.metric('plan_moving_servers', [((), plans.moving)])
    yield families.metric('plan_resting_hosts', [((), plans.resting)])
    yield families.metric(
        'plan_snapshot_timestamp_seconds', [((), plans.seen_at)]
    )


def change_notices(
    before: model.MigrationPlan | None, after: model.MigrationPlan, host: str
) -> Iterator[notices.Notice]:
    """Yield the notifications of a changed plan.

    :param before: plan before the change; ``None`` for a new plan.
    :param host: name of the host of this process.
    """
    if before is None or before.state is not after.state:
        yield _of_plan(after.state.value, after, host)
    elif before.won is None and after.won is not None:
        yield _of_plan('measured', after, host)
    for number, move in changed_moves(before, after):
        yield _of_move(number, move, after, host)


def changed_moves(
    before: model.MigrationPlan | None, after: model.MigrationPlan
) -> Iterator[tuple[int, model.Move]]:
    """Yield the moves whose state changed, with their numbers from 0."""
    if before is None:
        return
    pairs = zip(before.moves, after.moves, strict=True)
    for number, (old, new) in enumerate(pairs):
        if old.state is not new.state:
            yield number, new


def _of_plan(
    what: str, plan: model.MigrationPlan, host: str
) -> notices.Notice:
    return notices.Notice(
        f'fairness.plan.{what}',
        notices.WARN if plan.state is model.PlanState.FAILED else notices.INFO,
        _payload(plan, host, plan.changed_at),
    )


def _of_move(
    number: int, move: model.Move, plan: model.MigrationPlan, host: str
) -> notices.Notice:
    change_notices = {
        'number': number,
        'server': move.server,
        'source': move.source,
        'target': move.target,
        'state': move.state.value,
        'cause': move.cause and move.cause.value,
        'explanation': model.cause_sentence(move.cause, move.text),
    }
    is_bad = move.state is model.MoveState.FAILED
    return notices.Notice(
        f'fairness.plan_move.{move.state.value}',
        notices.WARN if is_bad else notices.INFO,
        _payload(plan, host, _since(move, plan), change_notices),
    )


def _since(move: model.Move, plan: model.MigrationPlan) -> float:
    return move.ended_at or move.asked_at or plan.changed_at


def _payload(
    plan: model.MigrationPlan,
    host: str,
    at_s: float,
    move: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        'version': VERSION,
        'host': host,
        'at': moments.stamp(at_s),
        'plan': plan.uuid,
        'goal': plan.goal.value,
        'subject': plan.subject,
        'state': plan.state.value,
        'cause': plan.cause.value,
        'explanation': model.cause_sentence(plan.cause, plan.text),
        'moves_count': len(plan.moves),
        'empties': list(plan.empties),
        'promised': dataclasses.asdict(plan.promised),
        'won': plan.won and dataclasses.asdict(plan.won),
        'move': move,
    }
