# SPDX-License-Identifier: Apache-2.0

"""A held message of Nova, exactly as it was received."""

from collections.abc import Mapping
import dataclasses
from typing import Any

DOUBTFUL = 'nova-fairness-doubtful'
"""Header of a message that Nova may have received already: a relay ended while
it forwarded the message.
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Cast:
    """A message without an answer.

    It contains a user's token and passwords, so its ``repr`` omits the key,
    the body and the properties.

    :ivar uuid: UUID set by the sender; equal if the broker delivers the
        message twice.
    :ivar method: name of the called method.
    :ivar received_at: seconds of the epoch.
    :ivar key: routing key of the message.
    :ivar body: bytes as they were received.
    :ivar properties: AMQP properties as they were received, in types that
        msgpack can write.
    """

    uuid: str
    method: str
    received_at: float
    key: str = dataclasses.field(repr=False)
    body: bytes = dataclasses.field(repr=False)
    properties: Mapping[str, Any] = dataclasses.field(repr=False)

    @property
    def is_doubtful(self) -> bool:
        """Whether Nova may have received the message already."""
        return DOUBTFUL in (self.properties.get('application_headers') or {})
