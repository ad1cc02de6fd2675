# SPDX-License-Identifier: Apache-2.0

"""A guest of the laboratory: a real QEMU, started through libvirt."""

from collections.abc import Mapping
import contextlib
import os
import pathlib
import signal
import socket
import threading
import time
import uuid

import libvirt

from fairness_lab.results import reading
from fairness_lab.scenario import values as scenario_module
from fairness_lab.testbed.guests import domain
from fairness_lab.testbed.guests import image
from fairness_lab.testbed.nodes import namespace
from fairness_lab.testbed.nodes import node as node_module
from fairness_lab.testbed.nodes import processes
from nova_fairness import exception

FARTHEST_S = 5.0
"""A counter is carried on at most this far beyond its newest report."""

NEAREST_S = 0.5
"""Reports that were read closer together say nothing of how fast a counter
goes on: they come once a second, so this process was late for the first."""

READY = 'ready'
WORK = 'work'


class GuestLine:
    """The connection to the second serial port of a guest.

    A thread reads what the guest says, so that it never has to wait.

    :param name: of the guest, for messages.
    :param path: of the socket.
    :raises LabError: if the socket has no listener.
    """

    def __init__(self, name: str, path: pathlib.Path) -> None:
        self._name = name
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise exception.LabError(
                f'guest {name} has no serial port: {error}'
            ) from None
        self._news = threading.Condition()
        self._answers: list[str] = []
        self._report: Mapping[str, int] = {}
        self._reported_s = 0.0
        self._before: tuple[float, Mapping[str, int]] = (0.0, {})
        self._ready = False
        self._ended = False
        self._sending = threading.Lock()
        self._reader = threading.Thread(
            target=self._read_lines, name=f'line-{name}', daemon=True
        )
        self._reader.start()

    @property
    def report(self) -> Mapping[str, int]:
        """The newest report: counters by name, empty before the first."""
        with self._news:
            return self._report

    def now(self, counter: str) -> int | None:
        """Value of a counter now.

        Reports come once a second; between them a counter goes on as fast as
        between the last two. Taken as it was reported, it would be up to a
        second old, which is much in a window of ten.

        :returns: ``None`` if it was never reported.
        """
        with self._news:
            newest, reported_s = self._report, self._reported_s
            before_s, before = self._before
        if counter not in newest:
            return None
        if counter not in before or reported_s <= before_s:
            return newest[counter]
        rate = (newest[counter] - before[counter]) / (reported_s - before_s)
        ahead_s = min(time.monotonic() - reported_s, FARTHEST_S)
        return newest[counter] + max(0, round(rate * ahead_s))

    def await_ready(self, patience_s: float) -> bool:
        """Wait until the guest takes commands.

        :returns: whether it did, within ``patience_s`` seconds.
        """
        with self._news:
            self._news.wait_for(lambda: self._ready or self._ended, patience_s)
            return self._ready

    def tell(self, command: str) -> None:
        """Send a command and wait for no answer.

        :raises LabError: if the guest takes none.
        """
        try:
            self._socket.sendall(command.encode() + b'\n')
        except OSError as error:
            raise exception.LabError(
                f'guest {self._name} takes no commands: {error}'
            ) from None

    def ask(self, command: str, patience_s: float) -> list[str]:
        """Send a command and wait until it is done.

        :param patience_s: seconds that it may take.
        :returns: the words that follow the command's name in the answer.
        :raises LabError: if the guest refuses, ends or takes too long.
        """
        verb = command.split()[0]
        with self._sending:
            with self._news:
                self._answers.clear()
            self.tell(command)
            answer = self._await_answer(verb, command, patience_s)
        return answer.split()[2:]

    def close(self) -> None:
        """Hang up."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join(5.0)
        self._socket.close()

    def _await_answer(self, verb: str, command: str, patience_s: float) -> str:
        deadline = time.monotonic() + patience_s
        with self._news:
            while True:
                for answer in self._answers:
                    if answer.split()[:2] == ['done', verb]:
                        return answer
                    if answer.split()[:2] == ['error', verb]:
                        raise exception.LabError(
                            f'guest {self._name} does not know {command!r}'
                        )
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    how = 'ended' if self._ended else 'did not answer'
                    raise exception.LabError(
                        f'guest {self._name} {how}: {command!r}'
                    )
                self._news.wait(left)

    def _read_lines(self) -> None:
        with self._socket.makefile('r', errors='replace') as lines:
            try:
                for line in lines:
                    self._process_line(line.strip())
            except OSError:
                pass
        with self._news:
            self._ended = True
            self._news.notify_all()

    def _process_line(self, line: str) -> None:
        words = line.split()
        with self._news:
            if words == [READY]:
                self._ready = True
            elif words and words[0] == WORK:
                self._store_report(_counters(words))
            elif words:
                self._answers.append(line)
            self._news.notify_all()

    def _store_report(self, counters: Mapping[str, int]) -> None:
        if not counters:
            return
        now_s = time.monotonic()
        if now_s - self._reported_s >= NEAREST_S:
            self._before = (self._reported_s, self._report)
        self._report = counters
        self._reported_s = now_s


def _counters(words: list[str]) -> Mapping[str, int]:
    try:
        pairs = zip(words[::2], words[1::2], strict=True)
        return {name: int(value) for name, value in pairs}
    except ValueError:
        return {}


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
        node: node_module.TestNode,
        spec: scenario_module.Vm,
        boot: image.GuestImage,
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
        self._line: GuestLine | None = None
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
    def line(self) -> GuestLine:
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
            namespace.addresses(self.node.index, segment, self.number)
            for segment in range(self.spec.nics)
        ]

    @property
    def console(self) -> str:
        """Output of the guest's kernel and init."""
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
        self._line = GuestLine(self.name, path)

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
        """Other values, by column of a recording."""
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

    def _placement(self) -> domain.GuestPlacement:
        return domain.GuestPlacement(
            domain=self.domain_name,
            uuid=self.uuid,
            kind='kvm' if self.node.accelerator == 'kvm' else 'qemu',
            kernel=str(self._boot.kernel),
            initrd=str(self._boot.initrd),
            disks=[str(path) for path in self._disk_paths()],
            control=str(self._control),
            console=str(self._console),
            bridge=namespace.BRIDGE,
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
