# SPDX-License-Identifier: Apache-2.0

"""Signatures by Ed25519 (RFC 8032), because CURVE keys cannot sign.

Keys and signatures are written in Z85. The library is loaded at the first
signature: it uses some MiB, and most nodes need none.
"""

import struct
from typing import TYPE_CHECKING

from zmq.utils import z85

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ed25519

LENGTH = 80
"""Number of characters of a signature of 64 bytes."""


def new_pair() -> tuple[str, bytes]:
    """Create a key pair.

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
    """Return the public key of a secret key in Z85."""
    return _as_z85(_load_secret(secret).public_key().public_bytes_raw())


def sign(secret: bytes, message: bytes) -> str:
    """Sign a message with a secret key in Z85.

    :returns: :data:`LENGTH` characters.
    """
    return _as_z85(_load_secret(secret).sign(message))


def has_valid_signature(public: str, message: bytes, signature: str) -> bool:
    """Check an untrusted signature with a public key.

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


def _load_secret(secret: bytes) -> 'ed25519.Ed25519PrivateKey':
    from cryptography.hazmat.primitives.asymmetric import ed25519

    return ed25519.Ed25519PrivateKey.from_private_bytes(z85.decode(secret))


def _as_z85(raw: bytes) -> str:
    text: str = z85.encode(raw).decode('ascii')
    return text
