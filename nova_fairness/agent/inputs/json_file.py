# SPDX-License-Identifier: Apache-2.0

"""A JSON file of the operator that is read again after each change."""

from collections.abc import Callable
import json
import pathlib
from typing import TypeVar

from nova_fairness import exception
from nova_fairness.runtime import watched_file

_Content = TypeVar('_Content')


def watch_json(
    option: str,
    path: str,
    parse: Callable[[object], _Content],
    default: _Content,
) -> watched_file.WatchedFile[_Content]:
    """Return the watched content of a file that may be missing.

    :param option: the option with the file's path, for the log.
    :param path: of the file; empty if there is none.
    :param parse: converts the decoded JSON; raises ``ValueError`` or
        :class:`.exception.BadArgument` if it is unusable.
    :param default: content while the file is missing.
    """

    def parsed(place: pathlib.Path) -> _Content:
        try:
            text = place.read_text('utf-8')
        except FileNotFoundError:
            return default
        return parse(json.loads(text))

    return watched_file.WatchedFile(
        pathlib.Path(path) if path else None,
        parsed,
        default,
        (OSError, ValueError, exception.BadArgument),
        f'{option} {path} is not taken over',
    )
