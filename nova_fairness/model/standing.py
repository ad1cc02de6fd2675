# SPDX-License-Identifier: Apache-2.0

"""The standing of a request and its servers, as a token and as a text."""

from collections.abc import Collection
import dataclasses
import enum

from nova_fairness.model import cluster
from nova_fairness.model import eviction
from nova_fairness.model import moments
from nova_fairness.model import reason
from nova_fairness.model import request as request_model

_S = request_model.State


class Standing(enum.Enum):
    """Situation of a request, for its owner. The values are part of the API:
    do not change them.
    """

    WAITS = 'waits'
    STARTS = 'starts'
    RUNS = 'runs'
    MOVES = 'moves'
    """A server is being migrated to another host."""

    LEAVES = 'leaves'
    """A server is being evicted, or will be evicted soon."""

    AWAY = 'away'
    """A server was shelved for others, and is started again automatically."""

    ENDED = 'ended'


@dataclasses.dataclass(frozen=True)
class StandingFacts:
    """Facts about a request that are not in its row.

    :ivar place: position of a waiting request; ``None`` for others.
    :ivar estimate: estimate of its start; ``None`` if none is known.
    :ivar leaves: evictions of its servers.
    :ivar moving: UUIDs of servers that are being migrated.
    :ivar plan: UUID of the plan that would make room for it and waits for
        approval; ``None`` without one.
    """

    place: cluster.Waiting | None = None
    estimate: cluster.Estimate | None = None
    leaves: Collection[eviction.Eviction] = ()
    moving: Collection[str] = ()
    plan: str | None = None


def request_standing(
    request: request_model.Request,
    why: reason.Why,
    known: StandingFacts,
    audience: reason.Audience,
) -> tuple[Standing, str]:
    """Return the standing of a request.

    :param why: reason for which it waits, runs or ended.
    :param known: further facts about it.
    :param audience: audience of the reader.
    :returns: the token, and a text that follows the name of a server.
    """
    sentence = reason.readable_reason(why, audience, request.project).sentence
    if request.state is _S.WAITING:
        return Standing.WAITS, _waiting_text(
            request, sentence, known, audience
        )
    if request.state in request_model.FINAL:
        return Standing.ENDED, f'{request.state.value}: {sentence}'
    if why.reason is reason.Reason.SERVER_DELETED:
        return Standing.ENDED, 'ends: its server was deleted'
    if request.state is not _S.ACTIVE:
        return Standing.STARTS, 'is being started'
    return _active_standing(request, known, audience)


def is_away(leave: eviction.Eviction) -> bool:
    """Return whether a server was shelved for others and is started again
    automatically.
    """
    return leave.state is eviction.EvictionState.GONE and _returns_by_itself(
        leave
    )


def _waiting_text(
    request: request_model.Request,
    sentence: str,
    known: StandingFacts,
    audience: reason.Audience,
) -> str:
    begin = 'waits'
    if request.origin is request_model.Origin.UNSHELVE:
        begin = 'is shelved and waits for its turn'
    place = known.place
    at = f'{_ordinal(place.position)}, ' if place else ''
    told = [f'{begin}: {at}{sentence}']
    if known.estimate:
        told.append(
            f'it starts at about {moments.sentence(known.estimate.p50)}'
        )
    if known.plan and audience is reason.Audience.OPERATOR:
        told.append(
            f'plan {known.plan} would give it room and waits for approval'
        )
    elif known.plan:
        told.append(
            'a plan of moves would give it room and waits for the approval of'
            ' an operator'
        )
    return '; '.join(told)


def _active_standing(
    request: request_model.Request,
    known: StandingFacts,
    audience: reason.Audience,
) -> tuple[Standing, str]:
    going = [each for each in known.leaves if each.state in eviction.GOING]
    if going:
        first = min(going, key=lambda each: each.at)
        text = _leaving_text(first, audience)
        return Standing.LEAVES, text + _server_count_text(len(going), request)
    gone = [each for each in known.leaves if is_away(each)]
    if gone:
        why = reason.readable_reason(
            gone[0].why, audience, gone[0].project
        ).sentence
        text = f'is shelved ({why}), and returns by itself'
        return Standing.AWAY, text + _server_count_text(len(gone), request)
    moving = sum(uuid in known.moving for uuid in request.servers)
    if moving:
        text = 'is being migrated to another host'
        return Standing.MOVES, text + _server_count_text(moving, request)
    return Standing.RUNS, 'runs'


_DONE = {
    eviction.EvictionAction.STOP: 'stopped',
    eviction.EvictionAction.SUSPEND: 'suspended',
    eviction.EvictionAction.SHELVE: 'shelved',
    eviction.EvictionAction.SNAPSHOT_DELETE: 'kept as an image and deleted',
    eviction.EvictionAction.DELETE: 'deleted',
}


def _leaving_text(leave: eviction.Eviction, audience: reason.Audience) -> str:
    why = reason.readable_reason(leave.why, audience, leave.project).sentence
    soon = leave.state in eviction.UNTOUCHED
    when = f'at {moments.sentence(leave.at)}' if soon else 'now'
    text = f'leaves {when} ({why}): it is {_DONE[leave.action]} then'
    return (
        f'{text}, and returns by itself' if _returns_by_itself(leave) else text
    )


def _returns_by_itself(leave: eviction.Eviction) -> bool:
    shelves = leave.action is eviction.EvictionAction.SHELVE
    return shelves and leave.cause in eviction.COME_BACK


def _server_count_text(count: int, request: request_model.Request) -> str:
    total = len(request.servers)
    return '' if total == 1 else f' ({count} of its {total} servers)'


def _ordinal(n: int) -> str:
    last = {1: 'st', 2: 'nd', 3: 'rd'}
    is_teen = n % 100 in (11, 12, 13)
    return f'{n}{"th" if is_teen else last.get(n % 10, "th")}'
