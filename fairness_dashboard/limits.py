# SPDX-License-Identifier: Apache-2.0

"""Limits of accounts: fields of forms, changes, and previews of changes."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import re
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fairness_dashboard import share_changes

_HOUR_S = 3600.0
_AMOUNT = re.compile(r'([A-Z0-9_]{1,255})=(\d{1,16})', re.ASCII)
_NONE = '-'
"""Text for amounts without any class."""


@dataclasses.dataclass(frozen=True)
class LimitField:
    """A limit as a field of a form.

    :ivar title: the label, with the unit.
    :ivar write: converts a value of the API to the text of the field.
    :ivar read: converts a text that is not empty to a value of the API;
        raises :exc:`ValueError` if the text is invalid.
    """

    title: Any
    write: Callable[[Any], str]
    read: Callable[[str], Any]


def _parse_number(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < float('inf'):
        raise ValueError(_('a number of 0 or more is expected'))
    return found


def _format_number(value: float) -> str:
    return f'{value:.15g}'


def _parse_hours(text: str) -> float:
    return _parse_number(text) * _HOUR_S


def _format_hours(seconds: float) -> str:
    return f'{seconds / _HOUR_S:.6g}'


def _parse_amounts(text: str) -> dict[str, int]:
    if text == _NONE:
        return {}
    found = [_AMOUNT.fullmatch(each) for each in re.split(r'[\s,]+', text)]
    if None in found:
        raise ValueError(
            _('amounts such as VCPU=8 MEMORY_MB=16384 are expected')
        )
    return {each[1]: int(each[2]) for each in found if each}


def _format_amounts(amounts: Mapping[str, float]) -> str:
    return ' '.join(f'{key}={n:.0f}' for key, n in sorted(amounts.items()))


_FIELDS: Mapping[str, LimitField] = {
    'time_limit': LimitField(
        gettext_lazy('Time limit (h)'), _format_hours, _parse_hours
    ),
    'longest_wait': LimitField(
        gettext_lazy('Longest wait (h)'), _format_hours, _parse_hours
    ),
    'budget': LimitField(
        gettext_lazy('Budget (unit-hours)'), _format_number, _parse_number
    ),
    'funds': LimitField(
        gettext_lazy('Funds (currency)'), _format_number, _parse_number
    ),
    **{
        name: LimitField(title, _format_amounts, _parse_amounts)
        for name, title in (
            ('ceiling', gettext_lazy('At most at once')),
            ('nominal', gettext_lazy('Nominal quota')),
            ('borrowing_limit', gettext_lazy('Borrowing limit')),
            ('lending_limit', gettext_lazy('Lending limit')),
        )
    },
}


def form_fields(limits: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the fields of a form.

    :param limits: of the account; empty if it has no limits of its own.
    """
    return [
        {
            'name': name,
            'title': field.title,
            'text': _field_text(field, limits.get(name)),
        }
        for name, field in _FIELDS.items()
    ]


def _field_text(field: LimitField, value: Any) -> str:
    return '' if value is None or value == {} else field.write(value)


def _changed_limits(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the limits that a form changes; ``None`` removes a limit.

    Unchanged limits are left out. Otherwise a limit of the configuration
    file would become one that an operator set.

    :raises ValueError: if no limit was changed, or a text is invalid.
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


def _set_limits(api: Any, form: Mapping[str, str]) -> Any:
    return api.set_limits(form['account'], **_changed_limits(form))


def _preview_limits(api: Any, form: Mapping[str, str]) -> str:
    found = api.set_limits(
        form['account'], dry_run=True, **_changed_limits(form)
    )
    return share_changes.describe_preview(found['dry_run'])


ACTIONS: Mapping[str, Callable[[Any, Mapping[str, str]], Any]] = {
    **share_changes.ACTIONS,
    'set-limits': _set_limits,
    'preview-limits': _preview_limits,
}
"""Of forms of shares and limits."""
