# SPDX-License-Identifier: Apache-2.0

"""The request and the user that a call belongs to, for both ends' logs."""

from collections.abc import Mapping
from typing import Any

from oslo_context import context as oslo_context

from nova_fairness.rpc import protocol

KEY = 'request_id'
"""Where the context of a call has the id of its request."""

USER = 'user_id'
"""Key of the user who made that request, as the caller says."""


def made() -> str:
    """Make the id of a new request."""
    return str(oslo_context.generate_request_id())


def of(context: Mapping[str, Any]) -> str:
    """The id of the request that a call belongs to.

    :param context: of the call.
    :returns: its id, or a new one if it has none.
    """
    return given(context, KEY) or made()


def given(context: Mapping[str, Any], key: str) -> str:
    """An id that a call came with, empty if it has none.

    A value that could not be an id counts as none, because it goes to the log.
    """
    value = context.get(key)
    if (
        isinstance(value, str)
        and len(value) <= protocol.LONGEST_NAME
        and value.isprintable()
    ):
        return value
    return ''


def note(request_id: str) -> None:
    """Let every line of this thread's log carry an id from now on."""
    oslo_context.RequestContext(request_id=request_id, overwrite=True)
