# SPDX-License-Identifier: Apache-2.0

"""Finds the CURVE key behind each accepted connection, and closes connections.

ZeroMQ can neither name the peer of a file descriptor before that peer sends
a message, nor close one connection of a socket. But:

* the socket's monitor reports the descriptor of every accepted connection;
* a server sends 234 bytes before it asks for a key's admission (greeting 64,
  RFC 23; WELCOME 170, RFC 26), and more only after the admission. So the
  connection that passes 234 bytes after an answer is the admitted one, and
  a peer that never sends a message is identified as well;
* ``shutdown()`` of a duplicate of the descriptor closes the connection. ZeroMQ
  may close it at any time, after which the number can have another meaning;
  the kernel's socket cookie identifies the connection.

If the connection stays unknown (an old kernel, an answer that takes too long),
it is *doubtful*: it is closed when any key of its socket becomes invalid. Its
peer reconnects at once if its own key is valid.
"""

from collections.abc import Callable
import contextlib
import dataclasses
import errno
import os
import socket
import struct
import time

_SO_COOKIE = 57  # asm-generic/socket.h, Linux 4.12; unknown to Python
_INFO_BYTES = 256
_SENT_AND_AGAIN = struct.Struct('=QQ')
_SENT_AT = 200  # tcpi_bytes_sent and tcpi_bytes_retrans, Linux 4.19
_RECEIVED = struct.Struct('=Q')
_RECEIVED_AT = 128  # tcpi_bytes_received, Linux 4.1

_BEFORE_ADMISSION = 234
_MOST_BEFORE_ADMISSION = 4096
"""Bytes that a peer may send before; a handshake has some hundred."""
# The wait ends as soon as the answer has gone out; it is this long only when
# the machine is very busy, or a peer leaves in the middle of its handshake.
_MAX_WAIT_S = 0.25
_NO_WAIT_AFTER_S = 1.0
_POLL_S = 0.0005
_TIDY_EVERY_S = 1.0
"""A key that has as many connections as it may have is checked again this
often at most."""


@dataclasses.dataclass(frozen=True, slots=True)
class ConnectionFacts:
    """Facts of the kernel about a connection.

    :param cookie: unique number of the socket.
    :param address: of the peer, without port.
    :param sent: bytes sent to the peer; ``None`` if the kernel is too old.
    :param received: bytes received from the peer.
    """

    cookie: int
    address: str
    port: int
    sent: int | None
    received: int = 0


def look(descriptor: int) -> ConnectionFacts | None:
    """Return the kernel's facts about a descriptor; ``None`` if not
    connected.
    """
    try:
        connection = socket.socket(fileno=descriptor)
    except OSError:
        return None
    try:
        found = _read_facts(connection)
        # ZeroMQ may close it at any time, and the number mean another one.
        return (
            found if _read_facts(connection).cookie == found.cookie else None
        )
    except (OSError, ValueError):
        # Not connected, or no connection of a network by now.
        return None
    finally:
        connection.detach()


def _read_facts(connection: socket.socket) -> ConnectionFacts:
    cookie = connection.getsockopt(socket.SOL_SOCKET, _SO_COOKIE, 8)
    address, port = connection.getpeername()[:2]
    state = connection.getsockopt(
        socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES
    )
    sent, received = None, 0
    if len(state) >= _SENT_AT + _SENT_AND_AGAIN.size:
        all_sent, again = _SENT_AND_AGAIN.unpack_from(state, _SENT_AT)
        sent = all_sent - again
        (received,) = _RECEIVED.unpack_from(state, _RECEIVED_AT)
    number = int.from_bytes(cookie, 'little')
    return ConnectionFacts(number, address, port, sent, received)


def shut(descriptor: int, cookie: int) -> bool:
    """Close a connection, if the descriptor still belongs to it.

    :returns: whether it was closed now.
    :raises OSError: if no file descriptor is free.
    """
    try:
        # A duplicate cannot come to mean something else while it is open.
        duplicate = os.dup(descriptor)
    except OSError as error:
        if error.errno == errno.EBADF:
            return False
        raise
    try:
        connection = socket.socket(fileno=duplicate)
    except OSError:
        os.close(duplicate)
        return False
    with connection, contextlib.suppress(OSError):
        if _read_facts(connection).cookie == cookie:
            connection.shutdown(socket.SHUT_RDWR)
            return True
    return False


@dataclasses.dataclass(slots=True, eq=False)
class Session:
    """One accepted connection.

    :param key: public key of the peer in Z85; empty while it is unknown.
    :param doubtful: whether it was admitted without a known key.
    """

    descriptor: int
    cookie: int
    address: str
    port: int
    key: str = ''
    doubtful: bool = False

    @property
    def peer(self) -> str:
        """The address and port of the peer, for people."""
        return f'{self.address}:{self.port}'


class Sessions:
    """The connections of one bound socket; used by one thread.

    :param look: returns facts about a descriptor; :func:`look`.
    :param shut: closes a connection; :func:`shut`.
    """

    def __init__(
        self,
        look: Callable[[int], ConnectionFacts | None] = look,
        shut: Callable[[int, int], bool] = shut,
    ) -> None:
        self._read_facts = look
        self._shut = shut
        self._sessions: dict[int, Session] = {}
        # Connections whose handshake is not known to have ended.
        self._open: dict[int, Session] = {}
        # Connections that the monitor reported as ended.
        self._leaving: dict[int, Session] = {}
        self._admitted: set[str] = set()
        self._pending: tuple[str, list[Session]] | None = None
        # Connections that each further admission of a key may be for.
        self._unsure: dict[str, list[list[Session]]] = {}
        self._no_tidying_until = 0.0
        self._no_wait_until = 0.0
        self._clock: Callable[[], float] = time.monotonic
        self._sleep: Callable[[float], None] = time.sleep

    def __len__(self) -> int:
        return len(self._sessions)

    def doubtful(self) -> int:
        """Return the number of connections without a known key."""
        return sum(each.doubtful for each in list(self._sessions.values()))

    def accepted(self, descriptor: int) -> Session | None:
        """Record a connection that the monitor reported.

        :returns: the new session; ``None`` if it ended or is known.
        """
        found = self._read_facts(descriptor)
        known = self._sessions.get(descriptor)
        if found is None:
            return None
        if known is not None and known.cookie == found.cookie:
            return None
        session = Session(descriptor, found.cookie, found.address, found.port)
        self._sessions[descriptor] = self._open[descriptor] = session
        return session

    def disconnected(self, descriptor: int) -> Session | None:
        """Record that a connection ended or will end.

        :returns: the connection, if it is known.
        """
        session = self._sessions.get(descriptor)
        if session is not None:
            # Still open, or its number means another already: seen later.
            self._leaving[session.cookie] = session
        return session

    def admit(self, key: str, address: str) -> bool:
        """Record a key just before its admission.

        :param key: public key in Z85.
        :param address: of its peer, without port.
        :returns: ``False`` if there is no possible connection, so that the key
            must not be admitted.
        """
        self._find_pending_connection(wait=True)
        if not self._open:
            return False
        self._admitted.add(key)
        sessions = [s for s in self._open.values() if s.address == address]
        sessions = sessions or list(self._open.values())
        undecided = [s for s in sessions if not s.doubtful]
        if len(sessions) == 1 and undecided:
            self._assign_key(sessions[0], key)
        elif undecided:
            self._pending = key, undecided
        else:
            self._unsure.setdefault(key, []).append(sessions)
        return True

    def has_room(self, key: str, most: int) -> bool:
        """Check whether a key has fewer connections than a limit.

        :param key: public key in Z85.
        """
        if len(self) < most or self._admission_count(key) < most:
            return True
        # Some may have ended. Whoever is refused asks again and again.
        now_s = self._clock()
        if now_s < self._no_tidying_until:
            return False
        self._no_tidying_until = now_s + _TIDY_EVERY_S
        self._delete_ended()
        return self._admission_count(key) < most

    def _admission_count(self, key: str) -> int:
        """Return the number of a key's admissions that may have a
        connection.
        """
        known = sum(each.key == key for each in self._sessions.values())
        is_pending = self._pending is not None and self._pending[0] == key
        return known + len(self._unsure.get(key, ())) + is_pending

    def _assign_key(self, session: Session, key: str) -> None:
        session.key = key
        self._open.pop(session.descriptor, None)

    def _find_pending_connection(self, *, wait: bool) -> None:
        """Find the connection of the last admission."""
        if self._pending is None:
            return
        key, sessions = self._pending
        began = self._clock()
        patient = began >= self._no_wait_until
        limit = began + (_MAX_WAIT_S if patient else 0.0)
        while True:
            states = [(s, self._current_facts(s)) for s in sessions]
            passed = [s for s, found in states if _has_passed(found)]
            if passed or not _can_still_show_admission(states):
                break
            if not wait:
                return
            if self._clock() >= limit:
                break
            self._sleep(_POLL_S)
        self._pending = None
        if len(passed) == 1:
            self._assign_key(passed[0], key)
            return
        # Nobody may hold up everybody again and again.
        self._no_wait_until = self._clock() + _NO_WAIT_AFTER_S
        for session, found in states:
            if found is None:
                self._forget(session)
            else:
                session.doubtful = True
        self._unsure.setdefault(key, []).append(sessions)

    def _current_facts(self, session: Session) -> ConnectionFacts | None:
        found = self._read_facts(session.descriptor)
        same = found is not None and found.cookie == session.cookie
        return found if same else None

    def _forget(self, session: Session) -> None:
        for table in (self._sessions, self._open):
            if table.get(session.descriptor) is session:
                del table[session.descriptor]

    def withdraw(self, is_good: Callable[[str], bool]) -> list[Session]:
        """Close the connections of keys that became invalid.

        :param is_good: checks whether a key is valid.
        :returns: the closed connections.
        """
        bad = {key for key in self._admitted if not is_good(key)}
        self._find_pending_connection(wait=bool(bad))
        self._delete_ended()
        if not bad:
            return []
        for session in self._open.values():
            found = self._current_facts(session)
            session.doubtful |= found is not None and found.sent is None
        chosen = [
            s for s in self._sessions.values() if s.doubtful or s.key in bad
        ]
        ended = []
        for session in chosen:
            try:
                if self._shut(session.descriptor, session.cookie):
                    ended.append(session)
            except OSError:
                # No descriptor is left: all bad keys are tried again.
                return ended
            self._forget(session)
        self._admitted -= bad
        return ended

    def has_open(self) -> bool:
        """Check whether a connection may be in its handshake."""
        return bool(self._open)

    def end_greedy(self) -> list[Session]:
        """Close connections that send too much before their admission.

        ZeroMQ stores that data, up to the size of the largest message, for
        every peer that can connect.

        :returns: the closed connections.
        """
        ended = []
        for session in self._open.values():
            found = self._current_facts(session)
            if found is not None and _is_greedy(found):
                # Without a descriptor for it: tried again before long.
                with contextlib.suppress(OSError):
                    if self._shut(session.descriptor, session.cookie):
                        ended.append(session)
        return ended

    def _delete_ended(self) -> None:
        """Delete ended connections, and mark those whose handshake ended
        unseen.
        """
        for session in list(self._leaving.values()):
            if self._current_facts(session) is None:
                self._forget(session)
                del self._leaving[session.cookie]
        awaited = self._pending[1] if self._pending else []
        for session in list(self._open.values()):
            found = self._current_facts(session)
            if session in awaited:
                continue
            if found is None:
                self._forget(session)
            elif _has_passed(found):
                session.doubtful = True
                del self._open[session.descriptor]
        for key, admissions in list(self._unsure.items()):
            self._unsure[key] = [
                each for each in admissions if any(map(self._is_known, each))
            ]
            if not self._unsure[key]:
                del self._unsure[key]

    def _is_known(self, session: Session) -> bool:
        return self._sessions.get(session.descriptor) is session


_ConnectionStates = list[tuple[Session, ConnectionFacts | None]]


def _can_still_show_admission(states: _ConnectionStates) -> bool:
    """Check whether the kernel can still show an admission."""
    return any(found and found.sent is not None for _, found in states)


def _is_greedy(found: ConnectionFacts) -> bool:
    return (
        found.sent is not None
        and found.sent <= _BEFORE_ADMISSION
        and found.received > _MOST_BEFORE_ADMISSION
    )


def _has_passed(found: ConnectionFacts | None) -> bool:
    """Check whether a connection was certainly admitted."""
    return (
        found is not None
        and found.sent is not None
        and found.sent > _BEFORE_ADMISSION
    )
