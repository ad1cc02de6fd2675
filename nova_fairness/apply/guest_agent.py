# SPDX-License-Identifier: Apache-2.0

"""Writes files into guests by QEMU's guest agent.

A guest may have no agent, or one that is old, stuck or hostile. So every
command has a timeout, no answer is trusted, and rounds send no commands.
"""

import base64
import contextlib
import json
from typing import Any

import libvirt
import libvirt_qemu

from nova_fairness import exception

_KEEPALIVE_S = 5
_KEEPALIVES_LOST = 3


class GuestAgents:
    """Sends commands to the guest agents of this node's VMs.

    :param uri: of libvirt; the connection must be allowed to change VMs.
    :param timeout_s: timeout of one command in seconds, > 0.
    """

    def __init__(self, uri: str, timeout_s: int = 5) -> None:
        self._uri = uri
        self._timeout_s = timeout_s

    def write(self, uuid: str, path: str, text: str) -> None:
        """Replace the content of a file in a guest; may block for some
        commands.

        :param uuid: of the VM.
        :param path: in the guest, in an existing directory.
        :param text: of the file, at most some kilobytes.
        :raises GuestFileNotWritten: if the guest has no agent, or the
            agent does not answer or refuses.
        """
        content = base64.b64encode(text.encode()).decode()
        try:
            with contextlib.closing(libvirt.open(self._uri)) as connection:
                # In-process drivers have no socket that could need it.
                with contextlib.suppress(libvirt.libvirtError):
                    connection.setKeepAlive(_KEEPALIVE_S, _KEEPALIVES_LOST)
                domain = connection.lookupByUUIDString(uuid)
                file = self._send_command(domain, 'open', path=path, mode='w')
                given: dict[str, Any] = {'handle': file, 'buf-b64': content}
                try:
                    self._send_command(domain, 'write', **given)
                finally:
                    self._send_command(domain, 'close', handle=file)
        except libvirt.libvirtError as error:
            raise exception.GuestFileNotWritten(str(error)) from error

    def _send_command(
        self, domain: libvirt.virDomain, command: str, **arguments: Any
    ) -> Any:
        """Send one file command to a guest; return its result."""
        order = {'execute': f'guest-file-{command}', 'arguments': arguments}
        told = libvirt_qemu.qemuAgentCommand(
            domain, json.dumps(order), self._timeout_s, 0
        )
        try:
            return json.loads(told)['return']
        except exception.UNREADABLE as error:
            raise exception.GuestFileNotWritten(
                f'guest agent: invalid answer {told!r:.60} to '
                f'guest-file-{command}'
            ) from error
