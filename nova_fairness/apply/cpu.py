# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""CPU shares of VMs: ``cpu.shares`` (cgroup v1), ``cpu.weight`` (v2)."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import os
import pathlib

from nova_fairness import exception
from nova_fairness.apply import control
from nova_fairness.apply import groups
from nova_fairness.apply import opened
from nova_fairness.apply import privileged
from nova_fairness.model import allocation
from nova_fairness.model import cgroup
from nova_fairness.model import instance
from nova_fairness.model import resources

Writer = Callable[[Sequence[privileged.Request]], list[int]]


class CpuShares(control.Control):
    """Steers the group of each VM; all of its threads share one value.

    A controller is in one hierarchy only: where v1 has ``cpu``, v1 it is,
    also if a v2 tree without it is mounted beside.

    :param proc: where procfs is mounted.
    :param mountinfo_path: says where the hierarchies are mounted.
    :param writer: as :func:`privileged.write_controls`.
    :param max_open: at most so many descriptors are kept between reads.
    :raises ControlUnavailable: if this host has no CPU controller.
    """

    kind = resources.Control.CPU

    def __init__(
        self,
        proc: str = '/proc',
        mountinfo_path: str = '/proc/self/mountinfo',
        writer: Writer = privileged.write_controls,
        max_open: int = 4096,
    ) -> None:
        mounts = cgroup.mounts(pathlib.Path(mountinfo_path).read_text('utf-8'))
        self._name = _name_of_control(mounts)
        self._file = groups.FILES[self._name]
        self._open = opened.OpenControls(proc, mounts, self._name, max_open)
        self._writer = writer
        self._named: set[str] = set()
        self._problems: dict[str, str] = {}

    @property
    def version(self) -> int:
        """Version of control groups that steer the CPU here: 1 or 2."""
        return 1 if self._name == groups.CPU_SHARES else 2

    def unit_range(self) -> tuple[int, int]:
        """Give 2..262144 shares (v1), weight 1..10000 (v2)."""
        return self._file.lowest, self._file.highest

    def default(self) -> int:
        """Give what the kernel sets in a new group."""
        return self._file.default

    def problems(self) -> tuple[str, ...]:
        """Name VMs that cannot be steered, each once while it is seen."""
        fresh = sorted(self._problems.items())
        self._named.update(self._problems)
        self._problems = {}
        return tuple(f'{key}: {text}' for key, text in fresh)

    def read(self, keys: Sequence[str]) -> Mapping[str, int]:
        """Read what the kernel holds now, from descriptors kept open.

        :param keys: of incarnations.
        :returns: shares or weight by key; absent are VMs that vanished and
            those that cannot be steered, see :meth:`problems`.
        """
        self._open.next_round(len(keys))
        if len(self._named) > len(keys):
            self._named.intersection_update(keys)
        values: dict[str, int] = {}
        for key in keys:
            try:
                value = self._open.read(key)
                if value is not None:
                    values[key] = self._checked(value)
            except exception.WriteRefused as error:
                if key not in self._named:
                    self._problems[key] = str(error)
        return values

    def write(
        self, changes: Sequence[allocation.Change]
    ) -> tuple[control.Outcome, ...]:
        """Write each change, in one call of the privileged helper.

        The value is read back: the kernel bounds some without saying so.

        :param changes: for this control.
        :returns: one outcome per change, in order.
        """
        outcomes = [self._refused(change) for change in changes]
        places = [i for i, known in enumerate(outcomes) if known is None]
        written = self._write([changes[place] for place in places])
        for place, outcome in zip(places, written, strict=True):
            outcomes[place] = outcome
        return tuple(outcome for outcome in outcomes if outcome is not None)

    def close(self) -> None:
        """Give all descriptors back; the control can still be used."""
        self._open.close()

    def _checked(self, value: int) -> int:
        low, high = self.unit_range()
        if low <= value <= high:
            return value
        raise exception.WriteRefused(
            f'{self._name} is {value}, expected {low}..{high}; the group is '
            f'left alone (cpu.idle makes it 0)'
        )

    def _refused(self, change: allocation.Change) -> control.Outcome | None:
        """Give the outcome of a change that need not be tried."""
        low, high = self.unit_range()
        if not low <= change.after <= high:
            return control.Outcome(
                change,
                f'{self._name} of {change.knob.incarnation} cannot be '
                f'{change.after}, expected {low}..{high}',
            )
        return None

    def _write(
        self, changes: Sequence[allocation.Change]
    ) -> list[control.Outcome]:
        requests = []
        for change in changes:
            _, pid, ticks = instance.parse_key(change.knob.incarnation)
            requests.append((self._name, str(change.after), pid, ticks))
        try:
            errors = self._writer(requests) if requests else []
        except exception.ControlUnavailable as error:
            return [control.Outcome(change, str(error)) for change in changes]
        return [
            self._outcome(change, number)
            for change, number in zip(changes, errors, strict=True)
        ]

    def _outcome(
        self, change: allocation.Change, number: int
    ) -> control.Outcome:
        """Judge one write by its error number and by what is there now."""
        try:
            kept = self._open.read(change.knob.incarnation)
        except exception.WriteRefused as error:
            return self._failed(change, str(error))
        if kept is None:
            return control.Outcome(change, gone=True)
        if number:
            return self._failed(change, os.strerror(number))
        if kept != change.after:
            return self._failed(change, f'the kernel made it {kept}')
        return control.Outcome(change)

    def _failed(
        self, change: allocation.Change, reason: str
    ) -> control.Outcome:
        key = change.knob.incarnation
        self._open.forget(key)
        if self._open.is_gone(key):
            return control.Outcome(change, gone=True)
        return control.Outcome(
            change, f'{self._name} of {key} = {change.after}: {reason}'
        )


def _name_of_control(mounts: Mapping[str, cgroup.Mount]) -> str:
    """Give the name of the file that steers the CPU on this host."""
    if groups.FILES[groups.CPU_SHARES].controller in mounts:
        return groups.CPU_SHARES
    unified = mounts.get(cgroup.UNIFIED)
    if unified is not None:
        path = pathlib.Path(unified.path) / 'cgroup.controllers'
        try:
            if groups.CPU_CONTROLLER in path.read_text('ascii').split():
                return groups.CPU_WEIGHT
        except OSError as error:
            raise exception.ControlUnavailable(
                f'cannot read which controllers cgroup v2 has: {error}'
            ) from error
    raise exception.ControlUnavailable(
        'no CPU controller is mounted; expected it in a cgroup v1 hierarchy '
        'or in cgroup.controllers of the v2 hierarchy'
    )
