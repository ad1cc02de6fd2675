# SPDX-License-Identifier: Apache-2.0

"""Texts for times, which are seconds of the epoch; always UTC."""

import datetime as dt
from typing import overload


def _utc(at_s: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(at_s, dt.UTC)


@overload
def answer(at_s: float) -> str: ...
@overload
def answer(at_s: None) -> None: ...
@overload
def answer(at_s: float | None) -> str | None: ...
def answer(at_s: float | None) -> str | None:
    """Format a time for answers of the HTTP interface.

    >>> answer(0.9)
    '1970-01-01T00:00:00+00:00'
    """
    return None if at_s is None else _utc(at_s).isoformat(timespec='seconds')


def stamp(at_s: float) -> str:
    """Format a time for notifications, records and metadata.

    >>> stamp(0.9)
    '1970-01-01T00:00:00Z'
    """
    return _utc(at_s).strftime('%Y-%m-%dT%H:%M:%SZ')


def sentence(at_s: float) -> str:
    """Format a time for a sentence, to the minute.

    >>> sentence(61.0)
    '1970-01-01 00:01 UTC'
    """
    return f'{_utc(at_s):%Y-%m-%d %H:%M} UTC'
