# SPDX-License-Identifier: Apache-2.0

"""History of a request: its events and the reasons of its waits."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import enum
from typing import Any

from nova_fairness.model import eviction
from nova_fairness.model import moments
from nova_fairness.model import plans
from nova_fairness.model import reason
from nova_fairness.model import request as request_model

_R, _S = reason.Reason, request_model.State


class EventKind(enum.Enum):
    """Kind of an event of a request. The values are part of the API: do not
    change them.
    """

    SUBMITTED = 'submitted'
    """Nova accepted the request."""

    WAITED = 'waited'
    """The request waited for one reason."""

    ROOM_MADE = 'room_made'
    """Room was reserved for the request, and servers were evicted for it."""

    DISPATCHED = 'dispatched'
    """The request was sent to Nova."""

    ACTIVE = 'active'
    MIGRATED = 'migrated'
    """A server was migrated live to another host."""

    NOTIFIED = 'notified'
    """An owner got an eviction notice."""

    EVICTED = 'evicted'
    """The room of an evicted server became free."""

    RETURNED = 'returned'
    """An evicted server ran again."""

    ENDED = 'ended'
    CANCELLED = 'cancelled'
    EXPIRED = 'expired'
    FAILED = 'failed'


_K = EventKind

_OF_STATE = {
    _S.WAITING: _K.WAITED,
    _S.RESERVED: _K.WAITED,
    _S.SENDING: _K.DISPATCHED,
    _S.STARTING: _K.DISPATCHED,
    _S.ACTIVE: _K.ACTIVE,
    _S.ENDED: _K.ENDED,
    _S.CANCELLED: _K.CANCELLED,
    _S.EXPIRED: _K.EXPIRED,
    _S.FAILED: _K.FAILED,
}
_HAS_HOST = frozenset({_K.DISPATCHED, _K.ACTIVE})
_WAITS = frozenset({_K.WAITED, _K.ROOM_MADE})
_FINAL = frozenset({_K.ENDED, _K.CANCELLED, _K.EXPIRED, _K.FAILED})


@dataclasses.dataclass(frozen=True, slots=True)
class HistoryEvent:
    """An event of a request.

    :ivar at: start of the event, seconds of the epoch.
    :ivar kind: kind of the event.
    :ivar until: end of the event, seconds of the epoch; ``None`` if it lasts,
        or takes no time.
    :ivar why: reason; ``None`` if there is none.
    :ivar hosts: names of the hosts of the event; empty if none is known.
    :ivar server: UUID if the event is about one server; '' for all servers.
    """

    at: float
    kind: EventKind
    until: float | None = None
    why: reason.Why | None = None
    hosts: tuple[str, ...] = ()
    server: str = ''


def request_event(
    state: request_model.State,
    why: reason.Why,
    at: float,
    until: float | None,
    hosts: Sequence[str] = (),
) -> HistoryEvent:
    """Return the event of a request that entered a state, or got another
    reason.

    :param at: start of the event, seconds of the epoch.
    :param until: end of the event, seconds of the epoch; ``None`` while it
        continues.
    :param hosts: hosts to which the request was sent.
    """
    kind = _OF_STATE[state]
    if kind is _K.WAITED and why.reason is _R.ROOM_IS_MADE:
        kind = _K.ROOM_MADE
    if kind in _FINAL:
        until = None
    return HistoryEvent(
        at, kind, until, why, tuple(hosts) * (kind in _HAS_HOST)
    )


def eviction_events(leave: eviction.Eviction) -> list[HistoryEvent]:
    """Return the events of one eviction of a server."""
    times = (
        (leave.told_at, _K.NOTIFIED),
        (leave.gone_at, _K.EVICTED),
        (leave.returned_at, _K.RETURNED),
    )
    return [
        HistoryEvent(at, kind, why=leave.why, server=leave.server)
        for at, kind in times
        if at is not None
    ]


def move_events(
    moves: Iterable[plans.Move], servers: Iterable[str]
) -> list[HistoryEvent]:
    """Return the migrations of some servers as events.

    :param moves: moves of all plans.
    :param servers: UUIDs of the servers.
    """
    wanted = frozenset(servers)
    return [
        HistoryEvent(
            move.ended_at,
            _K.MIGRATED,
            hosts=(move.source, move.target),
            server=move.server,
        )
        for move in moves
        if move.server in wanted
        and move.state is plans.MoveState.MOVED
        and move.ended_at is not None
    ]


def event_facts(
    event: HistoryEvent, audience: reason.Audience, project: str
) -> dict[str, Any]:
    """Return the fields of an event for answers, JSON types.

    :param audience: audience of the reader.
    :param project: project of the reader and of the request.
    """
    told = event.why and reason.readable_reason(event.why, audience, project)
    sees_hosts = audience is reason.Audience.OPERATOR
    return {
        'at': moments.answer(event.at),
        'until': moments.answer(event.until),
        'kind': event.kind.value,
        'server': event.server or None,
        'reason': told.reason.value if told else None,
        'explanation': told.sentence if told else None,
        'hosts': list(event.hosts) if sees_hosts else [],
    }


def wait_sums(
    events: Iterable[HistoryEvent], now: float
) -> list[tuple[str, float]]:
    """Return the sums of the waits of a request by purpose, the longest first.

    :param events: events of the request, the oldest first.
    :param now: seconds of the epoch; a continuing wait counts up to it.
    :returns: purposes, as texts that follow a span of time, and seconds.
    """
    sums: dict[str, float] = {}
    last: float | None = None
    for each in events:
        if last is not None:
            _add_span(sums, _UNKNOWN, each.at - last)
        last = None
        if each.kind in _WAITS and each.why:
            last = now if each.until is None else each.until
            _add_span(sums, _purpose_of_reason(each.why), last - each.at)
    return sorted(sums.items(), key=lambda pair: (-pair[1], pair[0]))


def _add_span(sums: dict[str, float], purpose: str, span_s: float) -> None:
    sums[purpose] = sums.get(purpose, 0.0) + max(span_s, 0.0)


def wait_sentence(waits: Iterable[tuple[str, float]]) -> str:
    """Return a text about the waits of a request; '' if each is below a
    minute.

    :param waits: result of :func:`wait_sums`.
    """
    parts = [
        f'{_duration_text(span_s)} {purpose}'
        for purpose, span_s in waits
        if span_s >= _LEAST_S
    ]
    return f'waited {"; ".join(parts)}' if parts else ''


_LEAST_S = 60.0
"""Least wait for one reason that is shown, seconds."""

_UNKNOWN = 'for reasons that are not kept'

_PURPOSES: Mapping[reason.Reason, str] = {
    _R.NOT_PLANNED: 'for a cycle of the queue',
    _R.HELD_BY_OPERATOR: 'for an operator to end a hold',
    _R.HELD_BY_OWNER: 'for a member of its project to end a hold',
    _R.NO_HOST_MATCHES: 'for a host that matches',
    _R.TOO_LARGE: 'for a host that is large enough',
    _R.GROUP_TOO_LARGE: 'for enough hosts that match',
    _R.OVER_CEILING: 'for its project to use less',
    _R.OVER_ACCOUNT_CEILING: 'for its account to use less',
    _R.OVER_BORROWING_LIMIT: 'for its account to borrow less',
    _R.BUDGET_SPENT: 'for a new budget',
    _R.ACCOUNT_SET_ASIDE: 'for a limit to be mended',
    _R.WINDOW_CLOSED: 'for the times at which requests start',
    _R.OVER_SHARED_PART: 'for more that all projects may use',
    _R.LEFT_TO_NOVA: 'for Nova',
    _R.NOMINAL_IS_LENT: 'for what its account owns and others used',
    _R.SHARED_PART_TAKEN: 'for room that all projects may use',
    _R.NO_ROOM: 'for room on a host',
    _R.GROUP_HAS_NO_ROOM: 'for room for all of its servers',
    _R.GROUP_IS_FULL: 'for servers of its group to end',
    _R.ROOM_IN_VAIN: 'after room was made for its project in vain',
    _R.LEAVING_IS_LIMITED: 'for servers that may leave only later',
    _R.ROOM_IS_MADE: 'for servers to leave for it',
    _R.BEHIND_OTHERS: 'for its turn',
    _R.BEYOND_DEPTH: 'for its turn',
    _R.KEEPS_FREE: 'for room beyond what is kept free',
    _R.ROOM_KEPT: 'for its start',
    _R.ROOM_LOST: 'after its room was gone',
    _R.UNREADABLE: 'since its message cannot be read',
    _R.QUARANTINED: 'after the service failed on it',
}
"""Purposes of a wait by its reason; all readers may read these texts."""

_COMMON = frozenset({'VCPU', 'MEMORY_MB', 'DISK_GB'})
"""Classes that every host has."""


def purpose(token: str) -> str:
    """Return the purpose of a wait, as a text that continues "it waits".

    :param token: token of the reason.
    """
    known = {each.value: text for each, text in _PURPOSES.items()}
    return known.get(token, token.replace('_', ' '))


def _purpose_of_reason(why: reason.Why) -> str:
    text = purpose(why.reason.value)
    if why.reason is not _R.NO_ROOM:
        return text
    if why.subject in _COMMON:
        return f'{text}: {why.subject}'
    return f'for room on hosts with {why.subject}'


def _duration_text(span_s: float) -> str:
    """Format seconds as days, hours and minutes: at most two of them."""
    minutes = round(span_s / 60)
    parts = (
        (minutes // 1440, 'd'),
        (minutes // 60 % 24, 'h'),
        (minutes % 60, 'min'),
    )
    told = [f'{n} {unit}' for n, unit in parts if n]
    return ' '.join(told[:2])
