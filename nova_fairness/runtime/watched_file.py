# SPDX-License-Identifier: Apache-2.0

"""A file of the operator that is read again after each change."""

from collections.abc import Callable
import logging
import pathlib
from typing import Generic
from typing import TypeVar

LOG = logging.getLogger(__name__)

_Content = TypeVar('_Content')
_Stamp = tuple[int, int, int]


class WatchedFile(Generic[_Content]):
    """The content of a file; unusable content leaves the old one in use.

    :param path: of the file; ``None`` if there is none.
    :param read: reads the file.
    :param nothing: content until the file was read.
    :param faults: errors of ``parse`` that mean an unusable file.
    :param refused: begin of the log message about an unusable file.
    :param taken: returns a log message about new content; ``None`` logs
        nothing.
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
        """Read the file now, changed or not.

        :raises Exception: one of ``faults``.
        """
        if self._path is not None:
            # A change while it is read is seen by the next look.
            self._seen = _file_stamp(self._path)
            self._content = self._read(self._path)

    def content(self) -> _Content:
        """Return the content in use; the same object until the file
        changes.
        """
        if self._path is not None and _file_stamp(self._path) != self._seen:
            try:
                self.load()
            except self._faults as error:
                LOG.error('%s: %s', self._refused, error)
            else:
                if self._taken is not None:
                    LOG.info('%s', self._taken(self._content))
        return self._content


def _file_stamp(path: pathlib.Path) -> _Stamp | None:
    """Return time, size and inode of a file; ``None`` if it cannot be read."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
