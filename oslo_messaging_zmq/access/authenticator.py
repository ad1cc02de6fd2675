# SPDX-License-Identifier: Apache-2.0

"""Who may talk: answers ZeroMQ's question for every CURVE handshake.

A driver makes one :class:`Access` and asks it for everything::

    keyring = keyring.FileKeyring(path)        # KeysError says what is wrong
    access = authenticator.start(context, keyring, domain)
    access.as_server(socket)                   # before bind; owner's thread
    access.as_client(socket, key, server)      # before each connect; raises
                                               # KeyRefused for a bad key, or
                                               # that of another server
    entry = access.peer(frame.get('User-Id'))  # Entry(name, role) or None:
                                               # ask for every message, drop
                                               # it when None
    access.on_withdrawn(callback)              # callback(server_key): runs in
                                               # the native thread; disconnect
                                               # from every peer of that key
    access.statistics()                        # mapping of plain ints
    access.stop()                              # when the sockets are closed

All drivers of one process and context share one native thread. Sessions of
revoked keys are closed by it (:mod:`oslo_messaging_zmq.access.sessions`); a
driver has nothing to report about its messages.
"""

from collections.abc import Callable
from collections.abc import Mapping
import itertools
import os

import zmq

from oslo_messaging_zmq import errors
from oslo_messaging_zmq import native_log
from oslo_messaging_zmq import threads
from oslo_messaging_zmq.access import refusals
from oslo_messaging_zmq.access import zap
from oslo_messaging_zmq.keys import allow_list
from oslo_messaging_zmq.keys import curve
from oslo_messaging_zmq.keys import keyring

LOG = native_log.Log(__name__)

CHECK_INTERVAL_S = 5.0
HANDSHAKE_S = 10.0

_NUMBERS = itertools.count(1)
_NO_CURVE = zmq.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH
_WRONG_KEY = zmq.PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC
_Context = zmq.Context['zmq.Socket[bytes]']


class Access:
    """Who may talk with one driver; made by :func:`start`.

    :param authenticator: of the context.
    :param keys: one's own pair and whose keys are good.
    :param domain: name of the driver in the log.
    :param handshake_s: longest handshake, see :func:`start`.
    """

    def __init__(
        self,
        authenticator: zap.Zap,
        keys: keyring.Keyring,
        domain: str,
        handshake_s: float,
    ) -> None:
        self._authenticator = authenticator
        self._keys = keys
        self._domain = domain
        self._handshake_ms = round(handshake_s * 1000)
        self._refusals = refusals.Refusals(domain)
        self._guarded: list[zap.Guarded] = []
        self._servers: set[tuple[str, str]] = set()
        self._callbacks: list[Callable[[str], None]] = []
        self._admitted = 0
        self._closed = 0
        self._stopped = False
        authenticator.add(self)

    def as_server(self, socket: 'zmq.Socket[bytes]') -> None:
        """Let only admitted peers connect to a socket.

        To be called before ``bind``, by the thread that owns the socket. The
        socket's monitor is used; there can be only one.
        """
        domain = f'{self._domain}#{next(_NUMBERS)}'
        curve.as_server(socket, self._keys, domain)
        socket.setsockopt(zmq.HANDSHAKE_IVL, self._handshake_ms)
        guarded = zap.Guarded(domain, self, zap.monitor_of(socket))
        self._guarded.append(guarded)
        self._authenticator.guard(guarded)

    def as_client(
        self, socket: 'zmq.Socket[bytes]', server_key: str, server: str
    ) -> None:
        """Let the next ``connect`` of a socket talk to one server only.

        To be called before each ``connect``, by the thread that uses the
        socket.

        :param server_key: public key of the server in Z85.
        :param server: name of the server.
        :raises KeyRefused: it is not on the allow-list, is revoked, or may
            not answer for that name.
        """
        curve.as_client(socket, self._keys, server_key, server)
        self._servers.add((server_key, server))

    def peer(self, user_id: str) -> allow_list.Entry | None:
        """Whose message it is.

        :param user_id: ``User-Id`` of a frame: a public key in Z85.
        :returns: ``None`` if the key is good no more: drop the message.
        """
        return self._keys.allowed(user_id)

    def on_withdrawn(self, callback: Callable[[str], None]) -> None:
        """Have something done when a server's key is good no more.

        Or no more for the name under which somebody connected to it.
        ZeroMQ asks nobody about a server's key and would connect again for
        ever. It carries a ``disconnect`` out when the socket is used next.

        :param callback: gets the key, in the native thread, once for all
            connections made with it: ``disconnect`` from them.
        """
        self._callbacks.append(callback)

    def statistics(self) -> Mapping[str, int]:
        """Count what happened since the start.

        ``admitted`` and ``refused_*`` are handshakes, ``sessions`` and
        ``sessions_doubtful`` are connections accepted now,
        ``sessions_closed`` those that were ended as their key was withdrawn.
        """
        counts = self._refusals.counts
        return {
            'admitted': self._admitted,
            'refused_unknown_key': counts['unknown_key'],
            'refused_revoked_key': counts['revoked_key'],
            'refused_without_curve': counts['without_curve'],
            'refused_wrong_server_key': counts['wrong_server_key'],
            'refused_handshake': counts['handshake'],
            'sessions': sum(len(each.sessions) for each in self._guarded),
            'sessions_doubtful': sum(
                each.sessions.doubtful() for each in self._guarded
            ),
            'sessions_closed': self._closed,
        }

    def stop(self) -> None:
        """End: nobody is admitted any more. May be called twice.

        Close the driver's sockets, too. The thread ends when the context is
        terminated.
        """
        if self._stopped:
            return
        self._stopped = True
        self._authenticator.remove(self)

    def judge(self, key: str, address: str) -> bool:
        """Tell whether a key is admitted."""
        if self._stopped:
            return False
        try:
            self._keys.require(key)
        except errors.KeyRefused as error:
            known = self._keys.entry(key) is not None
            kind = 'revoked_key' if known else 'unknown_key'
            self._refusals.note(kind, f'{key} at {address}', str(error))
            return False
        self._admitted += 1
        return True

    def failed(self, reason: int, who: str) -> None:
        """Hear that a handshake failed before a key was known."""
        if reason == _NO_CURVE:
            kind, why = 'without_curve', 'it does not speak CURVE'
        elif reason == _WRONG_KEY:
            kind, why = 'wrong_server_key', 'it expects another server key'
        else:
            kind, why = 'handshake', f'its handshake failed ({reason:#x})'
        # Without the port: every attempt has another one.
        self._refusals.note(kind, who.rpartition(':')[0] or who, why)

    def check(self) -> None:
        """Close the sessions of withdrawn keys."""
        for guarded in list(self._guarded):
            if guarded.monitor.closed:
                self._guarded.remove(guarded)
                continue
            for session in guarded.sessions.withdraw(self._is_good):
                self._closed += 1
                LOG.warning(
                    '%s closed the session of %s at %s: %s',
                    self._domain,
                    self._name(session.key),
                    session.peer,
                    'its key is good no more'
                    if session.key
                    else 'it may have used a key that is good no more',
                )
        gone = {
            each
            for each in list(self._servers)
            if not self._keys.serves(*each)
        }
        self._servers -= gone
        for key in sorted({key for key, _ in gone}):
            self._withdraw(key)

    def _is_good(self, key: str) -> bool:
        return self._keys.allowed(key) is not None

    def _name(self, key: str) -> str:
        entry = self._keys.entry(key)
        return f'{entry.name} ({key})' if entry else key or 'somebody'

    def _withdraw(self, key: str) -> None:
        LOG.warning(
            '%s leaves %s: its key is good no more, or not for its name',
            self._domain,
            self._name(key),
        )
        for callback in self._callbacks:
            try:
                callback(key)
            except Exception as error:  # noqa: BLE001
                LOG.error('A withdrawn key was not obeyed: %r', error)


_RUNNING: list[zap.Zap] = []
# Those of a parent process: not even to be closed here.
_ABANDONED: list[zap.Zap] = []
_LOCK = threads.lock()


def _forget_the_parent() -> None:
    """Start afresh in a child process: threads stay with the parent."""
    global _LOCK
    _LOCK = threads.lock()
    _ABANDONED.extend(_RUNNING)
    _RUNNING.clear()


os.register_at_fork(after_in_child=_forget_the_parent)


def start(
    context: _Context,
    keys: keyring.Keyring,
    domain: str,
    *,
    check_interval_s: float = CHECK_INTERVAL_S,
    handshake_s: float = HANDSHAKE_S,
) -> Access:
    """Begin to decide who may talk with a driver.

    :param context: of all sockets of the driver; drivers that share it share
        one thread, which ends when the context is terminated.
    :param keys: one's own pair and whose keys are good.
    :param domain: name of the driver in the log.
    :param check_interval_s: longest time in seconds until a session is
        closed after the keyring has learned that its key is good no more;
        that of the first driver of a context counts.
    :param handshake_s: after how many seconds a handshake is given up. A
        refused peer waits for that before it tries again, so this is how
        long it takes, at most, until a key that is allowed gets in.
    :raises MessagingError: something else answers in this context already.
    """
    with _LOCK:
        _RUNNING[:] = [each for each in _RUNNING if not each.context.closed]
        found = [each for each in _RUNNING if each.context is context]
        if not found:
            try:
                found = [zap.Zap(context, check_interval_s)]
            except zmq.ZMQError as error:
                raise errors.MessagingError(
                    f'{domain}: keys cannot be checked: {error}'
                ) from error
            _RUNNING.append(found[0])
        return Access(found[0], keys, domain, handshake_s)
