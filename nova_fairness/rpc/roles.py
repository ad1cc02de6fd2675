# SPDX-License-Identifier: Apache-2.0

"""Calls that each role may make.

A transport with keys names the caller in each context (``zmq_peer``: name and
role). A transport without keys cannot distinguish its peers. Then each peer
with access to the transport is trusted, as by every other service on it.
"""

from collections.abc import Mapping
import enum
from typing import Any

from nova_fairness import exception

PEER = 'zmq_peer'
"""Key under which the driver writes the caller; it overwrites the caller's own
value.
"""

_NODE = 'node'
_CONTROLLER = 'controller'


class Access(enum.Enum):
    """Kinds of calls, by their effect."""

    READ = 'read'
    OVERSEE = 'oversee'
    """Reads objects of tenants of the whole cloud."""
    CHANGE = 'change'
    REPORT = 'report'
    """Reports measurements of the caller's own host."""


_ROLES: Mapping[Access, tuple[str, ...]] = {
    Access.READ: (_NODE, _CONTROLLER),
    Access.OVERSEE: (_CONTROLLER,),
    Access.CHANGE: (_CONTROLLER,),
    Access.REPORT: (_NODE,),
}


def require(access: Access, method: str, context: Mapping[str, Any]) -> None:
    """Check that the caller may make a call.

    :param method: its name, for the message.
    :param context: of the call.
    :raises NotAllowed: if the caller is known and has no suitable role.
    """
    peer = context.get(PEER)
    if peer is None or peer.get('insecure'):
        return
    if peer.get('role') not in _ROLES[access]:
        raise exception.NotAllowed(
            f'{method} needs a key with the role '
            f'{" or ".join(_ROLES[access])}; the key of '
            f'{peer.get("name")} has the role {peer.get("role")}'
        )


def reporter(context: Mapping[str, Any], host: str) -> str:
    """Check and return the host that reports.

    :param host: name that the caller gives.
    :raises NotAllowed: if the caller has the key of another host.
    """
    peer = context.get(PEER)
    if peer is None or peer.get('insecure'):
        return host
    if peer.get('name') != host:
        raise exception.NotAllowed(
            f'the key of {peer.get("name")} reports for host {host}; each host'
            ' reports with its own key'
        )
    return host


def caller(context: Mapping[str, Any]) -> str:
    """The name of the caller's key; empty without a key."""
    peer = context.get(PEER) or {}
    return str(peer.get('name') or '')
