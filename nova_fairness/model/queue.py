# SPDX-License-Identifier: Apache-2.0

"""State of the cluster service and its requests, as it reports them."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any

from nova_fairness.model import cluster
from nova_fairness.model import eviction
from nova_fairness.model import moments
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.model import risk
from nova_fairness.model import wording

_WAITING = request_model.State.WAITING


@dataclasses.dataclass(frozen=True)
class PreemptionOutcomes:
    """Outcomes of preemptions, and of their preemptors.

    :ivar ended: number of ended preemptions, by reason and outcome.
    :ivar notice_s: sum of the notices of servers that were not spared.
    :ivar lost_vcpu_s: sum of the lost work of these servers.
    :ivar served: number of active requests for which room was made.
    :ivar served_s: sum of the times from the choice of the first victim to the
        start of the request.
    """

    ended: Mapping[tuple[str, str], int] = dataclasses.field(
        default_factory=dict
    )
    notice_s: float = 0.0
    lost_vcpu_s: float = 0.0
    served: int = 0
    served_s: float = 0.0


@dataclasses.dataclass(frozen=True)
class SetAside:
    """An object in quarantine, because the service failed to process it.

    :ivar kind: kind of the object, such as ``request``, ``account`` or
        ``host``.
    :ivar name: UUID or name of the object.
    :ivar cause: class of the error.
    :ivar times: number of failures.
    :ivar again_s: seconds until the service tries the object again.
    """

    kind: str
    name: str
    cause: str
    times: int
    again_s: float


@dataclasses.dataclass(frozen=True)
class Queue:
    """The queue and its counters at one time.

    :ivar leads: whether this process is the leader; only the leader knows the
        queue.
    :ivar seen_at: time at which the cloud was read last, seconds of the epoch;
        ``None`` if it was not read.
    :ivar waiting: number of waiting requests, by project and reason.
    :ivar oldest_at: time of the oldest waiting request, seconds of the epoch;
        ``None`` if none waits.
    :ivar doubtful: number of requests in doubt: Nova may have them or not.
    :ivar entered: number of times that requests entered a state, by state.
    :ivar waited_s: sum of the waits of all requests that were sent.
    :ivar left: number of times that evictions entered a state, by state.
    :ivar cycles: number of cycles that were begun.
    :ivar cycles_failed: number of cycles that ended early or left a part out.
    :ivar clocks_disagree: whether the time may be wrong, so that no
        irreversible action is done.
    :ivar calibrated: quality of past estimates of starts; ``None`` if it is
        not known.
    :ivar preempted: outcomes of preemptions.
    :ivar idle: number of servers that agents see idle for long enough to
        leave.
    :ivar at_risk: number of servers whose owners know that they are among the
        next to make room.
    :ivar warned: number of notifications of a risk or its end, by state.
    :ivar failures: number of failures of the service on an object, by kind.
    :ivar quarantined: number of objects that are set aside now, by kind.
    :ivar set_aside: the first of these objects.
    :ivar accounts_set_aside: why a setting of an account cannot be used, by
        name of the account.
    :ivar agents_unlike: why the use that an agent reports differs from the
        reports of others, by host of the agent.
    :ivar delayed: number of projects for which no servers leave now, because
        servers left for them in vain.
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
    calibrated: cluster.EstimateQuality | None = None
    preempted: PreemptionOutcomes = PreemptionOutcomes()
    idle: int = 0
    at_risk: int = 0
    warned: Mapping[str, int] = dataclasses.field(default_factory=dict)
    failures: Mapping[str, int] = dataclasses.field(default_factory=dict)
    quarantined: Mapping[str, int] = dataclasses.field(default_factory=dict)
    set_aside: Sequence[SetAside] = ()
    accounts_set_aside: Mapping[str, str] = dataclasses.field(
        default_factory=dict
    )
    agents_unlike: Mapping[str, str] = dataclasses.field(default_factory=dict)
    delayed: int = 0
    clocks_disagree: bool = False


_A = reason.Audience


def _reason_facts(
    why: reason.Why, audience: reason.Audience, project: str
) -> dict[str, Any]:
    """Return the fields of a reason that a reader may read, JSON types."""
    told = reason.readable_reason(why, audience, project)
    return {
        'reason': told.reason.value,
        'explanation': told.sentence,
        'subject': told.subject,
        'numbers': dict(told.numbers),
    }


def request_facts(
    request: request_model.Request,
    why: reason.Why,
    audience: reason.Audience = _A.MEMBER,
) -> dict[str, Any]:
    """Return the fields of a request for answers and notifications, JSON
    types.

    :param audience: audience of the reader.
    """
    return {
        'uuid': request.uuid,
        'project_id': request.project,
        'user_id': request.user,
        'origin': request.origin.name.lower(),
        'preemptible': request.is_preemptible,
        'preemption_action': request.leaves_by and request.leaves_by.value,
        'servers': list(request.servers),
        'server_names': list(request.names),
        'resources': dict(request.demand.amounts),
        'state': request.state.value,
        **_reason_facts(why, audience, request.project),
        'held_by': request.hold and request.hold.by.value,
        'first': request.first is not None,
    }


def request_sentences(
    request: request_model.Request,
    why: reason.Why,
    place: cluster.Waiting | None,
    estimate: cluster.Estimate | None = None,
    audience: reason.Audience = _A.MEMBER,
) -> list[str]:
    """Return sentences about the position of a request, and its reason.

    :param place: position of a waiting request; ``None`` for others.
    :param estimate: estimate of its start; ``None`` if unknown.
    :param audience: audience of the reader.
    """
    read = reason.readable_reason(why, audience, request.project)
    told = []
    if request.first is not None and request.state is _WAITING:
        told.append('An operator put it before all others of its kind.')
    if place:
        told += _use_sentences(place.factors)
        before = place.position - 1
        told.append(
            f'{wording.counted(before, "request is", "requests are")}'
            ' before it.'
            if before
            else 'It is next.'
        )
        told += _missing_sentences(read)
        if place.reserved:
            told.append(_reservation_sentence(place.reserved))
        if estimate:
            told.append(
                f'It starts at about {moments.sentence(estimate.p50)}, and by'
                f' {moments.sentence(estimate.p90)} nine times of ten.'
            )
    return [*told, f'{read.sentence[0].upper()}{read.sentence[1:]}.']


def eviction_facts(
    leave: eviction.Eviction,
    audience: reason.Audience = _A.MEMBER,
    reader: str = '',
) -> dict[str, Any]:
    """Return the fields of an eviction for answers and notifications.

    :param audience: audience of the reader.
    :param reader: project of the reader; '' for the project of the server.
    """
    project = reader or leave.project
    sees_request = audience is _A.OPERATOR or leave.for_project == project
    return {
        'server': leave.server,
        'state': leave.state.value,
        'cause': leave.cause.value,
        'for_request': (leave.request or None) if sees_request else None,
        'action': leave.action.value,
        'leaves_at': moments.answer(leave.at),
        **_reason_facts(leave.why, audience, project),
    }


def risk_facts(
    known: risk.EvictionRisk, audience: reason.Audience = _A.MEMBER
) -> dict[str, Any]:
    """Return the fields of a server's risk for answers and notifications.

    :param audience: audience of the reader.
    """
    return {
        'server': known.server,
        'state': known.state.value,
        'since': moments.answer(known.since),
        **_reason_facts(known.why, audience, known.project),
    }


def eviction_facts_with_outcome(
    leave: eviction.Eviction,
    audience: reason.Audience = _A.MEMBER,
    reader: str = '',
) -> dict[str, Any]:
    """Return the fields of an eviction with the owner and the outcome.

    Readers of the preemptor's project see neither the server nor its owner.
    Readers of the server's project do not see the other project.

    :param audience: audience of the reader.
    :param reader: project of the reader; '' for the project of the server.
    """
    project = reader or leave.project
    sees_all = audience is _A.OPERATOR
    sees_server = sees_all or project == leave.project
    sees_other = sees_all or project == leave.for_project
    return {
        'uuid': leave.uuid,
        'project_id': leave.project if sees_server else None,
        'user_id': leave.user if sees_server else None,
        **eviction_facts(leave, audience, reader),
        'server': leave.server if sees_server else None,
        'for_project': (leave.for_project or None) if sees_other else None,
        'outcome': leave.outcome,
        'chosen_at': moments.answer(leave.chosen_at),
        'told_at': moments.answer(leave.told_at),
        'acted_at': moments.answer(leave.acted_at),
        'freed_at': moments.answer(leave.gone_at),
        'returned_at': moments.answer(leave.returned_at),
        'answered': leave.answered,
        'notice_s': leave.notice_s,
        'lost_vcpu_s': leave.lost_vcpu_s,
    }


_LEAVING = {
    eviction.EvictionState.CHOSEN: 'is to leave at {at}',
    eviction.EvictionState.TOLD: 'is to leave at {at}',
    eviction.EvictionState.ACTING: 'leaves now',
    eviction.EvictionState.ASKED: 'leaves now',
    eviction.EvictionState.UNDOING: (
        'need not leave any more, and is let run again'
    ),
    eviction.EvictionState.GONE: 'left',
    eviction.EvictionState.RETURNED: 'left, and runs again',
    eviction.EvictionState.STAYS: 'was to leave, and has its room still',
}
_DONE = {
    eviction.EvictionAction.STOP: 'stopped',
    eviction.EvictionAction.SUSPEND: 'suspended',
    eviction.EvictionAction.SHELVE: 'shelved',
    eviction.EvictionAction.SNAPSHOT_DELETE: 'kept as an image and deleted',
    eviction.EvictionAction.DELETE: 'deleted',
}


def eviction_sentences(
    ends_at: float | None,
    leaves: Iterable[eviction.Eviction],
    audience: reason.Audience = _A.MEMBER,
) -> list[str]:
    """Return sentences about the evictions of a request's servers.

    :param ends_at: end of the servers, seconds of the epoch; ``None`` for
        never, or if unknown.
    :param leaves: evictions of the servers.
    :param audience: audience of the reader.
    """
    told = []
    if ends_at is not None:
        told.append(f'It may run until {moments.sentence(ends_at)}.')
    for each in leaves:
        if each.state in _LEAVING:
            how = _LEAVING[each.state].format(at=moments.sentence(each.at))
            why = reason.readable_reason(
                each.why, audience, each.project
            ).sentence
            told.append(f'Server {each.server} {how}: {why}.')
            if each.state in eviction.GOING:
                told.append(f'It is {_DONE[each.action]} then.')
    return told


def risk_sentences(
    risks: Iterable[risk.EvictionRisk], audience: reason.Audience = _A.MEMBER
) -> list[str]:
    """Return sentences about the servers of a request that are at risk.

    :param audience: audience of the reader.
    """
    told = []
    for each in risks:
        why = reason.readable_reason(each.why, audience, each.project).sentence
        told.append(f'Server {each.server} may have to make room: {why}.')
    return told


def _use_sentences(factors: cluster.Factors) -> list[str]:
    project = factors.get(cluster.PROJECT_USE)
    if project is None:
        return []
    text = f'Its project has used {project:.0%} of its share'
    user = factors.get(cluster.USER_USE)
    if user is not None:
        text += f', its user {user:.0%} of theirs'
    return [f'{text}.']


def _missing_sentences(told: reason.ReadableReason) -> list[str]:
    numbers = told.numbers
    if 'asked' not in numbers or 'free' not in numbers:
        return []
    amount = numbers['asked'] - numbers['free']
    what = told.subject
    return [f'{wording.counted(amount, f"{what} is", f"{what} are")} missing.']


def _reservation_sentence(reservation: cluster.Reservation) -> str:
    if reservation.at is None:
        return 'Room is kept for it as servers end.'
    return (
        'Room is reserved for it, expected to be free at'
        f' {moments.sentence(reservation.at)}.'
    )
