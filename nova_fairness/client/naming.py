# SPDX-License-Identifier: Apache-2.0

"""Names beside or in place of IDs, by one rule for tables and for pages."""

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
"""IDs of servers as Nova makes them, and of projects and users as Keystone
does; those of users in LDAP are longer."""

Find = Callable[[str], str | None]
"""Gives the name of an ID; nothing if it is not known."""


def account(given: str, find: Find) -> str:
    """An ID, or ``PROJECT/USER``, with names in place of known IDs."""
    return '/'.join(_name(each, find) for each in given.split('/'))


def sentence(text: str, find: Find) -> str:
    """A text with names in place of the IDs in it that are known."""
    return _ID.sub(lambda found: _name(found[0], find), text)


def of_servers(requests: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Names of servers by UUID, as requests tell them.

    They are those of the time of asking; Nova may know newer ones, and forgets
    them with the servers.
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
    # Names are texts of users; one must not look like more than a name.
    return plain.line(find(given) or given)
