# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Which request a call belongs to: what the log of both ends tells."""

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
