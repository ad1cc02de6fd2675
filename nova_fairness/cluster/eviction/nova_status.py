# SPDX-License-Identifier: Apache-2.0

"""Meaning of Nova's statuses and tasks for an eviction."""

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
"""Statuses of Nova in which an action is complete."""

_TASKS = {
    _A.STOP: 'powering-off',
    _A.SUSPEND: 'suspending',
    _A.SHELVE: 'shelving',
    # While Nova makes the image, its task looks like that of an image made by
    # the owner.
    _A.SNAPSHOT_DELETE: 'deleting',
    _A.DELETE: 'deleting',
}
"""Beginning of the name of Nova's task for each action."""


def reports_done(leave: eviction.Eviction, server: nova.Server) -> bool:
    """Return whether a server with a notice reports that its work is done.

    A shutdown counts as a report, and needs no password. It counts for a
    server that retires, and for a server that ran when it was chosen and that
    starts again automatically.
    """
    retires = (
        leave.cause is eviction.EvictionCause.RETIRES
        and server.status == 'SHUTOFF'
    )
    return server.says_done or retires or has_shut_down(leave, server)


def has_shut_down(leave: eviction.Eviction, server: nova.Server) -> bool:
    """Return whether a server that ran when it was chosen has shut down."""
    return (
        server.status == 'SHUTOFF'
        and leave.began_at is not None
        and leave.cause in eviction.COME_BACK
    )


def executes_action(leave: eviction.Eviction, server: nova.Server) -> bool:
    """Return whether Nova is executing the current action of an eviction."""
    return server.task.startswith(_TASKS[leave.action])


def can_interrupt_task(leave: eviction.Eviction) -> bool:
    """Return whether Nova executes the current action even during another
    task.
    """
    return leave.action is _A.DELETE


def is_action_done(leave: eviction.Eviction, server: nova.Server) -> bool:
    """Return whether the current action is complete."""
    return server.status in _DONE[leave.action]
