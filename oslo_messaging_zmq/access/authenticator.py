# SPDX-License-Identifier: Apache-2.0

"""Admission: the answer to ZeroMQ's question at every CURVE handshake.

A ZeroMQ context asks one socket of its own (ZAP, RFC 27) whether a key is
good. :class:`Authenticator` answers there in a thread, closes the sessions of
keys that are revoked (:mod:`oslo_messaging_zmq.access.sessions`), and tells
who is behind a message.
"""

from collections.abc import Callable
from collections.abc import Mapping
import itertools
import logging
import threading
import time
from typing import Any

import zmq
from zmq.utils import monitor as zmq_monitor
from zmq.utils import z85

from oslo_messaging_zmq import errors
from oslo_messaging_zmq import tasks
from oslo_messaging_zmq.access import refusals
from oslo_messaging_zmq.access import sessions
from oslo_messaging_zmq.access import unread
from oslo_messaging_zmq.keys import keyring

LOG = logging.getLogger(__name__)

CHECK_INTERVAL_S = 5.0
HANDSHAKE_S = 10.0
KEPT_OUT_S = 10.0
"""How long a peer that sent too many messages makes no further connections.

Messages from connections that it left wait here until they are read, and
floods are read slowly. Without this pause, new connections would fill the
memory.
"""

_EVENTS = (
    zmq.EVENT_ACCEPTED
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_MONITOR_STOPPED
)
_NO_CURVE = zmq.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH
_WRONG_KEY = zmq.PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC
_ENDPOINT = 'inproc://zeromq.zap.01'
_VERSION = b'1.0'
_CURVE = b'CURVE'
_ADMITTED = b'200'
# A client tries again after 300, when the handshake has timed out, and never
# after 400. A key that is not on the list yet must get its chance.
_REFUSED = b'300'
_AFTER_FAULT_S = 0.1
_HANDSHAKES_S = 0.1
"""How often handshakes are looked at; if that takes long, a tenth of the time
is spent on it."""
_MEMORY_S = 0.2
"""How often this process looks how much memory it has. At 600 MB/s, as fast
as ZeroMQ decrypts, 120 MB come in that time."""
MOST_UNREAD = 32 * 1024**2
_MOST_ANSWERS = 100
_NUMBERS = itertools.count(1)


class _Guarded:
    """One bound socket.

    Its monitor's queue has no limit: ZeroMQ would stop all input and output
    until there is room again.

    :param socket: the bound one.
    :param failed: hears of handshakes that failed before a key was known:
        value of the monitor's event, and who it was.
    :param opened: hears of accepted connections: descriptor, and what tells
        whose it is.
    """

    def __init__(
        self,
        socket: 'zmq.Socket[bytes]',
        failed: Callable[[int, str], None],
        opened: Callable[[int, Callable[[], str]], None],
    ) -> None:
        name = f'inproc://zmq-monitor-{next(_NUMBERS)}'
        socket.monitor(name, int(_EVENTS))
        self.monitor: zmq.Socket[bytes] = socket.context.socket(zmq.PAIR)
        self.monitor.setsockopt(zmq.RCVHWM, 0)
        self.monitor.setsockopt(zmq.LINGER, 0)
        self.monitor.connect(name)
        self.sessions = sessions.Sessions()
        self._failed = failed
        self._opened = opened
        self._failure: int | None = None

    def read_monitor(self) -> bool:
        """Read the events of the monitor.

        :returns: False when it has ended.
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
            accepted = self.sessions.accepted(value)
            if accepted is not None:
                self._opened(value, lambda: accepted.key or accepted.peer)
        elif event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
            # The next disconnection says whose.
            self._failure = value
        elif event == zmq.EVENT_DISCONNECTED:
            session = self.sessions.disconnected(value)
            if self._failure is not None:
                who = session.peer if session else 'an unknown peer'
                self._failed(self._failure, who)
            self._failure = None


class Authenticator:
    """Admission of peers to one driver; answers until its context ends.

    :param context: of all sockets of the driver, and of no others.
    :param keys: one's own pair and whose keys are good.
    :param domain: name of the driver in the log.
    :param check_interval_s: longest time in seconds until a session is
        closed after the keyring has learned that its key is no longer good.
    :param handshake_s: after how many seconds a handshake is given up. A
        refused peer waits for that before it tries again, so this is how
        long it takes, at most, until a key that is allowed gets in.
    :param most_connections: of one key to each socket; ``None``: any number.
    :param kept_out_s: for how long :meth:`keep_out` holds, seconds.
    :param most_unread: bytes of one peer that may wait to be read.
    """

    def __init__(
        self,
        context: 'zmq.Context[zmq.Socket[bytes]]',
        keys: keyring.Keyring,
        domain: str,
        *,
        check_interval_s: float = CHECK_INTERVAL_S,
        handshake_s: float = HANDSHAKE_S,
        most_connections: int | None = None,
        kept_out_s: float = KEPT_OUT_S,
        most_unread: int = MOST_UNREAD,
    ) -> None:
        self.public = keys.public
        self._keys = keys
        self._domain = domain
        self._interval_s = check_interval_s
        self._handshake_ms = round(handshake_s * 1000)
        self._most = most_connections
        self._kept_out_s = kept_out_s
        # Until when, by the name of a peer; as many as the allow-list has.
        self._kept_out: dict[str, float] = {}
        self._refusals = refusals.Refusals(domain)
        self._unread = unread.AllConnections(most_unread)
        self.took = self._unread.took
        # By the name under which ZeroMQ asks about a socket.
        self._guarded: dict[str, _Guarded] = {}
        self._servers: set[tuple[str, str]] = set()
        self._callbacks: list[Callable[[str], None]] = []
        self._admitted = self._closed = 0
        self._stopped = False
        self._tasks = tasks.TaskQueue()
        self._socket: zmq.Socket[bytes] = context.socket(zmq.REP)
        self._socket.setsockopt(zmq.LINGER, 1)
        self._socket.bind(_ENDPOINT)
        threading.Thread(
            target=self._run, name='zmq-authenticator', daemon=True
        ).start()

    def as_server(self, socket: 'zmq.Socket[bytes]') -> None:
        """Let only admitted peers connect to a socket.

        To be called before ``bind``, by the thread that owns the socket. The
        socket's monitor is used; there can be only one.
        """
        name = f'{self._domain}#{next(_NUMBERS)}'
        keyring.as_server(socket, self._keys, name)
        socket.setsockopt(zmq.HANDSHAKE_IVL, self._handshake_ms)
        guarded = _Guarded(socket, self._failed, self._unread.opened)
        self._tasks.put(lambda: self._guarded.update({name: guarded}))

    def as_client(
        self, socket: 'zmq.Socket[bytes]', server_key: str, server: str
    ) -> None:
        """Let the next ``connect`` of a socket talk to one server only.

        To be called before each ``connect``, by the thread that uses the
        socket.

        :param server_key: public key of the server in Z85.
        :param server: name of the server.
        :raises KeyRefused: there is none, it is not on the allow-list, or it
            is revoked.
        :raises ForeignName: it may not answer for that name.
        """
        if not server_key:
            msg = 'it has no key, and this side demands one'
            raise errors.KeyRefused(msg)
        keyring.as_client(socket, self._keys, server_key, server)
        self._servers.add((server_key, server))

    def look_at_own(self, server: str) -> None:
        """Say in the log if others will not believe that we are a server."""
        try:
            self._keys.require_server(self.public, server)
        except errors.KeyRefused as error:
            LOG.error('No peer will call %s here: %s', server, error)

    def peer(self, frame: zmq.Frame) -> dict[str, Any] | None:
        """Name and role of who sent a frame.

        :returns: ``None`` if the key is no longer good: drop the message.
        """
        entry = self._keys.allowed(str(frame.get('User-Id')))
        if entry is None:
            return None
        return {'name': entry.name, 'role': entry.role}

    def connected(self, descriptor: int, endpoint: str) -> None:
        """Note a connection that was made to a server. Any thread's."""
        self._unread.opened(descriptor, lambda: endpoint)

    def keep_out(self, name: str) -> None:
        """Let a peer make no further connections for a while. Any thread's.

        :param name: of the peer; those that it has stay.
        """
        self._kept_out[name] = time.monotonic() + self._kept_out_s

    def on_withdrawn(self, callback: Callable[[str], None]) -> None:
        """Call back when a server's key is no longer good.

        This includes a key that is no longer good for the name of the
        connection. ZeroMQ does not check a server's key and would connect
        again for ever. It carries a ``disconnect`` out when the socket is used
        next.

        :param callback: gets the key, in this thread, once for all
            connections made with it: ``disconnect`` from them.
        """
        self._callbacks.append(callback)

    def statistics(self) -> Mapping[str, int]:
        """Counters by name since the start.

        ``admitted`` and ``refused_*`` are handshakes, ``sessions`` and
        ``sessions_doubtful`` are connections accepted now,
        ``sessions_closed`` those that were ended as their key was withdrawn.
        """
        counts = self._refusals.counts
        guarded = list(self._guarded.values())
        return {
            'admitted': self._admitted,
            'refused_unknown_key': counts['unknown_key'],
            'refused_revoked_key': counts['revoked_key'],
            'refused_without_curve': counts['without_curve'],
            'refused_wrong_server_key': counts['wrong_server_key'],
            'refused_handshake': counts['handshake'],
            'refused_connections': counts['connections'],
            'refused_flood': counts['flood'],
            'sessions': sum(len(each.sessions) for each in guarded),
            'sessions_doubtful': sum(
                each.sessions.doubtful() for each in guarded
            ),
            'sessions_closed': self._closed,
        }

    def stop(self) -> None:
        """Stop admitting peers.

        The driver closes its sockets, too. The thread ends when the context is
        terminated; until then it goes on reading the monitors, because ZeroMQ
        would otherwise stop all input and output.
        """
        self._stopped = True

    def _run(self) -> None:
        next_check = time.monotonic() + self._interval_s
        next_look = 0.0
        try:
            while True:
                try:
                    is_open = any(
                        each.sessions.has_open()
                        for each in self._guarded.values()
                    )
                    until = min(
                        next_check,
                        time.monotonic() + _MEMORY_S,
                        next_look if is_open else next_check,
                    )
                    self._turn(max(until - time.monotonic(), 0.0))
                    if is_open and time.monotonic() >= next_look:
                        next_look = self._look_at_handshakes()
                    if self._unread.may_be_much():
                        self._end_unread()
                    if time.monotonic() >= next_check:
                        next_check = time.monotonic() + self._interval_s
                        self._check()
                except zmq.ContextTerminated:
                    break
                except Exception as error:  # noqa: BLE001 - others wait for us
                    LOG.error(
                        'Unexpected error in the authenticator, which goes on:'
                        ' %r',
                        error,
                    )
                    time.sleep(_AFTER_FAULT_S)
        finally:
            self._close()

    def _turn(self, longest_wait_s: float) -> None:
        poller = zmq.Poller()
        poller.register(self._tasks.descriptor, zmq.POLLIN)
        poller.register(self._socket, zmq.POLLIN)
        for guarded in self._guarded.values():
            poller.register(guarded.monitor, zmq.POLLIN)
        may_sleep = self._tasks.may_sleep()
        poller.poll(int(longest_wait_s * 1000) + 1 if may_sleep else 0)
        self._tasks.heard()
        self._tasks.work()
        for name, guarded in list(self._guarded.items()):
            if not guarded.read_monitor():
                self._guarded.pop(name).monitor.close()
        self._answer_all()

    def _answer_all(self) -> None:
        for _ in range(_MOST_ANSWERS):
            try:
                request = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            try:
                key = self._admit(request)
            except Exception as error:  # noqa: BLE001 - the answer is no
                LOG.error(
                    'A key is refused because of an unexpected error: %r',
                    error,
                )
                key = ''
            number = request[1] if len(request) > 1 else b''
            code = _ADMITTED if key else _REFUSED
            self._socket.send_multipart(
                [_VERSION, number, code, b'', key.encode('ascii'), b'']
            )

    def _admit(self, request: list[bytes]) -> str:
        """The key that a request is about, '' if it is refused."""
        if len(request) != 7 or len(request[6]) != 32:
            return ''
        version, _, name, address, _, mechanism, public = request
        # Whoever bound the socket has had it guarded before.
        self._tasks.work()
        guarded = self._guarded.get(name.decode(errors='replace'))
        if guarded is None or (version, mechanism) != (_VERSION, _CURVE):
            return ''
        guarded.read_monitor()
        key = z85.encode(public).decode('ascii')
        peer = address.decode(errors='replace')
        if not self._is_allowed(key, peer):
            return ''
        if not self._has_room(guarded, key, peer):
            return ''
        if not guarded.sessions.admit(key, peer):
            return ''
        self._admitted += 1
        return key

    def _has_room(self, guarded: _Guarded, key: str, address: str) -> bool:
        """Whether a good key may have one more connection."""
        entry, most = self._keys.entry(key), self._most
        if entry and self._kept_out.get(entry.name, 0.0) > time.monotonic():
            kind, why = 'flood', 'it sends too many messages'
        elif most is not None and not guarded.sessions.has_room(key, most):
            kind, why = 'connections', f'it has {most} connections already'
        else:
            return True
        self._refusals.note(kind, f'{self._name(key)} at {address}', why)
        return False

    def _is_allowed(self, key: str, address: str) -> bool:
        if self._stopped:
            return False
        try:
            self._keys.require(key)
        except errors.KeyRefused as error:
            known = self._keys.entry(key) is not None
            kind = 'revoked_key' if known else 'unknown_key'
            self._refusals.note(kind, f'{key} at {address}', str(error))
            return False
        return True

    def _failed(self, reason: int, who: str) -> None:
        if reason == _NO_CURVE:
            kind, why = 'without_curve', 'it does not speak CURVE'
        elif reason == _WRONG_KEY:
            kind, why = 'wrong_server_key', 'it expects another server key'
        else:
            kind, why = 'handshake', f'its handshake failed ({reason:#x})'
        # Without the port: every attempt has another one.
        self._refusals.note(kind, who.rpartition(':')[0] or who, why)

    def _look_at_handshakes(self) -> float:
        """End those that are none.

        :returns: when to look again.
        """
        began_s = time.monotonic()
        for guarded in self._guarded.values():
            for session in guarded.sessions.end_greedy():
                why = 'it sends more than a handshake holds'
                self._refusals.note('handshake', session.address, why)
        ended_s = time.monotonic()
        return ended_s + max(_HANDSHAKES_S, 9 * (ended_s - began_s))

    def _check(self) -> None:
        """Close the sessions of withdrawn keys, and leave their servers."""
        if self._stopped:
            return
        self._end_unread()
        for guarded in self._guarded.values():
            for session in guarded.sessions.withdraw(self._is_good):
                self._closed += 1
                LOG.warning(
                    '%s closed the session of %s at %s: %s',
                    self._domain,
                    self._name(session.key),
                    session.peer,
                    'its key is no longer good'
                    if session.key
                    else 'it may have used a key that is no longer good',
                )
        gone = {
            each
            for each in list(self._servers)
            if not self._keys.serves(*each)
        }
        self._servers -= gone
        for key in sorted({key for key, _ in gone}):
            self._withdraw(key)

    def _end_unread(self) -> None:
        for who, size in self._unread.end().items():
            entry = self._keys.entry(who)
            if entry is not None:
                self.keep_out(entry.name)
            why = f'it has sent {size >> 20} MiB that are still unread'
            self._refusals.note('flood', self._name(who), why)

    def _is_good(self, key: str) -> bool:
        return self._keys.allowed(key) is not None

    def _name(self, key: str) -> str:
        entry = self._keys.entry(key)
        return f'{entry.name} ({key})' if entry else key or 'an unknown peer'

    def _withdraw(self, key: str) -> None:
        LOG.warning(
            '%s ends its connections to %s: its key is no longer good, or'
            ' not for its name',
            self._domain,
            self._name(key),
        )
        for callback in self._callbacks:
            try:
                callback(key)
            except Exception as error:  # noqa: BLE001 - others come next
                LOG.error(
                    'Unexpected error while ending connections to the servers'
                    ' of a withdrawn key: %r',
                    error,
                )

    def _close(self) -> None:
        for guarded in self._guarded.values():
            guarded.monitor.close()
        self._socket.close()
        self._tasks.close()
