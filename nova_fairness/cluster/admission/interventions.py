# SPDX-License-Identifier: Apache-2.0

"""Manual actions on one request: start it, put it first, hold it, or end its
hold.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import datetime as dt

from nova_fairness import exception
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.planners.fairqueue import fitting


@dataclasses.dataclass(frozen=True, slots=True)
class InterventionState:
    """Inputs of a manual action on a request.

    :ivar store: store to which the action writes.
    :ivar request: the request as it is stored.
    :ivar now: seconds of the epoch.
    :ivar epoch: epoch of the leader.
    :ivar room: room that victims free for the request; ``None`` without
        victims.
    """

    store: store_module.Store
    request: request_model.Request
    now: float
    epoch: int
    room: records.ReservedRoom | None = None


Order = Callable[[InterventionState], None]

_S = request_model.State
_WAITING = frozenset({_S.WAITING})
_SENT = frozenset({_S.SENDING, _S.STARTING})
_PUT_FIRST = 'put it first'
_END_HOLD = 'end its hold (unhold), so that it starts in its turn'
_WITHOUT = 'release it without room: then Nova itself searches for room'


def check_unsent(
    request: request_model.Request, allowed_states: Collection[_S] = _WAITING
) -> None:
    """Check that a request is in a state that allows a manual action.

    :param allowed_states: states that allow the action.
    :raises IllegalStep: if the request is in another state.
    """
    if request.state in allowed_states:
        return
    if request.state in request_model.FINAL:
        said = 'it has ended; request a new server'
    elif request.state is _S.ACTIVE:
        said = 'its servers run already'
    else:
        said = 'Nova has it; wait until it runs or waits again'
    raise exception.IllegalStep(
        f'request {request.uuid} is {request.state.value}: {said}'
    )


def check_cancellable(record: records.RequestRecord) -> None:
    """Check that a request can be cancelled.

    :raises IllegalStep: if Nova has the request, or the request has ended.
    """
    request = record.request
    if request.state in request_model.UNSENT:
        return
    said = 'Nova has it; delete its servers instead'
    if request.state in request_model.FINAL:
        at = dt.datetime.fromtimestamp(record.changed_at, dt.UTC)
        said = f'it ended at {at:%Y-%m-%d %H:%M} UTC; nothing is left to do'
    raise exception.IllegalStep(
        f'request {request.uuid} is {request.state.value} already: {said}'
    )


def put_first(state: InterventionState) -> None:
    """Put a request before all others, but after requests that were put first
    earlier.
    """
    check_unsent(state.request)
    if state.request.first is None:
        waiting = state.store.requests(_WAITING)
        turns = [each.request.first or 0 for each in waiting]
        turn = max(turns, default=0) + 1
        state.store.put_first(state.request, turn, state.epoch)


def cancel_put_first(state: InterventionState) -> None:
    """Undo :func:`put_first`: the order alone decides the position of the
    request again.
    """
    check_unsent(state.request)
    if state.request.first is not None:
        state.store.put_first(state.request, None, state.epoch)


def hold_action(holder: request_model.Holder, text: str) -> Order:
    """Return the action that holds a request, so that it does not start.

    An owner cannot replace the hold of an operator. The same holder can change
    the text. While other servers are evicted for the request, its owner cannot
    hold it, only cancel it: a cancellation counts as a preemption in vain.

    :param text: reason in the words of the holder; '' for no reason.
    :raises IllegalStep: when the action runs, if an owner holds the request
        while servers are evicted for it.
    """

    def hold_request(state: InterventionState) -> None:
        before, since = state.request.hold, state.now
        check_unsent(state.request)
        if before and before.by is request_model.Holder.OPERATOR is not holder:
            return
        if before and before.by is holder:
            if text in ('', before.text):
                return
            since = before.since
        elif holder is request_model.Holder.OWNER:
            _check_no_victims_leave(state)
        made = request_model.Hold(holder, since, text)
        _store_hold(state, made, state.request.expires_at, made.why)

    return hold_request


def _check_no_victims_leave(state: InterventionState) -> None:
    """Check that no servers are being evicted for the request.

    :raises IllegalStep: if servers are being evicted.
    """
    room = state.room
    if room and room.leaving and state.now < room.until:
        raise exception.IllegalStep(
            f'request {state.request.uuid} is not held: other servers are'
            ' being evicted to make room for it; let it start, or cancel it'
        )


def unhold_action(holder: request_model.Holder) -> Order:
    """Return the action that ends the hold of a request.

    The time for which an operator held the request does not count as its wait.

    :raises IllegalStep: when the action runs, if an owner ends an operator's
        hold.
    """

    def unhold_request(state: InterventionState) -> None:
        request, before = state.request, state.request.hold
        check_unsent(request)
        if before is None:
            return
        expires_at = request.expires_at
        if before.by is request_model.Holder.OPERATOR:
            if holder is not before.by:
                raise exception.IllegalStep(
                    f'request {request.uuid} is held: an operator holds it;'
                    ' ask an operator to end the hold'
                )
            if expires_at is not None:
                expires_at += max(state.now - before.since, 0.0)
        why = reason.why(reason.Reason.NOT_PLANNED)
        _store_hold(state, None, expires_at, why)

    return unhold_request


def _store_hold(
    state: InterventionState,
    hold: request_model.Hold | None,
    expires_at: float | None,
    why: reason.Why,
) -> None:
    """Store the hold of a request, its expiry time and its reason."""
    state.store.write_hold(
        state.request, hold, expires_at, why, state.now, state.epoch
    )


def hosts_with_room(
    record: records.RequestRecord,
    snapshot: cluster.ClusterSnapshot,
    waiting: Mapping[str, cluster.Waiting],
    sent_requests: Iterable[records.RequestRecord] = (),
) -> tuple[str, ...]:
    """Return the hosts on which a request has free room now, one per server.

    :param snapshot: snapshot of the cloud as it is now.
    :param waiting: waiting requests of the last plan, with their reservations.
    :param sent_requests: sent requests; some of their servers may have no host
        yet.
    :raises NoRoom: if all room is used or belongs to other requests.
    """
    uuid = record.request.uuid
    request = next((e for e in snapshot.requests if e.uuid == uuid), None)
    refused = f'request {uuid} is not released, and continues to wait'
    if request is None or request.is_unread:
        raise exception.NoRoom(
            f'{refused}: its message cannot be read, so the room that it'
            f' needs is unknown; {_WITHOUT}'
        )
    kept = {
        other: each.reserved.hosts
        for other, each in waiting.items()
        if each.reserved is not None and other not in snapshot.promised
    }
    instead = _PUT_FIRST if request.hold is None else _END_HOLD
    found = fitting.find_fit(
        _with_starting_group_members(snapshot, request, sent_requests),
        request,
        kept,
    )
    if found.why is not None:
        raise exception.NoRoom(
            f'{refused}: {found.why.sentence}; {instead}, or {_WITHOUT}'
        )
    if not found.hosts and request.demand.amounts:
        raise exception.NoRoom(
            f'{refused}: the room that it needs is reserved for others;'
            f' {instead}, or {_WITHOUT}'
        )
    return found.hosts


def _with_starting_group_members(
    snapshot: cluster.ClusterSnapshot,
    request: request_model.Request,
    sent_requests: Iterable[records.RequestRecord],
) -> cluster.ClusterSnapshot:
    """Return a snapshot that also has the servers of the request's group that
    Nova is starting.
    """
    if request.group is None:
        return snapshot
    group = request.group.uuid
    there = list(snapshot.member_hosts.get(group, ()))
    for each in sent_requests:
        own = each.request.group
        if own is None or own.uuid != group or each.request.state not in _SENT:
            continue
        for host in each.hosts:
            # A server that Nova has placed is among the members already.
            if host not in there:
                there.append(host)
    return dataclasses.replace(
        snapshot, member_hosts={**snapshot.member_hosts, group: tuple(there)}
    )


def start_action(
    request: request_model.Request, hosts: tuple[str, ...]
) -> cluster.Action:
    """Return the action that starts a request on some hosts."""
    why = reason.why(reason.Reason.ROOM_KEPT)
    return cluster.Action(
        cluster.Verb.START, request.uuid, request.version, hosts, why
    )
