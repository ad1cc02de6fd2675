# SPDX-License-Identifier: Apache-2.0

"""Calls that each role may make.

A transport that knows its peers by key names the caller in each context
(``zmq_peer``: name and role). Without it, the transport does not know the
peers apart. Then each peer with access to the transport is trusted, as with
every other service on it.
"""

from collections.abc import Mapping
import enum
from typing import Any

from nova_fairness import exception

PEER = 'zmq_peer'
"""Where the driver says who called; it overwrites what the caller says."""

_NODE = 'node'
_CONTROLLER = 'controller'


class Access(enum.Enum):
    """The effect of a call."""

    READ = 'read'
    OVERSEE = 'oversee'
    """Reads what belongs to tenants of the whole cloud."""
    CHANGE = 'change'
    REPORT = 'report'
    """Says what was measured on the caller's own host."""


_ROLES: Mapping[Access, tuple[str, ...]] = {
    Access.READ: (_NODE, _CONTROLLER),
    Access.OVERSEE: (_CONTROLLER,),
    Access.CHANGE: (_CONTROLLER,),
    Access.REPORT: (_NODE,),
}


def require(access: Access, method: str, context: Mapping[str, Any]) -> None:
    """Let a call pass or refuse it.

    :param method: its name, for the message.
    :param context: of the call.
    :raises NotAllowed: if the caller is known and has none of the roles.
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
    """The host that reports: that of its key, where keys are known.

    :param host: that the caller says it is.
    :raises NotAllowed: if that is the host of another key.
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
    """The name of the key that called, empty without one."""
    peer = context.get(PEER) or {}
    return str(peer.get('name') or '')
