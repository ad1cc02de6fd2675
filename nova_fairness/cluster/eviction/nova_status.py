# SPDX-License-Identifier: Apache-2.0

"""Statuses and tasks of Nova, and their meaning for a server that leaves."""

from collections.abc import Mapping

from nova_fairness.cluster.openstack import nova
from nova_fairness.model import eviction

_A = eviction.EvictionAction

QUIET = frozenset({'SHUTOFF', 'SUSPENDED', 'SHELVED', 'SHELVED_OFFLOADED'})
"""Statuses of Nova in which a server does not run."""

_DONE: Mapping[eviction.EvictionAction, frozenset[str]] = {
    _A.STOP: QUIET,
    _A.SUSPEND: QUIET,
    _A.SHELVE: frozenset({'SHELVED_OFFLOADED'}),
    _A.SNAPSHOT_DELETE: frozenset(),
    _A.DELETE: frozenset(),
}
"""Statuses of Nova in which an action has nothing more to do."""

_TASKS = {
    _A.STOP: 'powering-off',
    _A.SUSPEND: 'suspending',
    _A.SHELVE: 'shelving',
    # While its image is made it cannot be told from its owner's own.
    _A.SNAPSHOT_DELETE: 'deleting',
    _A.DELETE: 'deleting',
}
"""How Nova's task begins while it does an action."""


def is_answer(leave: eviction.Eviction, server: nova.Server) -> bool:
    """Whether a server that was told is done with its work.

    A shutdown, which needs no password, is an answer too: of a server that
    retires, and of one that ran when chosen and comes back by itself.
    """
    retires = (
        leave.cause is eviction.EvictionCause.RETIRES
        and server.status == 'SHUTOFF'
    )
    return server.says_done or retires or has_shut_down(leave, server)


def has_shut_down(leave: eviction.Eviction, server: nova.Server) -> bool:
    """Whether one shut down that ran when it was chosen."""
    return (
        server.status == 'SHUTOFF'
        and leave.began_at is not None
        and leave.cause in eviction.COME_BACK
    )


def is_at_it(leave: eviction.Eviction, server: nova.Server) -> bool:
    """Whether Nova does what is being done to a server."""
    return server.task.startswith(_TASKS[leave.action])


def interrupts(leave: eviction.Eviction) -> bool:
    """Whether Nova does an action whatever else it does."""
    return leave.action is _A.DELETE


def is_done(leave: eviction.Eviction, server: nova.Server) -> bool:
    """Whether nothing is left to do for an action."""
    return server.status in _DONE[leave.action]
