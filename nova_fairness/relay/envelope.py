# SPDX-License-Identifier: Apache-2.0

"""The method of a message of Nova, in the form of oslo.messaging.

The body is JSON with a version and, as a text, JSON again. Only messages that
may have to wait are read at all; messages that cannot be read go on as they
are.
"""

from collections.abc import Collection

from nova_fairness import exception
from nova_fairness.model import envelope


def cast_to_hold(
    body: bytes, methods: Collection[str]
) -> tuple[str, str] | None:
    """Tell whether a message is a cast of one of some methods.

    A call is not: its sender waits for an answer.

    :param body: as it came.
    :param methods: names.
    :returns: its UUID, which stays the same when it comes twice, and its
        method; ``None`` for any other message.
    :raises Unreadable: if it seems to be one and is not of the form known.
    """
    # Most messages are told apart without reading them.
    if not any(method.encode() in body for method in methods):
        return None
    message = envelope.message(body)
    method, uuid = message.get('method'), message.get('_unique_id')
    if method not in methods or '_msg_id' in message:
        return None
    if not isinstance(uuid, str) or not 0 < len(uuid) <= 64:
        raise exception.Unreadable(
            f'a cast of {method} must have a _unique_id of 1 to 64 characters'
        )
    return uuid, str(method)
