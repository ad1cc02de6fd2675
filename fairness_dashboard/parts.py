# SPDX-License-Identifier: Apache-2.0

"""Parts of a page, and the texts of values.

A part that cannot be read has a sentence that gives the cause.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import datetime as dt
import itertools
from typing import Any

from django.utils import dateparse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.utils.translation import ngettext
from horizon import exceptions as horizon_exceptions
from keystoneauth1 import exceptions as keystone_exceptions
from openstack import exceptions

PAGE = 50
"""Rows of a page."""

FORBIDDEN, AWAY, MISSING = 403, 503, 404
_UNAUTHORIZED = 401

_AMOUNTS = (('TB', 1e12), ('GB', 1e9), ('MB', 1e6), ('kB', 1e3))

_DAY_S = 86400

_SEVERAL = 2
"""Stands for numbers that are not whole."""

_WHOLE = 100
"""Above it a number is shown without the part behind its point."""

RESOURCES: Mapping[str, Any] = {
    'cpu_time': gettext_lazy('CPU'),
    'disk_read': gettext_lazy('Disk, read'),
    'disk_written': gettext_lazy('Disk, written'),
    'net_received': gettext_lazy('Network, received'),
    'net_sent': gettext_lazy('Network, sent'),
    'memory': gettext_lazy('Memory'),
}
"""Names of resources in words."""


@dataclasses.dataclass(frozen=True)
class PagePart:
    """Content of a part, or the cause why it is missing.

    :ivar problem: cause why the content is missing; empty if it is there.
    :ivar status: HTTP status of a refusal; 0 without an answer.
    """

    content: Any = None
    problem: str = ''
    status: int = 200


def read(call: Callable[[], Any]) -> PagePart:
    """Read a part of a page.

    :raises NotAuthenticated: if the token has expired.
    """
    try:
        return PagePart(call())
    except exceptions.HttpException as error:
        status = error.status_code or 0
        if status == _UNAUTHORIZED:
            raise horizon_exceptions.NotAuthenticated from error
        return PagePart(
            None, _refusal_text(status, refusal_reason(error)), status
        )
    except (keystone_exceptions.ClientException, exceptions.SDKException):
        return PagePart(None, _refusal_text(AWAY, ''), 0)


def refusal_reason(error: exceptions.HttpException) -> str:
    """Return the reason that the API gave for a refusal."""
    return str(error.details or error.message or error)


def _refusal_text(status: int, words: str) -> str:
    if status == FORBIDDEN:
        return _('Your roles do not allow you to see this part.')
    if status == AWAY:
        return _('This part is not available now. Try again in a minute.')
    return words or _('This part cannot be read: HTTP %s.') % status


def read_page(
    found: Callable[..., Iterable[Any]],
    marker: str | None,
    *,
    most: int = PAGE,
    **query: Any,
) -> tuple[list[Any], str]:
    """Read one page of a list.

    :param found: reads the list from a marker on.
    :param marker: ID of the first item; ``None`` for the first page.
    :param most: largest number of items, >= 1.
    :returns: the items, and the marker of the next page; empty on the
        last page.
    """
    given = {**query, 'marker': marker} if marker else query
    items = list(itertools.islice(found(limit=most + 1, **given), most + 1))
    more = str(items[most - 1].id) if len(items) > most else ''
    return items[:most], more


def parse_time(text: Any) -> dt.datetime | None:
    """Parse a time of the API."""
    return dateparse.parse_datetime(text) if text else None


def format_percent(part: Any) -> str:
    """Format a fraction as percent."""
    return '' if part is None else f'{100 * part:.3g}\N{NO-BREAK SPACE}%'


def format_number(value: Any) -> str:
    """Format a number, rounded to the digits that matter."""
    if value is None:
        return ''
    return f'{value:,.0f}' if abs(value) >= _WHOLE else f'{value:.3g}'


def format_duration(seconds: Any) -> str:
    """Format a duration with one unit."""
    if seconds is None:
        return ''
    if seconds >= _DAY_S:
        # No exponent, however many days there are.
        days = f'{float(f"{seconds / _DAY_S:.2g}"):.15g}'
        return ngettext('%s day', '%s days', plural_number(days)) % days
    for unit, size in ((_('%s h'), 3600), (_('%s min'), 60)):
        if seconds >= size:
            return unit % f'{seconds / size:.2g}'
    return _('%s s') % f'{seconds:.2g}'


def plural_number(text: str) -> int:
    """Return the number that selects the singular or the plural of a noun.

    :param text: the formatted number. 1.001 is written as 1 and takes the
        singular; a fraction takes the plural.
    """
    value = float(text.replace(',', ''))
    return int(value) if value.is_integer() else _SEVERAL


def format_cores(value: Any) -> str:
    """Format a number of cores; empty if it is unknown."""
    text = format_number(value)
    return text and ngettext('%s core', '%s cores', plural_number(text)) % text


def format_amount(resource: str, value: Any) -> str:
    """Format an amount of a resource with its unit."""
    if value is None:
        return ''
    if resource == 'cpu_time':
        text = f'{value:.2f}'
        return ngettext('%s CPU', '%s CPUs', plural_number(text)) % text
    unit, size = next(
        (each for each in _AMOUNTS if value >= each[1]), ('B', 1.0)
    )
    rate = '' if resource == 'memory' else '/s'
    return f'{value / size:.3g} {unit}{rate}'
