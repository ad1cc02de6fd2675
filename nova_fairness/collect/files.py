# SPDX-License-Identifier: Apache-2.0

"""Files that are read again and again through kept descriptors."""

import errno
import os

_LONGEST = 4096  # one page: nothing that is read every round is longer
_NONE_LEFT = frozenset((errno.EMFILE, errno.ENFILE))
_GONE = frozenset((errno.ENOENT, errno.ESRCH))


def is_gone(error: OSError) -> bool:
    """Tell whether what a file tells of is not there (any more)."""
    return error.errno in _GONE


def none_left(error: OSError) -> bool:
    """Tell whether the file says nothing, since no descriptor was left."""
    return error.errno in _NONE_LEFT


class Descriptors:
    """A budget of kept descriptors.

    :param most: how many may be open at once, >= 0.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0

    def open(self, path: str) -> int | None:
        """Open a file to keep.

        :returns: ``None`` if the budget is used up or the process has no
            descriptor left; the file must then be opened for each reading.
        :raises OSError: if the file cannot be read at all.
        """
        if self.used >= self.most:
            return None
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            if none_left(error):
                return None
            raise
        self.used += 1
        return descriptor

    def close(self, descriptor: int) -> None:
        """Close a kept descriptor."""
        os.close(descriptor)
        self.used -= 1


class KeptFile:
    """A kernel file, read from its beginning each time.

    :param path: of the file.
    :param descriptors: the budget that it counts against.
    :raises OSError: if the file cannot be opened.
    """

    __slots__ = ('_descriptor', '_descriptors', '_path')

    def __init__(self, path: str, descriptors: Descriptors) -> None:
        self._path = path
        self._descriptors = descriptors
        self._descriptor = descriptors.open(path)
        if self._descriptor is None:
            self.read()

    @property
    def kept(self) -> bool:
        """Whether the descriptor stays open between readings."""
        return self._descriptor is not None

    def read(self) -> bytes:
        """Read the present text.

        :raises OSError: if what the file tells of has gone, or as ``open``.
        """
        if self._descriptor is not None:
            return os.pread(self._descriptor, _LONGEST, 0)
        descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(descriptor, _LONGEST)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Close the descriptor; closing twice does nothing."""
        if self._descriptor is not None:
            self._descriptors.close(self._descriptor)
            self._descriptor = None
