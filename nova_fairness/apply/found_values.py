# SPDX-License-Identifier: Apache-2.0


"""The durable record of the values that controls had before the agent."""

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
    :ivar lost_before: clock ticks since boot. An earlier record of processes
        that started until then may be lost; -1 if none was lost.
    """

    found: allocation.Allocation
    lost_before: int = -1


class FoundValues:
    """Stores the value of each knob from before its first write.

    The file is replaced as a whole, so a crash leaves the old or the new
    record. It belongs to one boot of the machine, because no process survives
    a boot.

    :param path: of the file; ``<path>.lock`` is locked while this object is
        open.
    :param boot_id: of the machine's run; read from the kernel unless given.
    :ivar problem: why the file lacks the newest record; empty if it does not.
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
        """The values by knob, in kernel units, from before the first write."""
        return types.MappingProxyType(self._record.found)

    def load(self) -> str:
        """Read the record, and lock it until :meth:`close`.

        An unreadable file is renamed to ``<path>.corrupt-<n>``.
        :meth:`is_unknown` then identifies the VMs that it may have named.

        :returns: an error message about the file; empty if there is none.
        :raises StateError: if another process uses the record, or the
            directory is unusable.
        """
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock_file()
            self._record = self._parse(self._path.read_text('utf-8'))
        except FileNotFoundError:
            self._record = _Record({})
        except _UNUSABLE as error:
            return self._replace_unusable_file(error)
        except OSError as error:
            raise exception.StateError(
                f'record of found values {self._path}: cannot be read: {error}'
            ) from error
        return ''

    def is_unknown(self, key: str) -> bool:
        """Check whether an incarnation's found values may have been lost.

        If so, its present values may be the agent's own and must not be
        recorded.

        :param key: of the incarnation.
        """
        return instance.parse_key(key)[2] <= self._record.lost_before

    def remember(self, values: allocation.Allocation) -> None:
        """Record values of new knobs, durably when this method returns.

        Recorded knobs keep their first value. Nothing is written if all are
        recorded.

        :raises StateError: if the file cannot be written; then nothing is
            recorded, and these knobs must not be written.
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
        """Delete the records of knobs; :meth:`flush` updates the file."""
        gone = set(knobs)
        left = {
            knob: value
            for knob, value in self._record.found.items()
            if knob not in gone
        }
        self._dirty |= len(left) < len(self._record.found)
        self._record = dataclasses.replace(self._record, found=left)

    def flush(self) -> None:
        """Write the file if records were deleted since the last write.

        :raises StateError: if the file cannot be written.
        """
        if self._dirty:
            self._save(self._record)

    def retry(self) -> None:
        """Write deleted records to the file if that failed before.

        Values whose recording failed are not in force: each write of a knob
        records its value first.
        """
        self.problem = ''
        with contextlib.suppress(exception.StateError):
            self.flush()

    def close(self) -> None:
        """Unlock the record for other processes; may be called twice."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _lock_file(self) -> None:
        """Lock a separate file, because the record itself is replaced."""
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
        """Parse the file's text.

        :raises ValueError, TypeError: if it is no valid record.
        """
        content = json.loads(text)
        if not isinstance(content, dict) or content.get('version') != VERSION:
            raise ValueError(f'expected an object of version {VERSION}')
        if content.get('boot_id') != self._boot_id:
            return _Record({})
        return _Record(
            _parse_found_values(content.get('found')),
            _checked_integer(content.get('lost_before')),
        )

    def _replace_unusable_file(self, error: Exception) -> str:
        """Rename an unusable file, and begin a new one.

        A link to the old file is created before the new file is written, so
        that a crash does not lose it.
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
                f'record of found values {self._path}: cannot be renamed: '
                f'{refused}'
            ) from refused
        self._save(_Record({}, _ticks_since_boot()))
        return (
            f'record of found values {self._path}: it cannot be used '
            f'({error}); it was moved to {aside}, and VMs that run now will '
            f'be restored to default values'
        )

    def _save(self, record: _Record) -> None:
        """Replace the file durably, with its directory entry."""
        text = _format_record(record, self._boot_id)
        try:
            state_file.replace(self._path, text, durable=True)
        except OSError as error:
            self.problem = (
                f'record of found values {self._path}: cannot be written: '
                f'{error}'
            )
            raise exception.StateError(self.problem) from error
        self._record, self._dirty, self.problem = record, False, ''


def knob_of_part(
    key: str, part: str, control: resources.ResourceControl
) -> allocation.Knob:
    """Return the identifier of a part of a VM, such as a device, in a record.

    :param key: of the incarnation.
    """
    uuid, pid, ticks = instance.parse_key(key)
    return allocation.Knob(f'{uuid}@{part}/{pid}/{ticks}', control)


def split_knob_key(knob: allocation.Knob) -> tuple[str, str]:
    """Return the incarnation's key and the part of such an identifier."""
    name, pid, ticks = instance.parse_key(knob.incarnation)
    uuid, _, part = name.partition('@')
    return f'{uuid}/{pid}/{ticks}', part


def _format_record(record: _Record, boot_id: str) -> str:
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


def _parse_found_values(found: object) -> dict[allocation.Knob, int]:
    """Parse the values by incarnation and control.

    :raises ValueError, TypeError: if they have another form.
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
            values[knob] = _checked_integer(value)
    return values


def _checked_integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f'expected a whole number, got {value!r}')
    return value


def _ticks_since_boot() -> int:
    seconds = time.clock_gettime(time.CLOCK_BOOTTIME)
    return int(seconds * os.sysconf('SC_CLK_TCK'))
