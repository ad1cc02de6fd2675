# SPDX-License-Identifier: Apache-2.0

"""Files that stay open, because they are read in every round."""

import errno
import os

_MAX_BYTES = 4096  # one page: nothing that is read every round is longer
_NO_DESCRIPTOR_ERRORS = frozenset((errno.EMFILE, errno.ENFILE))
_GONE = frozenset((errno.ENOENT, errno.ESRCH))


def is_gone(error: OSError) -> bool:
    """Check whether the file's process or group ended."""
    return error.errno in _GONE


def no_descriptor_free(error: OSError) -> bool:
    """Check whether a file could not be opened because no descriptor was
    free.
    """
    return error.errno in _NO_DESCRIPTOR_ERRORS


class DescriptorBudget:
    """Limits the number of file descriptors that stay open.

    :param limit: largest number, >= 0.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    def open(self, path: str) -> int | None:
        """Open a file that stays open.

        :returns: the descriptor; ``None`` if the limit is reached or the
            process has no free descriptor. Then the file must be opened for
            each reading.
        :raises OSError: if the file cannot be read at all.
        """
        if self.used >= self.limit:
            return None
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            if no_descriptor_free(error):
                return None
            raise
        self.used += 1
        return descriptor

    def close(self, descriptor: int) -> None:
        """Close a descriptor, and subtract it from the budget."""
        os.close(descriptor)
        self.used -= 1


class OpenFile:
    """A kernel file that is read from its beginning each time.

    :param path: of the file.
    :param descriptors: the budget that the file counts against.
    :raises OSError: if the file cannot be opened.
    """

    __slots__ = ('_descriptor', '_descriptors', '_path')

    def __init__(self, path: str, descriptors: DescriptorBudget) -> None:
        self._path = path
        self._descriptors = descriptors
        self._descriptor = descriptors.open(path)
        if self._descriptor is None:
            self.read()

    @property
    def stays_open(self) -> bool:
        """Whether the descriptor stays open between readings."""
        return self._descriptor is not None

    def read(self) -> bytes:
        """Read the present content.

        :raises OSError: if the file's process or group ended, or as ``open``.
        """
        if self._descriptor is not None:
            return os.pread(self._descriptor, _MAX_BYTES, 0)
        descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(descriptor, _MAX_BYTES)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Close the descriptor; may be called twice."""
        if self._descriptor is not None:
            self._descriptors.close(self._descriptor)
            self._descriptor = None
