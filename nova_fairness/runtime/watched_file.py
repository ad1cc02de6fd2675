# SPDX-License-Identifier: Apache-2.0

"""A file of the operator that is read again whenever it changes."""

from collections.abc import Callable
import logging
import pathlib
from typing import Generic
from typing import TypeVar

LOG = logging.getLogger(__name__)

_Content = TypeVar('_Content')
_Stamp = tuple[int, int, int]


class WatchedFile(Generic[_Content]):
    """Content of a file; one that cannot be used changes nothing.

    :param path: of the file; ``None`` if there is none.
    :param read: makes something of what is in it.
    :param first: content until the file was read.
    :param faults: which ``read`` raises if the file cannot be used.
    :param refused: sentence for the log, which the fault follows.
    :param taken: makes a sentence for the log of new content; ``None`` if the
        log is to have none.
    """

    def __init__(
        self,
        path: pathlib.Path | None,
        read: Callable[[pathlib.Path], _Content],
        first: _Content,
        faults: tuple[type[Exception], ...],
        refused: str,
        taken: Callable[[_Content], str] | None = None,
    ) -> None:
        self._path = path
        self._read = read
        self._content = first
        self._faults = faults
        self._refused = refused
        self._taken = taken
        self._seen: _Stamp | None = None

    def load(self) -> None:
        """Read the file now, whether or not it changed.

        :raises Exception: those of ``faults``.
        """
        if self._path is not None:
            # A change while it is read is seen by the next look.
            self._seen = _stamp(self._path)
            self._content = self._read(self._path)

    def content(self) -> _Content:
        """Content that counts now, the same object until the file changes."""
        if self._path is not None and _stamp(self._path) != self._seen:
            try:
                self.load()
            except self._faults as error:
                LOG.error('%s: %s', self._refused, error)
            else:
                if self._taken is not None:
                    LOG.info('%s', self._taken(self._content))
        return self._content


def _stamp(path: pathlib.Path) -> _Stamp | None:
    """Differs when a file does; ``None`` if it cannot be looked at."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
