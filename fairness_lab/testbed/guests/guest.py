# SPDX-License-Identifier: Apache-2.0

"""A guest of the laboratory: a real QEMU, started through libvirt."""

import contextlib
import os
import pathlib
import signal
import uuid

import libvirt

from fairness_lab.results import reading
from fairness_lab.testbed.guests import domain
from fairness_lab.testbed.guests import image
from fairness_lab.testbed.guests import line
from fairness_lab.testbed.nodes import network
from fairness_lab.testbed.nodes import node as node_module
from fairness_lab.testbed.nodes import processes
from nova_fairness import exception

_REPORTED = {
    'read_bytes': 'read',
    'written_bytes': 'written',
    'sent_bytes': 'sent',
    'received_bytes': 'received',
    'wakes': 'wakes',
    'late_us': 'late_us',
    'late_20ms': 'late_20ms',
    'memory_bytes': 'memory',
}
"""Counter of the guest's report by column of a recording."""

_FILLING = b'\x5a' * (1 << 20)

_IMAGES = pathlib.PurePosixPath('/var/lib/libvirt/images')
_LOGS = pathlib.PurePosixPath('/var/log/libvirt/qemu')
_SOCKETS = pathlib.PurePosixPath('/run/nova-fairness-lab')


class Guest:
    """One guest on one node; start it, load it, destroy it.

    :param node: on which it runs.
    :param spec: what it is.
    :param boot: what it boots from.
    :param number: from 1 to 2000, of no other guest that is ever on this
        node; ``None`` for the next one of the node. A guest that moves
        keeps its number, and with it its UUID.
    """

    def __init__(
        self,
        node: node_module.Node,
        spec: domain.GuestSpec,
        boot: image.Image,
        number: int | None = None,
    ) -> None:
        self.node = node
        self.spec = spec
        node.guest_count += 1
        self.number = node.guest_count if number is None else number
        self.domain_name = f'instance-{self.number:08x}'
        whose = node.directory if number is None else node.directory.parent
        self.uuid = str(
            uuid.uuid5(uuid.NAMESPACE_DNS, f'{whose}{self.number}')
        )
        self._boot = boot
        self._line: line.GuestLine | None = None
        self._pid: int | None = None

    @property
    def name(self) -> str:
        """Its name in the scenario and in Nova's metadata."""
        return self.spec.name

    @property
    def pid(self) -> int:
        """The number of its QEMU process.

        :raises LabError: if it does not run.
        """
        if self._pid is None or not self.is_running():
            raise exception.LabError(f'guest {self.name} does not run')
        return self._pid

    @property
    def line(self) -> line.GuestLine:
        """The line to the guest.

        :raises LabError: if it was never started.
        """
        if self._line is None:
            raise exception.LabError(f'guest {self.name} was not started')
        return self._line

    @property
    def addresses(self) -> list[tuple[str, str]]:
        """IPv4 and IPv6 address of each interface, with prefix lengths."""
        return [
            network.addresses(self.node.index, segment, self.number)
            for segment in range(self.spec.nics)
        ]

    @property
    def console(self) -> str:
        """What the guest's kernel and init printed."""
        path = self.node.directory / self._console.relative_to('/')
        return path.read_text(errors='replace') if path.is_file() else ''

    def start(self, connection: 'libvirt.virConnect') -> None:
        """Start the guest; it boots while the caller goes on.

        :param connection: to the node's libvirt.
        :raises LabError: if libvirt refuses.
        """
        self._make_disks()
        try:
            connection.createXML(domain.xml(self.spec, self._placement()), 0)
        except libvirt.libvirtError as error:
            raise exception.LabError(
                f'guest {self.name} does not start: {error}'
            ) from None
        noted = self.node.root / f'run/libvirt/qemu/{self.domain_name}.pid'
        self._pid = int(noted.read_text())
        path = self.node.root / self._control.relative_to('/')
        self._line = line.GuestLine(self.name, path)

    def await_ready(self, patience_s: float) -> None:
        """Wait until the guest takes commands.

        :raises LabError: if it does not within ``patience_s`` seconds.
        """
        if not self.line.await_ready(patience_s):
            raise exception.LabError(
                f'guest {self.name} did not boot within {patience_s:g} s: '
                f'{self.console[-500:].strip() or "it printed nothing"}'
            )

    def command(self, command: str, patience_s: float = 60.0) -> list[str]:
        """Have the guest do something and wait until it is done.

        :returns: the words that follow the command's name in the answer.
        :raises LabError: if the guest refuses, ends or takes too long.
        """
        return self.line.ask(command, patience_s)

    def is_running(self) -> bool:
        """Whether its QEMU process exists and is its own."""
        return self._pid is not None and self._is_mine(self._pid)

    def freeze(self) -> None:
        """Stop its QEMU process (SIGSTOP), as a stuck one would be."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let its QEMU process go on."""
        self._signal(signal.SIGCONT)

    def destroy(self, connection: 'libvirt.virConnect') -> None:
        """End the guest through libvirt; one that is gone is no error."""
        with contextlib.suppress(libvirt.libvirtError):
            connection.lookupByUUIDString(self.uuid).destroy()
        self.hang_up()

    def hang_up(self) -> None:
        """Close the line to the guest."""
        if self._line is not None:
            self._line.close()

    def cpu_seconds(self) -> float | None:
        """CPU seconds that its control group used; ``None`` if gone."""
        return reading.cpu_seconds(self._pid) if self.is_running() else None

    def cpu_shares(self) -> int | None:
        """CPU shares (v1) or weight (v2) of its group; ``None`` if gone."""
        return reading.cpu_shares(self._pid) if self.is_running() else None

    def more(self) -> dict[str, float]:
        """Give what else is known, by column of a recording."""
        # As reported: a value that was carried on might fall later, which
        # would look like a restart.
        report = self.line.report
        found: dict[str, float | None] = {
            column: report.get(counter)
            for column, counter in _REPORTED.items()
        }
        found['io_weight'] = reading.io_weight(self._pid)
        found['wait_s'] = reading.wait_seconds(self._pid)
        return {
            name: value for name, value in found.items() if value is not None
        }

    @property
    def _console(self) -> pathlib.PurePosixPath:
        return _LOGS / f'{self.domain_name}-console.log'

    @property
    def _control(self) -> pathlib.PurePosixPath:
        return _SOCKETS / f'{self.domain_name}.sock'

    def _disk_paths(self) -> list[pathlib.PurePosixPath]:
        return [
            _IMAGES / f'{self.domain_name}-{number}.raw'
            for number in range(len(self.spec.disks))
        ]

    @property
    def images(self) -> list[pathlib.Path]:
        """The files of its disks, as seen from outside of the node."""
        return [
            self.node.root / path.relative_to('/')
            for path in self._disk_paths()
        ]

    def _make_disks(self) -> None:
        for disk, path in zip(self.spec.disks, self.images, strict=True):
            size = disk.size_mib << 20
            with path.open('wb') as stream:
                os.truncate(stream.fileno(), size)
                if self.node.has_disk:
                    # What was never written would be read from nowhere.
                    for _ in range(disk.size_mib):
                        stream.write(_FILLING)
                    os.fsync(stream.fileno())

    def _placement(self) -> domain.Placement:
        return domain.Placement(
            domain=self.domain_name,
            uuid=self.uuid,
            kind='kvm' if self.node.accelerator == 'kvm' else 'qemu',
            kernel=str(self._boot.kernel),
            initrd=str(self._boot.initrd),
            disks=[str(path) for path in self._disk_paths()],
            control=str(self._control),
            console=str(self._console),
            bridge=network.BRIDGE,
            addresses=self.addresses,
        )

    def _is_mine(self, pid: int) -> bool:
        if processes.identify(pid) is None or not self.node.groups.holds(pid):
            return False
        try:
            text = pathlib.Path(f'/proc/{pid}/cmdline').read_bytes()
        except OSError:
            return False
        return self.uuid.encode() in text.split(b'\0')

    def _signal(self, number: signal.Signals) -> None:
        if self._pid is None or not processes.send(
            self._pid, number, self._is_mine
        ):
            raise exception.LabError(f'guest {self.name} does not run')
