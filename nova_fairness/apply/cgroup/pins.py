# SPDX-License-Identifier: Apache-2.0

"""Pins vCPUs to cores of the host.

Pins are written to the groups that libvirt creates for the threads of vCPUs,
not by libvirt itself. A pin by libvirt becomes part of the domain and would
move with the VM to a host with other CPUs. VMs with other pins are not
changed.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import errno
import os
import pathlib

from nova_fairness import exception
from nova_fairness.apply import found_values
from nova_fairness.apply import privileged
from nova_fairness.apply.cgroup import control
from nova_fairness.apply.cgroup import files
from nova_fairness.model import allocation
from nova_fairness.model import cgroup
from nova_fairness.model import cpus
from nova_fairness.model import instance
from nova_fairness.model import resources

Place = tuple[str, int]
"""Key of an incarnation, and number of its vCPU."""

ONLINE = '/sys/devices/system/cpu/online'

_GONE = frozenset({errno.ENOENT, errno.ESRCH, errno.ENODEV})
_THREAD_LISTS = {1: 'tasks', 2: 'cgroup.threads'}
"""Name of the file that lists a group's threads, by cgroup version."""


class VcpuPins:
    """Pins vCPUs to cores, and removes the pins.

    :param record: of the CPUs that pinned vCPUs had before, loaded; a bit per
        CPU, 0 for all CPUs of the group above. It survives a crash of the
        agent.
    :param proc: where procfs is mounted.
    :param mountinfo_path: file that lists the mounted hierarchies.
    :param writer: as :func:`privileged.write_controls`.
    :param online: file that lists the CPUs of the host.
    :param affinity: returns the CPUs on which a thread may run.
    """

    def __init__(
        self,
        record: found_values.FoundValues,
        proc: str = '/proc',
        mountinfo_path: str = '/proc/self/mountinfo',
        writer: control.Writer = privileged.write_controls,
        online: str = ONLINE,
        affinity: Callable[[int], Collection[int]] = os.sched_getaffinity,
    ) -> None:
        self._record = record
        self._proc = proc
        self._writer = writer
        self._online = pathlib.Path(online)
        self._affinity = affinity
        mountinfo = pathlib.Path(mountinfo_path).read_bytes()
        self._mounts = cgroup.mounts(mountinfo)

    @property
    def in_force(self) -> tuple[Place, ...]:
        """The vCPUs that this agent pinned, sorted."""
        return tuple(sorted(map(_place, self._record.values)))

    def cores(self) -> tuple[int, ...]:
        """Return the online CPUs of the host; empty if unknown."""
        try:
            return cpus.parse_cpus(self._online.read_text('ascii'))
        except (OSError, ValueError):
            return ()

    def may_pin(self, key: str, vcpus: int, cores: Collection[int]) -> bool:
        """Check that each vCPU of a VM has this agent's pin, or no pin.

        :param key: of the incarnation.
        :param cores: of the host.
        """
        return all(
            self._is_ours((key, n)) or self._runs_anywhere((key, n), cores)
            for n in range(vcpus)
        )

    def apply(self, pins: Mapping[Place, int]) -> tuple[str, ...]:
        """Write these pins, and remove all other pins of this agent.

        :param pins: CPU of the host, by place.
        :returns: error messages, each about one vCPU.
        """
        problems = self._restore_pins(
            [place for place in self.in_force if place not in pins]
        )
        present = {place: self._read_cpus(place) for place in sorted(pins)}
        fresh = {
            _knob(place): _cpu_bits(found)
            for place, found in present.items()
            if found is not None and not self._is_ours(place)
        }
        try:
            self._record.remember(fresh)
        except exception.StateError as error:
            return (*problems, str(error))
        failed = self._write_cpus(
            {
                place: (pins[place],)
                for place, found in present.items()
                if self._is_ours(place) and found != (pins[place],)
            }
        )
        return (*problems, *failed.values())

    def lift(self) -> tuple[str, ...]:
        """Remove all pins of this agent.

        :returns: error messages; vCPUs with an error stay recorded.
        """
        return tuple(self._restore_pins(self.in_force))

    def _restore_pins(self, places: Sequence[Place]) -> list[str]:
        if not places:
            return []
        online = set(self.cores())
        before = {}
        for place in places:
            had = _cpus_of_bits(self._record.values[_knob(place)])
            # The kernel takes no CPU that is gone.
            before[place] = tuple(n for n in had if n in online) or had
        failed = self._write_cpus(before)
        self._record.forget(
            _knob(place) for place in places if place not in failed
        )
        problems = list(failed.values())
        try:
            self._record.flush()
        except exception.StateError as error:
            problems.append(str(error))
        return problems

    def _write_cpus(
        self, chosen: Mapping[Place, tuple[int, ...]]
    ) -> dict[Place, str]:
        """Write CPUs of vCPUs; delete the records of vanished ones.

        :returns: error messages, by place.
        """
        requests: list[privileged.Request] = []
        for (key, number), numbers in chosen.items():
            _, pid, ticks = instance.parse_key(key)
            level = files.vcpu_level(number)
            text = cpus.text(numbers)
            requests.append((files.CPUSET_CPUS, text, pid, ticks, level))
        try:
            codes = self._writer(requests) if requests else []
        except exception.ControlUnavailable as error:
            return dict.fromkeys(chosen, str(error))
        by_place = dict(zip(chosen, codes, strict=True))
        self._record.forget(
            _knob(place) for place, code in by_place.items() if code in _GONE
        )
        return {
            place: f'VCPU {place[1]} of {place[0]}: {os.strerror(code)}'
            for place, code in by_place.items()
            if code and code not in _GONE
        }

    def _is_ours(self, place: Place) -> bool:
        return _knob(place) in self._record.values

    def _runs_anywhere(self, place: Place, cores: Collection[int]) -> bool:
        """Check whether a vCPU has its own thread without a pin."""
        try:
            threads = self._thread_ids(place)
            return len(threads) > 0 and all(
                set(self._affinity(each)) == set(cores) for each in threads
            )
        except (OSError, ValueError, exception.WriteRefused):
            return False

    def _thread_ids(self, place: Place) -> tuple[int, ...]:
        path = self._path(place)
        version = 2 if 'cpuset' not in self._mounts else 1
        text = path.with_name(_THREAD_LISTS[version]).read_text('ascii')
        return tuple(map(int, text.split()))

    def _read_cpus(self, place: Place) -> tuple[int, ...] | None:
        """Return the CPUs of a vCPU's group; ``None`` if it vanished."""
        try:
            return cpus.parse_cpus(self._path(place).read_text('ascii'))
        except (OSError, ValueError, exception.WriteRefused):
            return None

    def _path(self, place: Place) -> pathlib.Path:
        """Return the path of a vCPU's file.

        :raises OSError: if the VM ended.
        :raises WriteRefused: if the vCPU has no group of its own.
        """
        key, number = place
        _, pid, _ = instance.parse_key(key)
        level = files.vcpu_level(number)
        name = files.CPUSET_CPUS
        return pathlib.Path(
            files.control_path(self._proc, self._mounts, pid, name, level)
        )


def _knob(place: Place) -> allocation.Knob:
    key, number = place
    return found_values.knob_of_part(
        key, str(number), resources.ResourceControl.CPU
    )


def _place(knob: allocation.Knob) -> Place:
    key, number = found_values.split_knob_key(knob)
    return key, int(number)


def _cpu_bits(numbers: Collection[int]) -> int:
    return sum(1 << number for number in numbers)


def _cpus_of_bits(bits: int) -> tuple[int, ...]:
    return tuple(n for n in range(bits.bit_length()) if bits >> n & 1)
