# SPDX-License-Identifier: Apache-2.0

"""Plans of moves, as Prometheus metrics and notices."""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
from typing import Any

from nova_fairness.model import moments
from nova_fairness.model import plans as model
from nova_fairness.observe import families
from nova_fairness.observe import notices

VERSION = '1.0'
"""Of the payloads of plans. Minor: fields were added."""


@dataclasses.dataclass(frozen=True)
class PlansStatus:
    """Plans of moves at one moment.

    :ivar entered: number of plans that this process led into a state, by goal
        and state.
    :ivar moves: number of moves that this process led into a state, by state
        and cause.
    :ivar seen_at: when hosts and servers were looked at last, seconds of the
        epoch; ``None`` if this process does not act.
    :ivar moving: servers that move now.
    :ivar resting: hosts that are disabled because they are not needed.
    """

    entered: Mapping[tuple[str, str], int]
    moves: Mapping[tuple[str, str], int]
    seen_at: float | None = None
    moving: int = 0
    resting: int = 0


def metrics(plans: PlansStatus) -> families.Metrics:
    """Make the numbers; without those that only who acts knows."""
    yield families.metric('plan_entered_plans', sorted(plans.entered.items()))
    yield families.metric('plan_entered_moves', sorted(plans.moves.items()))
    if plans.seen_at is None:
        return
    yield families.metric('plan_moving_servers', [((), plans.moving)])
    yield families.metric('plan_resting_hosts', [((), plans.resting)])
    yield families.metric(
        'plan_snapshot_timestamp_seconds', [((), plans.seen_at)]
    )


def told(
    before: model.MigrationPlan | None, after: model.MigrationPlan, host: str
) -> Iterator[notices.Notice]:
    """Notices of what changed of a plan.

    :param before: as it was; ``None`` if it is new.
    :param host: that tells it.
    """
    if before is None or before.state is not after.state:
        yield _of_plan(after.state.value, after, host)
    elif before.won is None and after.won is not None:
        yield _of_plan('measured', after, host)
    for number, move in moves_changed(before, after):
        yield _of_move(number, move, after, host)


def moves_changed(
    before: model.MigrationPlan | None, after: model.MigrationPlan
) -> Iterator[tuple[int, model.Move]]:
    """Moves that came into another state, with their numbers from 0."""
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
    told = {
        'number': number,
        'server': move.server,
        'source': move.source,
        'target': move.target,
        'state': move.state.value,
        'cause': move.cause and move.cause.value,
        'explanation': model.sentence(move.cause, move.text),
    }
    is_bad = move.state is model.MoveState.FAILED
    return notices.Notice(
        f'fairness.plan_move.{move.state.value}',
        notices.WARN if is_bad else notices.INFO,
        _payload(plan, host, _since(move, plan), told),
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
        'explanation': model.sentence(plan.cause, plan.text),
        'moves_count': len(plan.moves),
        'empties': list(plan.empties),
        'promised': dataclasses.asdict(plan.promised),
        'won': plan.won and dataclasses.asdict(plan.won),
        'move': move,
    }
