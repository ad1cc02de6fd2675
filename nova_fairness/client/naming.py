# SPDX-License-Identifier: Apache-2.0

"""Names beside or in place of IDs, by one rule for tables and for pages."""

from collections.abc import Callable
import re

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


def _name(given: str, find: Find) -> str:
    # Names are texts of users; one must not look like more than a name.
    return plain.line(find(given) or given)
