# SPDX-License-Identifier: Apache-2.0

"""Validation of the arguments of RPCs, because a caller may send anything."""

from collections.abc import Callable
from collections.abc import Mapping
import inspect
import math
from typing import Any

from nova_fairness import exception
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.model import waits
from nova_fairness.rpc import protocol


def name(what: str, value: Any) -> str:
    """Check and return a name.

    :param what: name of the argument in messages.
    :returns: 1 to :data:`protocol.LONGEST_NAME` printable characters.
    :raises BadArgument: if the value is anything else.
    """
    limit = protocol.LONGEST_NAME
    if not isinstance(value, str):
        raise exception.BadArgument(
            f'{what} is {type(value).__name__}, expected a string'
        )
    if not 0 < len(value) <= limit or not value.isprintable():
        raise exception.BadArgument(
            f'{what} {value[:40]!r} has {len(value)} characters, expected '
            f'1 to {limit} printable ones'
        )
    return value


def optional_name(what: str, value: Any) -> str | None:
    """Check and return a name or ``None``; see :func:`name`."""
    return None if value is None else name(what, value)


def optional_epoch(value: Any) -> int | None:
    """Check and return an epoch or ``None``.

    :raises BadArgument: if the value is no integer from 1 to
    :data:`protocol.LARGEST_EPOCH`.
    """
    if value is None:
        return None
    limit = protocol.LARGEST_EPOCH
    # Python counts ``True`` as an integer, JSON does not.
    if not isinstance(value, int) or isinstance(value, bool):
        raise exception.BadArgument(
            f'epoch is {type(value).__name__}, expected an integer'
        )
    if not 0 < value <= limit:
        raise exception.BadArgument(
            f'epoch is out of range, expected 1 to {limit}'
        )
    return value


def optional_number(what: str, value: Any) -> float | None:
    """Check and return a finite number or ``None``.

    :param what: name of the argument in messages.
    :raises BadArgument: if the value is anything else.
    """
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value):
        raise exception.BadArgument(f'{what} must be a finite number')
    return float(value)


def optional_truth(what: str, value: Any) -> bool | None:
    """Check and return true, false or ``None``.

    :param what: name of the argument in messages.
    :raises BadArgument: if the value is anything else.
    """
    if value is not None and not isinstance(value, bool):
        raise exception.BadArgument(f'{what} must be true or false')
    return value


def count(what: str, value: Any, most: int, least: int = 1) -> int:
    """Check and return a number of things.

    :param what: name of the argument in messages.
    :raises BadArgument: if the value is no integer from ``least`` to ``most``.
    """
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if not is_integer or not least <= value <= most:
        raise exception.BadArgument(
            f'{what} must be an integer from {least} to {most}'
        )
    return int(value)


def numbers(value: Any) -> dict[str, float | None]:
    """Check and return an object of numbers by name; ``None`` is allowed.

    :raises BadArgument: if the value is anything else, empty, or has more than
    :data:`protocol.MOST_NUMBERS` entries.
    """
    for key, number in by_name(value).items():
        is_number = isinstance(number, int | float | None)
        if not is_number or isinstance(number, bool):
            raise exception.BadArgument(
                f'{key} is {type(number).__name__}, expected a number or null'
            )
    return dict(value)


def finite_numbers(value: Any) -> dict[str, float]:
    """Check and return an object of finite numbers by name; it may be empty.

    :raises BadArgument: if the value is anything else.
    """
    found = {
        key: optional_number(key, each)
        for key, each in (by_name(value) if value else {}).items()
    }
    if None in found.values():
        raise exception.BadArgument('expected numbers by name, got null')
    return {key: each for key, each in found.items() if each is not None}


def by_name(value: Any) -> dict[str, Any]:
    """Check and return an object with valid names and any values.

    :raises BadArgument: if the value is anything else, empty, or has more than
    :data:`protocol.MOST_NUMBERS` entries.
    """
    limit = protocol.MOST_NUMBERS
    if not isinstance(value, dict) or not 0 < len(value) <= limit:
        raise exception.BadArgument(
            f'expected an object with 1 to {limit} entries by name, got '
            f'{type(value).__name__}'
        )
    for key in value:
        name('name', key)
    return dict(value)


def request_filter(value: Any) -> request.RequestFilter | None:
    """Check and return a filter of requests.

    :param value: object with any of ``state``, ``user``, ``since`` (seconds of
        the epoch), ``server`` and ``host``; ``ended``: whether ended requests
        are included; and ``unsettled``: whether requests whose servers simply
        run are left out.
    :raises BadArgument: if the value is anything else.
    """
    if value is None:
        return None
    given = by_name(value)
    known = (
        *('state', 'user', 'since', 'server', 'host', 'ended'),
        'unsettled',
    )
    if not given.keys() <= set(known):
        raise exception.BadArgument(f'filters are {", ".join(known)}')
    return request.RequestFilter(
        _states(given),
        user=optional_name('user', given.get('user')),
        since=optional_number('since', given.get('since')),
        server=optional_name('server', given.get('server')),
        host=optional_name('host', given.get('host')),
        unsettled=bool(optional_truth('unsettled', given.get('unsettled'))),
    )


def _states(given: Mapping[str, Any]) -> frozenset[request.State]:
    every = {each.value: each for each in request.State}
    if (state := given.get('state')) is not None:
        if state not in every:
            raise exception.BadArgument(
                f'state must be one of {", ".join(every)}'
            )
        return frozenset({every[state]})
    whole = frozenset(every.values())
    with_ended = optional_truth('ended', given.get('ended'))
    return whole if with_ended else whole - request.FINAL


def wait_key(value: Any) -> waits.WaitKey:
    """Check and return the key by which waits are grouped.

    :raises BadArgument: if the value is anything else.
    """
    known = {each.value: each for each in waits.WaitKey}
    if not isinstance(value, str) or value not in known:
        raise exception.BadArgument(f'by must be one of {", ".join(known)}')
    return known[value]


def audience(value: Any) -> reason.Audience:
    """Check and return the audience of an answer, by its name.

    :param value: ``None`` for members of the project: nova-api of an older
        release sends no audience, and passes the answer on to everybody.
    :raises BadArgument: if there is no such audience.
    """
    known = {each.name.lower(): each for each in reason.Audience}
    if value is None:
        return reason.Audience.MEMBER
    if not isinstance(value, str) or value not in known:
        raise exception.BadArgument(
            f'audience must be one of {", ".join(known)}'
        )
    return known[value]


def names(what: str, value: Any) -> list[str]:
    """Check and return a list of names.

    :param what: name of one entry in messages.
    :raises BadArgument: if the value is anything else, or has more than
    :data:`protocol.MOST_NUMBERS` entries.
    """
    limit = protocol.MOST_NUMBERS
    if not isinstance(value, list | tuple) or len(value) > limit:
        raise exception.BadArgument(
            f'expected a list of at most {limit} entries, got'
            f' {type(value).__name__}'
        )
    return [name(what, each) for each in value]


def page(
    project: Any, marker: Any, limit: Any
) -> tuple[str | None, str | None, int]:
    """Check and return the arguments that select a part of a list.

    :returns: project, marker and limit.
    :raises BadArgument: if an argument is not valid.
    """
    return (
        optional_name('project', project),
        optional_name('marker', marker),
        count('limit', limit, protocol.MOST_REQUESTS),
    )


def check_names(method: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Check that the arguments of a call match the parameters of a method.

    :param method: bound method; its first parameter is the context.
    :raises BadArgument: if some are missing or unknown.
    """
    signature = inspect.signature(method)
    try:
        signature.bind(None, **arguments)
    except TypeError as error:
        known = list(signature.parameters)[1:]
        raise exception.BadArgument(
            f'{method.__name__}: {error}; expected '
            f'{", ".join(known) or "no arguments"}'
        ) from error
