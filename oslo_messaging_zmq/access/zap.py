# SPDX-License-Identifier: Apache-2.0

"""The thread that answers ZAP requests (RFC 27) of one ZeroMQ context."""

import collections
from collections.abc import Callable
import contextlib
import itertools
import os
import time
from typing import Protocol

import zmq
from zmq.auth import base
from zmq.utils import monitor as zmq_monitor
from zmq.utils import z85

from oslo_messaging_zmq import native_log
from oslo_messaging_zmq import threads
from oslo_messaging_zmq.access import sessions

LOG = native_log.Log(__name__)

_EVENTS = (
    zmq.EVENT_ACCEPTED
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_MONITOR_STOPPED
)
_VERSION = b'1.0'
_CURVE = b'CURVE'
_ADMITTED = b'200'
# A client tries again after 300, when the handshake has timed out, and never
# after 400. A key that is not on the list yet must get its chance.
_REFUSED = b'300'
_AFTER_FAULT_S = 0.1
_MOST_ANSWERS = 100
_NUMBERS = itertools.count(1)


class Judge(Protocol):
    """Who decides for one driver."""

    def judge(self, key: str, address: str) -> bool:
        """Tell whether a key is admitted; called in the thread."""

    def failed(self, reason: int, who: str) -> None:
        """Hear that a handshake failed before a key was known.

        :param reason: value of the monitor's event.
        """

    def check(self) -> None:
        """Close the sessions of withdrawn keys; called every while."""


def monitor_of(socket: 'zmq.Socket[bytes]') -> 'zmq.Socket[bytes]':
    """Make a socket that gets the events of another one.

    Its queue has no limit: ZeroMQ would stop all input and output until
    there is room again.
    """
    name = f'inproc://zmq-monitor-{next(_NUMBERS)}'
    socket.monitor(name, int(_EVENTS))
    monitor: zmq.Socket[bytes] = socket.context.socket(zmq.PAIR)
    monitor.setsockopt(zmq.RCVHWM, 0)
    monitor.setsockopt(zmq.LINGER, 0)
    monitor.connect(name)
    return monitor


class Guarded:
    """One bound socket.

    :param domain: its own ZAP domain.
    :param judge: of the driver.
    :param monitor: socket that gets the events of the bound one.
    """

    def __init__(
        self, domain: str, judge: Judge, monitor: 'zmq.Socket[bytes]'
    ) -> None:
        self.domain = domain
        self.judge = judge
        self.monitor = monitor
        self.sessions = sessions.Sessions()
        self._failure: int | None = None

    def read_monitor(self) -> bool:
        """Take what the monitor has to say.

        :returns: False when it has come to its end.
        """
        while True:
            try:
                frames = self.monitor.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return True
            event = zmq_monitor.parse_monitor_message(frames)
            if event['event'] == zmq.EVENT_MONITOR_STOPPED:
                return False
            self._note(event['event'], event['value'])

    def _note(self, event: int, value: int) -> None:
        if event == zmq.EVENT_ACCEPTED:
            self.sessions.accepted(value)
        elif event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
            # The next disconnection says whose.
            self._failure = value
        elif event == zmq.EVENT_DISCONNECTED:
            session = self.sessions.disconnected(value)
            if self._failure is not None:
                who = session.peer if session else 'somebody'
                self.judge.failed(self._failure, who)
            self._failure = None


class Zap(base.Authenticator):
    """Answers for all drivers of one context, until that is terminated.

    :param context: where the bound sockets are.
    :param interval_s: how often to look for withdrawn keys, in seconds.
    :raises zmq.ZMQError: somebody else answers in this context already.
    """

    def __init__(
        self, context: 'zmq.Context[zmq.Socket[bytes]]', interval_s: float
    ) -> None:
        super().__init__(context)
        self._interval_s = interval_s
        self._guarded: dict[str, Guarded] = {}
        self._judges: list[Judge] = []
        self._orders: collections.deque[Callable[[], None]] = (
            collections.deque()
        )
        self._over = False
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._sleep: Callable[[float], None] = threads.original('time').sleep
        self.start()
        threads.start('zmq-authenticator', self._run)

    def add(self, judge: Judge) -> None:
        """Check a driver's sessions from now on."""
        self._order(lambda: self._judges.append(judge))

    def remove(self, judge: Judge) -> None:
        """Answer for a driver no more."""
        self._order(lambda: self._remove(judge))

    def guard(self, guarded: Guarded) -> None:
        """Answer for a bound socket from now on, until it is closed."""
        self._order(lambda: self._guard(guarded))

    def _order(self, order: Callable[[], None]) -> None:
        """Have something done by the thread, before any later answer."""
        self._orders.append(order)
        if not self._over:
            os.eventfd_write(self._wake, 1)

    def _guard(self, guarded: Guarded) -> None:
        self._guarded[guarded.domain] = guarded

    def _remove(self, judge: Judge) -> None:
        # Its sockets are guarded until they are closed: ZeroMQ would stop
        # all input and output when nobody reads a monitor.
        self._judges.remove(judge)

    def _drop(self, guarded: Guarded) -> None:
        del self._guarded[guarded.domain]
        guarded.monitor.close()

    def _run(self) -> None:
        next_check = time.monotonic() + self._interval_s
        try:
            while True:
                try:
                    self._turn(max(next_check - time.monotonic(), 0.0))
                except zmq.ContextTerminated:
                    break
                except Exception as error:  # noqa: BLE001
                    if self.zap_socket.closed:
                        break
                    LOG.error('The authenticator goes on after: %r', error)
                    self._sleep(_AFTER_FAULT_S)
                if time.monotonic() >= next_check:
                    self._check()
                    next_check = time.monotonic() + self._interval_s
        finally:
            self._close()

    def _turn(self, longest_wait_s: float) -> None:
        poller = zmq.Poller()
        poller.register(self._wake, zmq.POLLIN)
        poller.register(self.zap_socket, zmq.POLLIN)
        for guarded in self._guarded.values():
            poller.register(guarded.monitor, zmq.POLLIN)
        poller.poll(int(longest_wait_s * 1000) + 1)
        self._take_orders()
        for guarded in list(self._guarded.values()):
            if not guarded.read_monitor():
                self._drop(guarded)
        self._answer_all()

    def _take_orders(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        while self._orders:
            self._orders.popleft()()

    def _answer_all(self) -> None:
        for _ in range(_MOST_ANSWERS):
            try:
                request = self.zap_socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            try:
                code, key = self._answer(request)
            except Exception as error:  # noqa: BLE001
                LOG.error('A key was refused after: %r', error)
                code, key = _REFUSED, ''
            number = request[1] if len(request) > 1 else b''
            self._send_zap_reply(number, code, b'', key)

    def _answer(self, request: list[bytes]) -> tuple[bytes, str]:
        if len(request) != 7 or len(request[6]) != 32:
            return _REFUSED, ''
        version, _, domain, address, _, mechanism, public = request
        # Whoever bound the socket has ordered it to be guarded before.
        self._take_orders()
        guarded = self._guarded.get(domain.decode(errors='replace'))
        if guarded is None or (version, mechanism) != (_VERSION, _CURVE):
            return _REFUSED, ''
        guarded.read_monitor()
        key = z85.encode(public).decode('ascii')
        peer = address.decode(errors='replace')
        if not guarded.judge.judge(key, peer):
            return _REFUSED, ''
        admitted = guarded.sessions.admit(key, peer)
        return (_ADMITTED, key) if admitted else (_REFUSED, '')

    def _check(self) -> None:
        for judge in self._judges:
            try:
                judge.check()
            except Exception as error:  # noqa: BLE001
                LOG.error('Sessions could not be checked: %r', error)

    def _close(self) -> None:
        for guarded in list(self._guarded.values()):
            self._drop(guarded)
        self.stop()
        self._over = True
