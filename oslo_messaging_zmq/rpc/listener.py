# SPDX-License-Identifier: Apache-2.0

"""Listens for one server: two sockets, each with its own thread.

Calls and casts use one socket, fanout messages the other, so that many fanouts
delay no call. Each limits the messages in progress; beyond that they wait in
ZeroMQ's bounded queues, and then the sender drops and counts them. Each peer
has a limit for calls and casts (:mod:`.turns`), which includes answers that it
has not read.
"""

import collections
from collections.abc import Callable
from collections.abc import Mapping
import functools
import logging
import os
import select
import threading
import uuid

from oslo_messaging._drivers import base

from oslo_messaging_zmq import messages
from oslo_messaging_zmq import options
from oslo_messaging_zmq import tasks
from oslo_messaging_zmq.access import security
from oslo_messaging_zmq.matchmaker import contract
from oslo_messaging_zmq.rpc import fanout
from oslo_messaging_zmq.rpc import port
from oslo_messaging_zmq.rpc import turns

LOG = logging.getLogger(__name__)

_BATCH = 32
_DELIVERY_TIMEOUT_S = 30.0
_ANSWER_CHECK_MS = 50
"""Milliseconds between two checks whether waiting large answers were sent."""

Callback = Callable[[list[port.IncomingMessage]], None]


class RpcListener(base.Listener):  # type: ignore[misc]
    """Receives the messages of one server of a topic.

    :param context: of this process.
    :param guard: decides who may send.
    :param settings: of the driver.
    :param address: exchange, topic and server.
    :param leave: called when it stops listening, perhaps twice.
    :param batch_size: ignored: messages are passed one at a time, as RPC
        servers need.
    :param batch_timeout: ignored.
    """

    def __init__(
        self,
        context: security.Context,
        guard: security.SocketGuard,
        settings: options.DriverSettings,
        address: messages.Address,
        leave: Callable[[contract.AnnouncedListener], None],
        batch_size: int,
        batch_timeout: float | None,
    ) -> None:
        super().__init__(batch_size, batch_timeout)
        self._pid = os.getpid()
        self._settings = settings
        self._name = '/'.join(address)
        self._leave = leave
        self._tasks = tasks.TaskQueue()
        make = functools.partial(
            port.Port, context, guard, settings, address=address
        )
        wake = functools.partial(self._tasks.put, self._resume)
        self._turns = _make_turns(settings, wake)
        self._rpc = make(
            kinds={messages.CALL, messages.CAST},
            answer=self._answer,
            wake=wake,
            has_room=self._turns.has_room,
        )
        self._fanout = fanout.FanoutReader(
            context, make, self._deliver, settings.fanout_pause, self._name
        )
        self._poller = select.poll()
        self._poller.register(self._tasks.descriptor, select.POLLIN)
        self._poller.register(self._rpc.descriptor, select.POLLIN)
        self._is_stopped = self._is_closing = False
        # Whoever starts it and whoever closes it may be two threads.
        self._changing = threading.Lock()
        self._thread = threading.Thread(
            target=self._run, name=f'zmq-{self._name}', daemon=True
        )
        self.peer = contract.AnnouncedListener(
            uuid.uuid4().hex,
            *address,
            settings.host,
            self._rpc.endpoint,
            self._fanout.endpoint,
            guard.public,
        )

    def start(self, on_incoming_callback: Callback) -> None:
        """Start to pass messages to a callback; does nothing once closed."""
        with self._changing:
            if self._is_closing:
                return
            super().start(on_incoming_callback)
            self._thread.start()
            self._fanout.start()

    def stop(self) -> None:
        """Stop passing messages to the callback.

        Answers to calls in progress are sent until cleanup(); later calls are
        sent back for other servers.
        """
        if self._pid != os.getpid() or self._is_closing:
            return
        if not self._thread.ident:
            return
        self._leave(self.peer)
        self._is_stopped = True
        if self._thread is not threading.current_thread():
            done = threading.Event()
            self._tasks.put(done.set)
            done.wait(_DELIVERY_TIMEOUT_S)
        self._fanout.wait_for_turn(_DELIVERY_TIMEOUT_S)
        super().stop()

    def cleanup(self) -> None:
        """Close the sockets; returns when that is done."""
        if self._pid != os.getpid():
            return
        with self._changing:
            if self._is_closing:
                return
            self._is_closing = True
        self._leave(self.peer)
        self._fanout.close()
        if self._thread.ident:
            self._tasks.put(_do_nothing)
            self._thread.join()
        else:
            self._close_all()

    @property
    def is_closed(self) -> bool:
        """Whether cleanup() was called."""
        return self._is_closing

    def statistics(self) -> Mapping[str, int]:
        """Return counters by name."""
        total = collections.Counter(
            requests_received=self._rpc.received,
            requests_in_work=self._rpc.credit.in_work(),
        )
        total.update(self._rpc.dropped())
        total.update(self._fanout.statistics())
        return total

    def _deliver(self, message: port.IncomingMessage) -> None:
        callback = self.on_incoming_callback
        if self._is_stopped or callback is None:
            message.refuse()
            return
        try:
            callback([message])
        except Exception as error:  # noqa: BLE001 - others wait for us
            LOG.error(
                'RPC server raised an error; the message is lost: %r', error
            )

    def _run(self) -> None:
        tasks.repeat(
            self._process_events, lambda: self._is_closing, self._thread.name
        )
        self._tasks.work()
        self._close_all()

    def _process_events(self) -> None:
        rpc = self._rpc
        longest_ms = _ANSWER_CHECK_MS if rpc.follow() else None
        may_sleep = self._tasks.may_sleep() and not rpc.may_have_more
        for descriptor, _ in self._poller.poll(longest_ms if may_sleep else 0):
            if descriptor == rpc.descriptor:
                rpc.may_have_more = True
            else:
                self._tasks.heard()
        self._tasks.work()
        if rpc.may_have_more:
            self._read_messages()
        self._deliver_waiting()

    def _read_messages(self) -> None:
        most = min(self._rpc.credit.left(), _BATCH)
        if most <= 0:
            self._pause()
        for place in range(most):
            message = self._rpc.read()
            if message is not None:
                self._turns.add(message.peer, message, message.size)
                # It is in work as long as somebody has it.
                del message
                self._deliver_waiting()
            if place == 0 and self._rpc.may_have_more:
                self._rpc.look()
            if not self._rpc.may_have_more:
                return

    def _deliver_waiting(self) -> None:
        """Deliver the waiting messages in the peers' turns."""
        credit = self._rpc.credit
        while self._turns:
            if credit.left() <= 0:
                self._pause()
                return
            found = self._turns.next()
            if found is None:
                return
            message, part = found
            message.begin(credit, part)
            self._deliver(message)
            del found, message

    def _pause(self) -> None:
        """Stop reading until half of the messages in progress are
        processed.
        """
        self._rpc.credit.is_awaited = True
        self._rpc.may_have_more = False
        self._poller.modify(self._rpc.descriptor, 0)
        # Perhaps it was served just before anybody knew that we wait.
        self._resume()

    def _resume(self) -> None:
        credit = self._rpc.credit
        if credit.is_awaited and credit.has_half():
            credit.is_awaited = False
            self._rpc.may_have_more = True
            self._poller.modify(self._rpc.descriptor, select.POLLIN)

    def _answer(
        self,
        receiver: bytes,
        answer: messages.Answer,
        left: Callable[[], None] = lambda: None,
    ) -> None:
        payload = port.encode_or_failure(
            answer, self._settings.max_message_size
        )
        self._tasks.put(
            functools.partial(self._rpc.send, receiver, payload, left)
        )

    def _close_all(self) -> None:
        self._rpc.socket.close()
        self._tasks.close()


def _make_turns(
    settings: options.DriverSettings, wake: Callable[[], None]
) -> turns.MessageTurns[port.IncomingMessage]:
    return turns.MessageTurns(
        settings.peer_requests_in_work,
        settings.queue_length,
        2 * settings.max_message_size,
        wake,
    )


def _do_nothing() -> None:
    """A task that only wakes the thread."""
