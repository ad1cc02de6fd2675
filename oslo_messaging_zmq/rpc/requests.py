# SPDX-License-Identifier: Apache-2.0

"""Calls and casts: choice of the listener, sending, retries and results."""

from collections.abc import Iterable
from collections.abc import Mapping
import itertools
import random
import time
from typing import Any
from typing import NoReturn
from typing import Protocol
import uuid

import oslo_messaging
from oslo_messaging._drivers import common

from oslo_messaging_zmq import messages
from oslo_messaging_zmq import options
from oslo_messaging_zmq.access import refusals
from oslo_messaging_zmq.matchmaker import contract
from oslo_messaging_zmq.rpc import caller

_LOOK_UP_TIMEOUT_S = 1.0
_LOOK_UP_PAUSES_S = (0.02, 0.05, 0.1, 0.2, 0.3)
"""Seconds between two look-ups while waiting for a listener; the last one
repeats."""

_RETRY_S = 1.0
_FULL_S = 0.1
_HANDOVER_S = 10.0
_FOR_EVER_S = 10.0**8


class Connections(Protocol):
    """Facts about connections, for the choice of a listener.

    :ivar is_closed: whether all connections are closed.
    """

    is_closed: bool

    def is_up(self, peer: contract.AnnouncedListener) -> bool | None:
        """Return whether a listener is connected; ``None`` if unknown."""

    def settle(self, peers: contract.Peers) -> None:
        """Connect to listeners, and wait until each is up or down."""


class Chooser:
    """Chooses listeners for one driver.

    :param matchmaker: finds listeners.
    :param connections: to the listeners.
    """

    def __init__(
        self, matchmaker: contract.Matchmaker, connections: Connections
    ) -> None:
        self._matchmaker = matchmaker
        self._connections = connections
        self._turns: dict[tuple[str, str], itertools.count[int]] = {}

    def choose(
        self,
        address: messages.Address,
        avoid: Iterable[str] = (),
    ) -> contract.AnnouncedListener | None:
        """Choose the listener of the next message.

        A server is chosen by its newest record; without a server name, the
        listeners of the topic are used in turn. A listener that is down is not
        chosen: a message to it would wait for its connection, and miss a
        restart on another port.

        :param avoid: ids of listeners that refused.
        :returns: ``None`` if no listener is up, after a new look-up.
        """
        exchange, topic, server = address
        peers = self._matchmaker.peers(exchange, topic)
        usable = self._usable(peers, server, avoid)
        if not any(map(self._connections.is_up, usable)):
            peers = self._matchmaker.look_up(
                exchange, topic, _LOOK_UP_TIMEOUT_S
            )
            usable = self._usable(peers, server, avoid)
        return self._pick(usable, (exchange, topic), server)

    def wait(
        self,
        address: messages.Address,
        deadline: float,
        avoid: Iterable[str] = (),
    ) -> contract.AnnouncedListener | None:
        """Choose a listener like choose(), but wait for one.

        :param deadline: end of the wait, monotonic clock.
        :returns: ``None`` if none appeared in time, or the connections are
            closed.
        """
        pauses = itertools.chain(
            _LOOK_UP_PAUSES_S, itertools.repeat(_LOOK_UP_PAUSES_S[-1])
        )
        while True:
            peer = self.choose(address, avoid)
            left = deadline - time.monotonic()
            if peer is not None or left <= 0 or self._connections.is_closed:
                return peer
            time.sleep(min(next(pauses), left))

    def _usable(
        self, peers: contract.Peers, server: str, avoid: Iterable[str]
    ) -> list[contract.AnnouncedListener]:
        usable = [
            peer
            for peer in peers
            if (not server or peer.server == server) and peer.id not in avoid
        ]
        unknown = tuple(
            peer for peer in usable if self._connections.is_up(peer) is None
        )
        if unknown:
            self._connections.settle(unknown)
        return usable

    def _pick(
        self,
        usable: list[contract.AnnouncedListener],
        topic: tuple[str, str],
        server: str,
    ) -> contract.AnnouncedListener | None:
        up = [peer for peer in usable if self._connections.is_up(peer)]
        if not up:
            return None
        if server:
            return max(up, key=lambda peer: peer.generation)
        return up[self._next_turn(topic) % len(up)]

    def _next_turn(self, topic: tuple[str, str]) -> int:
        if topic not in self._turns:
            # Clients that live for one call must not all meet the same one.
            self._turns[topic] = itertools.count(random.randrange(1 << 16))
        return next(self._turns[topic])


class Requests:
    """Sends calls and casts of one driver, from any thread.

    :param calls: the connections.
    :param matchmaker: finds listeners.
    :param settings: of the driver.
    :param exception_modules: modules whose remote exceptions keep their class.
    :param name: of the driver in the log.
    """

    def __init__(
        self,
        calls: caller.RpcCaller,
        matchmaker: contract.Matchmaker,
        settings: options.DriverSettings,
        exception_modules: list[str],
        name: str,
    ) -> None:
        self._caller = calls
        self._chooser = Chooser(matchmaker, calls)
        self._matchmaker = matchmaker
        self._settings = settings
        self._exception_modules = exception_modules
        self._undelivered = refusals.Refusals(name)

    def statistics(self) -> Mapping[str, int]:
        """Return counters by name."""
        return {
            'casts_undelivered': self._undelivered.counts['undelivered_cast']
        }

    def require(self, request: messages.RequestMessage) -> None:
        """Check that there is a listener.

        :raises MessageUndeliverable: of oslo.messaging, if a new look-up finds
            none.
        """
        peers = self._matchmaker.look_up(
            request.exchange, request.topic, self._settings.redis_timeout
        )
        server = request.server
        if not any(not server or peer.server == server for peer in peers):
            raise oslo_messaging.MessageUndeliverable(
                f'no server listens to {_target_name(request)}',
                request.exchange,
                request.topic,
                request.message,
            )

    def cast(
        self, request: messages.RequestMessage, retry: int | None
    ) -> None:
        """Send a message without waiting for its processing.

        :param retry: number of retries, a second apart; ``None`` or -1: as
            long as the options say, and then drop it with a warning.
        :raises MessageDeliveryFailure: if all tries failed.
        :raises UnsendableMessage: if it cannot be encoded, or is too large.
        """
        payload = messages.encode_request(
            request, self._settings.max_message_size
        )
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

    def call(
        self, request: messages.RequestMessage, timeout_s: float | None
    ) -> Any:
        """Send a message, and wait for the result of the endpoint.

        :param timeout_s: longest wait in seconds; ``None`` for ever.
        :returns: the result of the endpoint.
        :raises MessagingTimeout: if there is no answer in time.
        :raises UnsendableMessage: if it cannot be encoded, or is too large.
        """
        span_s = _FOR_EVER_S if timeout_s is None else timeout_s
        deadline = time.monotonic() + span_s
        request.msg_id = uuid.uuid4().hex
        payload = messages.encode_request(
            request, self._settings.max_message_size
        )
        refused: set[str] = set()
        while True:
            self._check_open()
            peer = self._wait_for_peer(request, deadline, refused)
            answer = self._send_and_wait(request, peer, payload, deadline)
            if answer.kind == messages.REPLY:
                return self._result(answer)
            if answer.kind == messages.REFUSED:
                refused.add(peer.id)
            else:
                time.sleep(_FULL_S)

    def _check_open(self) -> None:
        if self._caller.is_closed:
            msg = 'the transport was cleaned up'
            raise oslo_messaging.MessageDeliveryFailure(msg)

    def _was_cast(
        self, request: messages.RequestMessage, payload: bytes, deadline: float
    ) -> bool:
        peer = self._chooser.wait(request.address, deadline)
        if peer is None:
            return False
        message = caller.Pending(peer, '', payload, is_call=False)
        self._caller.send(message)
        answer = message.wait(_HANDOVER_S)
        return answer is not None and answer.kind == caller.SENT

    def _not_delivered(
        self, request: messages.RequestMessage, retry: int | None
    ) -> None:
        why = f'no server took a cast to {_target_name(request)}'
        if retry is not None and retry >= 0:
            raise oslo_messaging.MessageDeliveryFailure(why)
        self._undelivered.note('undelivered_cast', _target_name(request), why)

    def _wait_for_peer(
        self,
        request: messages.RequestMessage,
        deadline: float,
        refused: set[str],
    ) -> contract.AnnouncedListener:
        peer = self._chooser.wait(request.address, deadline, refused)
        if peer is None:
            self._check_open()
            _timed_out(request, 'no server that listens can be reached')
        return peer

    def _send_and_wait(
        self,
        request: messages.RequestMessage,
        peer: contract.AnnouncedListener,
        payload: bytes,
        deadline: float,
    ) -> messages.Answer:
        message = caller.Pending(peer, request.msg_id, payload, is_call=True)
        self._caller.send(message)
        patience_s = request.client_timeout or _FOR_EVER_S
        while True:
            left = min(deadline - time.monotonic(), patience_s)
            answer = message.wait(left)
            if answer is None:
                self._caller.give_up(message)
                _timed_out(request, f'no answer from {peer.rpc}')
            if answer.kind != messages.HEARTBEAT:
                return answer

    def _result(self, answer: messages.Answer) -> Any:
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


def _target_name(request: messages.RequestMessage) -> str:
    target = f'{request.exchange}/{request.topic}'
    return f'{target}/{request.server}' if request.server else target


def _timed_out(request: messages.RequestMessage, why: str) -> NoReturn:
    method = request.message.get('method')
    msg = f'Timed out waiting for {method} of {_target_name(request)}: {why}'
    raise oslo_messaging.MessagingTimeout(msg)
