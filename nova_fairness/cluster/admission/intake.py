# SPDX-License-Identifier: Apache-2.0

"""Intake: make requests of the messages that arrived."""

import dataclasses
import math

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster import clocks
from nova_fairness.cluster import quarantine as quarantine_module
from nova_fairness.cluster.messages import parser
from nova_fairness.cluster.messages import times as times_module
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import cast as cast_module
from nova_fairness.model import envelope
from nova_fairness.model import eviction
from nova_fairness.model import plans
from nova_fairness.model import reason
from nova_fairness.model import request as request_model

LOG = logging.getLogger(__name__)

_AT_ONCE = 1000
_UNREADABLE = reason.why(reason.Reason.UNREADABLE)
_SENT = reason.why(reason.Reason.SENT)
_K = quarantine_module.InputKind


@dataclasses.dataclass(frozen=True)
class AdmissionTerms:
    """Options of operators for new requests.

    :ivar longest_wait_s: seconds after which a request expires; ``None``:
        never.
    :ivar preemptible: rules that tell which requests are preemptible.
    """

    longest_wait_s: float | None = None
    preemptible: parser.PreemptibleRules = parser.NONE_IS


USUAL = AdmissionTerms()
"""Terms if operators set no options."""


def take_in(
    store: store_module.Store,
    now: float,
    times: times_module.Granted = parser.unbound,
    preemptible: parser.PreemptibleRules = parser.NONE_IS,
    quarantine: quarantine_module.Quarantine | None = None,
) -> None:
    """Make requests of all messages that have none.

    A message that cannot be read becomes a request with that reason. No
    message is lost, and no message prevents others from being read.

    :param now: seconds of the epoch.
    :param times: tells how long a request may wait and run.
    :param preemptible: rules that tell which requests are preemptible.
    :param quarantine: of messages, and of accounts whose limits cannot be
        read.
    :raises StoreAway: if the store does not answer.
    """
    aside = quarantine or quarantine_module.Quarantine()
    guarded = _GuardedLimits(times, aside)
    skipped = 0
    while uuids := store.unread(_AT_ONCE, skipped):
        left = [
            uuid
            for uuid in uuids
            if aside.holds(_K.MESSAGE, uuid)
            or not _try_message(store, uuid, now, guarded, preemptible, aside)
        ]
        if len(left) < len(uuids):
            return
        skipped += len(left)


def _try_message(
    store: store_module.Store,
    uuid: str,
    now: float,
    times: times_module.Granted,
    preemptible: parser.PreemptibleRules,
    aside: quarantine_module.Quarantine,
) -> bool:
    """Make a request of a message; ``False`` if that is not possible."""
    try:
        _make_request(store, uuid, now, times, preemptible)
    except quarantine_module.PASSES:
        raise
    except exception.StoreError as error:
        LOG.error('message %s stays where it is: %s', uuid, error)
        return False
    except _LimitsFailed:
        return False
    except Exception as error:  # noqa: BLE001 - other messages are read
        aside.put(_K.MESSAGE, uuid, error)
        return False
    return True


class _LimitsFailed(Exception):
    """The time that a request may wait and run is not known."""


class _GuardedLimits:
    """Tells how long a request may wait and run, and guards against errors.

    The messages of an account wait while its limits cannot be read: a request
    without its limits would run for ever.

    :param times: tells how long a request may wait and run.
    :param aside: quarantine of accounts whose limits cannot be read.
    """

    def __init__(
        self,
        times: times_module.Granted,
        aside: quarantine_module.Quarantine,
    ) -> None:
        self._times = times
        self._aside = aside

    def __call__(self, project: str, user: str) -> times_module.Times:
        """The limits of a user in a project."""
        try:
            return self._times(project, user)
        except Exception as error:
            account = request_model.account_of(project, user)
            self._aside.put(_K.ACCOUNT, account, error)
            raise _LimitsFailed from error


def _make_request(
    store: store_module.Store,
    uuid: str,
    now: float,
    times: times_module.Granted,
    preemptible: parser.PreemptibleRules,
) -> None:
    cast = store.cast(uuid)
    if cast is None:
        return
    try:
        request = parser.parse(cast, times, preemptible)
    except exception.Unreadable as error:
        named = _named(cast)
        LOG.error(
            'message %s cannot be read: server %s: %s', uuid, named, error
        )
    except (*quarantine_module.PASSES, _LimitsFailed):
        raise
    except Exception:
        named = _named(cast)
        LOG.exception('message %s cannot be read: server %s', uuid, named)
    else:
        given = {'why': _SENT} if cast.is_doubtful else {}
        request = _with_earlier_age(
            store, _with_checked_time(request, now, cast)
        )
        if store.add(_with_first_state(request, cast), uuid, now, **given):
            return
        named = _named(cast)
        LOG.error(
            'message %s: its servers are already queued: server %s',
            uuid,
            named,
        )
    store.add(
        _with_first_state(parser.unread(cast), cast), uuid, now, _UNREADABLE
    )


def _named(cast: cast_module.Cast) -> str:
    """Names of the servers of a message for the log, as far as they can be
    read.
    """
    try:
        message = envelope.message(cast.body)
    except exception.Unreadable:
        return 'unknown'
    return plans.listed(envelope.named_servers(message.get('args')))


def _with_checked_time(
    request: request_model.Request, now: float, cast: cast_module.Cast
) -> request_model.Request:
    """A request that did not come in the future, whatever its relay's clock
    says.
    """
    ahead_s = request.asked_at - now
    if ahead_s <= clocks.MOST_S:
        return request
    LOG.error(
        'request %s came %.0f s from now by the clock of its relay: it came'
        ' now: server %s',
        request.uuid,
        ahead_s,
        _named(cast),
    )
    until = request.expires_at
    return dataclasses.replace(
        request,
        asked_at=now,
        expires_at=None if until is None else until - ahead_s,
    )


def _with_earlier_age(
    store: store_module.Store, request: request_model.Request
) -> request_model.Request:
    """A request; that of an evicted server that returns keeps its age and
    class.
    """
    if request.origin is not request_model.Origin.UNSHELVE:
        return request
    for leave in store.leaves.of(request.servers).values():
        is_back = (
            leave.cause in eviction.COME_BACK
            and leave.state is eviction.EvictionState.GONE
        )
        if is_back and leave.asked_at is not None:
            return dataclasses.replace(
                request,
                # Just behind the server's former request, which still exists.
                asked_at=math.nextafter(leave.asked_at, math.inf),
                band=request_model.Band.PREEMPTIBLE,
            )
    return request


def _with_first_state(
    request: request_model.Request, cast: cast_module.Cast
) -> request_model.Request:
    """A new request; one in doubt counts as sent, because Nova may have it."""
    if not cast.is_doubtful:
        return request
    return dataclasses.replace(request, state=request_model.State.SENDING)
