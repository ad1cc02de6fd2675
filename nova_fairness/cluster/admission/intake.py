# SPDX-License-Identifier: Apache-2.0

"""Intake: creates requests from the messages that arrived."""

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
class AdmissionOptions:
    """Options of operators for new requests.

    :ivar longest_wait_s: seconds after which a waiting request expires;
        ``None``: never.
    :ivar preemptible: rules that decide which requests are preemptible.
    """

    longest_wait_s: float | None = None
    preemptible: parser.PreemptibleRules = parser.NONE_IS


USUAL = AdmissionOptions()
"""Options of a service without configured options."""


def admit_messages(
    store: store_module.Store,
    now: float,
    limits_of_user: times_module.Granted = parser.no_limits,
    preemptible: parser.PreemptibleRules = parser.NONE_IS,
    quarantine: quarantine_module.Quarantine | None = None,
) -> None:
    """Create a request from each message that has no request yet.

    A message that cannot be read becomes a request with the reason
    ``UNREADABLE``. No message is lost, and no message prevents others from
    being read.

    :param now: seconds of the epoch.
    :param limits_of_user: returns how long a request of a user may wait and
        run.
    :param preemptible: rules that decide which requests are preemptible.
    :param quarantine: quarantine of messages, and of accounts whose limits
        cannot be read.
    :raises StoreAway: if the store does not answer.
    """
    aside = quarantine or quarantine_module.Quarantine()
    guarded = _GuardedLimits(limits_of_user, aside)
    skipped = 0
    while uuids := store.messages_without_request(_AT_ONCE, skipped):
        left = [
            uuid
            for uuid in uuids
            if aside.holds(_K.MESSAGE, uuid)
            or not _try_to_admit(store, uuid, now, guarded, preemptible, aside)
        ]
        if len(left) < len(uuids):
            return
        skipped += len(left)


def _try_to_admit(
    store: store_module.Store,
    uuid: str,
    now: float,
    limits_of_user: times_module.Granted,
    preemptible: parser.PreemptibleRules,
    quarantine: quarantine_module.Quarantine,
) -> bool:
    """Create the request of a message; return ``False`` if that fails."""
    try:
        _create_request(store, uuid, now, limits_of_user, preemptible)
    except quarantine_module.PASSES:
        raise
    except exception.StoreError as error:
        LOG.error(
            'message %s has no request yet: %s; the next cycle tries again',
            uuid,
            error,
        )
        return False
    except _LimitsUnknown:
        return False
    except Exception as error:  # noqa: BLE001 - other messages are read
        quarantine.put(_K.MESSAGE, uuid, error)
        return False
    return True


class _LimitsUnknown(Exception):
    """The limits of an account for wait and run time could not be read."""


class _GuardedLimits:
    """Reads the limits of users, and quarantines accounts whose limits cannot
    be read.

    The messages of such an account wait: a request without its limits would
    run without end.

    :param limits_of_user: returns how long a request of a user may wait and
        run.
    :param quarantine: quarantine of accounts whose limits cannot be read.
    """

    def __init__(
        self,
        limits_of_user: times_module.Granted,
        quarantine: quarantine_module.Quarantine,
    ) -> None:
        self._times = limits_of_user
        self._aside = quarantine

    def __call__(self, project: str, user: str) -> times_module.RequestLimits:
        """Return the limits of a user in a project."""
        try:
            return self._times(project, user)
        except Exception as error:
            account = request_model.account_of(project, user)
            self._aside.put(_K.ACCOUNT, account, error)
            raise _LimitsUnknown from error


def _create_request(
    store: store_module.Store,
    uuid: str,
    now: float,
    limits_of_user: times_module.Granted,
    preemptible: parser.PreemptibleRules,
) -> None:
    """Create and store the request of a message, if the message is still
    stored.
    """
    cast = store.read_message(uuid)
    if cast is None:
        return
    try:
        request = parser.parse_message(cast, limits_of_user, preemptible)
    except exception.Unreadable as error:
        named = _server_names(cast)
        LOG.error(
            'message %s cannot be read: server %s: %s', uuid, named, error
        )
    except (*quarantine_module.PASSES, _LimitsUnknown):
        raise
    except Exception:
        named = _server_names(cast)
        LOG.exception('message %s cannot be read: server %s', uuid, named)
    else:
        given = {'why': _SENT} if cast.is_doubtful else {}
        request = _with_age_before_eviction(
            store, _with_corrected_arrival(request, now, cast)
        )
        if store.add_request(
            _with_initial_state(request, cast), uuid, now, **given
        ):
            return
        named = _server_names(cast)
        LOG.error(
            'message %s is set aside as unreadable: the queue already has a'
            ' request for its servers: server %s',
            uuid,
            named,
        )
    store.add_request(
        _with_initial_state(parser.placeholder_request(cast), cast),
        uuid,
        now,
        _UNREADABLE,
    )


def _server_names(cast: cast_module.Cast) -> str:
    """Return the names of a message's servers for the log; 'unknown' if they
    cannot be read.
    """
    try:
        message = envelope.parse_message(cast.body)
    except exception.Unreadable:
        return 'unknown'
    return plans.shortened_list(envelope.named_servers(message.get('args')))


def _with_corrected_arrival(
    request: request_model.Request, now: float, cast: cast_module.Cast
) -> request_model.Request:
    """Return the request with an arrival time that is not in the future.

    The clock of the relay that received the message may be wrong.
    """
    ahead_s = request.asked_at - now
    if ahead_s <= clocks.MOST_S:
        return request
    LOG.error(
        'request %s: its arrival time is %.0f s in the future: the clock of'
        ' its relay is wrong; the present time replaces it: server %s',
        request.uuid,
        ahead_s,
        _server_names(cast),
    )
    until = request.expires_at
    return dataclasses.replace(
        request,
        asked_at=now,
        expires_at=None if until is None else until - ahead_s,
    )


def _with_age_before_eviction(
    store: store_module.Store, request: request_model.Request
) -> request_model.Request:
    """Return the request of a returning evicted server with its former age and
    priority class; others unchanged.
    """
    if request.origin is not request_model.Origin.UNSHELVE:
        return request
    for leave in store.leaves.newest_of_servers(request.servers).values():
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


def _with_initial_state(
    request: request_model.Request, cast: cast_module.Cast
) -> request_model.Request:
    """Return a new request in its first state: ``sending`` if Nova may already
    have it.
    """
    if not cast.is_doubtful:
        return request
    return dataclasses.replace(request, state=request_model.State.SENDING)
