# SPDX-License-Identifier: Apache-2.0

"""Authentication of sockets: with keys, or explicitly without."""

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

_MAX_UNREAD_MESSAGES = 4
"""Largest amount of unread data of a peer, in messages of the largest size."""

Context = zmq.Context['zmq.Socket[bytes]']
Socket = zmq.Socket[bytes]
Identity = dict[str, Any]


class SocketGuard(Protocol):
    """Prepares sockets, and identifies the senders of frames."""

    public: str

    def as_server(self, socket: Socket) -> None:
        """Prepare a socket before ``bind``."""

    def as_client(self, socket: Socket, key: str, server: str) -> None:
        """Prepare a socket before each ``connect``.

        :param key: public key of the listener; empty if it has none.
        :param server: name that the listener claims.
        :raises KeyRefused: if no peer may connect to that listener.
        :raises ForeignName: if its key is not allowed for that name.
        """

    def look_at_own(self, server: str) -> None:
        """Log an error if peers will refuse the own key for this server
        name.
        """

    def peer(self, frame: zmq.Frame) -> Identity | None:
        """Return the sender of a frame.

        :returns: the value of ``ctxt['zmq_peer']`` for endpoints; ``None`` if
            the frame must be dropped.
        """

    def took(self, frame: zmq.Frame) -> None:
        """Count a frame that was read."""

    def connected(self, descriptor: int, endpoint: str) -> None:
        """Record a connection, by its file descriptor."""

    def keep_out(self, name: str) -> None:
        """Refuse new connections of a flooding peer for a while."""

    def on_withdrawn(self, callback: Callable[[str], None]) -> None:
        """Register a callback that gets each server key that becomes
        invalid.
        """

    def statistics(self) -> Mapping[str, int]:
        """Return counters by name."""

    def stop(self) -> None:
        """Stop admitting peers; all sockets are closed."""


class Open:
    """A guard without keys: all peers may connect, without encryption."""

    public = ''

    def as_server(self, socket: Socket) -> None:
        """Do nothing: the socket needs no preparation."""

    def as_client(self, socket: Socket, key: str, server: str) -> None:
        """Check that the listener has no key either.

        :raises KeyRefused: if the listener has a key.
        """
        if key:
            msg = 'it demands keys, and this side is insecure'
            raise errors.KeyRefused(msg)

    def look_at_own(self, server: str) -> None:
        """Do nothing: without keys there are no refusals."""

    def peer(self, frame: zmq.Frame) -> Identity | None:
        """Return an identity without a name."""
        return {'name': None, 'role': None, 'insecure': True}

    def took(self, frame: zmq.Frame) -> None:
        """Do nothing: without keys no frames are counted."""

    def connected(self, descriptor: int, endpoint: str) -> None:
        """Do nothing: without keys no connections are counted."""

    def keep_out(self, name: str) -> None:
        """Do nothing: peers have no names here."""

    def on_withdrawn(self, callback: Callable[[str], None]) -> None:
        """Do nothing: there are no keys."""

    def statistics(self) -> Mapping[str, int]:
        """Return no counters."""
        return {}

    def stop(self) -> None:
        """Do nothing: there is nothing to close."""


def check(settings: options.DriverSettings) -> None:
    """Check that keys are usable, or that ``insecure`` is set.

    :raises ConfigurationError: of oslo.messaging, if there are no usable keys
        and ``insecure`` is not set.
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
    """Create the guard for settings that passed :func:`check`."""
    if settings.keys_path:
        keys = keyring.Keyring(settings.keys_path)
        return authenticator.Authenticator(
            context,
            keys,
            domain,
            most_connections=settings.peer_connections,
            most_unread=_MAX_UNREAD_MESSAGES * settings.max_message_size,
        )
    LOG.warning(
        '[oslo_messaging_zmq] insecure is set: messages of %s are neither'
        ' authenticated nor encrypted, and anybody can answer for any host',
        domain,
    )
    return Open()
