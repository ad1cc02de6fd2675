# SPDX-License-Identifier: Apache-2.0

"""Contents of the kernel's text files: pure parsing.

Everything that is read every round takes bytes, because decoding would cost
as much as reading.
"""

from collections.abc import Mapping

_START_TICKS = 22  # fields as numbered by proc_pid_stat(5)
_USER_TICKS = 14
_SYSTEM_TICKS = 15


def _after_name(stat: bytes) -> list[bytes]:
    """The fields of ``/proc/PID/stat`` from the third on.

    The second is a program's name and may hold spaces and brackets.
    """
    return stat[stat.rindex(b')') + 1 :].split()


def start_ticks(stat: bytes) -> int:
    """The start of a process from ``/proc/PID/stat``.

    :returns: clock ticks since boot.
    :raises ValueError: if it is no such text.
    :raises IndexError: if it is cut.
    """
    return int(_after_name(stat)[_START_TICKS - 3])


def has_ended(stat: bytes) -> bool:
    """Tell from ``/proc/PID/stat`` whether a process is only a memory.

    One that has ended stays in the process file system until its parent
    asks for its fate.

    :raises ValueError: if it is no such text.
    :raises IndexError: if it is cut.
    """
    return _after_name(stat)[0] in {b'Z', b'X', b'x'}


def busy_ticks(stat: bytes) -> dict[int, int]:
    """Busy clock ticks of each CPU, from ``/proc/stat``.

    Idle is what the kernel calls idle and iowait. Time that a hypervisor below
    took away (steal) is not available and counts as busy. Guest time is part
    of user time.

    :returns: clock ticks since boot by number of the CPU.
    :raises ValueError: if it is no such text.
    :raises IndexError: if it is cut.
    """
    busy: dict[int, int] = {}
    for line in stat.splitlines():
        if not line.startswith(b'cpu'):
            break
        name, *numbers = line.split()
        if name != b'cpu':
            user, nice, system, _, _, irq, softirq, steal = map(
                int, numbers[:8]
            )
            busy[int(name[3:])] = user + nice + system + irq + softirq + steal
    return busy


def cpu_ticks(stat: bytes) -> int:
    """The CPU time of a process from ``/proc/PID/stat``.

    :returns: clock ticks in user and system mode, all threads.
    :raises ValueError: if it is no such text.
    :raises IndexError: if it is cut.
    """
    fields = _after_name(stat)
    return int(fields[_USER_TICKS - 3]) + int(fields[_SYSTEM_TICKS - 3])


def resident_pages(statm: bytes) -> int:
    """The resident pages from ``/proc/PID/statm``.

    :returns: pages; 0 for a process that has ended and was not yet reaped.
    :raises ValueError: if it is no such text.
    :raises IndexError: if it is cut.
    """
    return int(statm.split(None, 2)[1])


def resident_bytes(status: bytes) -> int:
    """Resident and huge pages together from ``/proc/PID/status``.

    :returns: bytes; 0 for a process that has ended.
    """
    return _status_bytes(status, b'VmRSS') + huge_page_bytes(status)


def huge_page_bytes(status: bytes) -> int:
    """The huge pages of a process, which its RSS leaves out.

    :param status: text of ``/proc/PID/status``.
    :returns: bytes.
    """
    return _status_bytes(status, b'HugetlbPages')


def _status_bytes(status: bytes, name: bytes) -> int:
    _, found, rest = status.partition(b'\n' + name + b':')
    return int(rest.split(None, 1)[0]) * 1024 if found else 0


def storage_bytes(io: bytes) -> tuple[int, int]:
    """A process's traffic with storage from ``/proc/PID/io``.

    :returns: bytes read from and written to storage.
    :raises ValueError: if it is no such text.
    """
    fields = io.split()
    if fields[8:11:2] != [b'read_bytes:', b'write_bytes:']:
        raise ValueError(f'not the text of /proc/PID/io: {io[:40]!r}')
    return int(fields[9]), int(fields[11])


def usage_seconds(cpu_stat: bytes) -> float:
    """The CPU time of a v2 group from its ``cpu.stat``.

    :returns: seconds.
    :raises ValueError: if there is no ``usage_usec``.
    """
    fields = cpu_stat.split(None, 2)
    if fields[:1] != [b'usage_usec']:
        raise ValueError(f'no usage_usec in cpu.stat: {cpu_stat[:40]!r}')
    return int(fields[1]) / 1e6


def stall_seconds(pressure: bytes) -> float:
    """The time in which some task waited, from ``cpu.pressure``.

    :returns: seconds.
    :raises ValueError: if it is no such text.
    """
    some, _, _ = pressure.partition(b'\n')
    _, _, total = some.partition(b'total=')
    return int(total) / 1e6


def waited_seconds(schedstat: bytes) -> float:
    """The time a thread was ready but not run, from ``schedstat``.

    :returns: seconds.
    :raises ValueError: if it is no such text.
    :raises IndexError: if it is cut.
    """
    return int(schedstat.split()[1]) / 1e9


def device_bytes(io_stat: bytes) -> tuple[int, int]:
    """Sum the traffic of a v2 group over all devices, from ``io.stat``.

    :returns: bytes read and written.
    :raises ValueError: if an amount is no number.
    """
    read = written = 0
    for field in io_stat.split():
        if field.startswith(b'rbytes='):
            read += int(field[7:])
        elif field.startswith(b'wbytes='):
            written += int(field[7:])
    return read, written


def interface_bytes(net_dev: bytes) -> Mapping[str, tuple[int, int]]:
    """Parse ``/proc/net/dev``.

    :returns: bytes received and sent by the host, by interface.
    """
    found: dict[str, tuple[int, int]] = {}
    for line in net_dev.splitlines()[2:]:
        name, _, rest = line.partition(b':')
        fields = rest.split()
        if len(fields) > 8:
            place = name.strip().decode('utf-8', 'surrogateescape')
            found[place] = int(fields[0]), int(fields[8])
    return found


def mean_bogomips(cpuinfo: str) -> float | None:
    """The mean BogoMIPS of all CPUs from ``/proc/cpuinfo``.

    Architectures spell the line differently (``bogomips``, ``BogoMIPS``,
    ``bogomips per cpu``).

    :returns: ``None`` if no CPU tells.
    """
    found = []
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(':')
        if name.strip().lower() in {'bogomips', 'bogomips per cpu'}:
            found.append(float(value))
    mean = sum(found) / len(found) if found else 0.0
    return mean if mean > 0 else None


def total_memory_bytes(meminfo: str) -> int:
    """``MemTotal`` from ``/proc/meminfo``.

    :raises ValueError: if the text has none.
    """
    for line in meminfo.splitlines():
        name, _, value = line.partition(':')
        if name == 'MemTotal':
            return int(value.split()[0]) * 1024
    raise ValueError('no MemTotal in /proc/meminfo')


def default_route_interface(route: str) -> str | None:
    """Find the interface of the default route in ``/proc/net/route``.

    :returns: that with the lowest metric; ``None`` if there is no such route.
    """
    found = []
    for line in route.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 7 and fields[1] == fields[7] == '00000000':
            found.append((int(fields[6]), fields[0]))
    return min(found)[1] if found else None


_BUSY_MS = 9  # fields of /sys/block/*/stat, counted from 0
_QUEUED_MS = 10


def busy_and_queued(stat: str) -> tuple[float, float]:
    """The times in ``stat`` of a block device.

    :returns: seconds with a request under way, and seconds that all requests
        took, waiting for the scheduler included.
    :raises ValueError: if it is no such text.
    """
    fields = stat.split()
    if len(fields) <= _QUEUED_MS:
        raise ValueError(f'expected 11 numbers, got {stat!r}')
    return int(fields[_BUSY_MS]) / 1e3, int(fields[_QUEUED_MS]) / 1e3


def chosen_scheduler(text: str) -> str:
    """The scheduler in brackets in ``queue/scheduler``.

    :returns: its name; empty if the device has none to choose.
    """
    _, _, rest = text.partition('[')
    return rest.partition(']')[0]


def enabled_devices(cost_qos: str) -> frozenset[str]:
    """The devices for which ``io.cost.qos`` says ``enable=1``.

    :returns: ``major:minor``.
    """
    lines = (line.split() for line in cost_qos.splitlines())
    return frozenset(
        words[0] for words in lines if words and 'enable=1' in words[1:]
    )


def source_of_mount(mountinfo: bytes, number: str) -> str | None:
    """Find the device behind a file system in ``/proc/self/mountinfo``.

    :param number: ``major:minor`` that its files show.
    :returns: path of a device; ``None`` if the file system has none.
    """
    # A path may hold whatever else divides lines or words.
    for line in mountinfo.decode('utf-8', 'surrogateescape').split('\n'):
        before, _, after = line.partition(' - ')
        fields, tail = before.split(' '), after.split(' ')
        if len(fields) > 2 and fields[2] == number and len(tail) > 1:
            return tail[1] if tail[1].startswith('/dev/') else None
    return None


def reclaimed_pages(vmstat: bytes) -> int:
    """The pages that the kernel took away, from ``/proc/vmstat``.

    Pages that a control group's own limit took are not among them.

    :raises ValueError: if it does not say.
    """
    names = (b'pgsteal_kswapd ', b'pgsteal_direct ')
    return sum(_number_after(vmstat, name) for name in names)


def swap_in_use(meminfo: bytes) -> bool:
    """Tell from ``/proc/meminfo`` whether anything is swapped out.

    :raises ValueError: if it does not say.
    """
    total = _number_after(meminfo, b'SwapTotal:')
    return total > _number_after(meminfo, b'SwapFree:')


def swapped_bytes(status: bytes) -> int:
    """Bytes of a process that are swapped out, from ``/proc/PID/status``.

    :raises ValueError: if it does not say.
    """
    return _number_after(status, b'VmSwap:') * 1024


def major_faults(stat: bytes) -> int:
    """The major faults of a process, from ``/proc/PID/stat``.

    :returns: of all its threads, the ended ones included.
    :raises ValueError: if it is no such text.
    :raises IndexError: if it is cut.
    """
    return int(stat[stat.rindex(b')') + 1 :].split(None, 11)[9])


def _number_after(text: bytes, name: bytes) -> int:
    _, found, rest = (b'\n' + text).partition(b'\n' + name)
    if not found:
        raise ValueError(f'no {name.decode()} in {text[:40]!r}')
    return int(rest.split(None, 1)[0])
