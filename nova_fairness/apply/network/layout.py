# SPDX-License-Identifier: Apache-2.0

"""The interfaces at which VMs can be steered, and the VMs that cannot.

It reads only ``/sys/class/net``.
"""

import dataclasses
import os
import pathlib

from nova_fairness.apply.network import settings as network_settings
from nova_fairness.apply.network import state
from nova_fairness.model import instance

SYS = pathlib.Path('/sys/class/net')

NO_INTERFACE = 'it has no interface'

_USER_SPACE = 'ovs-netdev'
"""The interface that Open vSwitch always creates for its user-space
datapath."""

_OVS_DEVICES = ('ovs-system', _USER_SPACE)
_TUNNELS = ('vxlan', 'geneve', 'gretap', 'ip6gretap', 'erspan')
_BYPASSES = {
    'hostdev': 'is passed through to the VM (SR-IOV)',
    'vhostuser': 'is served by a switch in user space (vhost-user)',
    'vdpa': 'is served by its hardware (vDPA)',
    'user': 'is served by QEMU itself',
}

Kind = network_settings.SteeringKind


@dataclasses.dataclass(frozen=True, slots=True)
class NetworkLayout:
    """The interfaces at which VMs are steered.

    :ivar kind: never AUTO.
    :ivar uplink: interface at which VMs' sent traffic is divided; empty if it
        is divided at the taps.
    :ivar why: cause of the choice, for people.
    """

    kind: Kind
    uplink: str
    why: str

    @property
    def where(self) -> str:
        """The interfaces at which VMs are steered, for people."""
        if self.kind is Kind.UPLINK:
            return self.uplink
        return f'{self.uplink} and the taps' if self.uplink else 'the taps'


def choose_layout(
    settings: network_settings.NetworkSettings, sys: pathlib.Path = SYS
) -> NetworkLayout:
    """Choose the layout by configuration, else by the host's interfaces."""
    if settings.layout is Kind.OFF:
        return NetworkLayout(Kind.OFF, '', 'switched off by configuration')
    if settings.layout is Kind.TAP:
        return NetworkLayout(
            Kind.TAP, settings.uplink, 'chosen by configuration'
        )
    if settings.uplink:
        return NetworkLayout(
            Kind.UPLINK, settings.uplink, 'named by configuration'
        )
    found = uplinks(sys)
    if settings.layout is Kind.UPLINK:
        return _configured_uplink(found)
    return _detected_layout(found, sys)


def _configured_uplink(found: list[str]) -> NetworkLayout:
    if len(found) == 1:
        return NetworkLayout(
            Kind.UPLINK, found[0], 'the only port of a bridge'
        )
    names = ', '.join(found) or 'none'
    return NetworkLayout(
        Kind.OFF,
        '',
        f'[fairness_network] uplink must be set: bridges have the physical '
        f'ports {names}, expected one',
    )


def _detected_layout(found: list[str], sys: pathlib.Path) -> NetworkLayout:
    for name in _OVS_DEVICES:
        if (sys / name).exists():
            return NetworkLayout(
                Kind.TAP, '', f'Open vSwitch is there ({name})'
            )
    tunnels = [
        path.parent.parent.name
        for path in sorted(sys.glob('*/brport/bridge'))
        if _device_type(path.parent.parent) in _TUNNELS
    ]
    if tunnels:
        return NetworkLayout(Kind.TAP, '', f'{tunnels[0]} is a tunnel')
    if len(found) == 1:
        return NetworkLayout(
            Kind.UPLINK, found[0], 'the only physical port of a bridge'
        )
    many = ', '.join(found)
    return NetworkLayout(
        Kind.TAP,
        '',
        f'bridges have several physical ports ({many})'
        if found
        else 'no bridge has a physical port',
    )


def uplinks(sys: pathlib.Path) -> list[str]:
    """Return the physical interfaces below the ports of bridges, sorted."""
    ports = {path.name for path in sys.glob('*/brif/*')}
    found = {base for port in ports for base in _lower_devices(sys, port)}
    return sorted(name for name in found if _is_physical(sys / name))


def _lower_devices(sys: pathlib.Path, name: str) -> set[str]:
    """Return an interface and all interfaces below it, except below a bond."""
    found, left = set(), [name]
    while left:
        item = left.pop()
        if item in found:
            continue
        found.add(item)
        if not (sys / item / 'bonding').exists():
            left += [
                path.name.removeprefix('lower_')
                for path in (sys / item).glob('lower_*')
            ]
    return found


def _is_physical(path: pathlib.Path) -> bool:
    has_tunnel = (path / 'tun_flags').exists()
    is_real = (path / 'device').exists() or (path / 'bonding').exists()
    return is_real and not has_tunnel


def _device_type(path: pathlib.Path) -> str:
    try:
        lines = (path / 'uevent').read_text().splitlines()
    except OSError:
        return ''
    found = (line.partition('=') for line in lines)
    return next((value for key, _, value in found if key == 'DEVTYPE'), '')


def obstacle(layout: NetworkLayout, kernel: state.Kernel) -> str:
    """Return why no VM can be steered; empty if VMs can."""
    if layout.kind is Kind.OFF:
        return layout.why
    uplink = layout.uplink
    if not uplink:
        return ''
    if uplink not in kernel.links:
        return f'the uplink {uplink} does not exist'
    root, ingress = kernel.root(uplink), kernel.ingress(uplink)
    if not (state.is_our_root(root) or state.is_default(root)):
        kind = '' if root is None else root.kind
        return f'{uplink} has a root qdisc {kind} that is not ours'
    if layout.kind is Kind.TAP:
        return ''
    if ingress is not None and ingress.kind != 'ingress':
        return f'{uplink} has filters that are not ours ({ingress.kind})'
    if kernel.redirects.get(uplink, ('', 0))[1]:
        return f'{uplink} has filters that are not ours (ingress)'
    return ''


@dataclasses.dataclass(frozen=True)
class NetworkFacts:
    """Facts that decide which VMs can be steered.

    :ivar over: the uplink and the interfaces above it.
    """

    layout: NetworkLayout
    kernel: state.Kernel
    over: frozenset[str]
    sys: pathlib.Path


def read_facts(
    layout: NetworkLayout, kernel: state.Kernel, sys: pathlib.Path = SYS
) -> NetworkFacts:
    """Read the interfaces above the uplink, once for all VMs."""
    over: set[str] = set()
    left = [layout.uplink] if layout.uplink else []
    while left:
        item = left.pop()
        if item not in over:
            over.add(item)
            left += [
                name.removeprefix('upper_')
                for name in _list_directory(sys / item)
                if name.startswith('upper_')
            ]
    return NetworkFacts(layout, kernel, frozenset(over), sys)


def _list_directory(path: pathlib.Path) -> list[str]:
    try:
        return [item.name for item in path.iterdir()]
    except OSError:
        return []


def steerable(
    vm: instance.Instance, view: NetworkFacts
) -> tuple[list[instance.Nic], str]:
    """Return the steerable interfaces of a VM, and why others are not.

    :returns: interfaces, and a text about the others; empty if all can be
        steered.
    """
    nics: list[instance.Nic] = []
    whys: list[str] = []
    for nic in vm.nics:
        if why := _cause_unsteerable(nic, view):
            whys.append(f'{nic.mac or "an interface"} {why}')
            continue
        nics.append(nic)
        if why := _cause_partly_steered(nic, view):
            whys.append(f'{nic.mac} {why}')
    return nics, '; '.join(whys) or ('' if nics else NO_INTERFACE)


def _cause_unsteerable(nic: instance.Nic, view: NetworkFacts) -> str:
    if reason := _BYPASSES.get(nic.kind):
        return reason
    if not nic.tap or not nic.mac:
        return 'has no interface on the host'
    if nic.tap not in view.kernel.links:
        return f'has no interface {nic.tap} on the host any more'
    if view.layout.kind is Kind.UPLINK:
        return _cause_not_over_uplink(nic, view)
    return _cause_not_at_tap(nic, view.kernel)


def _cause_partly_steered(nic: instance.Nic, view: NetworkFacts) -> str:
    """Return which traffic of a steerable interface is not divided."""
    is_in_user_space = _USER_SPACE in view.kernel.links
    if (
        view.layout.kind is Kind.TAP
        and not view.layout.uplink
        and is_in_user_space
        and not _bridge_of(nic, view)
    ):
        return (
            'bypasses traffic control when it sends, since Open vSwitch '
            'reads its tap in user space; only what it receives is divided, '
            'unless [fairness_network] uplink is set'
        )
    return ''


def _bridge_of(nic: instance.Nic, view: NetworkFacts) -> str:
    try:
        # Once per VM and round, where pathlib takes most of the time.
        link = os.readlink(f'{view.sys}/{nic.tap}/master')  # noqa: PTH115
    except OSError:
        return ''
    return link.rpartition('/')[2]


def _cause_not_at_tap(nic: instance.Nic, kernel: state.Kernel) -> str:
    if nic.kind == 'direct':
        return f'is a macvtap ({nic.tap}), whose VM is not behind a tap'
    found = kernel.ingress(nic.tap)
    if found is not None and not state.is_our_clsact(found):
        return (
            f'has filters on {nic.tap} that are not ours ({found.kind}), as '
            f'those of Neutron QoS or <bandwidth>'
        )
    return ''


def _cause_not_over_uplink(nic: instance.Nic, view: NetworkFacts) -> str:
    """Return why a VM's traffic does not pass the uplink with its MAC
    address.
    """
    if _bridge_of(nic, view) in view.over or nic.tap in view.over:
        return ''
    return f'is connected by {nic.tap} to no bridge over {view.layout.uplink}'
