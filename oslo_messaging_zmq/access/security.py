# SPDX-License-Identifier: Apache-2.0

"""Identity behind a socket: with keys, or explicitly without."""

from collections.abc import Callable
from collections.abc import Mapping
import logging
from typing import Any
from typing import Protocol

from oslo_messaging import exceptions
import zmq

from oslo_messaging_zmq import errors
from oslo_messaging_zmq import options
from oslo_messaging_zmq.access import authenticator
from oslo_messaging_zmq.keys import keyring

LOG = logging.getLogger(__name__)

_MOST_UNREAD = 4
"""Largest messages of a peer that may wait to be read."""

Context = zmq.Context['zmq.Socket[bytes]']
Socket = zmq.Socket[bytes]
Identity = dict[str, Any]


class SocketGuard(Protocol):
    """Prepares sockets and says whose message it is."""

    public: str

    def as_server(self, socket: Socket) -> None:
        """Prepare a socket before it is bound."""

    def as_client(self, socket: Socket, key: str, server: str) -> None:
        """Prepare a socket before each connect.

        :param key: public key of the listener, '' if it has none.
        :param server: name of the server that the listener says it is.
        :raises KeyRefused: no peer may talk to that listener.
        :raises ForeignName: its key may not answer for that server.
        """

    def look_at_own(self, server: str) -> None:
        """Say in the log if others will not believe that we are a server."""

    def peer(self, frame: zmq.Frame) -> Identity | None:
        """Say who sent a frame.

        :returns: what endpoints see as ``ctxt['zmq_peer']``, or None when
            the frame must be dropped.
        """

    def took(self, frame: zmq.Frame) -> None:
        """Note that a frame was read."""

    def connected(self, descriptor: int, endpoint: str) -> None:
        """Note a connection that was made, by its file descriptor."""

    def keep_out(self, name: str) -> None:
        """Let a peer that floods make no further connections for a while."""

    def on_withdrawn(self, callback: Callable[[str], None]) -> None:
        """Have something done with the key of a peer that was revoked."""

    def statistics(self) -> Mapping[str, int]:
        """Counters by name."""

    def stop(self) -> None:
        """Stop admitting peers; all sockets are closed."""


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

    def took(self, frame: zmq.Frame) -> None:
        """Do nothing: without keys no frames are counted."""

    def connected(self, descriptor: int, endpoint: str) -> None:
        """Do nothing: without keys no connections are counted."""

    def keep_out(self, name: str) -> None:
        """Do nothing: peers have no names here."""

    def on_withdrawn(self, callback: Callable[[str], None]) -> None:
        """There are no keys."""

    def statistics(self) -> Mapping[str, int]:
        """There is nothing to count."""
        return {}

    def stop(self) -> None:
        """There is nothing to give back."""


def check(settings: options.DriverSettings) -> None:
    """Refuse to be insecure by accident.

    :raises ConfigurationError: of oslo.messaging, when there are no usable
        keys and ``insecure`` is not set.
    """
    if settings.keys_path:
        try:
            keyring.Keyring(settings.keys_path)
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
    settings: options.DriverSettings, context: Context, domain: str
) -> SocketGuard:
    """The guard that the options ask for, which check() has let pass."""
    if settings.keys_path:
        keys = keyring.Keyring(settings.keys_path)
        return authenticator.Authenticator(
            context,
            keys,
            domain,
            most_connections=settings.peer_connections,
            most_unread=_MOST_UNREAD * settings.max_message_size,
        )
    LOG.warning(
        '[oslo_messaging_zmq] insecure is set: messages of %s are neither'
        ' authenticated nor encrypted, and anybody can answer for any host',
        domain,
    )
    return Open()
