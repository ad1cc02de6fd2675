# SPDX-License-Identifier: Apache-2.0

"""Signatures by Ed25519 (RFC 8032): keys of CURVE cannot sign.

Keys and signatures are written in Z85, as all keys are.

The library is loaded at the first signature: it takes some MiB, and a node
that never gets a signed metric needs none.
"""

import struct
from typing import TYPE_CHECKING

from zmq.utils import z85

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ed25519

LENGTH = 80
"""Characters of a signature of 64 bytes."""


def new_pair() -> tuple[str, bytes]:
    """Make a key pair.

    :returns: public key and secret key in Z85. The public key never begins
        with a hyphen, so that it can be an argument of a command.
    """
    from cryptography.hazmat.primitives.asymmetric import ed25519

    while True:
        secret = z85.encode(
            ed25519.Ed25519PrivateKey.generate().private_bytes_raw()
        )
        public = public_of(secret)
        if not public.startswith('-'):
            return public, secret


def public_of(secret: bytes) -> str:
    """The public key that belongs to a secret key in Z85."""
    return _text(_opened(secret).public_key().public_bytes_raw())


def sign(secret: bytes, message: bytes) -> str:
    """Sign with a secret key in Z85.

    :returns: :data:`LENGTH` characters.
    """
    return _text(_opened(secret).sign(message))


def is_signed(public: str, message: bytes, signature: str) -> bool:
    """Tell whether the holder of a public key signed; nothing is believed.

    :param public: a key in Z85.
    """
    from cryptography import exceptions
    from cryptography.hazmat.primitives.asymmetric import ed25519

    try:
        key = ed25519.Ed25519PublicKey.from_public_bytes(z85.decode(public))
        key.verify(z85.decode(signature), message)
    except (
        exceptions.InvalidSignature,
        ValueError,
        LookupError,
        struct.error,
    ):
        return False
    return True


def _opened(secret: bytes) -> 'ed25519.Ed25519PrivateKey':
    from cryptography.hazmat.primitives.asymmetric import ed25519

    return ed25519.Ed25519PrivateKey.from_private_bytes(z85.decode(secret))


def _text(raw: bytes) -> str:
    text: str = z85.encode(raw).decode('ascii')
    return text
