# SPDX-License-Identifier: Apache-2.0

"""Z85 (RFC 32 of ZeroMQ): how CURVE keys are written."""

import contextlib
import string
import struct

from zmq.utils import z85

LENGTH = 40
"""Characters of a key of 32 bytes."""

_ALPHABET = frozenset(
    string.ascii_letters + string.digits + '.-:+=^!/*?&<>()[]{}@%$#'
)


def is_key(text: object) -> bool:
    """Whether something is a key in Z85."""
    if not isinstance(text, str) or len(text) != LENGTH:
        return False
    if not _ALPHABET.issuperset(text):
        return False
    # Five characters can say more than four bytes can hold.
    with contextlib.suppress(struct.error, ValueError):
        return len(z85.decode(text.encode('ascii'))) == 32
    return False
