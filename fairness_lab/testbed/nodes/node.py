# SPDX-License-Identifier: Apache-2.0

"""A compute node of the laboratory.

A node is a process that holds namespaces of its own (mount, UTS, network,
control groups) and a libvirt daemon that runs in them with directories of its
own, so that several nodes, and the machine's own libvirt, know nothing of each
other. From outside, :attr:`TestNode.libvirt_uri` reaches its daemon.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import io
import pathlib
import socket
import subprocess
import uuid

from fairness_lab.testbed.nodes import groups
from fairness_lab.testbed.nodes import namespace
from fairness_lab.testbed.nodes import processes
from nova_fairness import exception

_LIBVIRTD_CONF = """\
auth_unix_ro = "none"
auth_unix_rw = "none"
unix_sock_group = "root"
unix_sock_rw_perms = "0770"
max_clients = 200
max_client_requests = 50
log_outputs = "2:file:/var/log/libvirt/libvirtd.log"
host_uuid = "{uuid}"
"""

# remember_owner needs extended attributes, which not every file system has.
_QEMU_CONF = """\
user = "root"
group = "root"
dynamic_ownership = 1
remember_owner = 0
security_driver = "none"
namespaces = []
stdio_handler = "file"
"""

_DIRECTORIES = (
    'etc/libvirt',
    'var/lib/libvirt/images',
    'var/lib/nova-fairness',
    'var/log/libvirt/qemu',
)


def _write_files(
    directory: pathlib.Path,
    name: str,
    hierarchies: Iterable[groups.Hierarchy],
) -> None:
    """Write the files of a node.

    :param directory: of the node.
    :param name: of the node.
    :param hierarchies: of control groups that it mounts.
    :raises LabEnvironmentError: if they cannot be written.
    """
    try:
        for part in _DIRECTORIES:
            (directory / part).mkdir(parents=True, exist_ok=True)
        libvirt = directory / 'etc/libvirt'
        identifier = uuid.uuid5(uuid.NAMESPACE_DNS, str(directory))
        text = _LIBVIRTD_CONF.format(uuid=identifier)
        (libvirt / 'libvirtd.conf').write_text(text)
        (libvirt / 'qemu.conf').write_text(_QEMU_CONF)
        lines = ''.join(_mount_line(item) for item in hierarchies)
        (directory / 'hierarchies').write_text(lines)
        hosts = f'127.0.0.1 localhost {name}\n::1 localhost\n'
        (directory / 'etc/hosts').write_text(hosts)
    except OSError as error:
        raise exception.LabEnvironmentError(
            f'the files of node {name} cannot be written: {error}'
        ) from None


def _mount_line(item: groups.Hierarchy) -> str:
    controllers = ','.join(item.controllers) or 'v2'
    return f'{item.path} {controllers}\n'


_SETUP = pathlib.Path(__file__).with_name('node_setup.sh')


class TestNode:
    """One compute node; start it, use it, stop it.

    :param name: host name.
    :param run: directory of the run, whose name identifies it.
    :param cache: directory kept between runs, for libvirt's capabilities.
    :param cpus: CPUs that the node has once it is narrowed to them.
    :param index: number of the node in its run, 0 to 30.
    :param accelerator: ``tcg`` or ``kvm``.
    :ivar has_uplink: whether its bridge leads to a far end.
    :ivar has_disk: whether its VMs' disks are on a disk of its own.
    """

    def __init__(
        self,
        name: str,
        run: pathlib.Path,
        cache: pathlib.Path,
        cpus: Sequence[int],
        index: int = 0,
        accelerator: str = 'tcg',
    ) -> None:
        self.name = name
        self.cpus = tuple(cpus)
        self.index = index
        self.accelerator = accelerator
        self.directory = run / name
        self.groups = groups.NodeGroups(run.name, name)
        self._cache = cache / 'libvirt'
        self._pause: subprocess.Popen[bytes] | None = None
        self._daemon: subprocess.Popen[bytes] | None = None
        self._children: list[subprocess.Popen[bytes]] = []
        self._sink: socket.socket | None = None
        self.guest_count = 0
        self.has_disk = False
        self.has_uplink = False

    @property
    def pid(self) -> int:
        """The process that holds the namespaces.

        :raises LabError: if the node does not run.
        """
        if self._pause is None or self._pause.poll() is not None:
            raise exception.LabError(f'node {self.name} does not run')
        return self._pause.pid

    @property
    def root(self) -> pathlib.Path:
        """The node's file system as the outside sees it."""
        return pathlib.Path(f'/proc/{self.pid}/root')

    @property
    def libvirt_uri(self) -> str:
        """Address of the node's libvirt daemon for the outside."""
        path = self.root / 'run/libvirt/libvirt-sock'
        return f'qemu+unix:///system?socket={path}'

    def start(self, patience_s: float = 30.0) -> None:
        """Start the node, with all CPUs of the machine.

        :param patience_s: seconds that its daemon may take to answer.
        :raises LabError: if it does not come up; nothing of it is left.
        """
        try:
            self._cache.mkdir(parents=True, exist_ok=True)
            _write_files(self.directory, self.name, self.groups.hierarchies)
            self.groups.make()
            self._hold_namespaces(patience_s)
            self.groups.delegate()
            self._sink = namespace.open_sink(self.pid)
            self.start_libvirt(patience_s)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End everything that runs in the node and remove what it had.

        :raises LabError: if something does not go away.
        """
        if self._sink is not None:
            self._sink.close()
            self._sink = None
        if self._daemon is not None:
            processes.end(self._daemon, 2.0)
        self.groups.remove()
        for child in (*self._children, self._daemon, self._pause):
            if child is not None:
                child.wait()
        self._children, self._daemon, self._pause = [], None, None

    def start_libvirt(self, patience_s: float = 30.0) -> None:
        """Start the node's libvirt daemon and wait until it answers.

        :param patience_s: seconds that it may take.
        :raises LabError: if it does not answer; the message holds its log.
        """
        with self._log('libvirtd-output.log') as log:
            self._daemon = self.popen(
                ['libvirtd', '--config', '/etc/libvirt/libvirtd.conf'],
                stdout=log,
                stderr=log,
            )
        daemon = self._daemon
        if not processes.wait_until(
            lambda: self._answers() or daemon.poll() is not None, patience_s
        ):
            raise exception.LabError(
                f'libvirtd of node {self.name} does not answer:'
                f' {self._error_log()}'
            )
        if daemon.poll() is not None:
            raise exception.LabError(
                f'libvirtd of node {self.name} ended: {self._error_log()}'
            )

    def stop_libvirt(self) -> None:
        """End the node's libvirt daemon; its VMs keep running."""
        if self._daemon is not None:
            processes.end(self._daemon, 5.0)

    def set_cpus(self, cpus: Sequence[int] | None = None) -> None:
        """Narrow the node and all that runs in it to some CPUs.

        :param cpus: numbers; ``None`` for those of the node.
        :raises LabError: if the machine does not have them.
        """
        self.groups.set_cpus(self.cpus if cpus is None else cpus)

    def command(self, argv: Sequence[str]) -> list[str]:
        """Command line that runs another one inside the node."""
        enter = ['nsenter', '-t', str(self.pid), '-m', '-u', '-n', '-C', '--']
        return namespace.joining(self.groups.join_files(), [*enter, *argv])

    def popen(
        self, argv: Sequence[str], **options: object
    ) -> subprocess.Popen[bytes]:
        """Start a program inside the node, out of reach of the terminal.

        :param options: of :class:`subprocess.Popen`.
        """
        options.setdefault('stdin', subprocess.DEVNULL)
        child: subprocess.Popen[bytes] = subprocess.Popen(  # type: ignore[call-overload]
            self.command(argv), start_new_session=True, **options
        )
        self._children.append(child)
        return child

    def run(
        self, argv: Sequence[str], timeout_s: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """Run a program inside the node to its end.

        :param timeout_s: seconds.
        :returns: exit code and output; failure is for the caller to judge.
        :raises subprocess.TimeoutExpired: if it takes longer.
        """
        return subprocess.run(
            self.command(argv),
            check=False,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
        )

    def open_socket(
        self, family: socket.AddressFamily = socket.AF_INET6
    ) -> socket.socket:
        """Open a UDP socket inside the node's network."""
        return namespace.open_socket(self.pid, family, socket.SOCK_DGRAM)

    def _hold_namespaces(self, patience_s: float) -> None:
        files = [path / 'cgroup.procs' for path in self.groups.directories()]
        unshare = [
            *('unshare', '--mount', '--uts', '--net', '--cgroup'),
            *('--propagation', 'private', '--'),
        ]
        setup = [
            *('sh', str(_SETUP), self.name, str(self.directory)),
            str(self._cache),
            *namespace.bridge_addresses(self.index),
        ]
        with self._log('setup.log') as log:
            self._pause = subprocess.Popen(
                namespace.joining(files, [*unshare, *setup]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._await_namespaces(self._pause, patience_s)

    def _await_namespaces(
        self, pause: subprocess.Popen[bytes], patience_s: float
    ) -> None:
        ready = pathlib.Path(
            f'/proc/{pause.pid}/root/run/nova-fairness-lab/ready'
        )
        processes.wait_until(
            lambda: ready.exists() or pause.poll() is not None, patience_s
        )
        if pause.poll() is not None or not ready.exists():
            said = (self.directory / 'var/log/setup.log').read_text()
            raise exception.LabError(
                f'node {self.name} cannot be set up: {said.strip()}'
            )

    def _answers(self) -> bool:
        path = self.root / 'run/libvirt/libvirt-sock'
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(path))
            except OSError:
                return False
        return True

    def _error_log(self) -> str:
        texts = [
            (self.directory / 'var/log' / name).read_text(errors='replace')
            for name in ('libvirt/libvirtd.log', 'libvirtd-output.log')
            if (self.directory / 'var/log' / name).is_file()
        ]
        return ' '.join(texts)[-2000:].strip() or 'it said nothing'

    def _log(self, name: str) -> io.BufferedWriter:
        return (self.directory / 'var/log' / name).open('ab')
