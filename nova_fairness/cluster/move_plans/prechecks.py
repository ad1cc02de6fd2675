# SPDX-License-Identifier: Apache-2.0

"""Checks whether a move can start, and how a move ended."""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses

import numpy as np

from nova_fairness.cluster.move_plans import candidates
from nova_fairness.cluster.openstack import live_migrations
from nova_fairness.cluster.openstack import nova
from nova_fairness.model import cluster
from nova_fairness.model import plans as model
from nova_fairness.planners import weighers
from nova_fairness.planners.consolidation import layout as layout_module

_E, _C = model.MoveEvent, model.PlanCause

SETTLES_S = 60.0
"""Seconds after which Nova lists a migration, if Nova received the request."""


@dataclasses.dataclass(frozen=True, slots=True)
class MoveVerdict:
    """Next step of a move, with its reason.

    :ivar event: next step; ``None`` if the move waits.
    :ivar cause: reason, for programs.
    :ivar text: reason, for people.
    """

    event: model.MoveEvent | None
    cause: model.PlanCause
    text: str = ''


_GO = MoveVerdict(_E.ASK, _C.ASKED)


class HostRoom:
    """Free room on hosts, reduced by servers that are being moved there.

    :param snapshot: state of the cloud, with the demands of servers that may
        be moved.
    """

    def __init__(self, snapshot: cluster.ClusterSnapshot) -> None:
        self._layout = layout_module.HostLayout(snapshot, weighers.fullest)
        items = enumerate(self._layout.items)
        self._items = {each.uuid: n for n, each in items}
        names = enumerate(self._layout.hosts.names)
        self._rows = {name: row for row, name in names}
        self._zones = {each.name: each.zone for each in snapshot.providers}

    def take(self, server: str, target: str) -> None:
        """Reserve room for a server on its target host, in addition to its
        room on the present host.
        """
        if server in self._items and target in self._rows:
            self._layout.expect(self._items[server], self._rows[target])

    def knows(self, server: str) -> bool:
        """Whether a server is in the snapshot and may be moved."""
        n = self._items.get(server)
        return n is not None and bool(self._layout.may_move[n])

    def fits(self, server: str, target: str) -> bool:
        """Whether a host has room for a server and may run it."""
        row = self._rows.get(target)
        if row is None or not self.knows(server):
            return False
        n = self._items[server]
        only = np.zeros(len(self._rows), dtype=bool)
        only[row] = self._layout.hosts.takes[row]
        return bool(len(self._layout.fitting(n, only)))

    def is_in(self, target: str, zone: str) -> bool:
        """Whether a host is in an availability zone."""
        return self._zones.get(target) == zone

    def takes(self, target: str) -> bool:
        """Whether a host accepts new servers."""
        row = self._rows.get(target)
        return row is not None and bool(self._layout.hosts.takes[row])


def check_start(
    move: model.Move,
    server: nova.Server | None,
    services: Mapping[str, nova.ComputeService],
    room: HostRoom,
    is_last: bool,
) -> MoveVerdict:
    """Check whether a move that has not started can start now.

    :param server: server as Nova shows it now; ``None`` if it was deleted.
    :param services: compute services as Nova lists them now, by name of the
        host.
    :param is_last: whether all earlier moves of the plan have ended, so that
        no other move can make room for this one.
    """
    if server is None or not server.host:
        return MoveVerdict(_E.SKIP, _C.SERVER_GONE)
    if server.task:
        return MoveVerdict(None, _C.BUSY, server.task)
    if server.host != move.source:
        text = f'it is on {server.host}'
        return MoveVerdict(_E.SKIP if is_last else None, _C.ELSEWHERE, text)
    if server.is_locked or candidates.needs_host_hardware(server):
        return MoveVerdict(_E.SKIP, _C.LOCKED)
    if server.status not in nova.MOVES:
        return MoveVerdict(_E.SKIP, _C.BUSY, f'it is {server.status}')
    return _verdict_of_target(
        move, server, services.get(move.target), room, is_last
    )


def _verdict_of_target(
    move: model.Move,
    server: nova.Server,
    service: nova.ComputeService | None,
    room: HostRoom,
    is_last: bool,
) -> MoveVerdict:
    """Check whether the target host of a move can accept the server now."""
    if service is None or not (service.enabled and service.up):
        text = service.reason if service else ''
        return MoveVerdict(_E.SKIP, _C.HOST_CLOSED, text)
    if server.pinned and not room.is_in(move.target, server.pinned):
        text = f'it is pinned to zone {server.pinned}'
        return MoveVerdict(_E.SKIP, _C.NO_ROOM, text)
    if not room.knows(move.server):
        return MoveVerdict(None, _C.BUSY, 'it was not seen to rest yet')
    if not room.takes(move.target):
        return MoveVerdict(_E.SKIP, _C.HOST_CLOSED, 'it is being left')
    if not room.fits(move.server, move.target):
        return MoveVerdict(_E.SKIP if is_last else None, _C.NO_ROOM)
    return _GO


def check_end(
    move: model.Move,
    server: nova.Server | None,
    migrations: Iterable[live_migrations.Migration],
    now: float,
) -> MoveVerdict:
    """Check how a move ended that Nova received, or may have received.

    :param server: server as Nova shows it now; ``None`` if it was deleted.
    :param migrations: migrations of the server, the newest first.
    :param now: seconds of the epoch.
    """
    if server is None or not server.host:
        return MoveVerdict(_E.SKIP, _C.SERVER_GONE)
    newest = next(
        (each for each in migrations if each.number > move.after), None
    )
    if newest is None:
        return _without_migration(move, server, now)
    if newest.is_running or server.task:
        return MoveVerdict(None, _C.ASKED, newest.status)
    if server.host == move.target:
        return MoveVerdict(_E.ARRIVE, _C.ARRIVED)
    if server.host != move.source:
        return MoveVerdict(_E.SKIP, _C.ELSEWHERE, f'it is on {server.host}')
    if newest.is_done:
        # Nova updates the server a moment later.
        return MoveVerdict(None, _C.ASKED, newest.status)
    if newest.is_cancelled:
        return MoveVerdict(_E.FAIL, _C.CANCELLED)
    return MoveVerdict(
        _E.FAIL, _C.MIGRATION_FAILED, f'Nova says {newest.status}'
    )


def _without_migration(
    move: model.Move, server: nova.Server, now: float
) -> MoveVerdict:
    """Check a started move for which Nova lists no migration."""
    if server.task:
        return MoveVerdict(None, _C.ASKED, server.task)
    if server.host == move.target:
        return MoveVerdict(_E.ARRIVE, _C.ARRIVED)
    if server.host != move.source:
        return MoveVerdict(_E.SKIP, _C.ELSEWHERE, f'it is on {server.host}')
    if now - (move.asked_at or 0.0) < SETTLES_S:
        return MoveVerdict(None, _C.ASKED)
    return MoveVerdict(_E.RETURN, _C.NOT_ASKED)
