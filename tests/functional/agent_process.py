# SPDX-License-Identifier: Apache-2.0

"""A real agent inside a laboratory node, for functional tests."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
from typing import Any

from fairness_lab.testbed.nodes import namespace
from fairness_lab.testbed.nodes import node as lab_node
from fairness_lab.testbed.nodes import processes

PROGRAM = str(pathlib.Path(sys.executable).with_name('nova-fairness'))
_TOP = pathlib.Path(__file__).resolve().parents[2]
PATIENCE_S = 300.0
"""For broken code only; nothing here takes that long."""

INTERVAL_S = 0.5
HELPERS = {
    b'nova_fairness.apply.privileged.context',
    b'nova_fairness.apply.privileged_network.context',
}

Round = Mapping[str, Any]


class Agent:
    """One agent with its configuration, state, record and log.

    :param node: inside which it runs.
    :param directory: for its files; readable inside the node.
    :param port: of the endpoint; 0 for none.
    :param options: of the group ``[fairness]``, besides those of a test.
    """

    def __init__(
        self,
        node: lab_node.TestNode,
        directory: pathlib.Path,
        port: int = 0,
        **options: object,
    ) -> None:
        self.node = node
        self.directory = directory
        self.port = port
        self.state = directory / 'state'
        self.config = directory / 'agent.conf'
        self.plugins = directory / 'plugins'
        self._record = directory / 'rounds.jsonl'
        self._rounds: list[Round] = []
        self._read = 0
        self._log = directory / 'agent.log'
        self._process: subprocess.Popen[bytes] | None = None
        self._options: dict[str, object] = {}
        self.configure(**options)

    def configure(self, **options: object) -> None:
        """Write the file; options that were given before stay."""
        self._options |= options
        fairness = {
            'interval': INTERVAL_S,
            'state_path': self.state,
            'record_path': self._record,
            'controls': 'cpu',
            **self._options,
        }
        lines = [f'{name} = {value}' for name, value in fairness.items()]
        text = '\n'.join(('[fairness]', *lines))
        text += f'\n[fairness_observe]\nprometheus_port = {self.port}\n'
        self.config.write_text(text)

    def start(self, before: Sequence[str] = ()) -> None:
        """Start it without waiting for anything.

        :param before: words that come before the command line.
        """
        environment = {
            **os.environ,
            # The tree that is tested comes before what is installed.
            'PYTHONPATH': f'{self.plugins}:{_TOP}',
            'XDG_CACHE_HOME': str(self.directory),
        }
        with self._log.open('ab') as log:
            self._process = self.node.popen(
                [*before, PROGRAM, '--config-file', str(self.config)],
                stdout=log,
                stderr=log,
                env=environment,
            )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end with the same configuration."""
        return self.node.run(
            [PROGRAM, '--config-file', str(self.config), *arguments]
        )

    @property
    def pid(self) -> int:
        """The number of its process."""
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        """All that it has said."""
        return self._log.read_text() if self._log.exists() else ''

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the agent alone."""
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self) -> int:
        """Wait until it ends; give its exit code."""
        assert self._process is not None
        return self._process.wait(PATIENCE_S)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it as an operator would; give its exit code."""
        self.send(number)
        return self.wait()

    def kill(self) -> None:
        """End it and its helper at once, if they still run."""
        assert self._process is not None
        for pid in (self._process.pid, *self.helpers()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(PATIENCE_S)

    def close(self) -> None:
        """Leave nothing running and every control as it was found."""
        if self._process is None:
            return
        if self._process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.stop()
        if self._process.poll() != 0:
            self.kill()
            self.run('restore')

    def helpers(self) -> list[int]:
        """Privileged helpers that run in the node."""
        return [pid for pid in self.node.groups.pids() if _is_helper(pid)]

    def rounds(self) -> list[Round]:
        """All rounds recorded, those of earlier lives too."""
        if not self._record.exists():
            return []
        # Waiting must not take the CPU time that the agent needs.
        with self._record.open('rb') as record:
            record.seek(self._read)
            whole, end, _ = record.read().rpartition(b'\n')
        self._read += len(whole + end)
        self._rounds += [json.loads(line) for line in whole.splitlines()]
        return list(self._rounds)

    def await_round(
        self, wanted: Callable[[Round], object], count: int = 1
    ) -> Round:
        """Wait for rounds that begin from now on.

        :param wanted: says whether a round is as it should be.
        :param count: how many such rounds there shall be.
        :returns: the last of them.
        """
        known = len(self.rounds())
        deadline = time.monotonic() + PATIENCE_S
        while True:
            found = [item for item in self.rounds()[known:] if wanted(item)]
            if len(found) >= count:
                return found[count - 1]
            assert self._process is not None
            assert self._process.poll() is None, f'it ended: {self.log}'
            assert time.monotonic() < deadline, self._complaint()
            time.sleep(0.1)

    def _complaint(self) -> str:
        newest = json.dumps(self.rounds()[-1:], indent=1)
        return f'no such round; newest {newest}; log {self.log[-3000:]}'

    def await_log(self, text: str, count: int = 1) -> None:
        """Wait until the log holds a text so many times."""
        assert processes.wait_until(
            lambda: self.log.count(text) >= count, PATIENCE_S, 0.05
        ), f'{text!r} was not said in {self.log}'

    def get(self, path: str) -> str:
        """Ask the endpoint, inside the node's network."""
        connection = http.client.HTTPConnection('127.0.0.1', self.port)
        connection.sock = namespace.open_socket(
            self.node.pid, socket.AF_INET, socket.SOCK_STREAM
        )
        connection.sock.settimeout(PATIENCE_S)
        with contextlib.closing(connection):
            connection.sock.connect(('127.0.0.1', self.port))
            connection.request('GET', path)
            answer = connection.getresponse()
            assert answer.status == http.client.OK
            return answer.read().decode()


def _is_helper(pid: int) -> bool:
    try:
        words = pathlib.Path(f'/proc/{pid}/cmdline').read_bytes()
    except OSError:
        return False
    return not HELPERS.isdisjoint(words.split(b'\0'))


def write_distribution(
    directory: pathlib.Path, source: str, metrics: Sequence[str]
) -> None:
    """Install a distribution that brings metrics, as pip would.

    :param directory: becomes part of the module search path.
    :param source: of its only module, ``elsewhere``.
    :param metrics: classes in it.
    """
    entries = [f'{name} = elsewhere:{name}' for name in metrics]
    made = directory / 'elsewhere-1.0.dist-info'
    made.mkdir(parents=True)
    (directory / 'elsewhere.py').write_text(source)
    (made / 'METADATA').write_text(
        'Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n'
    )
    (made / 'entry_points.txt').write_text(
        '\n'.join(('[nova_fairness.metrics]', *entries, ''))
    )
