# SPDX-License-Identifier: Apache-2.0

"""A file of the operator that is read again whenever it changes."""

from collections.abc import Callable
import json
import logging
import pathlib
from typing import Generic
from typing import TypeVar

from nova_fairness import exception

LOG = logging.getLogger(__name__)

_Content = TypeVar('_Content')


class WatchedFile(Generic[_Content]):
    """Content of a JSON file; one that cannot be used changes nothing.

    :param option: that names the file, for the log.
    :param path: of the file; empty if there is none.
    :param read: makes something of what is in it; raises ``ValueError`` or
        :class:`.exception.BadArgument` if it cannot be used.
    :param nothing: what it says while there is none.
    """

    def __init__(
        self,
        option: str,
        path: str,
        read: Callable[[object], _Content],
        nothing: _Content,
    ) -> None:
        self._option = option
        self._path = pathlib.Path(path) if path else None
        self._read = read
        self._nothing = self._content = nothing
        self._seen: tuple[int, int, int] | None = None

    def content(self) -> _Content:
        """Content that counts now, the same object until the file changes."""
        if self._path is not None:
            self._look(self._path)
        return self._content

    def _look(self, path: pathlib.Path) -> None:
        try:
            found = path.stat()
            seen = (found.st_mtime_ns, found.st_size, found.st_ino)
            if seen == self._seen:
                return
            self._seen = seen
            self._content = self._read(json.loads(path.read_text('utf-8')))
        except FileNotFoundError:
            self._seen, self._content = None, self._nothing
        except (OSError, ValueError, exception.BadArgument) as error:
            LOG.error('%s %s is not taken over: %s', self._option, path, error)
