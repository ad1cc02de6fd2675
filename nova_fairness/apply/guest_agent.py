# SPDX-License-Identifier: Apache-2.0

"""Files in guests, written by QEMU's guest agent that runs in them.

Whether one runs is the guest's affair. It may be old, stuck or hostile: no
command waits for long, and nothing that it answers is believed. So none is
sent in a round.
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
    """Agents in the guests of this node.

    :param uri: of libvirt; the connection must be allowed to change VMs.
    :param timeout_s: for which a guest may let one command wait, > 0.
    """

    def __init__(self, uri: str, timeout_s: int = 5) -> None:
        self._uri = uri
        self._timeout_s = timeout_s

    def write(self, uuid: str, path: str, text: str) -> None:
        """Replace what a file in a guest holds; may block for some commands.

        :param uuid: of the VM.
        :param path: in the guest, in a directory that is there.
        :param text: of the file, at most some kilobytes.
        :raises GuestNotWritten: if the guest has no agent, or it does not
            answer or refuses.
        """
        content = base64.b64encode(text.encode()).decode()
        try:
            with contextlib.closing(libvirt.open(self._uri)) as connection:
                # In-process drivers have no socket that could need it.
                with contextlib.suppress(libvirt.libvirtError):
                    connection.setKeepAlive(_KEEPALIVE_S, _KEEPALIVES_LOST)
                domain = connection.lookupByUUIDString(uuid)
                file = self._ask(domain, 'open', path=path, mode='w')
                given: dict[str, Any] = {'handle': file, 'buf-b64': content}
                try:
                    self._ask(domain, 'write', **given)
                finally:
                    self._ask(domain, 'close', handle=file)
        except libvirt.libvirtError as error:
            raise exception.GuestNotWritten(str(error)) from error

    def _ask(
        self, domain: libvirt.virDomain, command: str, **arguments: Any
    ) -> Any:
        """Send one command about files; return its result."""
        order = {'execute': f'guest-file-{command}', 'arguments': arguments}
        told = libvirt_qemu.qemuAgentCommand(
            domain, json.dumps(order), self._timeout_s, 0
        )
        try:
            return json.loads(told)['return']
        except exception.UNREADABLE as error:
            raise exception.GuestNotWritten(
                f'the agent answers {told!r:.60} to guest-file-{command}'
            ) from error
