# SPDX-License-Identifier: Apache-2.0

"""Fields of accounts that can be set, as values of JSON types, in API calls
and in the store.

Times are numbers of seconds, amounts are objects by resource class, and
windows are lists of objects with ``begins``, ``lasts`` and ``zone``.
"""

from collections.abc import Mapping
import math
import re
from typing import Any
import zoneinfo

import os_resource_classes

from nova_fairness.model import cluster
from nova_fairness.shares import windows as windows_module

AMOUNTS = ('ceiling', 'nominal', 'borrowing_limit', 'lending_limit')
"""Fields of accounts whose values are amounts by resource class."""

FIELDS = (
    *AMOUNTS,
    'share',
    'time_limit_s',
    'longest_wait_s',
    'budget_hours',
    'funds',
    'windows',
)
"""All fields of an account that can be set."""

LARGEST_AMOUNT = 10**15
"""Largest amount of a resource class that can be set."""

_MOST_WINDOWS = 100
_MOST_CLASSES = 100
_CUSTOM = re.compile('CUSTOM_[A-Z0-9_]{1,248}')
_ZONE = re.compile('[A-Za-z0-9_+-]{1,40}(?:/[A-Za-z0-9_+-]{1,40}){0,3}')
_UTC = 'UTC'


def parse_value(field: str, value: Any) -> Any:
    """Convert a JSON value of a field of an account to its type. The share
    tree checks the range.

    :param field: field of :class:`.cluster.Account`.
    :param value: value of JSON types.
    :raises ValueError: if the value or the field is not valid.
    """
    if field not in FIELDS:
        raise ValueError('there is no such field')
    if field in AMOUNTS:
        return _parse_amounts(value)
    return (
        _parse_windows(value) if field == 'windows' else _parse_number(value)
    )


def json_value(field: str, value: Any) -> Any:
    """Convert the value of a field of an account to JSON types: the inverse
    of :func:`parse_value`.
    """
    if field in AMOUNTS:
        return dict(value)
    if field == 'windows':
        return [
            {
                'begins': each.begins,
                'lasts': each.lasts_s,
                'zone': getattr(each.zone, 'key', _UTC),
            }
            for each in value
        ]
    return value


def window(begins: str, lasts_s: float, zone: str = _UTC) -> cluster.Window:
    """Build a time window in which an account may start requests.

    :param begins: cron expression of the times at which the window opens.
    :param lasts_s: seconds for which the window stays open.
    :param zone: name of the time zone.
    :raises ValueError: if the zone is unknown, or the window is not valid.
    """
    try:
        # The name becomes a part of a path.
        found = zoneinfo.ZoneInfo(zone if _ZONE.fullmatch(zone) else '')
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(
            f'there is no time zone {zone!r:.60}, expected one such as'
            ' Europe/Zurich'
        ) from error
    if fault := windows_module.window_fault(begins, lasts_s):
        raise ValueError(fault)
    return cluster.Window(begins, lasts_s, found)


def resource_class(name: str) -> str:
    """Check the name of a resource class of Placement, and return it.

    :raises ValueError: if Placement does not allow the name.
    """
    is_known = name in os_resource_classes.STANDARDS
    if not (is_known or _CUSTOM.fullmatch(name)):
        raise ValueError(
            f'{name!r} is no resource class of Placement, expected one such'
            ' as VCPU or CUSTOM_GOLD'
        )
    return name


def _parse_number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number:
        raise ValueError(f'expected a number, got {_shortened_repr(value)}')
    try:
        return float(value)
    except OverflowError:
        # Outside of every range; the caller checks the range.
        return math.inf if value > 0 else -math.inf


def _shortened_repr(value: object) -> str:
    try:
        return f'{value!r:.40}'
    except ValueError:
        # Python refuses to print integers of several thousand digits.
        return 'a larger one'


def _parse_amounts(value: Any) -> tuple[tuple[str, int], ...]:
    if not isinstance(value, Mapping) or len(value) > _MOST_CLASSES:
        raise ValueError(
            f'expected amounts by resource class, {_MOST_CLASSES} at most'
        )
    for name, amount in value.items():
        resource_class(name)
        if type(amount) is not int or not 0 <= amount <= LARGEST_AMOUNT:
            raise ValueError(
                f'expected a whole amount of {name} from 0 to'
                f' {LARGEST_AMOUNT:g}, got {_shortened_repr(amount)}'
            )
    return tuple(sorted(value.items()))


def _parse_windows(value: Any) -> tuple[cluster.Window, ...]:
    if not isinstance(value, list) or len(value) > _MOST_WINDOWS:
        raise ValueError(f'expected a list of {_MOST_WINDOWS} windows at most')
    found = []
    for each in value:
        known = {'begins', 'lasts', 'zone'}
        if (
            not isinstance(each, Mapping)
            or not {'begins', 'lasts'} <= each.keys() <= known
            or not isinstance(each['begins'], str)
            or not isinstance(each.get('zone', _UTC), str)
        ):
            raise ValueError(
                'a window must have begins and lasts, and may have zone'
            )
        lasts_s = _parse_number(each['lasts'])
        found.append(window(each['begins'], lasts_s, each.get('zone', _UTC)))
    return tuple(found)
