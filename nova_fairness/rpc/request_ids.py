# SPDX-License-Identifier: Apache-2.0

"""The request and the user of a call, for the logs of sender and receiver."""

from collections.abc import Mapping
from typing import Any

from oslo_context import context as oslo_context

from nova_fairness.rpc import protocol

KEY = 'request_id'
"""Key in the context of a call: the id of its request."""

USER = 'user_id'
"""Key in the context of a call: the user who made the request, according to
the caller.
"""


def new_request_id() -> str:
    """Create the ID of a new request."""
    return str(oslo_context.generate_request_id())


def of(context: Mapping[str, Any]) -> str:
    """Return the ID of the request of a call.

    :param context: context of the call.
    :returns: its ID, or a new one if it has none.
    """
    return given(context, KEY) or new_request_id()


def given(context: Mapping[str, Any], key: str) -> str:
    """Return an ID in the context of a call; empty if it has none.

    An invalid value counts as missing, because the ID is written to the log.
    """
    value = context.get(key)
    if (
        isinstance(value, str)
        and len(value) <= protocol.LONGEST_NAME
        and value.isprintable()
    ):
        return value
    return ''


def log_with_id(request_id: str) -> None:
    """Write an ID into every log line of this thread from now on."""
    oslo_context.RequestContext(request_id=request_id, overwrite=True)
