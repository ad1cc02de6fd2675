# SPDX-License-Identifier: Apache-2.0

"""Who is behind a socket: with keys, or explicitly without."""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any
from typing import Protocol

from oslo_messaging import exceptions
import zmq

from oslo_messaging_zmq import contexts
from oslo_messaging_zmq import errors
from oslo_messaging_zmq import native_log
from oslo_messaging_zmq import options
from oslo_messaging_zmq.access import authenticator
from oslo_messaging_zmq.keys import keyring

LOG = native_log.Log(__name__)

Socket = zmq.Socket[bytes]
Identity = dict[str, Any]


class Guard(Protocol):
    """Prepares sockets and says whose message it is."""

    public: str

    def as_server(self, socket: Socket) -> None:
        """Prepare a socket before it is bound."""

    def as_client(self, socket: Socket, key: str, server: str) -> None:
        """Prepare a socket before each connect.

        :param key: public key of the listener, '' if it has none.
        :param server: name of the server that the listener says it is.
        :raises KeyRefused: nobody may talk to that listener.
        :raises ForeignName: its key may not answer for that server.
        """

    def look_at_own(self, server: str) -> None:
        """Say in the log if others will not believe that we are a server."""

    def peer(self, frame: zmq.Frame) -> Identity | None:
        """Say who sent a frame.

        :returns: what endpoints see as ``ctxt['zmq_peer']``, or None when
            the frame must be dropped.
        """

    def on_withdrawn(self, callback: Callable[[str], None]) -> None:
        """Have something done with the key of a peer that was revoked."""

    def statistics(self) -> Mapping[str, int]:
        """Counters by name."""

    def stop(self) -> None:
        """Give everything back; all sockets are closed."""


class Open:
    """Everybody may talk, and nothing is encrypted."""

    public = ''

    def as_server(self, socket: Socket) -> None:
        """Leave the socket as it is."""

    def as_client(self, socket: Socket, key: str, server: str) -> None:
        """Leave the socket as it is.

        :raises KeyRefused: that listener has a key.
        """
        if key:
            msg = 'it demands keys, and this side is insecure'
            raise errors.KeyRefused(msg)

    def look_at_own(self, server: str) -> None:
        """Everybody is believed."""

    def peer(self, frame: zmq.Frame) -> Identity | None:
        """Say that it may be anybody."""
        return {'name': None, 'role': None, 'insecure': True}

    def on_withdrawn(self, callback: Callable[[str], None]) -> None:
        """There are no keys."""

    def statistics(self) -> Mapping[str, int]:
        """There is nothing to count."""
        return {}

    def stop(self) -> None:
        """There is nothing to give back."""


class Keyed:
    """Only peers on the allow-list may talk.

    :param context: where the sockets are.
    :param keys: one's own pair and the allow-list.
    :param domain: name of the driver in the log.
    """

    def __init__(
        self, context: contexts.Context, keys: keyring.Keyring, domain: str
    ) -> None:
        self.public = keys.public
        self._keys = keys
        self._access = authenticator.start(context, keys, domain)
        self.as_server = self._access.as_server
        self.on_withdrawn = self._access.on_withdrawn
        self.statistics = self._access.statistics
        self.stop = self._access.stop

    def as_client(self, socket: Socket, key: str, server: str) -> None:
        """Let the next connect reach the owner of a key only.

        :raises KeyRefused: that listener has no key, or a bad one.
        :raises ForeignName: its key may not answer for that server.
        """
        if not key:
            msg = 'it has no key, and this side demands one'
            raise errors.KeyRefused(msg)
        self._access.as_client(socket, key, server)

    def look_at_own(self, server: str) -> None:
        """Say in the log if others will not believe that we are a server."""
        try:
            self._keys.require_server(self.public, server)
        except errors.KeyRefused as error:
            LOG.error('Nobody will call %s here: %s', server, error)

    def peer(self, frame: zmq.Frame) -> Identity | None:
        """Ask the allow-list about the key behind the connection."""
        entry = self._access.peer(str(frame.get('User-Id')))
        if entry is None:
            return None
        return {'name': entry.name, 'role': entry.role}


def check(settings: options.Settings) -> None:
    """Refuse to be insecure by accident.

    :raises ConfigurationError: of oslo.messaging, when there are no usable
        keys and nobody allowed to go without.
    """
    if settings.keys_path:
        try:
            keyring.FileKeyring(settings.keys_path)
        except errors.KeysError as error:
            raise exceptions.ConfigurationError(str(error)) from error
    elif not settings.insecure:
        msg = (
            '[oslo_messaging_zmq] keys_path is not set: make keys with'
            ' nova-fairness-keys, or set insecure to talk without'
            ' authentication and encryption'
        )
        raise exceptions.ConfigurationError(msg)


def make(
    settings: options.Settings, context: contexts.Context, domain: str
) -> Guard:
    """Make the guard that the options ask for.

    :raises ConfigurationError: as check() does.
    """
    check(settings)
    if settings.keys_path:
        keys = keyring.FileKeyring(settings.keys_path)
        return Keyed(context, keys, domain)
    LOG.warning(
        '[oslo_messaging_zmq] insecure is set: messages of %s are neither'
        ' authenticated nor encrypted, and anybody can answer for any host',
        domain,
    )
    return Open()
