# SPDX-License-Identifier: Apache-2.0

"""A JSON file of the operator that is read again whenever it changes."""

from collections.abc import Callable
import json
import pathlib
from typing import TypeVar

from nova_fairness import exception
from nova_fairness.runtime import watched_file

_Content = TypeVar('_Content')


def watched(
    option: str,
    path: str,
    read: Callable[[object], _Content],
    nothing: _Content,
) -> watched_file.WatchedFile[_Content]:
    """Content of a file that may come and go.

    :param option: that names the file, for the log.
    :param path: of the file; empty if there is none.
    :param read: makes something of what is in it; raises ``ValueError`` or
        :class:`.exception.BadArgument` if it cannot be used.
    :param nothing: what it says while there is none.
    """

    def parsed(place: pathlib.Path) -> _Content:
        try:
            text = place.read_text('utf-8')
        except FileNotFoundError:
            return nothing
        return read(json.loads(text))

    return watched_file.WatchedFile(
        pathlib.Path(path) if path else None,
        parsed,
        nothing,
        (OSError, ValueError, exception.BadArgument),
        f'{option} {path} is not taken over',
    )
