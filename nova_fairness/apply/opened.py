# SPDX-License-Identifier: Apache-2.0

"""Controls of VMs that are kept open, so that a reading is one system call."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import os

from nova_fairness import exception
from nova_fairness.apply.cgroup import files
from nova_fairness.model import cgroup
from nova_fairness.model import instance

_IDLE_ROUNDS = 8
_LONGEST = 4096


@dataclasses.dataclass(slots=True)
class _Open:
    """One open control.

    :ivar descriptor: of the file; it stays that of its group for ever.
    :ivar last_round: number of the last round that read it.
    """

    descriptor: int
    last_round: int


class OpenControls:
    """The values of one control file of many VMs.

    :param proc: where procfs is mounted.
    :param mounts: by controller, as :func:`cgroup.mounts` gives them.
    :param name: the file, one of :data:`groups.FILES`.
    :param max_open: at most so many descriptors are kept.
    :param parse: gives the value that a file's content says, or raises
        ``ValueError``.
    :param level: of the group, see :func:`groups.control_path`.
    """

    def __init__(
        self,
        proc: str,
        mounts: Mapping[str, cgroup.Mount],
        name: str,
        max_open: int,
        parse: Callable[[bytes], int] = int,
        level: int = files.OWN,
    ) -> None:
        self._proc = proc
        self._mounts = mounts
        self._name = name
        self._max_open = max_open
        self._parse = parse
        self._level = level
        self._open: dict[str, _Open] = {}
        self._round = 0

    def __len__(self) -> int:
        return len(self._open)

    def read(self, key: str) -> int | None:
        """Read what the kernel holds for a VM.

        :param key: of the incarnation.
        :returns: kernel units; ``None`` if the VM is gone.
        :raises WriteRefused: if the VM has no such control of its own.
        """
        try:
            opened = self._open.get(key) or self._opened(key)
            opened.last_round = self._round
            raw = os.pread(opened.descriptor, _LONGEST, 0)
            if len(self._open) > self._max_open:
                self.forget(key)
            return self._parse(raw)
        except (OSError, ValueError, exception.WriteRefused) as error:
            self.forget(key)
            if self.is_gone(key):
                return None
            raise exception.WriteRefused(
                f'{self._name} cannot be read: {error}'
            ) from error

    def is_gone(self, key: str) -> bool:
        """Tell whether a VM's process ended; not if that is unknown."""
        try:
            return not files.is_running(self._proc, key)
        except OSError:
            return False

    def forget(self, key: str) -> None:
        """Close one control; it is looked up again when next read."""
        opened = self._open.pop(key, None)
        if opened is not None:
            os.close(opened.descriptor)

    def next_round(self, expected: int) -> None:
        """Begin a round; close what nobody read for several rounds.

        :param expected: number of VMs that the round will read.
        """
        self._round += 1
        if len(self._open) <= expected:
            return
        for key, opened in list(self._open.items()):
            if opened.last_round + _IDLE_ROUNDS < self._round:
                self.forget(key)

    def close(self) -> None:
        """Close everything."""
        for key in list(self._open):
            self.forget(key)

    def _opened(self, key: str) -> _Open:
        """Open the control of a VM.

        :raises OSError: if the VM is gone or has no such control.
        :raises WriteRefused: if its group is not its own.
        """
        _, pid, _ = instance.parse_key(key)
        path = files.control_path(
            self._proc, self._mounts, pid, self._name, self._level
        )
        opened = _Open(os.open(path, os.O_RDONLY | os.O_CLOEXEC), self._round)
        self._open[key] = opened
        # Asked after opening: had the process ended before that, another
        # one with its number would show another start.
        if not files.is_running(self._proc, key):
            raise ProcessLookupError(f'process {pid} is another one now')
        return opened
