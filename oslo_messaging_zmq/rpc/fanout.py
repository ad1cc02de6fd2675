# SPDX-License-Identifier: Apache-2.0

"""Sends and reads fanout messages, which go to all listeners of a topic.

They are encoded once, and sent on the caller's thread. A peer that does not
read fills only the queue of its own connection. Each listener reads them on
its own thread. The thread waits in ZeroMQ itself, which costs half of waiting
for a descriptor: this happens most often in a cloud, once per round for each
other node. Waking up costs more than reading, so messages that arrive shortly
after another one wait, and are read together.
"""

from collections.abc import Callable
from collections.abc import Mapping
import contextlib
import threading
import uuid

import zmq
from zmq.utils import monitor

from oslo_messaging_zmq import messages
from oslo_messaging_zmq import options
from oslo_messaging_zmq import tasks
from oslo_messaging_zmq.access import refusals
from oslo_messaging_zmq.access import security
from oslo_messaging_zmq.matchmaker import contract
from oslo_messaging_zmq.rpc import port
from oslo_messaging_zmq.rpc import routes

# Plain numbers: those of ZeroMQ's flags cost as much as sending.
_NOBLOCK = int(zmq.NOBLOCK)
_MORE = int(zmq.SNDMORE) | _NOBLOCK

_POLL_MS = 5000
"""Longest wait of a reader before it checks whether it must end, in
milliseconds."""


class FanoutSender:
    """Sends to many listeners; there is one per driver and process.

    :param context: of this process.
    :param guard: prepares connections.
    :param settings: of the driver.
    :param name: of the driver in the log.
    """

    def __init__(
        self,
        context: security.Context,
        guard: security.SocketGuard,
        settings: options.DriverSettings,
        name: str,
    ) -> None:
        self._lock = threading.Lock()
        self._socket = routes.sender(context, settings.fanout_queue_length)
        self._socket.setsockopt(zmq.RCVHWM, 1)
        self._guard = guard
        self._monitor = self._socket.get_monitor_socket(zmq.EVENT_CONNECTED)
        # Without the conveniences that cost more than sending does.
        self._send = super(zmq.Socket, self._socket).send
        self._refused = refusals.Refusals(name)
        self._routes = routes.Routes(
            self._socket, guard, self._refused, is_fanout=True
        )
        self._known: dict[tuple[str, str], contract.Peers] = {}
        self._ids: dict[tuple[str, str], list[bytes]] = {}
        self._sent = self._delivered = 0
        self._is_closed = False

    def send(
        self, exchange: str, topic: str, peers: contract.Peers, payload: bytes
    ) -> int:
        """Send a message to listeners of a topic.

        :param peers: all of them.
        :returns: number of listeners for which ZeroMQ accepted it.
        """
        frame = zmq.Frame(payload)
        with self._lock:
            if self._is_closed:
                return 0
            self._read_events()
            if self._known.get((exchange, topic)) is not peers:
                self._update_routes(exchange, topic, peers)
            taken = self._deliver(self._ids[exchange, topic], frame)
            self._sent += 1
            self._delivered += taken
        return taken

    def withdraw(self, key: str) -> None:
        """Disconnect from all peers with a key."""
        with self._lock:
            if not self._is_closed:
                self._known.clear()
                self._routes.withdraw(key)

    def statistics(self) -> Mapping[str, int]:
        """Return counters by name."""
        return {
            'fanouts_sent': self._sent,
            'fanouts_delivered': self._delivered,
            'fanout_peers_connected': len(self._routes),
        } | self._refused.counted('fanout_dropped')

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            self._is_closed = True
            self._socket.disable_monitor()
            self._monitor.close(0)
            self._socket.close()

    def _read_events(self) -> None:
        while self._monitor.poll(0):
            event = monitor.recv_monitor_message(self._monitor, zmq.NOBLOCK)
            self._guard.connected(event['value'], event['endpoint'].decode())

    def _update_routes(
        self, exchange: str, topic: str, peers: contract.Peers
    ) -> None:
        self._routes.keep(exchange, topic, peers)
        found = filter(None, map(self._routes.to, peers))
        self._ids[exchange, topic] = [route.id for route in found]
        self._known[exchange, topic] = peers

    def _deliver(self, ids: list[bytes], frame: zmq.Frame) -> int:
        send = self._send
        missed = 0
        for route_id in ids:
            try:
                send(route_id, _MORE)
                send(frame, _NOBLOCK, False)  # shared, not copied
            except zmq.ZMQError as error:
                missed += 1
                self._note_undelivered(route_id, error)
        return len(ids) - missed

    def _note_undelivered(self, route_id: bytes, error: zmq.ZMQError) -> None:
        route = self._routes.named(route_id)
        who = route.endpoint if route else route_id.decode()
        kind = 'queue_full' if error.errno == zmq.EAGAIN else 'unreachable'
        self._refused.note(kind, who, f'a fanout was dropped: {error}')


class FanoutReader:
    """The part of a listener that receives fanouts.

    :param context: of this process.
    :param make_port: creates a bound port for kinds of messages, with
        functions that answer and wake.
    :param deliver: called with each message.
    :param pause_s: pause after all waiting messages were read, in seconds.
    :param name: of the listener in the log.
    """

    def __init__(
        self,
        context: security.Context,
        make_port: Callable[..., port.Port],
        deliver: Callable[[port.IncomingMessage], None],
        pause_s: float,
        name: str,
    ) -> None:
        self._context = context
        self._deliver = deliver
        self._pause_s = pause_s
        # Held until the end: to wait for it costs least.
        self._resting = threading.Lock()
        self._resting.acquire()
        self._served = threading.Event()
        self._port = make_port(
            kinds={messages.FANOUT}, answer=_no_answer, wake=self._served.set
        )
        self._port.socket.setsockopt(zmq.RCVTIMEO, _POLL_MS)
        # Only this process can reach it: to end the wait for a message.
        self._inside = f'inproc://{uuid.uuid4().hex}'
        self._port.socket.bind(self._inside)
        self._calling = threading.Lock()
        self._is_closing = False
        self._thread = threading.Thread(
            target=self._run, name=f'zmq-fanout-{name}', daemon=True
        )
        self.endpoint = self._port.endpoint

    def start(self) -> None:
        """Start to read."""
        self._thread.start()

    def wait_for_turn(self, timeout_s: float) -> None:
        """Wait until the present delivery of a message ends."""
        if self._thread is threading.current_thread():
            return
        if self._calling.acquire(timeout=timeout_s):
            self._calling.release()

    def close(self) -> None:
        """End the thread and close the socket; returns when that is done."""
        self._is_closing = True
        if not self._thread.ident:
            self._port.socket.close()
            return
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
            self._thread.join()
        self._thread.join()

    def statistics(self) -> Mapping[str, int]:
        """Return counters by name."""
        return {
            'fanouts_received': self._port.received,
            'fanouts_in_work': self._port.credit.in_work(),
        } | self._port.dropped()

    def _run(self) -> None:
        name = self._thread.name
        tasks.repeat(self._serve, lambda: self._is_closing, name)
        self._port.socket.close()

    def _serve(self) -> None:
        if self._port.credit.left() <= 0:
            self._wait_until_served()
            return
        sender = self._port.wait()
        while sender is not None and not self._is_closing:
            self._take(sender)
            if self._port.credit.left() <= 0:
                return
            sender = self._port.next()
        if self._pause_s and not self._is_closing:
            self._resting.acquire(True, self._pause_s)

    def _take(self, sender: bytes) -> None:
        message = self._port.take(sender)
        if message is not None:
            message.begin(self._port.credit)
            with self._calling:
                self._deliver(message)

    def _wait_until_served(self) -> None:
        credit = self._port.credit
        self._served.clear()
        credit.is_awaited = True
        # Perhaps it was served just before anybody knew that we wait.
        if not credit.has_half() and not self._is_closing:
            self._served.wait()
        credit.is_awaited = False


def _no_answer(*_: object) -> None:
    """Do nothing: no caller waits for an answer to a fanout."""
