# SPDX-License-Identifier: Apache-2.0

"""Limits of accounts in forms, changes of them, and previews."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import re
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fairness_dashboard import share_orders

_HOUR_S = 3600.0
_AMOUNT = re.compile(r'([A-Z0-9_]{1,255})=(\d{1,16})', re.ASCII)
_NONE = '-'
"""Text for amounts without any class."""


@dataclasses.dataclass(frozen=True)
class LimitField:
    """A limit as text of a form.

    :ivar title: with its unit.
    :ivar write: makes the text of a value of the interface.
    :ivar read: makes the value of a text that is not empty; raises
        :exc:`ValueError` if it cannot.
    """

    title: Any
    write: Callable[[Any], str]
    read: Callable[[str], Any]


def _number(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < float('inf'):
        raise ValueError(_('a number of 0 or more is expected'))
    return found


def _number_text(value: float) -> str:
    return f'{value:.15g}'


def _hours(text: str) -> float:
    return _number(text) * _HOUR_S


def _hours_text(seconds: float) -> str:
    return f'{seconds / _HOUR_S:.6g}'


def _amounts(text: str) -> dict[str, int]:
    if text == _NONE:
        return {}
    found = [_AMOUNT.fullmatch(each) for each in re.split(r'[\s,]+', text)]
    if None in found:
        raise ValueError(_('such as VCPU=8 MEMORY_MB=16384 is expected'))
    return {each[1]: int(each[2]) for each in found if each}


def _amounts_text(amounts: Mapping[str, float]) -> str:
    return ' '.join(f'{key}={n:.0f}' for key, n in sorted(amounts.items()))


_FIELDS: Mapping[str, LimitField] = {
    'time_limit': LimitField(
        gettext_lazy('Time limit (h)'), _hours_text, _hours
    ),
    'longest_wait': LimitField(
        gettext_lazy('Longest wait (h)'), _hours_text, _hours
    ),
    'budget': LimitField(
        gettext_lazy('Budget (unit-hours)'), _number_text, _number
    ),
    'funds': LimitField(
        gettext_lazy('Funds (currency)'), _number_text, _number
    ),
    **{
        name: LimitField(title, _amounts_text, _amounts)
        for name, title in (
            ('ceiling', gettext_lazy('At most at once')),
            ('nominal', gettext_lazy('Nominal quota')),
            ('borrowing_limit', gettext_lazy('Borrowing limit')),
            ('lending_limit', gettext_lazy('Lending limit')),
        )
    },
}


def fields(limits: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Fields of a form.

    :param limits: of the account; empty if it has none of its own.
    """
    return [
        {
            'name': name,
            'title': field.title,
            'text': _text(field, limits.get(name)),
        }
        for name, field in _FIELDS.items()
    ]


def _text(field: LimitField, value: Any) -> str:
    return '' if value is None or value == {} else field.write(value)


def _wanted(form: Mapping[str, str]) -> dict[str, Any]:
    """Limits that were changed in a form; an emptied one is ``None``.

    Others stay as they are: what a file says would else become a choice.

    :raises ValueError: if none was changed, or one cannot be read.
    """
    found = {}
    for name, field in _FIELDS.items():
        text = form.get(f'limit-{name}', '').strip()
        if text == form.get(f'was-{name}', '').strip():
            continue
        try:
            found[name] = field.read(text) if text else None
        except ValueError as error:
            raise ValueError(f'{field.title}: {error}') from None
    if not found:
        raise ValueError(_('No limit was changed.'))
    return found


def _set(api: Any, form: Mapping[str, str]) -> Any:
    return api.set_limits(form['account'], **_wanted(form))


def _preview(api: Any, form: Mapping[str, str]) -> str:
    found = api.set_limits(form['account'], dry_run=True, **_wanted(form))
    return share_orders.foretold(found['dry_run'])


ORDERS: Mapping[str, Callable[[Any, Mapping[str, str]], Any]] = {
    **share_orders.ORDERS,
    'set-limits': _set,
    'preview-limits': _preview,
}
"""Of forms of shares and limits."""
