# SPDX-License-Identifier: Apache-2.0

"""The sender of a change to a node."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Asker:
    """The sender of a change; an unknown field is empty.

    :ivar caller: name of the sender's key.
    :ivar user_id: ID of the user, as sent by the caller.
    :ivar request_id: ID of the request, as sent by the caller.
    """

    caller: str = ''
    user_id: str = ''
    request_id: str = ''


UNKNOWN = Asker()
"""Unknown sender; also used for the configuration."""
