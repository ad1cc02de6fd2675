# SPDX-License-Identifier: Apache-2.0

"""A message of Nova that waits, exactly as it came."""

from collections.abc import Mapping
import dataclasses
from typing import Any

DOUBTFUL = 'nova-fairness-doubtful'
"""Header of a message that Nova may have already: a relay ended while it let
the message pass."""


@dataclasses.dataclass(frozen=True, slots=True)
class Cast:
    """A message without an answer.

    It holds a user's token and passwords. So its ``repr`` does not show the
    key, the body and the properties.

    :ivar uuid: UUID given by the sender; it is the same when the broker
        delivers the message twice.
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
        """Whether Nova may have the message already."""
        return DOUBTFUL in (self.properties.get('application_headers') or {})
