# SPDX-License-Identifier: Apache-2.0

"""Files that a restart finds whole, and what policies remember in one."""

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
    """A file that is replaced as a whole, as soon as that is possible.

    :param path: of the file.
    :param durable: whether what was written must outlive a power cut.
    :ivar problem: why the file does not say the newest; empty if it does.
    """

    def __init__(self, path: pathlib.Path, *, durable: bool = True) -> None:
        self.path = path
        self.problem = ''
        self._durable = durable
        self._waiting = ''
        self._writing = threading.Lock()

    def kept(
        self,
        read: Callable[[Any], _Content],
        nothing: _Content,
        effect: str,
    ) -> _Content:
        """Content from before a restart.

        :param read: makes something of its JSON; raises an error of this
            package, or one of wrong types and values, if it cannot.
        :param nothing: content if there is no file, or none that can be read.
        :param effect: follows from a file that cannot be read, for the log.
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
        :returns: why it cannot be written, which the log says too: the old
            one stays until :meth:`retry` succeeds. Empty if it was.
        """
        with self._writing:
            self._waiting = content
            self._write()
            if self.problem:
                LOG.error('%s', self.problem)
            return self.problem

    def retry(self) -> None:
        """Write what could not be written before, if there is any."""
        with self._writing:
            if self._waiting:
                self._write()
                if not self.problem:
                    LOG.info('%s is written now', self.path)

    def _write(self) -> None:
        try:
            replace(self.path, self._waiting, durable=self._durable)
        except OSError as error:
            self.problem = f'cannot write {self.path}: {error.strerror}'
        else:
            self._waiting = self.problem = ''


class PolicyMemory(StateFile):
    """Memory of policies, by name.

    Losing it costs some rounds of convergence, nothing else; so it is not
    forced to the disk, and a file that cannot be read is started again.

    :param path: of the file.
    """

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__(path, durable=False)
        self._saved = ''

    def load(self) -> Mapping[str, Any]:
        """Memory by policy name, empty if there is none."""
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
        """Replace the file, if anything changed.

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

    The text is written to ``<path>.new`` first. One that a killed process
    left there is written again. One writer at a time.

    :param durable: whether it must outlive a power cut right after this.
    :raises OSError: if it cannot be written; the old one stays. If only
        the name could not be forced to the disk, the new one is there.
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
        _sync(path.parent)


def _sync(directory: pathlib.Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
