# SPDX-License-Identifier: Apache-2.0

"""The own key pair, the valid keys, and sockets that use them.

RFC 25 and RFC 26 of ZeroMQ define CURVE; keys are written in Z85 (RFC 32), 40
characters for 32 bytes.
"""

from collections.abc import Mapping
import logging
import pathlib
import time

import zmq

from oslo_messaging_zmq import errors
from oslo_messaging_zmq.keys import allow_list
from oslo_messaging_zmq.keys import files
from oslo_messaging_zmq.keys import signing

LOG = logging.getLogger(__name__)


class Keyring:
    """The own key pair and the allow-list, in files; thread-safe.

    The allow-list is read again after a change. If it is unusable then, the
    last valid one stays in use; the log and :attr:`problem` report the error.
    The own pair is read once: a new one is used from the next start.

    :param path: a keys directory with one file ``NAME.secret``, or such a file
        itself; the allow-list ``allowed.json`` is beside it.
    :param reload_s: seconds between two checks for a change.
    :raises KeysError: if a file is missing, invalid or open to others.
    """

    def __init__(
        self, path: str | pathlib.Path, *, reload_s: float = 1.0
    ) -> None:
        secret_path = files.own_secret_path(pathlib.Path(path))
        self._pair = files.read_pair(secret_path)
        self._list_path = secret_path.parent / files.LIST_NAME
        self._reload_s = reload_s
        self._due = 0.0
        self._seen = files.signature(self._list_path)
        self._entries = _by_key(files.read_list(self._list_path))
        self.problem = ''
        self._warn_about_own_key()

    @property
    def name(self) -> str:
        """The name of the own key."""
        return self._pair.name

    @property
    def public(self) -> str:
        """The own public key in Z85."""
        return self._pair.public

    @property
    def secret(self) -> bytes:
        """The own secret key in Z85; it must never be written anywhere."""
        return self._pair.secret

    def entry(self, public: str) -> allow_list.AllowedKey | None:
        """Return the allow-list's entry of a key.

        :param public: in Z85.
        :returns: its entry, revoked or not; ``None`` if it is unknown.
        """
        return self._entries_by_key().get(public)

    def allowed(self, public: str) -> allow_list.AllowedKey | None:
        """Return the entry of a valid key; ``None`` for other keys."""
        entry = self.entry(public)
        return None if entry is None or entry.revoked else entry

    def require(self, public: str) -> allow_list.AllowedKey:
        """Return the entry of a valid key.

        :raises KeyRefused: if it is not valid.
        """
        entry = self.entry(public)
        if entry is None:
            raise errors.KeyRefused(f'{public!r} is not on the allow-list')
        if entry.revoked:
            raise errors.KeyRefused(
                f'{public} of {entry.name} was revoked at {entry.revoked_at}'
            )
        return entry

    def require_server(self, public: str, server: str) -> None:
        """Check that a key is valid for a server name.

        :param server: its name.
        :raises ForeignName: if the key is valid, but not for that server.
        :raises KeyRefused: if it is not valid.
        """
        entry = self.require(public)
        if not entry.answers_for(server):
            raise errors.ForeignName(
                f'the key of {entry.name} may not answer for {server[:255]}'
            )

    def serves(self, public: str, server: str) -> bool:
        """Check whether a key is valid for a server name."""
        entry = self.allowed(public)
        return entry is not None and entry.answers_for(server)

    def sign(self, message: bytes) -> str:
        """Sign a message with the own key.

        :returns: in Z85.
        :raises KeysError: if the own pair cannot sign.
        """
        if not self._pair.signing_key:
            raise errors.KeysError(
                f'the key of {self.name} cannot sign: make or rotate a '
                'key of a controller with nova-fairness-keys'
            )
        return signing.sign(self._pair.signing_key, message)

    def signing_fault(self) -> str:
        """Return why others would refuse the own signatures; empty if they
        would not.

        Others use their own allow-list; here this node's copy is checked.
        """
        entry = self.allowed(self.public)
        if entry is None:
            return f'the key of {self.name} is not allowed, or was revoked'
        if entry.role != allow_list.CONTROLLER:
            return (
                f'the key of {self.name} has the role {entry.role}; expected'
                f' {allow_list.CONTROLLER}'
            )
        if not self._pair.signing_key:
            return f'the secret of {self.name} has no key to sign with'
        if entry.signs != self._pair.signs:
            return (
                f'the secret of {self.name} signs with another key than the'
                ' allow-list says'
            )
        return ''

    def has_valid_signature(
        self, message: bytes, name: str, signature: str
    ) -> bool:
        """Check whether a controller with a valid key signed a message.

        :param name: of the controller.
        :param signature: in Z85; untrusted.
        """
        return any(
            signing.has_valid_signature(entry.signs, message, signature)
            for entry in self._entries_by_key().values()
            if entry.name == name
            and entry.role == allow_list.CONTROLLER
            and entry.signs
            and not entry.revoked
        )

    def _entries_by_key(self) -> Mapping[str, allow_list.AllowedKey]:
        """Return the allow-list by public key; read it again if it is due."""
        now = time.monotonic()
        if now >= self._due:
            # Set first: other threads need not look as well.
            self._due = now + self._reload_s
            self._reload()
        return self._entries

    def _reload(self) -> None:
        seen = files.signature(self._list_path)
        if seen == self._seen:
            return
        self._seen = seen
        try:
            entries = _by_key(files.read_list(self._list_path))
        except errors.KeysError as error:
            self.problem = str(error)
            LOG.error('%s; the last good allow-list stays in use', error)
            return
        self._entries = entries
        self.problem = ''
        LOG.log(
            logging.INFO,
            'Allow-list %s is in use: %d keys, %d of them revoked',
            self._list_path,
            len(entries),
            sum(entry.revoked for entry in entries.values()),
        )

    def _warn_about_own_key(self) -> None:
        try:
            entry = self.require(self.public)
        except errors.KeyRefused as error:
            LOG.warning("Others will refuse this node's own key: %s", error)
            return
        if entry.name != self.name:
            LOG.warning(
                "This node's own key is on the allow-list as %s, and in its "
                'file as %s',
                entry.name,
                self.name,
            )


def _by_key(
    entries: allow_list.Entries,
) -> Mapping[str, allow_list.AllowedKey]:
    return {entry.public: entry for entry in entries}


def new_pair() -> tuple[str, bytes]:
    """Create a key pair.

    :returns: public key and secret key in Z85. The public key never begins
        with a hyphen, so that it can be an argument of a command.
    """
    while True:
        public, secret = zmq.curve_keypair()
        if not public.startswith(b'-'):
            return public.decode('ascii'), secret


def as_server(socket: 'zmq.Socket[bytes]', keys: Keyring, domain: str) -> None:
    """Prepare a socket so that only admitted CURVE clients can connect.

    Call it before ``bind``. While the domain has no authenticator, no client
    is admitted.

    :param domain: the ZAP domain (RFC 27), not empty.
    """
    socket.curve_server = True
    socket.curve_publickey = keys.public.encode('ascii')
    socket.curve_secretkey = keys.secret
    socket.setsockopt(zmq.ZAP_DOMAIN, domain.encode('utf-8'))
    socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)


def as_client(
    socket: 'zmq.Socket[bytes]',
    keys: Keyring,
    server_key: str,
    server: str,
) -> None:
    """Restrict the next ``connect`` of a socket to one server.

    Options are copied at ``connect``, so call it before each one. Earlier
    connections keep theirs, also when they reconnect.

    :param server_key: public key of the server in Z85.
    :param server: name of the server.
    :raises KeyRefused: if the key is not allowed, revoked, or not valid for
        that name.
    """
    keys.require_server(server_key, server)
    socket.curve_publickey = keys.public.encode('ascii')
    socket.curve_secretkey = keys.secret
    socket.curve_serverkey = server_key.encode('ascii')
