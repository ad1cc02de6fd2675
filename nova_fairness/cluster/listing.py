# SPDX-License-Identifier: Apache-2.0

"""Lists of Nova, which come in pages."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from nova_fairness import exception
from nova_fairness.cluster import clients

PAGE = 1000

_Found = Sequence[Mapping[str, Any]]


def after_id(found: _Found) -> str:
    """Query for what comes after the last one, by its ``id``."""
    return f'&marker={found[-1]["id"]}' if found else ''


def after_uuid(found: _Found) -> str:
    """Query for what comes after the last one, by its ``uuid``."""
    return f'&marker={found[-1]["uuid"]}' if found else ''


def after_so_many(found: _Found) -> str:
    """Query for what comes after so many."""
    return f'&offset={len(found)}'


def listed(
    api: clients.Api,
    path: str,
    key: str,
    after: Callable[[_Found], str] = after_id,
) -> list[Mapping[str, Any]]:
    """All pages of a list.

    :param api: of Nova.
    :param path: with a query or without.
    :param key: of the list in each answer; each item has an ``id``.
    :param after: gives the query for the next page.
    :raises CloudAway: if there is no such list, or it comes to no end.
    :raises CloudError: if it cannot be read.
    """
    path += f'{"&" if "?" in path else "?"}limit={PAGE}'
    found: list[Mapping[str, Any]] = []
    last = None
    while True:
        page = api.get(path + after(found))
        if page is None:
            raise exception.CloudAway(f'Nova does not know {path}')
        found += page[key]
        if len(page[key]) < PAGE:
            return found
        if found[-1]['id'] == last:
            raise exception.CloudAway(f'{path} comes to no end')
        last = found[-1]['id']
