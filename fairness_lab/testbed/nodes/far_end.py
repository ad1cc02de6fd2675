# SPDX-License-Identifier: Apache-2.0

"""The network beyond the nodes: their uplinks, and the machine at the end."""

import json
import pathlib
import subprocess
import sys
import threading

from fairness_lab.testbed.nodes import namespace
from fairness_lab.testbed.nodes import node as node_module

NAME = '@far'
"""Name of its namespace in the run, which no node can have."""

UPLINK = 'uplink0'
"""Port of a node's bridge through which its guests reach the far end."""

_BRIDGE = 'wire0'


class FarEnd:
    """The far end of all uplinks of a run; open it, link nodes, close it.

    :param run: directory of the run.
    """

    def __init__(self, run: pathlib.Path) -> None:
        self._namespace = namespace.NetworkNamespace(NAME, run)
        self._server: subprocess.Popen[bytes] | None = None
        self._came: dict[str, float] = {}

    def open(self) -> None:
        """Bring it up, without nodes.

        :raises LabError: if it cannot be made; nothing of it is left.
        """
        self._namespace.start()
        try:
            self._ip('link', 'add', _BRIDGE, 'type', 'bridge')
            path = f'/proc/sys/net/ipv6/conf/{_BRIDGE}/accept_dad'
            self._namespace.run(['sh', '-c', f'echo 0 >{path}'])
            for address in namespace.far_addresses():
                self._ip('addr', 'add', address, 'dev', _BRIDGE)
            self._ip('link', 'set', _BRIDGE, 'up')
            self._serve()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Remove it.

        :raises LabError: if something does not go away.
        """
        self._namespace.stop()

    def link(self, node: node_module.TestNode) -> None:
        """Node that runs an uplink.

        :raises LabError: if it cannot be linked.
        """
        port = f'wire-{node.index}'
        self._ip(
            *('link', 'add', port, 'type', 'veth', 'peer', UPLINK),
            *('netns', str(node.pid)),
        )
        self._ip('link', 'set', port, 'master', _BRIDGE, 'up')
        done = node.run(
            ['ip', 'link', 'set', UPLINK, 'master', namespace.BRIDGE, 'up']
        )
        done.check_returncode()

    def send(self, host: str, rate: float) -> None:
        """Send datagrams to a guest from now on.

        :param host: its IPv4 address.
        :param rate: bytes per second of payload; 0 ends it.
        """
        if self._server is not None and self._server.stdin is not None:
            self._server.stdin.write(f'{host} {rate:.0f}\n'.encode())
            self._server.stdin.flush()

    def bytes_received_from(self, *hosts: str) -> float:
        """Bytes of payload that came from addresses so far."""
        found = self._came
        return sum(found.get(host, 0.0) for host in hosts)

    def _serve(self) -> None:
        self._server = self._namespace.popen(
            [sys.executable, '-m', 'fairness_lab.testbed.nodes.far_server'],
            stdout=subprocess.PIPE,
            stdin=subprocess.PIPE,
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        if self._server is None or self._server.stdout is None:
            return
        for line in self._server.stdout:
            self._came = json.loads(line)

    def _ip(self, *words: str) -> None:
        self._namespace.run(['ip', *words])
