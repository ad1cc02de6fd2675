# SPDX-License-Identifier: Apache-2.0

"""Parsers of the kernel's text files.

Content that is read in every round is bytes, because decoding would cost as
much as reading.
"""

from collections.abc import Mapping

_START_TICKS = 22  # fields as numbered by proc_pid_stat(5)
_USER_TICKS = 14
_SYSTEM_TICKS = 15


def _fields_after_name(stat: bytes) -> list[bytes]:
    """Return the fields of ``/proc/PID/stat`` from the third on.

    The second field is a program's name, which can contain spaces and
    brackets.
    """
    return stat[stat.rindex(b')') + 1 :].split()


def start_ticks(stat: bytes) -> int:
    """Return the start time of a process, from ``/proc/PID/stat``.

    :returns: clock ticks since boot.
    :raises ValueError: if the text has another form.
    :raises IndexError: if the text is truncated.
    """
    return int(_fields_after_name(stat)[_START_TICKS - 3])


def has_ended(stat: bytes) -> bool:
    """Check whether a process ended but still exists, from ``/proc/PID/stat``.

    Such a process (zombie) remains in procfs until its parent reads its exit
    status.

    :raises ValueError: if the text has another form.
    :raises IndexError: if the text is truncated.
    """
    return _fields_after_name(stat)[0] in {b'Z', b'X', b'x'}


def busy_ticks(stat: bytes) -> dict[int, int]:
    """Return the busy clock ticks of each CPU, from ``/proc/stat``.

    The kernel's idle and iowait count as idle. Time that a hypervisor below
    took (steal) counts as busy. Guest time is part of user time.

    :returns: clock ticks since boot by number of the CPU.
    :raises ValueError: if the text has another form.
    :raises IndexError: if the text is truncated.
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
    """Return the CPU time of a process, from ``/proc/PID/stat``.

    :returns: clock ticks in user and system mode, of all threads.
    :raises ValueError: if the text has another form.
    :raises IndexError: if the text is truncated.
    """
    fields = _fields_after_name(stat)
    return int(fields[_USER_TICKS - 3]) + int(fields[_SYSTEM_TICKS - 3])


def resident_pages(statm: bytes) -> int:
    """Return the number of resident pages, from ``/proc/PID/statm``.

    :returns: pages; 0 for a process that ended but still exists.
    :raises ValueError: if the text has another form.
    :raises IndexError: if the text is truncated.
    """
    return int(statm.split(None, 2)[1])


def resident_bytes(status: bytes) -> int:
    """Return the bytes of resident and huge pages, from ``/proc/PID/status``.

    :returns: 0 for a process that ended.
    """
    return _status_bytes(status, b'VmRSS') + huge_page_bytes(status)


def huge_page_bytes(status: bytes) -> int:
    """Return the bytes of a process's huge pages, which its RSS excludes.

    :param status: text of ``/proc/PID/status``.
    """
    return _status_bytes(status, b'HugetlbPages')


def _status_bytes(status: bytes, name: bytes) -> int:
    _, found, rest = status.partition(b'\n' + name + b':')
    return int(rest.split(None, 1)[0]) * 1024 if found else 0


def storage_bytes(io: bytes) -> tuple[int, int]:
    """Return a process's bytes read from and written to storage.

    :param io: text of ``/proc/PID/io``.
    :raises ValueError: if the text has another form.
    """
    fields = io.split()
    if fields[8:11:2] != [b'read_bytes:', b'write_bytes:']:
        raise ValueError(f'not the text of /proc/PID/io: {io[:40]!r}')
    return int(fields[9]), int(fields[11])


def usage_seconds(cpu_stat: bytes) -> float:
    """Return the CPU seconds of a v2 group, from its ``cpu.stat``.

    :raises ValueError: if there is no ``usage_usec``.
    """
    fields = cpu_stat.split(None, 2)
    if fields[:1] != [b'usage_usec']:
        raise ValueError(f'no usage_usec in cpu.stat: {cpu_stat[:40]!r}')
    return int(fields[1]) / 1e6


def stall_seconds(pressure: bytes) -> float:
    """Return the seconds in which some task waited, from ``cpu.pressure``.

    :raises ValueError: if the text has another form.
    """
    some, _, _ = pressure.partition(b'\n')
    _, _, total = some.partition(b'total=')
    return int(total) / 1e6


def waited_seconds(schedstat: bytes) -> float:
    """Return the seconds for which a thread waited for a CPU, from
    ``schedstat``.

    :raises ValueError: if the text has another form.
    :raises IndexError: if the text is truncated.
    """
    return int(schedstat.split()[1]) / 1e9


def device_bytes(io_stat: bytes) -> tuple[int, int]:
    """Return the bytes that a v2 group read and wrote, from ``io.stat``.

    :returns: sums over all devices.
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
    """Return the bytes received and sent by each interface.

    :param net_dev: content of ``/proc/net/dev``.
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
    """Return the mean BogoMIPS of all CPUs, from ``/proc/cpuinfo``.

    The name of the line depends on the architecture (``bogomips``,
    ``BogoMIPS``, ``bogomips per cpu``).

    :returns: ``None`` if there is no such line.
    """
    found = []
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(':')
        if name.strip().lower() in {'bogomips', 'bogomips per cpu'}:
            found.append(float(value))
    mean = sum(found) / len(found) if found else 0.0
    return mean if mean > 0 else None


def total_memory_bytes(meminfo: str) -> int:
    """Return ``MemTotal`` in bytes, from ``/proc/meminfo``.

    :raises ValueError: if the text has none.
    """
    for line in meminfo.splitlines():
        name, _, value = line.partition(':')
        if name == 'MemTotal':
            return int(value.split()[0]) * 1024
    raise ValueError('no MemTotal in /proc/meminfo')


def default_route_interface(route: str) -> str | None:
    """Return the interface of the default route, from ``/proc/net/route``.

    :returns: the one with the lowest metric; ``None`` without such a route.
    """
    found = []
    for line in route.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 7 and fields[1] == fields[7] == '00000000':
            found.append((int(fields[6]), fields[0]))
    return min(found)[1] if found else None


_BUSY_MS = 9  # fields of /sys/block/*/stat, counted from 0
_QUEUED_MS = 10


def parse_device_times(stat: str) -> tuple[float, float]:
    """Return the times of a block device, from its ``stat``.

    :returns: seconds with at least one active request, and total seconds of
        all requests, including their wait in the scheduler.
    :raises ValueError: if the text has another form.
    """
    fields = stat.split()
    if len(fields) <= _QUEUED_MS:
        raise ValueError(f'expected 11 numbers, got {stat!r}')
    return int(fields[_BUSY_MS]) / 1e3, int(fields[_QUEUED_MS]) / 1e3


def active_scheduler(text: str) -> str:
    """Return the scheduler in brackets, from ``queue/scheduler``.

    :returns: its name; empty if the device has no schedulers.
    """
    _, _, rest = text.partition('[')
    return rest.partition(']')[0]


def enabled_devices(cost_qos: str) -> frozenset[str]:
    """Return the devices with ``enable=1``, from ``io.cost.qos``.

    :returns: ``major:minor``.
    """
    lines = (line.split() for line in cost_qos.splitlines())
    return frozenset(
        words[0] for words in lines if words and 'enable=1' in words[1:]
    )


def device_of_mount(mountinfo: bytes, number: str) -> str | None:
    """Return the device of a file system, from ``/proc/self/mountinfo``.

    :param number: ``major:minor`` of its files.
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
    """Return the number of pages that the kernel reclaimed, from
    ``/proc/vmstat``.

    Pages reclaimed because of a control group's own limit are excluded.

    :raises ValueError: if a counter is missing.
    """
    names = (b'pgsteal_kswapd ', b'pgsteal_direct ')
    return sum(_number_after(vmstat, name) for name in names)


def swap_in_use(meminfo: bytes) -> bool:
    """Check whether any memory is swapped out, from ``/proc/meminfo``.

    :raises ValueError: if a line is missing.
    """
    total = _number_after(meminfo, b'SwapTotal:')
    return total > _number_after(meminfo, b'SwapFree:')


def swapped_bytes(status: bytes) -> int:
    """Return the bytes of a process that are swapped out.

    :param status: text of ``/proc/PID/status``.
    :raises ValueError: if the line is missing.
    """
    return _number_after(status, b'VmSwap:') * 1024


def major_faults(stat: bytes) -> int:
    """Return the number of major faults of a process, from ``/proc/PID/stat``.

    :returns: of all its threads, including ended ones.
    :raises ValueError: if the text has another form.
    :raises IndexError: if the text is truncated.
    """
    return int(stat[stat.rindex(b')') + 1 :].split(None, 11)[9])


def _number_after(text: bytes, name: bytes) -> int:
    _, found, rest = (b'\n' + text).partition(b'\n' + name)
    if not found:
        raise ValueError(f'no {name.decode()} in {text[:40]!r}')
    return int(rest.split(None, 1)[0])
