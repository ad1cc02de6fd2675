# SPDX-License-Identifier: Apache-2.0

"""Sorting of lists and division into pages."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any
from typing import Self
import urllib.parse

from api_ext import faults

Item = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class PageRequest:
    """The part of a list that a caller requested.

    :ivar name_key: key of an item's name, which is also the second sort key.
    :ivar sort_key: first sort key.
    :ivar is_descending: whether the largest value comes first.
    :ivar marker: name of the last item of the previous page; ``None`` for the
        first page.
    :ivar limit: largest number of items.
    """

    name_key: str
    sort_key: str
    is_descending: bool
    marker: str | None
    limit: int

    @classmethod
    def of(
        cls, query: Mapping[str, Any], name_key: str, max_limit: int
    ) -> Self:
        """Parse the query parameters of a list.

        :param max_limit: largest allowed number of items.
        """
        return cls(
            name_key=name_key,
            sort_key=query.get('sort_key', name_key),
            is_descending=query.get('sort_dir') == 'desc',
            marker=query.get('marker'),
            limit=min(query.get('limit', max_limit), max_limit),
        )

    @property
    def is_by_name(self) -> bool:
        """Whether items are sorted by name."""
        return self.sort_key == self.name_key


def names_on_page(
    all_names: Sequence[str], wanted: PageRequest
) -> tuple[list[str], bool]:
    """Return the names on a page, sorted by name.

    The marker need not exist any longer.

    :returns: the names, and whether another page follows.
    """
    ordered = sorted(all_names, reverse=wanted.is_descending)
    marker = wanted.marker
    if marker is not None:
        ordered = [
            name
            for name in ordered
            if (name < marker if wanted.is_descending else name > marker)
        ]
    return ordered[: wanted.limit], len(ordered) > wanted.limit


def items_on_page(
    all_items: Sequence[Item], wanted: PageRequest
) -> tuple[list[Item], bool]:
    """Return the items on a page.

    :returns: the items, and whether another page follows.
    :raises BadRequest: if the marker is not in the list, and items are not
        sorted by name.
    """
    by_name = {str(item[wanted.name_key]): item for item in all_items}
    if wanted.is_by_name:
        page, more = names_on_page(list(by_name), wanted)
        return [by_name[name] for name in page], more
    ordered = _sorted(by_name, wanted)
    start = 0
    if wanted.marker is not None:
        if wanted.marker not in by_name:
            raise faults.BadRequest(f'marker [{wanted.marker}] not found')
        start = ordered.index(wanted.marker) + 1
    page = ordered[start : start + wanted.limit]
    return [by_name[name] for name in page], len(ordered) > start + len(page)


def _sorted(by_name: Mapping[str, Item], wanted: PageRequest) -> list[str]:
    """Return the names sorted by the items' values; items without a value are
    last.
    """

    def value(name: str) -> Any:
        return by_name[name][wanted.sort_key]

    known = [name for name in sorted(by_name) if value(name) is not None]
    known.sort(key=value, reverse=wanted.is_descending)
    return known + sorted(set(by_name) - set(known))


def next_page_links(
    url: str, query: Mapping[str, Any], last: str
) -> list[Mapping[str, str]]:
    """Return the link to the next page.

    :param last: name of the last item of this page.
    """
    following = urllib.parse.urlencode({**query, 'marker': last})
    return [{'rel': 'next', 'href': f'{url}?{following}'}]


def page(
    plural: str,
    url: str,
    query: Mapping[str, Any],
    listed: Sequence[Item],
    last: str | None,
) -> Mapping[str, Any]:
    """Return a page in the form of the API.

    :param plural: key of the list.
    :param last: name of the last item; ``None`` if no page follows.
    """
    answer: dict[str, Any] = {plural: list(listed)}
    if last is not None:
        answer[f'{plural}_links'] = next_page_links(url, query, last)
    return answer
