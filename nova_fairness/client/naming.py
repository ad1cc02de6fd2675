# SPDX-License-Identifier: Apache-2.0

"""Replacement of IDs by names, shared by tables and dashboard pages."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import re
from typing import Any

from nova_fairness.model import plain

_ID = re.compile(
    r'(?<![\w-])'
    r'(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
    r'|[0-9a-f]{32}|[0-9a-f]{64})'
    r'(?![\w-])'
)
"""IDs of servers as in Nova, and of projects and users as in Keystone. IDs of
users in LDAP are longer.
"""

Find = Callable[[str], str | None]
"""Returns the name of an ID; ``None`` if it is unknown."""


def account(given: str, find: Find) -> str:
    """Return an ID, or ``PROJECT/USER``, with names in place of known IDs."""
    return '/'.join(_name(each, find) for each in given.split('/'))


def sentence(text: str, find: Find) -> str:
    """Return a text with names in place of the known IDs in it."""
    return _ID.sub(lambda found: _name(found[0], find), text)


def server_names(requests: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the names of servers by UUID, as stored in requests.

    The names date from the arrival of the request. Nova may have newer ones,
    and deletes them with the servers.
    """
    return {
        str(uuid): plain.line(str(name))
        for each in requests
        for uuid, name in zip(
            each.get('servers') or (),
            each.get('server_names') or (),
            strict=False,
        )
        if name
    }


def _name(given: str, find: Find) -> str:
    # Users choose names; control characters in a name must have no effect.
    return plain.line(find(given) or given)
