# SPDX-License-Identifier: Apache-2.0

"""A network namespace of a run, and how programs are started in one.

All its programs stand in control groups of the run, so that they end with the
run; the namespace, with its interfaces, ends with its processes.
"""

from collections.abc import Sequence
import ctypes
import ipaddress
import os
import pathlib
import socket
import subprocess
import threading

from fairness_lab.testbed.nodes import groups
from fairness_lab.testbed.nodes import processes
from nova_fairness import exception

_JOIN = """
while [ "$1" != -- ]; do echo $$ >"$1" || exit 126; shift; done
shift
exec "$@"
"""


def joining(files: Sequence[pathlib.Path], argv: Sequence[str]) -> list[str]:
    """Command line that joins control groups before it runs.

    :param files: ``cgroup.procs`` of each.
    :param argv: what to run.
    """
    return ['sh', '-c', _JOIN, 'sh', *map(str, files), '--', *argv]


class NetworkNamespace:
    """A network of its own, empty but for the loopback interface.

    :param name: what it is called in the run; no name of a node.
    :param run: directory of the run, whose name identifies it.
    """

    def __init__(self, name: str, run: pathlib.Path) -> None:
        self.name = name
        self.groups = groups.NodeGroups(run.name, name)
        self._pause: subprocess.Popen[bytes] | None = None
        self._children: list[subprocess.Popen[bytes]] = []

    @property
    def pid(self) -> int:
        """The process that holds the namespace.

        :raises LabError: if there is none.
        """
        if self._pause is None or self._pause.poll() is not None:
            raise exception.LabError(f'the network {self.name} is not there')
        return self._pause.pid

    def start(self, patience_s: float = 60.0) -> None:
        """Make it.

        :raises LabError: if it does not come up; nothing of it is left.
        """
        try:
            self.groups.make()
            self.groups.delegate()
            self._pause = subprocess.Popen(
                joining(
                    self.groups.join_files(),
                    ['unshare', '--net', '--', 'sleep', 'infinity'],
                ),
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
            processes.wait_until(self._has_left_network, patience_s)
            self._require()
            self.run(['ip', 'link', 'set', 'lo', 'up'])
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End what runs in it; the namespace ends with it.

        :raises LabError: if something does not go away.
        """
        self.groups.remove()
        for child in (*self._children, self._pause):
            if child is not None:
                child.wait()
        self._children, self._pause = [], None

    def run(self, argv: Sequence[str]) -> str:
        """Run a program in it to its end, and return its output.

        :raises LabError: if it fails.
        """
        return processes.run(
            self._command(argv),
            named=f'{" ".join(argv)} in the network {self.name}',
        )

    def popen(
        self, argv: Sequence[str], **options: object
    ) -> subprocess.Popen[bytes]:
        """Start a program in it, out of reach of the terminal.

        :param options: of :class:`subprocess.Popen`.
        """
        child: subprocess.Popen[bytes] = subprocess.Popen(  # type: ignore[call-overload]
            self._command(argv),
            start_new_session=True,
            **{'stdin': subprocess.DEVNULL, **options},
        )
        self._children.append(child)
        return child

    def _command(self, argv: Sequence[str]) -> list[str]:
        enter = ['nsenter', '-t', str(self.pid), '-n', '--']
        return joining(self.groups.join_files(), [*enter, *argv])

    def _require(self) -> None:
        if not self._has_left_network():
            raise exception.LabError(
                f'the network {self.name} cannot be set up'
            )

    def _has_left_network(self) -> bool:
        """Whether the process has left the machine's own network."""
        if self._pause is None:
            return False
        there = pathlib.Path(f'/proc/{self._pause.pid}/ns/net')
        here = pathlib.Path('/proc/self/ns/net')
        try:
            return there.readlink() != here.readlink()
        except OSError:
            return False


SEGMENTS = 4
"""Networks of a node; a guest's n-th interface is in the n-th of them."""

BRIDGE = 'br0'
SINK_PORT, SOURCE_PORT = 9, 19

FAR_ADDRESS = '10.78.255.254'
FAR_ADDRESS_SIX = 'fd78::ffff:1'
"""Of the far end of the nodes' uplinks, in their first network."""

_CLONE_NEWNET = 0x40000000


def bridge_addresses(index: int) -> list[str]:
    """Addresses of a node's bridge, with prefix lengths.

    :param index: number of the node in its run, 0 to 30.
    """
    return [
        address
        for segment in range(SEGMENTS)
        for address in addresses(index, segment, 0)
    ]


def far_addresses() -> list[str]:
    """Addresses of the far end, with prefix lengths."""
    return [f'{FAR_ADDRESS}/16', f'{FAR_ADDRESS_SIX}/64']


def addresses(index: int, segment: int, number: int) -> tuple[str, str]:
    """IPv4 and the IPv6 address of one interface.

    :param index: number of the node in its run, 0 to 30.
    :param segment: 0 to :data:`SEGMENTS` - 1.
    :param number: of the guest on its node, from 1 to 2000; 0 is the node.
    """
    if not 0 <= index < 31 or not 0 <= number <= 2000:
        raise ValueError(f'no address for guest {number} of node {index}')
    four = ipaddress.IPv4Address(f'10.{78 + segment}.0.1')
    six = ipaddress.IPv6Address(f'fd{78 + segment}::1')
    offset = index * 2048 + number
    return f'{four + offset}/16', f'{six + offset}/64'


def open_socket(
    pid: int, family: socket.AddressFamily, kind: socket.SocketKind
) -> socket.socket:
    """Open a socket in the network namespace of another process.

    A thread of its own enters the namespace and ends there, so that the
    caller never leaves its own.

    :param pid: a process of that namespace.
    :raises OSError: if the namespace cannot be entered.
    """
    opened: list[socket.socket | OSError] = []
    thread = threading.Thread(
        target=_open_in_namespace, args=(pid, family, kind, opened)
    )
    thread.start()
    thread.join()
    if isinstance(opened[0], OSError):
        raise opened[0]
    return opened[0]


def _open_in_namespace(
    pid: int,
    family: socket.AddressFamily,
    kind: socket.SocketKind,
    opened: list[socket.socket | OSError],
) -> None:
    try:
        _enter(pid)
        opened.append(socket.socket(family, kind))
    except OSError as error:
        opened.append(error)


def _enter(pid: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with pathlib.Path(f'/proc/{pid}/ns/net').open('rb') as there:
        if libc.setns(there.fileno(), _CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def open_sink(pid: int) -> socket.socket:
    """Open a UDP port that swallows what comes, in another namespace.

    The port is not read. The kernel drops packets that do not fit into its
    buffer, which costs nothing and answers nothing.

    :param pid: a process of that namespace.
    :raises OSError: if it cannot be opened.
    """
    sink = open_socket(pid, socket.AF_INET6, socket.SOCK_DGRAM)
    sink.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sink.bind(('::', SINK_PORT))
    return sink
