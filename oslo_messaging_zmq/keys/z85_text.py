# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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
