# SPDX-License-Identifier: Apache-2.0

"""Readers of Nova's lists, which have several pages."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster.openstack import clients

LOG = logging.getLogger(__name__)

PAGE = 1000

_Found = Sequence[Mapping[str, Any]]


class ListPosition:
    """Page size and direction of reading a list, if Nova fails for some of its
    rows.

    If Nova fails for a page, smaller pages are read up to the failing row.
    Then the list is read from its other end. Rows that neither direction
    reaches are not read.

    :ivar limit: size of the next page, >= 1.
    """

    def __init__(self) -> None:
        self.limit = PAGE
        self._is_back = False

    @property
    def query(self) -> str:
        """Return the query of a page; Nova lists the newest first."""
        order = '&sort_key=created_at&sort_dir=asc' if self._is_back else ''
        return f'&limit={self.limit}{order}'

    def narrow_after_failure(self) -> bool | None:
        """Halve the page size after a failure; at one row, change the
        direction.

        :returns: whether the direction changed; ``None`` if both directions
            were read.
        """
        if self.limit > 1:
            self.limit //= 2
            return False
        was_back, self._is_back = self._is_back, True
        self.limit = PAGE
        return None if was_back else True


def list_around_failures(
    api: clients.Api, path: str, key: str, failure: exception.CloudFailed
) -> list[Mapping[str, Any]]:
    """Return the servers of a list, read from both ends, except servers for
    which Nova fails.

    :param path: path with a query.
    :param key: key of the list in each answer; each item has an ``id``.
    :param failure: error of reading the whole list.
    :raises CloudFailed: this error, if nothing can be read.
    :raises CloudError: if Nova does not answer.
    """
    ends, last, stops = ListPosition(), '', list[str]()
    found: list[Mapping[str, Any]] = []
    while True:
        after = f'&marker={last}' if last else ''
        try:
            page = (api.get(path + ends.query + after) or {})[key]
        except exception.CloudFailed:
            is_back = ends.narrow_after_failure()
            if is_back is False:
                continue
            stops.append(last or 'the end of the list')
            last = ''
            if is_back:
                continue
            break
        found += page
        if len(page) < ends.limit:
            return found
        last = page[-1]['id']
    if not found:
        raise failure
    LOG.warning(
        'list of servers: Nova fails for some servers between %s and %s: %s;'
        ' their last known states are used; read these servers one by one'
        ' from Nova to find the faulty ones',
        *stops,
        failure,
    )
    return found


def query_after_id(found: _Found) -> str:
    """Return the query for the page after the last item, by its ``id``."""
    return f'&marker={found[-1]["id"]}' if found else ''


def query_after_uuid(found: _Found) -> str:
    """Return the query for the page after the last item, by its ``uuid``."""
    return f'&marker={found[-1]["uuid"]}' if found else ''


def query_after_count(found: _Found) -> str:
    """Return the query for the next page, by the number of items that were
    read.
    """
    return f'&offset={len(found)}'


def list_all_pages(
    api: clients.Api,
    path: str,
    key: str,
    next_page_query: Callable[[_Found], str] = query_after_id,
) -> list[Mapping[str, Any]]:
    """Return all items of a list, read page by page.

    :param api: API of Nova.
    :param path: path with or without a query.
    :param key: key of the list in each answer; each item has an ``id``.
    :param next_page_query: returns the query for the page after given items.
    :raises CloudAway: if the list does not exist, or has no end.
    :raises CloudError: if the list cannot be read.
    """
    path += f'{"&" if "?" in path else "?"}limit={PAGE}'
    found: list[Mapping[str, Any]] = []
    last = None
    while True:
        page = api.get(path + next_page_query(found))
        if page is None:
            raise exception.CloudAway(f'Nova does not know {path}')
        found += page[key]
        if len(page[key]) < PAGE:
            return found
        if found[-1]['id'] == last:
            raise exception.CloudAway(
                f'Nova repeats a page of {path}: the list has no end'
            )
        last = found[-1]['id']
