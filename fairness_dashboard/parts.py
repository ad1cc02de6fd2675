# SPDX-License-Identifier: Apache-2.0

"""Parts of a page: each is there, or says why it is not."""

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
    """Content, or a sentence that says why it is missing.

    :ivar status: of HTTP, if the interface refused; 0 without an answer.
    """

    content: Any = None
    trouble: str = ''
    status: int = 200


def ask(call: Callable[[], Any]) -> PagePart:
    """Read a part of a page.

    :raises NotAuthenticated: if the token is no longer valid.
    """
    try:
        return PagePart(call())
    except exceptions.HttpException as error:
        status = error.status_code or 0
        if status == _UNAUTHORIZED:
            raise horizon_exceptions.NotAuthenticated from error
        return PagePart(None, _trouble(status, said(error)), status)
    except (keystone_exceptions.ClientException, exceptions.SDKException):
        return PagePart(None, _trouble(AWAY, ''), 0)


def said(error: exceptions.HttpException) -> str:
    """The reason of a refusal in the words of the interface."""
    return str(error.details or error.message or error)


def _trouble(status: int, words: str) -> str:
    if status == FORBIDDEN:
        return _('Your roles do not allow you to see this part.')
    if status == AWAY:
        return _('This part does not answer now. Try again in a minute.')
    return words or _('This part cannot be read: HTTP %s.') % status


def page(
    found: Callable[..., Iterable[Any]],
    marker: str | None,
    *,
    most: int = PAGE,
    **query: Any,
) -> tuple[list[Any], str]:
    """Read one page of a list.

    :param marker: of its first item; ``None`` at the beginning.
    :param most: items of the page.
    :returns: its items, and the marker of the next page; empty if it is the
        last.
    """
    given = {**query, 'marker': marker} if marker else query
    items = list(itertools.islice(found(limit=most + 1, **given), most + 1))
    more = str(items[most - 1].id) if len(items) > most else ''
    return items[:most], more


def time(text: Any) -> dt.datetime | None:
    """Read a time of the interface."""
    return dateparse.parse_datetime(text) if text else None


def percent(part: Any) -> str:
    """Write a part of a whole."""
    return '' if part is None else f'{100 * part:.3g}\N{NO-BREAK SPACE}%'


def number(value: Any) -> str:
    """Write a number without more digits than are read."""
    if value is None:
        return ''
    return f'{value:,.0f}' if abs(value) >= _WHOLE else f'{value:.3g}'


def span(seconds: Any) -> str:
    """Write a time span with one unit."""
    if seconds is None:
        return ''
    if seconds >= _DAY_S:
        # No exponent, however many days there are.
        days = f'{float(f"{seconds / _DAY_S:.2g}"):.15g}'
        return ngettext('%s day', '%s days', plurality(days)) % days
    for unit, size in ((_('%s h'), 3600), (_('%s min'), 60)):
        if seconds >= size:
            return unit % f'{seconds / size:.2g}'
    return _('%s s') % f'{seconds:.2g}'


def plurality(text: str) -> int:
    """The number that decides between one noun and several.

    :param text: the number as readers see it: 1.001 that is written as 1 is
        one, and a part of a thing is several.
    """
    value = float(text.replace(',', ''))
    return int(value) if value.is_integer() else _SEVERAL


def cores(value: Any) -> str:
    """Write a number of cores; nothing if it is not known."""
    text = number(value)
    return text and ngettext('%s core', '%s cores', plurality(text)) % text


def amount(resource: str, value: Any) -> str:
    """Write an amount of a resource with its unit."""
    if value is None:
        return ''
    if resource == 'cpu_time':
        text = f'{value:.2f}'
        return ngettext('%s CPU', '%s CPUs', plurality(text)) % text
    unit, size = next(
        (each for each in _AMOUNTS if value >= each[1]), ('B', 1.0)
    )
    rate = '' if resource == 'memory' else '/s'
    return f'{value / size:.3g} {unit}{rate}'
