# SPDX-License-Identifier: Apache-2.0

"""Admission of peers at every CURVE handshake.

A ZeroMQ context asks one of its own sockets (ZAP, RFC 27) whether a key is
valid. :class:`Authenticator` answers there on its own thread, closes the
sessions of revoked keys (:mod:`oslo_messaging_zmq.access.sessions`), and names
the sender of a message.
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
"""Seconds for which a peer that sent too many messages may not open
connections. Its unread messages of earlier connections remain in memory
and are read slowly. Without this pause, new connections would fill the
memory."""

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
_HANDSHAKE_CHECK_S = 0.1
"""Seconds between two checks of handshakes; if a check takes long, it
uses at most a tenth of the time."""
_MEMORY_CHECK_S = 0.2
"""Seconds between two checks of this process's memory. At 600 MB/s, the
speed of ZeroMQ's decryption, 120 MB arrive in that time."""
MOST_UNREAD = 32 * 1024**2
_MAX_ANSWERS = 100
_NUMBERS = itertools.count(1)


class _ProtectedSocket:
    """One bound socket, with its monitor and its sessions.

    The monitor's queue has no limit, because ZeroMQ would stop all input and
    output while it is full.

    :param socket: the bound socket.
    :param failed: called for a handshake that failed before its key was known,
        with the value of the monitor's event and the peer's address.
    :param opened: called for an accepted connection, with its descriptor and a
        function that names its peer.
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

        :returns: ``False`` after its end.
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
    """Admits peers to one driver, until the driver's context ends.

    :param context: of all sockets of the driver, and of no others.
    :param keys: the own key pair, and the valid keys.
    :param domain: name of the driver in the log.
    :param check_interval_s: longest time until a session is closed after its
        key became invalid, in seconds.
    :param handshake_s: seconds after which a handshake is ended. A refused
        peer waits that long before it tries again, so a newly allowed key may
        wait that long.
    :param most_connections: largest number of connections of one key to each
        socket; ``None`` means no limit.
    :param kept_out_s: duration of :meth:`keep_out`, seconds.
    :param most_unread: largest number of unread bytes of one peer.
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
        self._guarded: dict[str, _ProtectedSocket] = {}
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
        """Protect a socket, so that only admitted peers can connect.

        Call it before ``bind``, on the thread that owns the socket. It uses
        the socket's only monitor.
        """
        name = f'{self._domain}#{next(_NUMBERS)}'
        keyring.as_server(socket, self._keys, name)
        socket.setsockopt(zmq.HANDSHAKE_IVL, self._handshake_ms)
        guarded = _ProtectedSocket(socket, self._failed, self._unread.opened)
        self._tasks.put(lambda: self._guarded.update({name: guarded}))

    def as_client(
        self, socket: 'zmq.Socket[bytes]', server_key: str, server: str
    ) -> None:
        """Restrict the next ``connect`` of a socket to one server's key.

        Call it before each ``connect``, on the thread that uses the socket.

        :param server_key: public key of the server in Z85.
        :param server: name of the server.
        :raises KeyRefused: if there is no key, or it is not allowed or
            revoked.
        :raises ForeignName: if the key is not allowed for that name.
        """
        if not server_key:
            msg = 'it has no key, and this side demands one'
            raise errors.KeyRefused(msg)
        keyring.as_client(socket, self._keys, server_key, server)
        self._servers.add((server_key, server))

    def look_at_own(self, server: str) -> None:
        """Log an error if peers will refuse the own key for this server
        name.
        """
        try:
            self._keys.require_server(self.public, server)
        except errors.KeyRefused as error:
            LOG.error('No peer will call %s here: %s', server, error)

    def peer(self, frame: zmq.Frame) -> dict[str, Any] | None:
        """Return name and role of the sender of a frame.

        :returns: ``None`` if the key is not valid any more: the message must
            be dropped.
        """
        entry = self._keys.allowed(str(frame.get('User-Id')))
        if entry is None:
            return None
        return {'name': entry.name, 'role': entry.role}

    def connected(self, descriptor: int, endpoint: str) -> None:
        """Record a connection to a server; thread-safe."""
        self._unread.opened(descriptor, lambda: endpoint)

    def keep_out(self, name: str) -> None:
        """Refuse new connections of a peer for a while; thread-safe.

        :param name: of the peer; its present connections remain.
        """
        self._kept_out[name] = time.monotonic() + self._kept_out_s

    def on_withdrawn(self, callback: Callable[[str], None]) -> None:
        """Register a callback for servers whose keys became invalid.

        This includes a key that is not valid for the server's name any more.
        ZeroMQ does not check a server's key and would reconnect for ever. It
        executes a ``disconnect`` when the socket is used next.

        :param callback: called with the key on this class's thread, once for
            all connections; it must disconnect from them.
        """
        self._callbacks.append(callback)

    def statistics(self) -> Mapping[str, int]:
        """Return counters by name since the start.

        ``admitted`` and ``refused_*`` count handshakes, ``sessions`` and
        ``sessions_doubtful`` open accepted connections, ``sessions_closed``
        connections that were closed because of their keys.
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

        The driver must also close its sockets. The thread ends with the
        context; until then it reads the monitors, because ZeroMQ would
        otherwise stop all input and output.
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
                        time.monotonic() + _MEMORY_CHECK_S,
                        next_look if is_open else next_check,
                    )
                    self._process_events(max(until - time.monotonic(), 0.0))
                    if is_open and time.monotonic() >= next_look:
                        next_look = self._end_greedy_handshakes()
                    if self._unread.may_be_much():
                        self._end_unread()
                    if time.monotonic() >= next_check:
                        next_check = time.monotonic() + self._interval_s
                        self._check()
                except zmq.ContextTerminated:
                    break
                except Exception as error:  # noqa: BLE001 - others wait for us
                    LOG.error(
                        'Authenticator: unexpected error; it continues: %r',
                        error,
                    )
                    time.sleep(_AFTER_FAULT_S)
        finally:
            self._close()

    def _process_events(self, longest_wait_s: float) -> None:
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
        for _ in range(_MAX_ANSWERS):
            try:
                request = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            try:
                key = self._admit(request)
            except Exception as error:  # noqa: BLE001 - the answer is no
                LOG.error(
                    'Authenticator: a key was refused: unexpected error: %r',
                    error,
                )
                key = ''
            number = request[1] if len(request) > 1 else b''
            code = _ADMITTED if key else _REFUSED
            self._socket.send_multipart(
                [_VERSION, number, code, b'', key.encode('ascii'), b'']
            )

    def _admit(self, request: list[bytes]) -> str:
        """Return the key of a request; empty if it is refused."""
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

    def _has_room(
        self, guarded: _ProtectedSocket, key: str, address: str
    ) -> bool:
        """Check whether a valid key may have one more connection."""
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

    def _end_greedy_handshakes(self) -> float:
        """End connections that send too much during the handshake.

        :returns: time of the next check, monotonic seconds.
        """
        began_s = time.monotonic()
        for guarded in self._guarded.values():
            for session in guarded.sessions.end_greedy():
                why = 'it sends more than a handshake holds'
                self._refusals.note('handshake', session.address, why)
        ended_s = time.monotonic()
        return ended_s + max(_HANDSHAKE_CHECK_S, 9 * (ended_s - began_s))

    def _check(self) -> None:
        """Close sessions of invalid keys, and connections to such servers."""
        if self._stopped:
            return
        self._end_unread()
        for guarded in self._guarded.values():
            for session in guarded.sessions.withdraw(self._is_valid):
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

    def _is_valid(self, key: str) -> bool:
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
