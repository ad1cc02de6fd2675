# SPDX-License-Identifier: Apache-2.0

"""The sender of a change to a node."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Asker:
    """The sender of a change; a field that is not known is empty.

    :ivar caller: name of their key.
    :ivar user_id: as the caller says.
    :ivar request_id: as the caller says.
    """

    caller: str = ''
    user_id: str = ''
    request_id: str = ''


UNKNOWN = Asker()
"""Not known, or the configuration."""
