# SPDX-License-Identifier: Apache-2.0

"""The files that a node has instead of the machine's."""

from collections.abc import Iterable
import pathlib
import uuid

from fairness_lab.testbed.nodes import hierarchy
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


def write(
    directory: pathlib.Path,
    name: str,
    hierarchies: Iterable[hierarchy.Hierarchy],
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


def _mount_line(item: hierarchy.Hierarchy) -> str:
    controllers = ','.join(item.controllers) or 'v2'
    return f'{item.path} {controllers}\n'
