# SPDX-License-Identifier: Apache-2.0

"""The Redis of a run, through which its agents find each other."""

import contextlib
import pathlib
import shutil
import signal
import socket
import subprocess
import time

from fairness_lab.testbed.nodes import hub as hub_module
from fairness_lab.testbed.nodes import namespace
from fairness_lab.testbed.nodes import processes
from nova_fairness import exception

NAME = '@redis'
"""Name of its namespace in the run, which no node can have."""

PORT = 6379
PROGRAM = 'redis-server'

_PATIENCE_S = 120.0
_ANSWER_S = 1.0


def url() -> str:
    """Address for the agents' ``transport_url``."""
    return f'zmq+redis://{hub_module.address(hub_module.SERVICE)}:{PORT}/0'


class RedisServer:
    """A Redis of its own, in a namespace of its own on the hub.

    It keeps nothing on disk: one that was killed comes back empty.

    :param run: directory of the run.
    """

    def __init__(self, run: pathlib.Path) -> None:
        self._namespace = namespace.NetworkNamespace(NAME, run)
        self._directory = run / NAME
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether its process exists."""
        return self._process is not None and self._process.poll() is None

    def open(self, hub: hub_module.Hub) -> None:
        """Link it to the hub and start it.

        :raises LabEnvironmentError: if Redis is not installed.
        :raises LabError: if it does not come up.
        """
        self._namespace.start()
        hub.link(NAME, self._namespace.pid, hub_module.SERVICE)
        self.start()
        if not processes.wait_until(self.answers, _PATIENCE_S):
            raise exception.LabError(
                f'Redis does not answer: {self._log_text()}'
            )

    def close(self) -> None:
        """End it.

        :raises LabError: if something does not go away.
        """
        self._namespace.stop()
        self._process = None

    def start(self) -> None:
        """Start it and return at once; one that runs is left alone.

        :raises LabEnvironmentError: if Redis is not installed.
        """
        if self.running:
            return
        program = shutil.which(PROGRAM)
        if program is None:
            raise exception.LabEnvironmentError(
                f'several nodes need the command {PROGRAM}, which is not '
                'installed'
            )
        self._directory.mkdir(parents=True, exist_ok=True)
        options = {
            'bind': hub_module.address(hub_module.SERVICE),
            'port': str(PORT),
            'dir': str(self._directory),
            'save': '',
            'appendonly': 'no',
            'protected-mode': 'no',
        }
        words = [w for k, v in options.items() for w in (f'--{k}', v)]
        with self._log.open('ab') as log:
            self._process = self._namespace.popen(
                [program, *words], stdout=log, stderr=log
            )

    def kill(self) -> None:
        """End it as a crash would; its data is lost."""
        if self._process is not None and self.running:
            self._process.kill()
            self._process.wait()

    def freeze(self) -> None:
        """Stop its process: it takes connections and answers nothing."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let its process go on."""
        self._signal(signal.SIGCONT)

    def flush(self) -> None:
        """Have it forget everything.

        :raises LabError: if it does not answer.
        """
        if self._ask(b'FLUSHALL') != b'+OK':
            raise exception.LabError('Redis does not forget what it knows')

    def answers(self) -> bool:
        """Whether it answers."""
        return self._ask(b'PING') == b'+PONG'

    def keys(self) -> int:
        """Number of keys that it has.

        :raises LabError: if it does not answer.
        """
        answer = self._ask(b'DBSIZE')
        if not answer.startswith(b':'):
            raise exception.LabError('Redis does not answer')
        return int(answer[1:])

    @property
    def _log(self) -> pathlib.Path:
        return self._directory / 'redis.log'

    def _log_text(self) -> str:
        text = self._log.read_text(errors='replace')[-1000:]
        return text.strip() or 'it said nothing'

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self.running:
            self._process.send_signal(number)

    def _ask(self, command: bytes) -> bytes:
        """First line of the answer; empty if there is none."""
        address = (hub_module.address(hub_module.SERVICE), PORT)
        asking = namespace.open_socket(
            self._namespace.pid, socket.AF_INET, socket.SOCK_STREAM
        )
        deadline = time.monotonic() + _ANSWER_S
        answer = b''
        with asking, contextlib.suppress(OSError):
            asking.settimeout(_ANSWER_S)
            asking.connect(address)
            asking.sendall(command + b'\r\n')
            while b'\n' not in answer and time.monotonic() < deadline:
                part = asking.recv(1024)
                if not part:
                    break
                answer += part
        return answer.split(b'\r\n')[0]
