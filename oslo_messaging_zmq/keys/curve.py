# SPDX-License-Identifier: Apache-2.0

"""CURVE keys of ZeroMQ, and the options that make a socket use them.

RFC 25 and RFC 26 of ZeroMQ define CURVE; keys are written in Z85 (RFC 32),
40 characters for 32 bytes.
"""

import zmq

from oslo_messaging_zmq.keys import keyring


def new_pair() -> tuple[str, bytes]:
    """Make a key pair.

    :returns: public key and secret key in Z85. The public key never begins
        with a hyphen, so that it can be an argument of a command.
    """
    while True:
        public, secret = zmq.curve_keypair()
        if not public.startswith(b'-'):
            return public.decode('ascii'), secret


def public_of(secret: bytes) -> str:
    """Compute the public key that belongs to a secret one, both in Z85."""
    return zmq.curve_public(secret).decode('ascii')


def as_server(
    socket: 'zmq.Socket[bytes]', keys: keyring.Keyring, domain: str
) -> None:
    """Let only admitted CURVE clients connect to a socket.

    To be called before ``bind``. While nobody answers for the domain,
    nobody is let in. Prefer
    :meth:`~oslo_messaging_zmq.access.authenticator.Access.as_server`, which
    can also close sessions.

    :param domain: the ZAP domain (RFC 27), not empty.
    """
    socket.curve_server = True
    socket.curve_publickey = keys.public.encode('ascii')
    socket.curve_secretkey = keys.secret
    socket.setsockopt(zmq.ZAP_DOMAIN, domain.encode('utf-8'))
    socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)


def as_client(
    socket: 'zmq.Socket[bytes]',
    keys: keyring.Keyring,
    server_key: str,
    server: str,
) -> None:
    """Let the next ``connect`` of a socket talk to one server only.

    Options are copied at ``connect``: call it before each one. Earlier
    connections keep theirs, also when they connect again.

    :param server_key: public key of the server in Z85.
    :param server: name of the server.
    :raises KeyRefused: the key is not on the allow-list, is revoked, or
        may not answer for that name.
    """
    keys.require_server(server_key, server)
    socket.curve_publickey = keys.public.encode('ascii')
    socket.curve_secretkey = keys.secret
    socket.curve_serverkey = server_key.encode('ascii')
