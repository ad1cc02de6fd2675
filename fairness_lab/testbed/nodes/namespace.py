# SPDX-License-Identifier: Apache-2.0

"""A network namespace of a run, and how programs are started in one.

Whatever runs in it stands in control groups of the run, so that it ends with
the run; the namespace, with its interfaces, ends with its processes.
"""

from collections.abc import Sequence
import pathlib
import subprocess

from fairness_lab.testbed.nodes import groups
from fairness_lab.testbed.nodes import processes
from nova_fairness import exception

_JOIN = """
while [ "$1" != -- ]; do echo $$ >"$1" || exit 126; shift; done
shift
exec "$@"
"""


def joining(files: Sequence[pathlib.Path], argv: Sequence[str]) -> list[str]:
    """Give a command line that joins control groups before it runs.

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
            processes.wait_until(self._is_apart, patience_s)
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
        """Run a program in it to its end and give what it printed.

        :raises LabError: if it fails.
        """
        done = subprocess.run(
            self._command(argv),
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            raise exception.LabError(
                f'{" ".join(argv)} failed in the network {self.name}: '
                f'{done.stderr.strip()}'
            )
        return done.stdout

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
        if not self._is_apart():
            raise exception.LabError(
                f'the network {self.name} cannot be set up'
            )

    def _is_apart(self) -> bool:
        """Whether the process has left the machine's own network."""
        if self._pause is None:
            return False
        there = pathlib.Path(f'/proc/{self._pause.pid}/ns/net')
        here = pathlib.Path('/proc/self/ns/net')
        try:
            return there.readlink() != here.readlink()
        except OSError:
            return False
