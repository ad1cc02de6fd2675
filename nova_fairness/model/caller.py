# SPDX-License-Identifier: Apache-2.0

"""The sender of a change to a node."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Asker:
    """The sender of a change; a field that is not known is empty.

    :ivar caller: name of the sender's key.
    :ivar user_id: id of the user, as the caller gives it.
    :ivar request_id: id of the request, as the caller gives it.
    """

    caller: str = ''
    user_id: str = ''
    request_id: str = ''


UNKNOWN = Asker()
"""Sender of a change that is not known, or that is the configuration."""
