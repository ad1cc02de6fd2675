# SPDX-License-Identifier: Apache-2.0

"""Whoever asked a node for a change."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Asker:
    """Whoever asked; what is not known is empty.

    :ivar caller: name of their key.
    :ivar user_id: as the caller says.
    :ivar request_id: likewise.
    """

    caller: str = ''
    user_id: str = ''
    request_id: str = ''


NOBODY = Asker()
"""Not known, or the configuration."""
