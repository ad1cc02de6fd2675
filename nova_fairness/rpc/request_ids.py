# SPDX-License-Identifier: Apache-2.0

"""Id of the request that a call belongs to, for the logs of both ends."""

from collections.abc import Mapping
from typing import Any

from oslo_context import context as oslo_context

from nova_fairness.rpc import protocol

KEY = 'request_id'
"""Where the context of a call has it."""


def made() -> str:
    """Make the id of a new request."""
    return str(oslo_context.generate_request_id())


def of(context: Mapping[str, Any]) -> str:
    """The id of the request that a call belongs to.

    What could not be an id is taken for none, because it goes to the log.

    :param context: of the call.
    :returns: its id, or a new one if it has none.
    """
    given = context.get(KEY)
    if (
        isinstance(given, str)
        and 0 < len(given) <= protocol.LONGEST_NAME
        and given.isprintable()
    ):
        return given
    return made()


def note(request_id: str) -> None:
    """Let every line of this thread's log carry an id from now on."""
    oslo_context.RequestContext(request_id=request_id, overwrite=True)
