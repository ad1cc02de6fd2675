# SPDX-License-Identifier: Apache-2.0

"""Description of a VM, independent of its activity."""

from collections.abc import Mapping
import dataclasses
import types

UNOWNED = 'unowned'
"""Owner of a VM without Nova's metadata in its domain and without a
mapping.
"""

_EMPTY: Mapping[str, str] = types.MappingProxyType({})


@dataclasses.dataclass(frozen=True, slots=True)
class Disk:
    """A disk of a VM.

    :ivar target: device name inside the domain, such as ``vda``.
    :ivar source: path, or ``protocol:name`` of a network disk.
    :ivar cache: libvirt's cache mode; ``default`` if the domain names none.
    :ivar network: whether the host's block layer never sees its traffic.
    """

    target: str
    source: str = ''
    cache: str = 'default'
    network: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Nic:
    """A network interface of a VM.

    :ivar mac: lower-case MAC address.
    :ivar kind: libvirt's interface type (``bridge``, ``ethernet``,
        ``hostdev``, ``vhostuser`` ...).
    :ivar tap: name of the host's end; empty if the host has none.
    """

    mac: str
    kind: str
    tap: str = ''


@dataclasses.dataclass(frozen=True, slots=True)
class Instance:
    """A VM as its domain XML describes it; parsed once per incarnation.

    :ivar uuid: UUID of the domain, which is that of the server in Nova.
    :ivar domain_name: libvirt's name, such as ``instance-00000001``.
    :ivar display_name: the name its owner gave it; may be empty.
    :ivar user_id: id of the user who started it, :data:`UNOWNED` if unknown.
    :ivar project_id: id of the project that pays, :data:`UNOWNED` if unknown.
    :ivar user_name: name of the user; the id if the domain names none.
    :ivar project_name: name of the project; the id if the domain names none.
    :ivar flavor: the flavor's name; may be empty.
    :ivar extra_specs: the flavor's extra specs.
    :ivar vcpus: number of virtual CPUs, >= 1.
    :ivar memory_bytes: memory of the flavor, > 0.
    :ivar dedicated_cpus: whether its vCPUs are pinned one to one or realtime;
        then CPU weights are never written for it.
    """

    uuid: str
    domain_name: str
    vcpus: int
    memory_bytes: int
    user_id: str = UNOWNED
    project_id: str = UNOWNED
    user_name: str = ''
    project_name: str = ''
    display_name: str = ''
    flavor: str = ''
    extra_specs: Mapping[str, str] = dataclasses.field(
        default_factory=lambda: _EMPTY
    )
    disks: tuple[Disk, ...] = ()
    nics: tuple[Nic, ...] = ()
    dedicated_cpus: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Description:
    """Facts of the cloud about a VM, if its domain does not have them.

    The fields are those of :class:`Instance`.
    """

    user_id: str
    project_id: str
    display_name: str
    flavor: str
    extra_specs: Mapping[str, str]
    memory_bytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class Incarnation:
    """One run of a VM's process on this host.

    A reboot from outside, a migration or a crash starts a new incarnation.
    Counters and controls belong to an incarnation, never to a name or a path,
    because names and paths are used again.

    :ivar instance: the VM.
    :ivar pid: process id of its QEMU.
    :ivar start_ticks: start time of that process, clock ticks since boot.
    :ivar paused: whether its vCPUs are stopped.
    """

    instance: Instance
    pid: int
    start_ticks: int
    paused: bool = False

    @property
    def key(self) -> str:
        """Identity of this run, which changes at every start of the VM."""
        return f'{self.instance.uuid}/{self.pid}/{self.start_ticks}'


def parse_key(key: str) -> tuple[str, int, int]:
    """Split the key of an incarnation.

    :returns: UUID, process id, start time in clock ticks since boot.
    :raises ValueError: if the text is not such a key.
    """
    uuid, pid, start_ticks = key.split('/')
    return uuid, int(pid), int(start_ticks)
