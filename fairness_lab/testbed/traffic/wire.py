# SPDX-License-Identifier: Apache-2.0

"""The network of a node made of namespaces, without guests or libvirt.

A bridge with an uplink and taps, guests behind the taps, and another machine
at the far end of the wire: real packets for what must be faster than emulated
guests, or must not need them.
"""

from collections.abc import Sequence
import dataclasses
import pathlib
import subprocess

from fairness_lab.testbed.nodes import processes
from nova_fairness import exception

UPLINK, BRIDGE, FAR = 'up0', 'br0', 'far'

_NETWORK = '10.99'
_NETWORK_SIX = 'fd99:'


@dataclasses.dataclass(frozen=True)
class WiredGuest:
    """A guest, by its number from 1 to 250, with one or more interfaces.

    :ivar nics: how many interfaces it has, 1 to 4.
    """

    number: int
    nics: int = 1

    @property
    def name(self) -> str:
        """Of its namespace."""
        return f'g{self.number}'

    @property
    def taps(self) -> list[str]:
        """Its interfaces on the node."""
        return [f'tap{self.number}-{nic}' for nic in range(self.nics)]

    @property
    def macs(self) -> list[str]:
        """MAC address of each interface."""
        return [
            f'52:54:00:99:{nic:02x}:{self.number:02x}'
            for nic in range(self.nics)
        ]

    def address(self, nic: int = 0) -> str:
        """IPv4 address of an interface."""
        return f'{_NETWORK}.{nic + 1}.{self.number}'

    def address_six(self, nic: int = 0) -> str:
        """IPv6 address of an interface."""
        return f'{_NETWORK_SIX}:{nic + 1:x}:{self.number:x}'


FAR_ADDRESS = f'{_NETWORK}.0.1'
FAR_ADDRESS_SIX = f'{_NETWORK_SIX}:0:1'
FAR_MAC = '52:54:00:99:ff:01'


class Wire:
    """A node, its guests and the far end; use it as a context.

    :param guests: who is there from the beginning.
    :raises LabError: if it cannot be set up.
    """

    def __init__(self, guests: Sequence[WiredGuest]) -> None:
        self._guests = tuple(guests)
        self._holders: dict[str, subprocess.Popen[bytes]] = {}
        self._children: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> 'Wire':
        try:
            self._create_namespace('node')
            self._create_namespace(FAR)
            self._connect()
            for place in self._guests:
                self.plug(place)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End everything in it; the namespaces go with their processes."""
        for child in (*self._children, *self._holders.values()):
            child.kill()
            child.wait()
        self._children, self._holders = [], {}

    def plug(self, place: WiredGuest) -> None:
        """Start a guest with its interfaces."""
        self._create_namespace(place.name)
        for nic, (tap, mac) in enumerate(
            zip(place.taps, place.macs, strict=True)
        ):
            pair = ['ip', 'link', 'add', tap, 'type', 'veth', 'peer']
            pid = str(self._holders[place.name].pid)
            self.run('node', [*pair, f'eth{nic}', 'netns', pid])
            self.run(
                'node', ['ip', 'link', 'set', tap, 'master', BRIDGE, 'up']
            )
            self._configure(
                place.name,
                f'eth{nic}',
                mac,
                f'{place.address(nic)}/16',
                f'{place.address_six(nic)}/64',
            )

    def unplug(self, place: WiredGuest) -> None:
        """Take a guest and its taps away."""
        for tap in place.taps:
            self.run('node', ['ip', 'link', 'del', tap])
        holder = self._holders.pop(place.name)
        holder.kill()
        holder.wait()

    def command(self, name: str, argv: Sequence[str]) -> list[str]:
        """Command line that runs another one in a namespace.

        :param name: ``node``, ``far`` or that of a guest.
        """
        pid = str(self._holders[name].pid)
        return ['nsenter', '-t', pid, '-m', '-n', '--', *argv]

    def run(self, name: str, argv: Sequence[str]) -> str:
        """Run a program to its end, and return its output.

        :raises LabError: if it fails.
        """
        return processes.run(
            self.command(name, argv), named=f'{" ".join(argv)} in {name}'
        )

    def popen(
        self, name: str, argv: Sequence[str], **options: object
    ) -> subprocess.Popen[bytes]:
        """Start a program.

        :param options: of :class:`subprocess.Popen`.
        """
        child: subprocess.Popen[bytes] = subprocess.Popen(  # type: ignore[call-overload]
            self.command(name, argv), **options
        )
        self._children.append(child)
        return child

    def counters(self) -> dict[str, tuple[int, int]]:
        """Bytes received and sent of each interface of the node."""
        text = self.run('node', ['cat', '/proc/net/dev'])
        found = {}
        for line in text.splitlines()[2:]:
            name, _, rest = line.partition(':')
            fields = rest.split()
            found[name.strip()] = int(fields[0]), int(fields[8])
        return found

    def _create_namespace(self, name: str) -> None:
        """Make a namespace that shows its own interfaces in sysfs."""
        setup = 'mount -t sysfs sysfs /sys && ip link set lo up'
        script = f'{setup} && exec sleep infinity'
        self._holders[name] = subprocess.Popen(
            ['unshare', '--mount', '--net', '--', 'sh', '-c', script],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        if not processes.wait_until(lambda: self._is_up(name), 10.0):
            raise exception.LabError(f'the network {name} cannot be set up')

    def _is_up(self, name: str) -> bool:
        pid = self._holders[name].pid
        try:
            text = pathlib.Path(f'/proc/{pid}/comm').read_text()
        except OSError:
            return False
        return text == 'sleep\n'

    def _connect(self) -> None:
        pid = str(self._holders[FAR].pid)
        pair = ['ip', 'link', 'add', UPLINK, 'type', 'veth', 'peer']
        self.run('node', [*pair, 'eth0', 'netns', pid])
        bridge = ['ip', 'link', 'add', BRIDGE, 'type', 'bridge']
        self.run('node', [*bridge, 'mcast_snooping', '0'])
        self.run('node', ['ip', 'link', 'set', UPLINK, 'master', BRIDGE, 'up'])
        self._configure(
            FAR, 'eth0', FAR_MAC, f'{FAR_ADDRESS}/16', f'{FAR_ADDRESS_SIX}/64'
        )
        self._configure('node', BRIDGE, '', f'{_NETWORK}.0.2/16', '')

    def _configure(
        self, name: str, device: str, mac: str, *addresses: str
    ) -> None:
        if mac:
            self.run(name, ['ip', 'link', 'set', device, 'address', mac])
        # A duplicate is not looked for: addresses can be used at once.
        path = f'/proc/sys/net/ipv6/conf/{device}/accept_dad'
        self.run(name, ['sh', '-c', f'echo 0 >{path}'])
        for address in filter(None, addresses):
            self.run(name, ['ip', 'addr', 'add', address, 'dev', device])
        self.run(name, ['ip', 'link', 'set', device, 'up'])
