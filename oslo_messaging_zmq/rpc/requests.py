# SPDX-License-Identifier: Apache-2.0

"""Calls and casts from their beginning to their end."""

from collections.abc import Mapping
import time
from typing import Any
from typing import NoReturn
import uuid

import oslo_messaging
from oslo_messaging._drivers import common

from oslo_messaging_zmq import errors
from oslo_messaging_zmq import options
from oslo_messaging_zmq import wire
from oslo_messaging_zmq.access import refusals
from oslo_messaging_zmq.matchmaker import addressing
from oslo_messaging_zmq.matchmaker import contract
from oslo_messaging_zmq.rpc import caller
from oslo_messaging_zmq.rpc import pending
from oslo_messaging_zmq.rpc import selection

_RETRY_S = 1.0
_FULL_S = 0.1
_HANDOVER_S = 10.0
_FOR_EVER_S = 10.0**8


class Requests:
    """Sends calls and casts of one driver, from any thread.

    :param calls: the connections.
    :param matches: knows who listens.
    :param settings: of the driver.
    :param exception_modules: of which remote exceptions are raised again.
    :param name: of the driver in the log.
    """

    def __init__(
        self,
        calls: caller.Caller,
        matches: contract.Matchmaker,
        settings: options.Settings,
        exception_modules: list[str],
        name: str,
    ) -> None:
        self._caller = calls
        self._chooser = selection.Chooser(matches, calls)
        self._matches = matches
        self._settings = settings
        self._exception_modules = exception_modules
        self._undelivered = refusals.Refusals(name)

    def statistics(self) -> Mapping[str, int]:
        """Counters by name."""
        return {
            'casts_undelivered': self._undelivered.counts['undelivered_cast']
        }

    def require(self, request: wire.Request) -> None:
        """Make sure that somebody listens.

        :raises MessageUndeliverable: of oslo.messaging, after a fresh
            look-up.
        """
        peers = self._matches.look_up(
            request.exchange, request.topic, self._settings.redis_timeout
        )
        server = request.server
        if not any(not server or peer.server == server for peer in peers):
            raise oslo_messaging.MessageUndeliverable(
                f'nobody listens to {_name(request)}',
                request.exchange,
                request.topic,
                request.message,
            )

    def cast(self, request: wire.Request, retry: int | None) -> None:
        """Hand a message over without waiting for it to be served.

        :param retry: how often to try again, a second apart; None or -1:
            for as long as the options say, and then drop it with a warning.
        :raises MessageDeliveryFailure: the tries are used up.
        """
        payload = self._encoded(request)
        if retry is None or retry < 0:
            span_s = self._settings.undeliverable_after
        else:
            span_s = retry * _RETRY_S
        deadline = time.monotonic() + span_s
        while not self._was_cast(request, payload, deadline):
            self._check_open()
            left = deadline - time.monotonic()
            if left <= 0:
                self._not_delivered(request, retry)
                return
            time.sleep(min(_FULL_S, left))

    def call(self, request: wire.Request, timeout_s: float | None) -> Any:
        """Send a message and wait for what the endpoint returns.

        :param timeout_s: longest wait in seconds, None for ever.
        :returns: what the endpoint returned.
        :raises MessagingTimeout: no answer in time.
        """
        span_s = _FOR_EVER_S if timeout_s is None else timeout_s
        deadline = time.monotonic() + span_s
        request.msg_id = uuid.uuid4().hex
        payload = self._encoded(request)
        refused: set[str] = set()
        while True:
            self._check_open()
            peer = self._someone(request, deadline, refused)
            answer = self._ask(request, peer, payload, deadline)
            if answer.kind == wire.REPLY:
                return self._result(answer)
            if answer.kind == wire.REFUSED:
                refused.add(peer.id)
            else:
                time.sleep(_FULL_S)

    def _check_open(self) -> None:
        if self._caller.is_closed:
            msg = 'the transport was cleaned up'
            raise oslo_messaging.MessageDeliveryFailure(msg)

    def _encoded(self, request: wire.Request) -> bytes:
        try:
            return wire.encode_request(
                request, self._settings.max_message_size
            )
        except errors.UnsendableMessage as error:
            raise oslo_messaging.MessageDeliveryFailure(str(error)) from error

    def _was_cast(
        self, request: wire.Request, payload: bytes, deadline: float
    ) -> bool:
        peer = self._chooser.wait(
            request.exchange, request.topic, request.server, deadline
        )
        if peer is None:
            return False
        message = pending.Pending(peer, '', payload, is_call=False)
        self._caller.send(message)
        try:
            answer = message.wait(_HANDOVER_S)
        finally:
            message.close()
        return answer is not None and answer.kind == pending.SENT

    def _not_delivered(self, request: wire.Request, retry: int | None) -> None:
        why = f'nobody took a cast to {_name(request)}'
        if retry is not None and retry >= 0:
            raise oslo_messaging.MessageDeliveryFailure(why)
        self._undelivered.note('undelivered_cast', _name(request), why)

    def _someone(
        self, request: wire.Request, deadline: float, refused: set[str]
    ) -> addressing.Peer:
        peer = self._chooser.wait(
            request.exchange, request.topic, request.server, deadline, refused
        )
        if peer is None:
            self._check_open()
            _timed_out(request, 'nobody listens who can be reached')
        return peer

    def _ask(
        self,
        request: wire.Request,
        peer: addressing.Peer,
        payload: bytes,
        deadline: float,
    ) -> wire.Answer:
        message = pending.Pending(peer, request.msg_id, payload, is_call=True)
        self._caller.send(message)
        patience_s = request.client_timeout or _FOR_EVER_S
        try:
            while True:
                left = min(deadline - time.monotonic(), patience_s)
                answer = message.wait(left)
                if answer is None:
                    self._caller.give_up(message)
                    _timed_out(request, f'no answer from {peer.rpc}')
                if answer.kind != wire.HEARTBEAT:
                    return answer
        finally:
            message.close()

    def _result(self, answer: wire.Answer) -> Any:
        if answer.failure is None:
            return answer.result
        try:
            failure = common.deserialize_remote_exception(
                answer.failure, self._exception_modules
            )
        except Exception as error:
            msg = f'the remote exception cannot be read: {error!r}'
            raise oslo_messaging.RemoteError('Unknown', msg, []) from error
        raise failure


def _name(request: wire.Request) -> str:
    target = f'{request.exchange}/{request.topic}'
    return f'{target}/{request.server}' if request.server else target


def _timed_out(request: wire.Request, why: str) -> NoReturn:
    method = request.message.get('method')
    msg = f'Timed out waiting for {method} of {_name(request)}: {why}'
    raise oslo_messaging.MessagingTimeout(msg)
