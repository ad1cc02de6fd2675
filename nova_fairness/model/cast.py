# SPDX-License-Identifier: Apache-2.0

"""A message of Nova that waits, exactly as it came."""

from collections.abc import Mapping
import dataclasses
from typing import Any

DOUBTFUL = 'nova-fairness-doubtful'
"""Header of a message that Nova may have: a relay died that let it pass."""


@dataclasses.dataclass(frozen=True, slots=True)
class Cast:
    """A message without an answer.

    It holds a user's token and passwords: its body and what surrounds it are
    in no text that is made of it.

    :ivar uuid: given by the sender; the same when the broker delivers twice.
    :ivar method: what it asks for.
    :ivar received_at: seconds of the epoch.
    :ivar key: routing key it was sent with.
    :ivar body: bytes as they came.
    :ivar properties: of AMQP, as they came, made of what msgpack can write.
    """

    uuid: str
    method: str
    received_at: float
    key: str = dataclasses.field(repr=False)
    body: bytes = dataclasses.field(repr=False)
    properties: Mapping[str, Any] = dataclasses.field(repr=False)

    @property
    def is_doubtful(self) -> bool:
        """Whether Nova may have it already."""
        return DOUBTFUL in (self.properties.get('application_headers') or {})
