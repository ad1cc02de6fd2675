# SPDX-License-Identifier: Apache-2.0

"""State files that survive a restart, and the memory of policies in one."""

from collections.abc import Callable
from collections.abc import Mapping
import json
import logging
import os
import pathlib
import threading
from typing import Any
from typing import TypeVar

from nova_fairness import exception

LOG = logging.getLogger(__name__)

VERSION = 1

_Content = TypeVar('_Content')
_UNREADABLE = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    exception.FairnessError,
)


class StateFile:
    """A file that is replaced as a whole, again later if that fails.

    :param path: of the file.
    :param durable: whether the content must survive a power failure.
    :ivar problem: why the file lacks the newest content; empty if it does not.
    """

    def __init__(self, path: pathlib.Path, *, durable: bool = True) -> None:
        self.path = path
        self.problem = ''
        self._durable = durable
        self._unsaved = ''
        self._writing = threading.Lock()

    def kept(
        self,
        read: Callable[[Any], _Content],
        nothing: _Content,
        effect: str,
    ) -> _Content:
        """Return the content from before a restart, or a default.

        :param read: converts the decoded JSON; raises an error of this
            package, or one of wrong types and values.
        :param nothing: content if the file is missing or unreadable.
        :param effect: consequence of an unreadable file, for the log.
        """
        try:
            return read(json.loads(self.path.read_text('utf-8')))
        except FileNotFoundError:
            return nothing
        except _UNREADABLE as error:
            LOG.warning('%s cannot be read: %s: %s', self.path, effect, error)
            return nothing

    def write(self, content: str) -> str:
        """Replace the file.

        :param content: not empty.
        :returns: an error message, which is also logged; then the old file
            remains until :meth:`retry` succeeds. Empty after success.
        """
        with self._writing:
            self._unsaved = content
            self._write()
            if self.problem:
                LOG.error('%s', self.problem)
            return self.problem

    def retry(self) -> None:
        """Write the content whose last write failed, if there is any."""
        with self._writing:
            if self._unsaved:
                self._write()
                if not self.problem:
                    LOG.info('%s: written now', self.path)

    def _write(self) -> None:
        try:
            replace(self.path, self._unsaved, durable=self._durable)
        except OSError as error:
            self.problem = f'cannot write {self.path}: {error.strerror}'
        else:
            self._unsaved = self.problem = ''


class PolicyMemory(StateFile):
    """The memory of policies, by name.

    Its loss costs some rounds of convergence only. So it is not forced to the
    disk, and an unreadable file is replaced.

    :param path: of the file.
    """

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__(path, durable=False)
        self._saved = ''

    def load(self) -> Mapping[str, Any]:
        """Return the memory by policy name; empty if there is none."""
        try:
            content = json.loads(self.path.read_text('utf-8'))
            if content['version'] != VERSION:
                return {}
            return {
                str(name): dict(memory)
                for name, memory in content['policies'].items()
            }
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            LOG.warning(
                '%s cannot be read; policies start without memory', self.path
            )
            return {}

    def save(self, memory: Mapping[str, Any]) -> None:
        """Replace the file if the memory changed.

        :raises StateError: if the memory cannot be written as JSON.
        """
        try:
            content = json.dumps({'version': VERSION, 'policies': memory})
        except (TypeError, ValueError) as error:
            raise exception.StateError(
                f'the memory of a policy is not JSON: {error}'
            ) from error
        if content == self._saved:
            return
        if not self.write(content):
            self._saved = content


def replace(path: pathlib.Path, content: str, *, durable: bool) -> None:
    """Replace a file as a whole; only its owner may read the new one.

    The text is written to ``<path>.new`` first, which may remain after a kill
    and is overwritten later. Only one process may write at a time.

    :param durable: whether the content must survive a power failure.
    :raises OSError: if the file cannot be written; the old one remains. If
        only the directory could not be forced to the disk, the new one exists.
    """
    temporary = path.with_name(f'{path.name}.new')
    temporary.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    descriptor = os.open(temporary, flags, 0o600)
    try:
        with os.fdopen(descriptor, 'w', encoding='utf-8') as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        _sync_directory(path.parent)


def _sync_directory(directory: pathlib.Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
