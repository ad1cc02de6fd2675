# SPDX-License-Identifier: Apache-2.0

"""How fast disks and network are, as far as the kernel tells.

======================== ============== ==============
class of disk            read MB/s      write MB/s
======================== ============== ==============
rotational               120            120
NVMe                     1500           1000
other without rotation   400            300
virtual (virtio, Xen)    200            200
none found               100            100
======================== ============== ==============

The values are at the lower end of what devices of a class sustain: an
operator who knows better configures the bandwidth.
"""

from collections.abc import Iterator
import dataclasses
import logging
import pathlib

from nova_fairness.collect import kernel_text

LOG = logging.getLogger(__name__)

_MB = 1e6
_ROTATIONAL = (120 * _MB, 120 * _MB)
_NVME = (1500 * _MB, 1000 * _MB)
_SOLID = (400 * _MB, 300 * _MB)
_VIRTUAL = (200 * _MB, 200 * _MB)
_NONE = (100 * _MB, 100 * _MB)

_BYTES_PER_MEGABIT = 125_000
_DEFAULT_MEGABIT = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class DiskBandwidth:
    """Assumed bandwidth of all disks together.

    :ivar read: bytes per second, > 0.
    :ivar write: bytes per second, > 0.
    :ivar reason: the assumed class of each disk, for the log.
    """

    read: float
    write: float
    reason: str


def disk_bandwidth(sys: pathlib.Path) -> DiskBandwidth:
    """Return the assumed bandwidth of this host's disks, by their classes.

    :param sys: where sysfs is mounted.
    :returns: the sum over all disks with a hardware device; loop, RAM and
        mapped devices consist of these and are not counted.
    """
    found = {path.name: _disk_class(path) for path in _whole_disks(sys)}
    if not found:
        return DiskBandwidth(*_NONE, 'no disk found')
    return DiskBandwidth(
        read=sum(speed[0] for _, speed in found.values()),
        write=sum(speed[1] for _, speed in found.values()),
        reason=', '.join(
            f'{name} is {said}' for name, (said, _) in found.items()
        ),
    )


def _whole_disks(sys: pathlib.Path) -> Iterator[pathlib.Path]:
    for path in sorted((sys / 'block').glob('*')):
        real = (path / 'device').exists()
        if real and _read_text(path / 'removable') != '1' and _has_size(path):
            yield path


def _has_size(path: pathlib.Path) -> bool:
    return _read_text(path / 'size') not in {'', '0'}


def _disk_class(path: pathlib.Path) -> tuple[str, tuple[float, float]]:
    if path.name.startswith(('vd', 'xvd')):
        return 'virtual', _VIRTUAL
    if path.name.startswith('nvme'):
        return 'NVMe', _NVME
    if _read_text(path / 'queue' / 'rotational') == '1':
        return 'rotational', _ROTATIONAL
    return 'solid', _SOLID


def network_bandwidth(
    proc: pathlib.Path, sys: pathlib.Path, interface: str | None
) -> float:
    """Return the link speed of an interface, or an assumption.

    :param proc: where procfs is mounted.
    :param sys: where sysfs is mounted.
    :param interface: ``None`` for the interface of the default route.
    :returns: bytes per second in one direction; 1 Gbit/s if the kernel reports
        none, as for virtual interfaces and links that are down.
    """
    told = link_speed(proc, sys, interface)
    if told is not None:
        return told
    LOG.info(
        'network interface %s: speed unknown; %d Mbit/s assumed',
        interface or 'of the default route',
        _DEFAULT_MEGABIT,
    )
    return float(_DEFAULT_MEGABIT * _BYTES_PER_MEGABIT)


def link_speed(
    proc: pathlib.Path, sys: pathlib.Path, interface: str | None
) -> float | None:
    """Return the link speed of an interface; ``None`` if the kernel reports
    none.

    :param interface: ``None`` for the interface of the default route.
    :returns: bytes per second in one direction.
    """
    name = interface or kernel_text.default_route_interface(
        _read_text(proc / 'net' / 'route')
    )
    megabit = 0
    if name:
        megabit = _parse_integer(
            _read_text(sys / 'class' / 'net' / name / 'speed')
        )
    return float(megabit * _BYTES_PER_MEGABIT) if megabit > 0 else None


def _parse_integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return 0


def _read_text(path: pathlib.Path) -> str:
    """Return a file's text; empty if it cannot be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return ''
