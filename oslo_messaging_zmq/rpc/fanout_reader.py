# SPDX-License-Identifier: Apache-2.0

"""Reads the fanout messages of a listener, in a native thread of their own.

It waits in ZeroMQ itself, which costs half of waiting for a descriptor: this
is what happens most often in a cloud, once per round for each other node. To
wake up for a message costs more than to read it: so what comes shortly after
another one waits, and is read together with what else has come.
"""

from collections.abc import Callable
from collections.abc import Mapping
import contextlib
from typing import Any
import uuid

import zmq

from oslo_messaging_zmq import contexts
from oslo_messaging_zmq import native_log
from oslo_messaging_zmq import threads
from oslo_messaging_zmq import wire
from oslo_messaging_zmq.rpc import delivery
from oslo_messaging_zmq.rpc import port

LOG = native_log.Log(__name__)

_PAUSE_S = 0.1
_LOOK_MS = 5000
"""How long it waits in ZeroMQ before it looks whether it should end."""


class FanoutReader:
    """The part of a listener that fanouts come to.

    :param context: of this process.
    :param make_port: binds a socket; gets the kinds of messages and what to
        call when some of them were served.
    :param pause_s: after it has read what was there, it reads nothing for so
        many seconds.
    :param name: of the listener in the log.
    """

    def __init__(
        self,
        context: contexts.Context,
        make_port: Callable[..., port.Port],
        pause_s: float,
        name: str,
    ) -> None:
        self._context = context
        self._pause_s = pause_s
        self._name = name
        # Held until the end: to wait for it costs least.
        self._resting = threads.lock()
        self._resting.acquire()
        self._served = threads.Waiter()
        self._port = make_port(kinds={wire.FANOUT}, wake=self._served.set)
        self._port.socket.setsockopt(zmq.RCVTIMEO, _LOOK_MS)
        # Only this process can reach it: to end the wait for a message.
        self._inside = f'inproc://{uuid.uuid4().hex}'
        self._port.socket.bind(self._inside)
        self._calling = threads.lock()
        self._delivery: delivery.Straight | None = None
        self._is_closing = False
        self._thread: Any = None
        self._ended = threads.Waiter()
        self.endpoint = self._port.endpoint

    def start(self, target: delivery.Straight) -> None:
        """Give messages to a callback from now on."""
        self._delivery = target
        self._thread = threads.start(f'zmq-fanout-{self._name}', self._run)

    def wait_for_turn(self, timeout_s: float) -> None:
        """Wait until a callback that is being called has returned."""
        if self._thread is threads.original('threading').current_thread():
            return
        if self._calling.acquire(timeout=timeout_s):
            self._calling.release()

    def close(self) -> None:
        """End the thread and close the socket; waits until it is done."""
        self._is_closing = True
        if self._thread is None:
            self._port.socket.close()
        else:
            self._end()
        self._ended.close()
        self._served.close()

    def statistics(self) -> Mapping[str, int]:
        """Counters by name."""
        return {
            'fanouts_received': self._port.received,
            'fanouts_in_work': self._port.credit.in_work(),
        } | self._port.dropped()

    def _end(self) -> None:
        self._served.set()
        self._resting.release()
        # If there is no descriptor left, or the thread has ended already, it
        # needs nobody to wake it: it looks by itself now and then.
        with (
            contextlib.suppress(zmq.ZMQError),
            self._context.socket(zmq.DEALER) as sender,
        ):
            sender.setsockopt(zmq.LINGER, 0)
            sender.connect(self._inside)
            sender.send(b'', zmq.DONTWAIT)
            self._ended.wait()
        self._ended.wait()

    def _run(self) -> None:
        while not self._is_closing:
            try:
                self._serve()
            except Exception as error:  # noqa: BLE001 - others wait for us
                LOG.error('Reading fanouts goes on after: %r', error)
                threads.original('time').sleep(_PAUSE_S)
        self._port.socket.close()
        self._ended.set()

    def _serve(self) -> None:
        if self._port.credit.left() <= 0:
            self._wait_until_served()
            return
        sender: bytes | None = self._port.wait()
        while sender is not None and not self._is_closing:
            self._deliver(sender)
            if self._port.credit.left() <= 0:
                return
            sender = self._port.next()
        if self._pause_s and not self._is_closing:
            self._resting.acquire(True, self._pause_s)

    def _deliver(self, sender: bytes) -> None:
        message = self._port.take(sender, _no_answer)
        if message is not None and self._delivery is not None:
            batch = [message]
            del message
            with self._calling:
                self._delivery.put(batch)

    def _wait_until_served(self) -> None:
        credit = self._port.credit
        self._served.clear()
        credit.is_awaited = True
        # Perhaps it was served just before anybody knew that we wait.
        if not credit.has_half() and not self._is_closing:
            self._served.wait()
        credit.is_awaited = False


def _no_answer(receiver: bytes, answer: wire.Answer) -> None:
    """Nobody waits for an answer to a fanout."""
