# SPDX-License-Identifier: Apache-2.0

"""Parser of messages of Nova, in the form of oslo.messaging.

The body is JSON with a version and a text that is JSON again. Only messages
that may have to wait are parsed; messages that cannot be parsed are forwarded
unchanged.
"""

from collections.abc import Collection
import dataclasses
from typing import Any

from nova_fairness import exception
from nova_fairness.model import envelope
from nova_fairness.model import plans

_RESERVED = '_nova_'
"""Prefix of the hints that services of Nova send to each other. A user who
sets such a hint makes Nova place a server without asking Placement
(CVE-2026-46448).
"""


@dataclasses.dataclass(frozen=True, slots=True)
class HeldCast:
    """A cast that has to wait.

    :ivar uuid: UUID of the message, equal at each delivery.
    :ivar method: called method of conductor.
    :ivar arguments: arguments of the method, unchanged.
    """

    uuid: str
    method: str
    arguments: Any = dataclasses.field(repr=False)

    @property
    def named(self) -> str:
        """Return names and UUIDs of the first servers, for the log; '' without
        servers.
        """
        return plans.shortened_list(envelope.named_servers(self.arguments))


def cast_to_hold(body: bytes, methods: Collection[str]) -> HeldCast | None:
    """Parse a message if it is a cast of one of the given methods.

    A call is not held, because its sender waits for an answer.

    :param body: body of the message, unchanged.
    :param methods: names of methods.
    :returns: ``None`` for any other message.
    :raises Unreadable: if it seems to be such a cast and has an unknown form.
    """
    # Most messages need not be parsed.
    if not any(method.encode() in body for method in methods):
        return None
    message = envelope.parse_message(body)
    method, uuid = message.get('method'), message.get('_unique_id')
    if method not in methods or '_msg_id' in message:
        return None
    if not isinstance(uuid, str) or not 0 < len(uuid) <= 64:
        raise exception.Unreadable(
            f'a cast of {method} must have a _unique_id of 1 to 64 characters'
        )
    return HeldCast(uuid, str(method), message.get('args'))


def without_reserved_hints(body: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Remove hints that only Nova may set, and never sets in held casts.

    :param body: body of a cast that needs room.
    :returns: the body, unchanged if it has no such hints, and the names of the
        removed hints.
    :raises Unreadable: if the body has an unknown form.
    """
    if _RESERVED.encode() not in body:
        return body, ()
    message = envelope.parse_message(body)
    removed = set()
    for hints in envelope.scheduler_hints(message.get('args')):
        for name in [each for each in hints if each.startswith(_RESERVED)]:
            del hints[name]
            removed.add(name)
    if not removed:
        return body, ()
    return envelope.with_message(body, message), tuple(sorted(removed))
