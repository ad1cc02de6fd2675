# SPDX-License-Identifier: Apache-2.0

"""The network between the nodes of a run: a bridge, and a link to each.

The bridge stands in a network namespace of the run, the other end of each link
in the namespace of its node; the machine's own has no part in it. A node that
is cut off is like one with a pulled cable: its end sees no carrier, and sent
packets are lost without an answer.
"""

import pathlib

from fairness_lab.testbed.nodes import namespace

NAME = '@hub'
"""Name of its namespace in the run, which no node can have."""

BRIDGE = 'hub0'
INTERFACE = 'lab0'
"""Name of a link's end in the namespace that it leads to."""

SERVICE = 254
"""Number of the address at which the services of a run are."""

_NETWORK = '10.77.0'


def address(number: int) -> str:
    """Address on the network.

    :param number: 1 to 253 for nodes, :data:`SERVICE` for services.
    :raises ValueError: if there is no such address.
    """
    if not 1 <= number <= SERVICE:
        raise ValueError(f'no address number {number} on the hub')
    return f'{_NETWORK}.{number}'


def node_number(index: int) -> int:
    """Number of a node's address.

    :param index: number of the node in its run, 0 to 30.
    """
    return index + 1


def node_address(index: int) -> str:
    """Address of a node; parameter as above."""
    return address(node_number(index))


class Hub:
    """The network between nodes; start it, link nodes, stop it.

    :param run: directory of the run.
    """

    def __init__(self, run: pathlib.Path) -> None:
        self._namespace = namespace.NetworkNamespace(NAME, run)
        self._ports: dict[str, str] = {}

    @property
    def pid(self) -> int:
        """The process that holds the bridge's namespace.

        :raises LabError: if it does not run.
        """
        return self._namespace.pid

    def start(self) -> None:
        """Make the bridge.

        :raises LabError: if it cannot be made; nothing of it is left.
        """
        self._namespace.start()
        try:
            self._ip('link', 'add', BRIDGE, 'type', 'bridge')
            self._ip('link', 'set', BRIDGE, 'up')
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Remove the bridge and all links.

        :raises LabError: if something does not go away.
        """
        self._namespace.stop()
        self._ports.clear()

    def link(self, name: str, pid: int, number: int) -> None:
        """Link a namespace to the hub.

        :param name: of the linked node.
        :param pid: a process of its network namespace.
        :param number: of its address.
        :raises LabError: if it cannot be linked.
        """
        port = f'port{number}'
        there = ['nsenter', '-t', str(pid), '-n', '--', 'ip']
        peer = ('peer', 'name', INTERFACE, 'netns', str(pid))
        self._ip('link', 'add', port, 'type', 'veth', *peer)
        self._ip('link', 'set', port, 'master', BRIDGE, 'up')
        self._namespace.run(
            [*there, 'addr', 'add', f'{address(number)}/24', 'dev', INTERFACE]
        )
        self._namespace.run([*there, 'link', 'set', INTERFACE, 'up'])
        self._ports[name] = port

    def cut(self, name: str) -> None:
        """Take a link down."""
        self._ip('link', 'set', self._ports[name], 'down')

    def heal(self, name: str) -> None:
        """Take a link up again."""
        self._ip('link', 'set', self._ports[name], 'up')

    def _ip(self, *arguments: str) -> None:
        self._namespace.run(['ip', *arguments])
