# SPDX-License-Identifier: Apache-2.0

"""What the kernel says about disks and memory: pure parsing."""

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


def source_of_mount(mountinfo: str, number: str) -> str | None:
    """Find the device behind a file system in ``/proc/self/mountinfo``.

    :param number: ``major:minor`` that its files show.
    :returns: path of a device; ``None`` if the file system has none.
    """
    for line in mountinfo.splitlines():
        before, _, after = line.partition(' - ')
        fields, tail = before.split(), after.split()
        if len(fields) > 2 and fields[2] == number and len(tail) > 1:
            return tail[1] if tail[1].startswith('/dev/') else None
    return None


def reclaimed_pages(vmstat: bytes) -> int:
    """The pages that the kernel took away, from ``/proc/vmstat``.

    What a control group's own limit took is not among them.

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
