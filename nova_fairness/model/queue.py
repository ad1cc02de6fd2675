# SPDX-License-Identifier: Apache-2.0

"""What the cluster service tells of itself and its requests."""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import datetime as dt
from typing import Any

from nova_fairness.model import cluster
from nova_fairness.model import leaving
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.model import risk


@dataclasses.dataclass(frozen=True)
class Preempted:
    """What became of servers that were to make room, and of whom it was for.

    :ivar ended: number of them by reason and outcome.
    :ivar notice_s: sum of the notices of those that were not spared.
    :ivar lost_vcpu_s: sum of their lost work.
    :ivar served: requests that room was made for and that are active.
    :ivar served_s: sum of the times from the choice of the first server.
    """

    ended: Mapping[tuple[str, str], int] = dataclasses.field(
        default_factory=dict
    )
    notice_s: float = 0.0
    lost_vcpu_s: float = 0.0
    served: int = 0
    served_s: float = 0.0


@dataclasses.dataclass(frozen=True)
class Queue:
    """The requests at one moment.

    :ivar leads: whether this process acts; else others know what waits.
    :ivar seen_at: when the cloud was looked at last, seconds of the epoch;
        ``None`` if it was not.
    :ivar waiting: number of requests that wait, by project and reason.
    :ivar oldest_at: when the one that waits longest was asked for, seconds
        of the epoch; ``None`` if nobody waits.
    :ivar doubtful: requests of which it is not known whether Nova has them.
    :ivar entered: how often requests came into a state, by its name.
    :ivar waited_s: sum of the waits of all that were released.
    :ivar left: how often servers came into a state of leaving, by its name.
    :ivar cycles: that were begun.
    :ivar cycles_failed: that ended early.
    :ivar clocks_disagree: whether the time may be wrong, so that nothing
        irreversible is done.
    :ivar calibrated: how good past estimates of starts were; ``None`` if it
        is not known.
    :ivar preempted: what became of servers that were to make room.
    :ivar idle: servers that agents see idle for long enough to leave.
    :ivar at_risk: servers that are told that they are among the next to make
        room.
    :ivar warned: how often servers were told so, or otherwise, by state.
    """

    leads: bool
    seen_at: float | None
    waiting: Mapping[tuple[str, str], int]
    oldest_at: float | None
    doubtful: int
    entered: Mapping[str, int]
    waited_s: float
    left: Mapping[str, int]
    cycles: int
    cycles_failed: int
    calibrated: cluster.Calibrated | None = None
    preempted: Preempted = Preempted()
    idle: int = 0
    at_risk: int = 0
    warned: Mapping[str, int] = dataclasses.field(default_factory=dict)
    clocks_disagree: bool = False


def facts(request: request_model.Request, why: reason.Why) -> dict[str, Any]:
    """What answers and notifications say of a request alike, JSON types."""
    return {
        'uuid': request.uuid,
        'project_id': request.project,
        'user_id': request.user,
        'origin': request.origin.name.lower(),
        'preemptible': request.is_preemptible,
        'preemption_action': request.leaves_by and request.leaves_by.value,
        'servers': list(request.servers),
        'resources': dict(request.demand.amounts),
        'state': request.state.value,
        'reason': why.reason.value,
        'explanation': why.sentence,
        'subject': why.subject,
        'numbers': dict(why.numbers),
    }


def summary(
    request: request_model.Request,
    why: reason.Why,
    place: cluster.Waiting | None,
    estimate: cluster.Estimate | None = None,
) -> list[str]:
    """Sentences that say where a request stands, and why.

    :param place: of one that waits; ``None`` of others.
    :param estimate: of its start; ``None`` if none is known.
    """
    told = []
    if place:
        told += _uses(request, place.factors)
        before = place.position - 1
        told.append(
            f'{_counted(before, "request")} before it.'
            if before
            else 'It is next.'
        )
        told += _missing(why)
        if place.reserved:
            told.append(_reserved(place.reserved))
        if estimate:
            told.append(
                f'It starts at about {_time(estimate.p50)}, and by'
                f' {_time(estimate.p90)} nine times of ten.'
            )
    return [*told, f'{why.sentence[0].upper()}{why.sentence[1:]}.']


def leave_facts(leave: leaving.Leave) -> dict[str, Any]:
    """What answers and notifications say of a server that leaves."""
    return {
        'server': leave.server,
        'state': leave.state.value,
        'cause': leave.cause.value,
        'for_request': leave.request or None,
        'action': leave.action.value,
        'leaves_at': _exact(leave.at),
        'reason': leave.why.reason.value,
        'explanation': leave.why.sentence,
        'subject': leave.why.subject,
        'numbers': dict(leave.why.numbers),
    }


def risk_facts(known: risk.Risk) -> dict[str, Any]:
    """What answers and notifications say of a server at risk, or not."""
    return {
        'server': known.server,
        'state': known.state.value,
        'since': _exact(known.since),
        'reason': known.why.reason.value,
        'explanation': known.why.sentence,
        'subject': known.why.subject,
        'numbers': dict(known.why.numbers),
    }


def turn_facts(leave: leaving.Leave) -> dict[str, Any]:
    """The same with all that is known of whose it is, and what came of it."""
    return {
        'uuid': leave.uuid,
        'project_id': leave.project,
        'user_id': leave.user,
        **leave_facts(leave),
        'for_project': leave.for_project or None,
        'outcome': leave.outcome,
        'chosen_at': _exact(leave.chosen_at),
        'told_at': _maybe(leave.told_at),
        'acted_at': _maybe(leave.acted_at),
        'freed_at': _maybe(leave.gone_at),
        'returned_at': _maybe(leave.returned_at),
        'answered': leave.answered,
        'notice_s': leave.notice_s,
        'lost_vcpu_s': leave.lost_vcpu_s,
    }


_LEAVING = {
    leaving.State.CHOSEN: 'is to leave at {at}',
    leaving.State.TOLD: 'is to leave at {at}',
    leaving.State.ACTING: 'leaves now',
    leaving.State.ASKED: 'leaves now',
    leaving.State.UNDOING: 'need not leave any more, and is let run again',
    leaving.State.GONE: 'left',
    leaving.State.RETURNED: 'left, and runs again',
    leaving.State.STAYS: 'was to leave, and has its room still',
}
_DONE = {
    leaving.Action.STOP: 'stopped',
    leaving.Action.SUSPEND: 'suspended',
    leaving.Action.SHELVE: 'shelved',
    leaving.Action.SNAPSHOT_DELETE: 'kept as an image and deleted',
    leaving.Action.DELETE: 'deleted',
}


def ending(
    ends_at: float | None, leaves: Iterable[leaving.Leave]
) -> list[str]:
    """Sentences that say when servers of a request leave, and why.

    :param ends_at: seconds of the epoch; ``None`` for never, or not known.
    :param leaves: how far they have left.
    """
    told = []
    if ends_at is not None:
        told.append(f'It may run until {_time(ends_at)}.')
    for each in leaves:
        if each.state in _LEAVING:
            how = _LEAVING[each.state].format(at=_time(each.at))
            told.append(f'Server {each.server} {how}: {each.why.sentence}.')
            if each.state in leaving.GOING:
                told.append(f'It is {_DONE[each.action]} then.')
    return told


def risking(risks: Iterable[risk.Risk]) -> list[str]:
    """Sentences that say which servers of a request are at risk, and why."""
    return [
        f'Server {each.server} may have to make room: {each.why.sentence}.'
        for each in risks
    ]


def _uses(
    request: request_model.Request, factors: cluster.Factors
) -> list[str]:
    project = factors.get(cluster.PROJECT_USE)
    if project is None:
        return []
    text = f'Project {request.project} has used {_times(project)} its share'
    user = factors.get(cluster.USER_USE)
    if user is not None:
        text += f', user {request.user} {_times(user)} theirs'
    return [f'{text}.']


def _missing(why: reason.Why) -> list[str]:
    numbers = dict(why.numbers)
    if 'asked' not in numbers or 'free' not in numbers:
        return []
    amount = numbers['asked'] - numbers['free']
    return [f'{_counted(amount, why.subject, "")} missing.']


def _reserved(reservation: cluster.Reservation) -> str:
    if reservation.at is None:
        return 'Room is kept for it as servers end.'
    return (
        'Room is reserved for it, expected to be free at'
        f' {_time(reservation.at)}.'
    )


def _exact(at_s: float) -> str:
    return dt.datetime.fromtimestamp(at_s, dt.UTC).isoformat(
        timespec='seconds'
    )


def _maybe(at_s: float | None) -> str | None:
    return None if at_s is None else _exact(at_s)


def _time(at_s: float) -> str:
    return f'{dt.datetime.fromtimestamp(at_s, dt.UTC):%Y-%m-%d %H:%M} UTC'


def _counted(amount: float, what: str, plural: str = 's') -> str:
    if amount == 1:
        return f'1 {what} is'
    return f'{amount:g} {what}{plural} are'


def _times(factor: float) -> str:
    return f'{factor:.{1 if factor >= 1 else 2}f} times'
