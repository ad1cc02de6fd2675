# SPDX-License-Identifier: Apache-2.0


"""The durable record of what controls held before the agent came."""

from collections.abc import Iterable
from collections.abc import Mapping
import contextlib
import dataclasses
import fcntl
import itertools
import json
import os
import pathlib
import time
import types

from nova_fairness import exception
from nova_fairness.model import allocation
from nova_fairness.model import instance
from nova_fairness.model import resources
from nova_fairness.runtime import state_file

VERSION = 1
_UNUSABLE = (ValueError, TypeError, RecursionError)
_BOOT_ID = pathlib.Path('/proc/sys/kernel/random/boot_id')


@dataclasses.dataclass(frozen=True)
class _Record:
    """The content of the file.

    :ivar found: value by knob.
    :ivar lost_before: clock ticks since boot; of processes that started
        until then an earlier record may have been lost. -1 if none was.
    """

    found: allocation.Allocation
    lost_before: int = -1


class FoundValues:
    """Remembers, before the first write of a knob, what it held.

    The file is replaced as a whole: a crash at any moment leaves the old
    record or the new one. It belongs to one boot of the machine, because no
    process outlives that.

    :param path: of the file; another, ``<path>.lock``, is locked as long as
        this object is open.
    :param boot_id: of the machine's run; read from the kernel unless given.
    :ivar problem: why the record does not say what it was last told; empty
        if it does.
    """

    def __init__(
        self, path: str | os.PathLike[str], boot_id: str = ''
    ) -> None:
        self._path = pathlib.Path(path)
        self._boot_id = boot_id or _BOOT_ID.read_text('ascii').strip()
        self._record = _Record({})
        self._dirty = False
        self.problem = ''
        self._lock: int | None = None

    @property
    def values(self) -> Mapping[allocation.Knob, int]:
        """Kernel units by knob, as they were before the first write."""
        return types.MappingProxyType(self._record.found)

    def load(self) -> str:
        """Take the record over, exclusively until :meth:`close`.

        A file that cannot be understood is moved aside to
        ``<path>.corrupt-<n>``, and :meth:`is_unknown` tells which VMs it may
        have named.

        :returns: what went wrong with the file, empty if nothing did.
        :raises StateError: if another process has the record, or the
            directory cannot be used.
        """
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._take_lock()
            self._record = self._parse(self._path.read_text('utf-8'))
        except FileNotFoundError:
            self._record = _Record({})
        except _UNUSABLE as error:
            return self._move_aside(error)
        except OSError as error:
            raise exception.StateError(
                f'cannot read the record of found values {self._path}: {error}'
            ) from error
        return ''

    def is_unknown(self, key: str) -> bool:
        """Tell whether an incarnation's found values may have been lost.

        Then what it holds now may be our own, and must not be recorded.

        :param key: of the incarnation.
        """
        return instance.parse_key(key)[2] <= self._record.lost_before

    def remember(self, values: allocation.Allocation) -> None:
        """Record knobs not yet known; on return it is on the disk.

        Those known keep their first value. Costs nothing if all are known.

        :raises StateError: if it cannot be written; then nothing of it is
            remembered, and these knobs must not be written.
        """
        new = {
            knob: value
            for knob, value in values.items()
            if knob not in self._record.found
        }
        if new:
            self._save(
                dataclasses.replace(
                    self._record, found={**self._record.found, **new}
                )
            )

    def forget(self, knobs: Iterable[allocation.Knob]) -> None:
        """Drop knobs; the file follows when it is next written."""
        gone = set(knobs)
        left = {
            knob: value
            for knob, value in self._record.found.items()
            if knob not in gone
        }
        self._dirty |= len(left) < len(self._record.found)
        self._record = dataclasses.replace(self._record, found=left)

    def flush(self) -> None:
        """Bring what was forgotten to the disk, if anything was.

        :raises StateError: if it cannot be written.
        """
        if self._dirty:
            self._save(self._record)

    def retry(self) -> None:
        """Write what was forgotten, if that could not be written before.

        Values that could not be recorded are not in force: each write of a
        knob records its value first, again.
        """
        self.problem = ''
        with contextlib.suppress(exception.StateError):
            self.flush()

    def close(self) -> None:
        """Let others have the record; may be called twice."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _take_lock(self) -> None:
        """Lock a file of its own, since the record itself is replaced."""
        if self._lock is not None:
            return
        path = f'{self._path}.lock'
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        lock = os.open(path, flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            raise exception.StateError(
                f'{path} is locked: another agent uses this state; expected '
                f'one agent per state path'
            ) from error
        self._lock = lock

    def _parse(self, text: str) -> _Record:
        """Read the file's text.

        :raises ValueError, TypeError: if it is not one of ours.
        """
        content = json.loads(text)
        if not isinstance(content, dict) or content.get('version') != VERSION:
            raise ValueError(f'expected an object of version {VERSION}')
        if content.get('boot_id') != self._boot_id:
            return _Record({})
        return _Record(
            _parse_found(content.get('found')),
            _whole(content.get('lost_before')),
        )

    def _move_aside(self, error: Exception) -> str:
        """Keep an unusable file for people and begin a new one.

        The new one is written before the old one goes: after a crash between
        these the old one is still there.
        """
        names = (
            self._path.with_name(f'{self._path.name}.corrupt-{number}')
            for number in itertools.count(1)
        )
        aside = next(name for name in names if not name.exists())
        try:
            os.link(self._path, aside)
        except OSError as refused:
            raise exception.StateError(
                f'cannot move {self._path} aside: {refused}'
            ) from refused
        self._save(_Record({}, _ticks_since_boot()))
        return (
            f'the record of found values {self._path} cannot be used '
            f'({error}); it was moved to {aside}, and VMs that run now will '
            f'be restored to default values'
        )

    def _save(self, record: _Record) -> None:
        """Replace the file; afterwards both it and its name are on disk."""
        text = _format(record, self._boot_id)
        try:
            state_file.replace(self._path, text, durable=True)
        except OSError as error:
            self.problem = (
                f'cannot write the record of found values {self._path}: '
                f'{error}'
            )
            raise exception.StateError(self.problem) from error
        self._record, self._dirty, self.problem = record, False, ''


def knob_of_part(
    key: str, part: str, control: resources.ResourceControl
) -> allocation.Knob:
    """The name in a record of a part of a VM, such as a device of it.

    :param key: of the incarnation.
    """
    uuid, pid, ticks = instance.parse_key(key)
    return allocation.Knob(f'{uuid}@{part}/{pid}/{ticks}', control)


def part_of(knob: allocation.Knob) -> tuple[str, str]:
    """Key of the incarnation, and the part, that such a name is for."""
    name, pid, ticks = instance.parse_key(knob.incarnation)
    uuid, _, part = name.partition('@')
    return f'{uuid}/{pid}/{ticks}', part


def _format(record: _Record, boot_id: str) -> str:
    found: dict[str, dict[str, int]] = {}
    for knob, value in record.found.items():
        found.setdefault(knob.incarnation, {})[knob.control.value] = value
    content = {
        'version': VERSION,
        'boot_id': boot_id,
        'lost_before': record.lost_before,
        'found': found,
    }
    return json.dumps(content, sort_keys=True, indent=1) + '\n'


def _parse_found(found: object) -> dict[allocation.Knob, int]:
    """Read the values by incarnation and control.

    :raises ValueError, TypeError: if they are not of that form.
    """
    if not isinstance(found, dict):
        raise TypeError('expected an object "found"')
    values: dict[allocation.Knob, int] = {}
    for key, controls in found.items():
        instance.parse_key(key)
        if not isinstance(controls, dict):
            raise TypeError(f'expected an object under {key}')
        for name, value in controls.items():
            knob = allocation.Knob(key, resources.ResourceControl(name))
            values[knob] = _whole(value)
    return values


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f'expected a whole number, got {value!r}')
    return value


def _ticks_since_boot() -> int:
    seconds = time.clock_gettime(time.CLOCK_BOOTTIME)
    return int(seconds * os.sysconf('SC_CLK_TCK'))
