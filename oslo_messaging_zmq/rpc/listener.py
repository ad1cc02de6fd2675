# SPDX-License-Identifier: Apache-2.0

"""Listens for one server: two sockets and the native threads that own them.

Calls and casts come by one socket, fanout messages by the other, each with a
thread of its own, so that a storm of fanouts holds up no call. Each has a
bound on how many of its messages may be in work; beyond that they wait in
ZeroMQ's bounded queues, and what does not fit there the sender drops and
counts.
"""

import collections
from collections.abc import Callable
from collections.abc import Mapping
import functools
import os
import threading
from typing import Any
import uuid

from oslo_messaging._drivers import base

from oslo_messaging_zmq import contexts
from oslo_messaging_zmq import native_log
from oslo_messaging_zmq import options
from oslo_messaging_zmq import orders
from oslo_messaging_zmq import threads
from oslo_messaging_zmq import wire
from oslo_messaging_zmq.access import guard as security
from oslo_messaging_zmq.matchmaker import addressing
from oslo_messaging_zmq.rpc import delivery
from oslo_messaging_zmq.rpc import fanout_reader
from oslo_messaging_zmq.rpc import incoming
from oslo_messaging_zmq.rpc import port

LOG = native_log.Log(__name__)

_BATCH = 32
_PAUSE_S = 0.1
_TURN_S = 30.0
_READABLE = 1  # select.POLLIN


class Listener(base.Listener):  # type: ignore[misc]
    """Receives what is sent to one server of a topic.

    :param context: of this process.
    :param guard: knows who may send.
    :param settings: of the driver.
    :param address: exchange, topic and server.
    :param leave: called when it listens no more, perhaps twice.
    :param batch_size: ignored: messages are given to the callback as they
        come, one at a time, which is what servers of calls ask for.
    :param batch_timeout: ignored.
    """

    def __init__(
        self,
        context: contexts.Context,
        guard: security.Guard,
        settings: options.Settings,
        address: port.Address,
        leave: Callable[[addressing.Peer], None],
        batch_size: int,
        batch_timeout: float | None,
    ) -> None:
        super().__init__(batch_size, batch_timeout)
        self._pid = os.getpid()
        self._settings = settings
        self._name = '/'.join(address)
        self._leave = leave
        self._orders = orders.Orders()
        make = functools.partial(
            port.Port, context, guard, settings, address=address
        )
        self._rpc = make(
            kinds={wire.CALL, wire.CAST},
            wake=functools.partial(self._orders.put, self._resume),
        )
        self._fanout = fanout_reader.FanoutReader(
            context, make, settings.fanout_pause, self._name
        )
        self._poller = threads.original('select').poll()
        self._poller.register(self._orders.descriptor, _READABLE)
        self._poller.register(self._rpc.descriptor, _READABLE)
        self._delivery: delivery.Straight | None = None
        self._is_closing = False
        # Whoever starts it and whoever closes it may be two threads, green
        # under eventlet: starting one more there lets others run meanwhile.
        self._changing = threading.Lock()
        self._thread: Any = None
        self._ended = threads.Waiter()
        self.peer = addressing.Peer(
            uuid.uuid4().hex,
            *address,
            settings.host,
            self._rpc.endpoint,
            self._fanout.endpoint,
            guard.public,
        )

    def start(self, on_incoming_callback: delivery.Callback) -> None:
        """Give messages to a callback from now on; nothing once closed."""
        capacity = (
            self._settings.requests_in_work + self._settings.fanouts_in_work
        )
        with self._changing:
            if self._is_closing:
                return
            super().start(on_incoming_callback)
            self._delivery = delivery.start(on_incoming_callback, capacity)
            self._thread = threads.start(f'zmq-{self._name}', self._run)
            self._fanout.start(self._delivery)

    def stop(self) -> None:
        """Give no more messages to the callback.

        Answers to those that are in work are still sent until cleanup();
        calls that still come are sent back for somebody else to serve.
        """
        if self._pid != os.getpid() or self._is_closing or not self._delivery:
            return
        self._leave(self.peer)
        self._delivery.stop()
        if self._thread is not threads.original('threading').current_thread():
            self._wait_for_turn()
        self._fanout.wait_for_turn(_TURN_S)
        super().stop()

    def cleanup(self) -> None:
        """Close the sockets; waits until it is done."""
        if self._pid != os.getpid():
            return
        with self._changing:
            if self._is_closing:
                return
            self._is_closing = True
        self._leave(self.peer)
        self._fanout.close()
        if self._thread is None:
            self._end()
        else:
            self._orders.put(_nothing)
        self._ended.wait()
        self._ended.close()

    @property
    def is_closed(self) -> bool:
        """Whether cleanup() was called."""
        return self._is_closing

    def statistics(self) -> Mapping[str, int]:
        """Counters by name."""
        total = collections.Counter(
            requests_received=self._rpc.received,
            requests_in_work=self._rpc.credit.in_work(),
        )
        total.update(self._rpc.dropped())
        total.update(self._fanout.statistics())
        return total

    def _wait_for_turn(self) -> None:
        done = threads.Waiter()
        self._orders.put(done.set)
        done.wait(_TURN_S)
        done.close()

    def _run(self) -> None:
        while not self._is_closing:
            try:
                self._turn()
            except Exception as error:  # noqa: BLE001 - others wait for us
                LOG.error(
                    'The listener %s goes on after: %r', self._name, error
                )
                threads.original('time').sleep(_PAUSE_S)
        self._orders.work()
        self._end()

    def _turn(self) -> None:
        rpc = self._rpc
        may_sleep = self._orders.may_sleep() and not rpc.may_have_more
        for descriptor, _ in self._poller.poll(None if may_sleep else 0):
            if descriptor == rpc.descriptor:
                rpc.may_have_more = True
            else:
                self._orders.heard()
        self._orders.work()
        if rpc.may_have_more:
            self._drain()

    def _drain(self) -> None:
        most = min(self._rpc.credit.left(), _BATCH)
        if most <= 0:
            self._pause()
        for place in range(most):
            message = self._rpc.read(self._answer)
            if message is not None and self._delivery is not None:
                batch = [message]
                del message
                self._delivery.put(batch)
                del batch
            if place == 0 and self._rpc.may_have_more:
                self._rpc.look()
            if not self._rpc.may_have_more:
                return

    def _pause(self) -> None:
        """Read no more until half of what is in work was served."""
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
            self._poller.modify(self._rpc.descriptor, _READABLE)

    def _answer(self, receiver: bytes, answer: wire.Answer) -> None:
        payload = incoming.encoded(answer, self._settings.max_message_size)
        self._orders.put(functools.partial(self._rpc.send, receiver, payload))

    def _end(self) -> None:
        self._rpc.socket.close()
        self._orders.close()
        self._ended.set()


def _nothing() -> None:
    """An order that only wakes the thread."""
