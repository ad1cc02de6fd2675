# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Listens for one server: two sockets and the native thread that owns them.

Calls and casts come by one socket, fanout messages by the other. The first is
read first, and again after every small batch of the second, so that a storm
of fanouts holds up no call. Each has a bound on how many of its messages may
be in work; beyond that they wait in ZeroMQ's bounded queues, and what does
not fit there the sender drops and counts.
"""

from collections.abc import Callable
from collections.abc import Mapping
import functools
import os
import time
from typing import Any
import uuid

from oslo_messaging._drivers import base

from nova_fairness.messaging import addressing
from nova_fairness.messaging import contexts
from nova_fairness.messaging import delivery
from nova_fairness.messaging import incoming
from nova_fairness.messaging import native
from nova_fairness.messaging import native_log
from nova_fairness.messaging import options
from nova_fairness.messaging import orders
from nova_fairness.messaging import port
from nova_fairness.messaging import refusals
from nova_fairness.messaging import security
from nova_fairness.messaging import wire

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
    :param batch_size: most messages given to the callback at a time.
    :param batch_timeout: seconds that an incomplete batch waits, or None.
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
        self._refused = refusals.Refusals(self._name)
        self._leave = leave
        self._orders = orders.Orders()
        make = functools.partial(
            port.Port,
            context,
            guard,
            settings,
            address=address,
            refused=self._refused,
            wake=self._orders.wake,
        )
        self._rpc = make(kinds={wire.CALL, wire.CAST})
        self._fanout = make(kinds={wire.FANOUT})
        self._poller = self._watch()
        self._delivery: delivery.Straight | None = None
        self._batch: list[incoming.Incoming] = []
        self._due = 0.0
        self._is_closing = False
        self._thread: Any = None
        self._ended = native.Waiter()
        self.peer = _peer(
            address, settings.host, self._rpc, self._fanout, guard.public
        )

    def start(self, on_incoming_callback: delivery.Callback) -> None:
        """Give messages to a callback from now on."""
        super().start(on_incoming_callback)
        capacity = (
            self._settings.requests_in_work + self._settings.fanouts_in_work
        )
        self._delivery = delivery.start(on_incoming_callback, capacity)
        self._thread = native.start(f'zmq-{self._name}', self._run)

    def stop(self) -> None:
        """Give no more messages to the callback.

        Answers to those that are in work are still sent until cleanup();
        calls that still come are sent back for somebody else to serve.
        """
        if self._pid != os.getpid() or self._is_closing or not self._delivery:
            return
        self._leave(self.peer)
        self._delivery.stop()
        if self._thread is not native.original('threading').current_thread():
            self._wait_for_turn()
        super().stop()

    def cleanup(self) -> None:
        """Close the sockets; waits until it is done."""
        if self._pid != os.getpid() or self._is_closing:
            return
        self._leave(self.peer)
        self._is_closing = True
        if self._thread is None:
            self._end()
        else:
            self._orders.wake()
        self._ended.wait()
        self._ended.close()

    @property
    def is_closed(self) -> bool:
        """Whether cleanup() was called."""
        return self._is_closing

    def statistics(self) -> Mapping[str, int]:
        """Counters by name."""
        counts = {
            'requests_received': self._rpc.received,
            'fanouts_received': self._fanout.received,
            'requests_in_work': self._rpc.credit.in_work(),
            'fanouts_in_work': self._fanout.credit.in_work(),
        }
        return counts | {
            f'received_dropped_{name}': n
            for name, n in self._refused.counts.items()
        }

    def _wait_for_turn(self) -> None:
        done = native.Waiter()
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
                native.original('time').sleep(_PAUSE_S)
        self._orders.work()
        self._end()

    def _watch(self) -> Any:
        poller = native.original('select').poll()
        for descriptor in (
            self._orders.descriptor,
            self._rpc.descriptor,
            self._fanout.descriptor,
        ):
            poller.register(descriptor, _READABLE)
        return poller

    def _turn(self) -> None:
        requests, fanouts = self._room(self._rpc), self._room(self._fanout)
        is_idle = not (
            (requests and self._rpc.may_have_more)
            or (fanouts and self._fanout.may_have_more)
        )
        may_sleep = self._orders.may_sleep() and is_idle
        ready = self._poller.poll(self._wait_ms() if may_sleep else 0)
        for descriptor, _ in ready:
            self._note_readable(descriptor)
        self._orders.work()
        if requests and self._rpc.may_have_more:
            self._drain(self._rpc, requests)
        if fanouts and self._fanout.may_have_more:
            self._drain(self._fanout, fanouts)
        if self._batch and time.monotonic() >= self._due:
            self._flush()

    def _note_readable(self, descriptor: int) -> None:
        if descriptor == self._fanout.descriptor:
            self._fanout.may_have_more = True
        elif descriptor == self._rpc.descriptor:
            self._rpc.may_have_more = True
        else:
            self._orders.heard()

    def _room(self, source: port.Port) -> int:
        """How many messages may be read; 0 stops watching the socket."""
        credit = source.credit
        left = credit.left()
        if left > 0 and not credit.is_awaited:
            return left
        # Only then look again: what is served from now on wakes us.
        credit.is_awaited = left <= 0
        left = credit.left()
        self._poller.modify(source.descriptor, _READABLE if left > 0 else 0)
        if left > 0:
            credit.is_awaited = False
            source.may_have_more = True
        return max(left, 0)

    def _drain(self, source: port.Port, most: int) -> None:
        for message in source.read(min(most, _BATCH), self._answer):
            if not self._batch and self.batch_size > 1:
                self._due = time.monotonic() + (self.batch_timeout or 0.0)
            self._batch.append(message)
            del message
            if len(self._batch) >= self.batch_size:
                self._flush()

    def _flush(self) -> None:
        batch, self._batch = self._batch, []
        if self._delivery is not None:
            self._delivery.put(batch)

    def _wait_ms(self) -> int:
        if not self._batch:
            return -1
        return max(int(1000 * (self._due - time.monotonic())) + 1, 0)

    def _answer(self, receiver: bytes, answer: wire.Answer) -> None:
        payload = incoming.encoded(answer, self._settings.max_message_size)
        self._orders.put(functools.partial(self._rpc.send, receiver, payload))

    def _end(self) -> None:
        for each in (self._rpc, self._fanout):
            each.socket.close()
        self._orders.close()
        self._ended.set()


def _peer(
    address: port.Address,
    host: str,
    rpc: port.Port,
    fanout: port.Port,
    key: str,
) -> addressing.Peer:
    return addressing.Peer(
        uuid.uuid4().hex, *address, host, rpc.endpoint, fanout.endpoint, key
    )
