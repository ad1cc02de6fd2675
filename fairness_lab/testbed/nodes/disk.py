# SPDX-License-Identifier: Apache-2.0

"""A disk of a node's own, as slow as the scenario says.

A file in memory, behind a limit of its rate, stands for the disk: QEMU's
storage daemon offers it as a file that no request passes faster. A loop
device over that file has a queue with a scheduler of choice, like any disk,
and a file system on it holds the disks of the node's VMs.
"""

from collections.abc import Iterator
import pathlib
import shutil
import subprocess

from fairness_lab.testbed.nodes import namespace
from fairness_lab.testbed.nodes import node as node_module
from fairness_lab.testbed.nodes import processes
from nova_fairness import exception

IMAGES = '/var/lib/libvirt/images'
"""Where the disk is mounted inside the node."""

DAEMON = 'qemu-storage-daemon'

_MIB = 1 << 20
_SPARE_MIB = 64
"""Space that the file system needs for itself."""

_QUEUE = pathlib.Path('/sys/block')


class NodeDisk:
    """One disk; open it when the node runs, close it before the node stops.

    :param node: whose disk it is.
    :param size_mib: room for the disks of its VMs, MiB.
    :param mib_s: rate, reading and writing together, MiB/s.
    :param scheduler: of its queue, such as ``bfq``.
    """

    def __init__(
        self,
        node: node_module.TestNode,
        size_mib: int,
        mib_s: float,
        scheduler: str,
    ) -> None:
        self._node = node
        self._size_mib = size_mib + _SPARE_MIB
        self._rate = int(mib_s * _MIB)
        self._scheduler = scheduler
        self._daemon: subprocess.Popen[bytes] | None = None
        self._loop = ''

    @property
    def device(self) -> str:
        """Path of the loop device; empty before it is open."""
        return self._loop

    def open(self, patience_s: float = 20.0) -> None:
        """Bring the disk up.

        :raises LabError: if something does not come up; nothing is left.
        """
        try:
            self._make_file()
            self._start_server(patience_s)
            self._loop = processes.run(
                [
                    *('losetup', '--find', '--show', '--direct-io=on'),
                    str(self._slow_device),
                ]
            ).strip()
            queue = _QUEUE / pathlib.Path(self._loop).name / 'queue'
            (queue / 'scheduler').write_text(self._scheduler)
            if self._scheduler == 'bfq':
                # The device takes any number of requests at once, so that
                # without this nothing would be left to choose from.
                (queue / 'iosched/strict_guarantees').write_text('1')
            self._mount()
        except (OSError, exception.LabError) as error:
            self.close()
            raise exception.LabError(
                f'the disk of node {self._node.name} does not come up: {error}'
            ) from None

    def close(self) -> None:
        """Take the disk down; nothing of it is left."""
        if self._loop:
            self._node.run(['umount', '--lazy', IMAGES])
            subprocess.run(
                ['losetup', '--detach', self._loop],
                check=False,
                capture_output=True,
            )
            self._loop = ''
        if self._daemon is not None:
            processes.end(self._daemon, 5.0)
            self._daemon = None
        remove(self._directory)
        shutil.rmtree(self._directory, ignore_errors=True)

    @property
    def _directory(self) -> pathlib.Path:
        return self._node.directory / 'disk'

    @property
    def _slow_device(self) -> pathlib.Path:
        return self._directory / 'slow'

    def _make_file(self) -> None:
        self._directory.mkdir()
        memory = self._directory / 'memory'
        memory.mkdir()
        processes.run(['mount', '-t', 'tmpfs', 'tmpfs', str(memory)])
        raw = memory / 'raw'
        with raw.open('wb') as stream:
            stream.truncate(self._size_mib * _MIB)
        # Without a journal the disk does what its guests do and no more.
        processes.run(
            [
                *('mkfs.ext4', '-q', '-F', '-O', '^has_journal', '-m', '0'),
                *('-E', 'lazy_itable_init=0', str(raw)),
            ]
        )
        self._slow_device.touch()

    def _start_server(self, patience_s: float) -> None:
        raw = self._directory / 'memory/raw'
        command = [
            *(DAEMON, '--blockdev'),
            f'driver=file,node-name=raw,filename={raw}',
            *('--object', f'throttle-group,id=rate,x-bps-total={self._rate}'),
            '--blockdev',
            'driver=throttle,node-name=slow,throttle-group=rate,file=raw',
            '--export',
            (
                'type=fuse,id=slow,node-name=slow,writable=on,'
                f'mountpoint={self._slow_device}'
            ),
        ]
        log = self._node.directory / 'var/log/disk.log'
        with log.open('ab') as stream:
            self._daemon = daemon = subprocess.Popen(
                namespace.joining(self._node.groups.join_files(), command),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
        whole = self._size_mib * _MIB
        processes.wait_until(
            lambda: (
                daemon.poll() is not None
                or self._slow_device.stat().st_size == whole
            ),
            patience_s,
        )
        if (
            daemon.poll() is not None
            or self._slow_device.stat().st_size != whole
        ):
            said = log.read_text(errors='replace').strip()
            raise exception.LabError(f'{DAEMON}: {said or "it said nothing"}')

    def _mount(self) -> None:
        done = self._node.run(['mount', '-o', 'noatime', self._loop, IMAGES])
        if done.returncode:
            raise exception.LabError(done.stderr.strip())


def remove(directory: pathlib.Path) -> None:
    """Remove what a disk left in a directory, also one of a dead run.

    :raises LabError: if something stays mounted.
    """
    for device in _loops(directory):
        processes.run(['losetup', '--detach', device])
    for path in sorted(_mounts(directory), reverse=True):
        processes.run(['umount', '--lazy', path])


def _loops(directory: pathlib.Path) -> Iterator[str]:
    for backing in _QUEUE.glob('loop*/loop/backing_file'):
        try:
            path = backing.read_text().strip()
        except OSError:
            continue
        if path.startswith(f'{directory}/'):
            yield f'/dev/{backing.parts[3]}'


def _mounts(directory: pathlib.Path) -> list[str]:
    lines = pathlib.Path('/proc/self/mountinfo').read_text().splitlines()
    points = [line.split()[4] for line in lines]
    return [path for path in points if path.startswith(f'{directory}/')]
