# SPDX-License-Identifier: Apache-2.0

"""Executes evictions: notice to the owner, actions of Nova, release of room.

Other modules decide which servers are evicted and why. This module executes
each eviction step by step. A step is committed before its effect. After a
crash, and if Nova did not answer, the server is read before an action is
repeated. Only Placement shows whether room is free: shelving can fail and
leave a stopped server on its host. Then the next action follows.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import math

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster import pace
from nova_fairness.cluster import quarantine
from nova_fairness.cluster.eviction import cycle_evictions
from nova_fairness.cluster.eviction import notice_channels
from nova_fairness.cluster.eviction import nova_status
from nova_fairness.cluster.openstack import glance
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.openstack import placement as placement_module
from nova_fairness.cluster.store import leaves as leaves_module
from nova_fairness.model import eviction
from nova_fairness.model import reason

LOG = logging.getLogger(__name__)

_UNEXPECTED = quarantine.Quarantine()
"""Logs each unexpected error once; the eviction is tried again in every cycle.
"""

LEAST_NOTICE_S = 120.0
"""Shortest notice: Nova caches the metadata that guests read for 15 s, and
guests poll them.
"""

_A, _C = eviction.EvictionAction, eviction.EvictionCause
_E, _S = eviction.EvictionEvent, eviction.EvictionState

_SAID = {
    _E.TELL: 'its owner was notified of its eviction',
    _E.ASK: 'Nova was asked to {} it',
    _E.FREE: 'it has left its host, and its room is free',
    _E.SPARE: 'its eviction ended, and it stays on its host',
    _E.UNDO: 'its eviction is cancelled',
    _E.RETURN: 'it runs again after its eviction',
}
"""Log texts of the steps of an eviction; {} is the action."""

_AT_ONCE = 50
"""Largest number of servers on which one cycle acts, because Nova also serves
other clients.
"""

_ASKED_AT_ONCE = 20
"""Largest number of servers with a notice that are read in one cycle.

The answer of a server is in its metadata, and lists of changed servers do not
show changes of metadata.
"""


@dataclasses.dataclass(frozen=True)
class EvictionTimeouts:
    """Waiting times of an eviction.

    :ivar notice_s: seconds from the notice to the first action, at least
        :data:`LEAST_NOTICE_S`.
    :ivar action_s: longest duration of one action, including the release of
        room, in seconds, > 0.
    :raises ValueError: if a time is out of its range, infinite or not a
        number.
    """

    notice_s: float = 600.0
    action_s: float = 300.0

    def __post_init__(self) -> None:
        if not LEAST_NOTICE_S <= self.notice_s < math.inf:
            raise ValueError(
                'the notice of an eviction must last at least'
                f' {LEAST_NOTICE_S:g} s, got {self.notice_s!r}'
            )
        if not 0 < self.action_s < math.inf:
            raise ValueError(
                'the longest duration of an action of an eviction must be'
                f' above 0 s, got {self.action_s!r}'
            )


class Evictor:
    """Evicts servers.

    :param leaves: stores evictions.
    :param nova: reads servers and requests actions on them.
    :param placement: shows whether a server still has room.
    :param images: shows whether the image of a server is complete.
    :param clock: returns seconds of the epoch.
    :param patience: waiting times.
    :param channels: channels to owners, used before the first action.
    """

    def __init__(
        self,
        leaves: leaves_module.EvictionTable,
        nova: nova_module.Nova,
        placement: placement_module.Placement,
        images: glance.Images,
        clock: Callable[[], float],
        patience: EvictionTimeouts,
        channels: notice_channels.NoticeChannel,
    ) -> None:
        self._leaves = leaves
        self._nova = nova
        self._channels = channels
        self._placement = placement
        self._images = images
        self._clock = clock
        self._patience = patience
        self._turn = 0
        self._undone: set[str] = set()

    def start_eviction(
        self,
        server: nova_module.Server,
        cause: eviction.EvictionCause,
        why: reason.Why,
        actions: tuple[eviction.EvictionAction, ...],
        epoch: int,
        not_before: float = 0.0,
        request: str = '',
        asked_at: float | None = None,
    ) -> eviction.Eviction:
        """Store a new eviction; its owner gets a notice before any action.

        :param cause: cause of the eviction, for programs.
        :param why: reason for the owner.
        :param actions: tried one after the other until the room is free.
        :param epoch: epoch of the leader that decided the eviction.
        :param not_before: earliest time of the first action, seconds of the
            epoch.
        :param request: UUID of the preemptor; '' without a preemptor.
        :param asked_at: when the server was requested; ``None`` if unknown.
        :raises Outdated: if the server is already being evicted.
        :raises Deposed: if that leader no longer leads.
        """
        now = self._clock()
        leave = eviction.Eviction(
            server.uuid,
            server.project,
            server.user,
            cause,
            why,
            actions,
            max(not_before, now + self._patience.notice_s),
            now,
            request=request,
            asked_at=asked_at,
            vcpus=dict(server.amounts).get('VCPU', 0),
            began_at=None
            if server.status in nova_status.QUIET
            else server.launched_at,
            chosen_at=now,
        )
        # Count all earlier evictions of the server, also those that no cycle
        # reads.
        before = self._leaves.newest_of_servers([server.uuid]).get(server.uuid)
        chosen = self._leaves.add(leave, before, epoch)
        LOG.info(
            'server %s will be evicted: %s', server.log_name, why.sentence
        )
        return chosen

    def spare(self, leave: eviction.Eviction, epoch: int) -> None:
        """End an eviction before its first action: the server stays.

        :raises IllegalStep: if an action has begun.
        :raises ClusterError: if a call fails; try again later.
        """
        self._end_with_event(leave, _E.SPARE, epoch)

    def cancel(self, leave: eviction.Eviction, epoch: int) -> None:
        """Cancel an eviction, even after its first action.

        No further action follows, and the owner gets a message at once. If the
        server was stopped, Nova is asked to start or resume it. A server that
        is already shelved starts again through the queue, like other victims.

        :raises IllegalStep: if the eviction has ended.
        :raises ClusterError: if a call fails; try again later.
        """
        if leave.state is _S.CHOSEN:
            self.spare(leave, epoch)
            return
        if not self._placement.has_allocation(leave.server):
            # The server has left: the next cycle records that.
            return
        try:
            if leave.state is _S.TOLD and not self._has_shut_down(leave):
                self.spare(leave, epoch)
                return
        except exception.CloudAway as error:
            LOG.warning('server %s: %s', self._log_name(leave), error)
        self._store_step(leave, _E.UNDO, epoch)
        self._withdraw_notice(leave)

    def _has_shut_down(self, leave: eviction.Eviction) -> bool:
        """Return whether a server has shut down since its notice."""
        server = self._nova.server(leave.server)
        return server is not None and nova_status.has_shut_down(leave, server)

    def record_return(self, leave: eviction.Eviction, epoch: int) -> None:
        """Record that an evicted server runs again.

        :raises IllegalStep: if the server has not left its host.
        :raises ClusterError: if a call fails; try again later.
        """
        self._end_with_event(leave, _E.RETURN, epoch)

    def _end_with_event(
        self,
        leave: eviction.Eviction,
        event: eviction.EvictionEvent,
        epoch: int,
    ) -> None:
        """Withdraw the notice of a server, and store the event that ends its
        eviction.
        """
        eviction.state_after(leave.state, event)
        self._withdraw_notice(leave)
        self._store_step(leave, event, epoch)

    def _withdraw_notice(self, leave: eviction.Eviction) -> None:
        """Withdraw the notice of a server by all channels; log it if Nova
        refuses.
        """
        try:
            self._channels.withdraw_notice(leave.server)
        except exception.CloudRefused as error:
            LOG.warning(
                'server %s: its metadata still contain the eviction notice:'
                ' %s',
                self._log_name(leave),
                error,
            )

    def advance_evictions(
        self,
        servers: Mapping[str, nova_module.Server],
        leaves: cycle_evictions.CycleEvictions,
        epoch: int,
    ) -> None:
        """Execute the next steps of all evictions that are due.

        :param servers: servers of the latest list, by UUID.
        :param leaves: evictions of the cycle.
        :param epoch: epoch of the leader.
        :raises Deposed: if that leader no longer leads.
        :raises StoreAway: if the store does not answer.
        """
        now = self._clock()
        due: list[eviction.Eviction] = []
        told: list[eviction.Eviction] = []
        for each in leaves.in_states(eviction.LIVE).values():
            (due if _may_be_due(each, servers, now) else told).append(each)
        self._turn += 1
        for leave in (
            *self._next_in_turn(due, _AT_ONCE),
            *self._next_in_turn(told, _ASKED_AT_ONCE),
        ):
            attempt_for_server(
                self._log_name(leave), self._advance, leave, epoch
            )

    def _next_in_turn(
        self, evictions: list[eviction.Eviction], limit: int
    ) -> list[eviction.Eviction]:
        """Return some evictions, others in each cycle, so that a failure
        delays no other server.

        Projects take turns: a project with many servers delays no other
        project.

        :param limit: largest number of evictions.
        """
        first = self._turn * limit % max(len(evictions), 1)
        turned = evictions[first:] + evictions[:first]
        return pace.interleave_by_owner(turned, _project, self._turn)[:limit]

    def _advance(self, leave: eviction.Eviction, epoch: int) -> None:
        """Execute the next step of one eviction."""
        server = self._nova.server(leave.server)
        if (
            server is None or leave.state is not _S.CHOSEN
        ) and not self._placement.has_allocation(leave.server):
            if server and leave.cause is eviction.EvictionCause.RETIRES:
                # No later step removes the notice when its owner starts the
                # server again.
                self._withdraw_notice(leave)
            self._store_step(leave, _E.FREE, epoch)
        elif leave.state is _S.CHOSEN:
            self._give_notice(leave, epoch)
        elif leave.state is _S.TOLD:
            self._begin_first_action(leave, server, epoch)
        elif leave.state is _S.ACTING:
            self._request_action(leave, server, epoch)
        elif leave.state is _S.UNDOING:
            self._undo_actions(leave, server, epoch)
        else:
            self._check_action(leave, server, epoch)

    def _give_notice(self, leave: eviction.Eviction, epoch: int) -> None:
        """Send the notice of an eviction, and store that it was sent."""
        now = self._clock()
        at = max(leave.at, now + self._patience.notice_s)
        try:
            self._channels.send_notice(dataclasses.replace(leave, at=at))
        except exception.CloudRefused as error:
            # In some states of a server Nova takes no metadata. Notifications
            # have told the owner.
            if now < leave.at:
                raise
            LOG.warning(
                'server %s: its guest gets no eviction notice: %s',
                self._log_name(leave),
                error,
            )
            at = now
        self._store_step(leave, _E.TELL, epoch, at)

    def _begin_first_action(
        self,
        leave: eviction.Eviction,
        server: nova_module.Server | None,
        epoch: int,
    ) -> None:
        """Begin the first action at the end of the notice, unless Nova is busy
        with the server.

        An action begins earlier only if the server reports that its work is
        done.
        """
        late_s = self._clock() - leave.at
        if late_s < 0 and not (
            server and nova_status.reports_done(leave, server)
        ):
            return
        if server and server.task and late_s < self._patience.action_s:
            return
        self._begin_next_action(leave, epoch)

    def _begin_next_action(self, leave: eviction.Eviction, epoch: int) -> None:
        """Begin the next action; after the last action, end the eviction."""
        if leave.is_last:
            # A stopped server that keeps its room helps no request: start it
            # again.
            in_vain = leave.cause in (_C.ROOM, _C.FREE)
            self._store_step(leave, _E.UNDO if in_vain else _E.GIVE_UP, epoch)
            LOG.warning(
                'server %s: eviction failed: its room is still allocated after'
                ' the last action',
                self._log_name(leave),
            )
            return
        acting = self._store_step(leave, _E.ACT, epoch)
        # Earlier actions may have changed the server.
        self._request_action(acting, self._nova.server(leave.server), epoch)

    def _request_action(
        self,
        leave: eviction.Eviction,
        server: nova_module.Server | None,
        epoch: int,
    ) -> None:
        """Ask Nova for the action, unless an earlier leader has already asked
        for it.
        """
        is_at_it = server and nova_status.executes_action(leave, server)
        if (
            server
            and server.task
            and not (is_at_it or nova_status.can_interrupt_task(leave))
        ):
            # Nova is busy with another task and would refuse.
            if self._has_timed_out(leave):
                self._begin_next_action(leave, epoch)
            return
        if (
            server
            and not is_at_it
            and not nova_status.is_action_done(leave, server)
        ):
            try:
                self._call_nova(leave)
            except exception.CloudRefused as error:
                LOG.warning('server %s: %s', self._log_name(leave), error)
                self._begin_next_action(leave, epoch)
                return
        self._store_step(leave, _E.ASK, epoch)

    def _call_nova(self, leave: eviction.Eviction) -> None:
        """Call Nova for the current action of an eviction."""
        if leave.action is not _A.SNAPSHOT_DELETE:
            self._nova.request_action(leave.server, leave.action)
        elif self._images.find_image(leave.uuid) is None:
            name, mark = (
                f'fairness-{leave.server}',
                self._images.image_properties(leave.uuid),
            )
            self._nova.create_image(leave.server, name, mark)

    def _check_action(
        self,
        leave: eviction.Eviction,
        server: nova_module.Server | None,
        epoch: int,
    ) -> None:
        """Check the current action: wait, or begin the next action if it
        failed or freed no room.
        """
        if self._has_timed_out(leave):
            self._begin_next_action(leave, epoch)
        elif server is None or server.task:
            return
        elif nova_status.is_action_done(leave, server):
            if not leave.action.frees:
                self._begin_next_action(leave, epoch)
        elif leave.action is _A.SHELVE and server.status == 'SHELVED':
            self._nova.offload_shelved(leave.server)
        elif leave.action is not _A.SNAPSHOT_DELETE or (
            not self._finish_snapshot(leave)
        ):
            LOG.warning(
                'server %s: action %s of its eviction failed; the next one'
                ' follows',
                self._log_name(leave),
                leave.action.value,
            )
            self._begin_next_action(leave, epoch)

    def _finish_snapshot(self, leave: eviction.Eviction) -> bool:
        """Delete the server once its image is complete; return whether an
        image exists.

        Nova creates the image for the account of this service. So the owner of
        the server becomes the owner of the image before the server is deleted.
        """
        image = self._images.find_image(leave.uuid)
        if image and image.is_whole:
            self._images.set_owner(image, leave.project)
            self._nova.delete(leave.server)
        return image is not None

    def _undo_actions(
        self,
        leave: eviction.Eviction,
        server: nova_module.Server | None,
        epoch: int,
    ) -> None:
        """Start a stopped server again as soon as Nova's task on it has ended.

        A task of Nova cannot be interrupted. A server that did not run when it
        was chosen, or that could not be started, stays as it is.
        """
        if server is None or server.task:
            return
        if server.status == 'SHELVED':
            # If it were started from this status, it would wait in the queue
            # for a second room.
            self._nova.offload_shelved(leave.server)
        elif (
            server.status in nova_module.STARTS
            and leave.began_at is not None
            and leave.uuid not in self._undone
        ):
            try:
                self._nova.start_or_resume(leave.server, server.status)
            except exception.CloudRefused as error:
                LOG.warning('server %s: %s', self._log_name(leave), error)
            self._undone.add(leave.uuid)
        else:
            self._delete_image(leave)
            event = _E.SPARE if leave.acted_at is None else _E.GIVE_UP
            self._end_with_event(leave, event, epoch)
            self._undone.discard(leave.uuid)

    def _delete_image(self, leave: eviction.Eviction) -> None:
        """Delete the image of a server whose eviction was cancelled before the
        server was deleted.
        """
        if _A.SNAPSHOT_DELETE not in leave.actions[: leave.tried]:
            return
        image = self._images.find_image(leave.uuid)
        if image:
            self._images.delete_image(image)

    def _has_timed_out(self, leave: eviction.Eviction) -> bool:
        """Return whether the current action takes longer than allowed."""
        waited_s = self._clock() - leave.changed_at
        return waited_s >= self._patience.action_s

    def _store_step(
        self,
        leave: eviction.Eviction,
        event: eviction.EvictionEvent,
        epoch: int,
        at: float | None = None,
    ) -> eviction.Eviction:
        """Store the next step of an eviction, and log it."""
        after = self._leaves.step(leave, event, epoch, self._clock(), at)
        if event in _SAID:
            said = _SAID[event].format(after.action.value.replace('_', ' '))
            LOG.info('server %s: %s', self._log_name(leave), said)
        return after

    def log_name(self, uuid: str) -> str:
        """Return name and UUID of a server, for the log."""
        return self._nova.log_name(uuid)

    def _log_name(self, leave: eviction.Eviction) -> str:
        return self.log_name(leave.server)


def _project(leave: eviction.Eviction) -> str:
    """Return the project of the server."""
    return leave.project


def attempt_for_server(
    log_name: str, function: Callable[..., object], *arguments: object
) -> bool:
    """Call a function for one server; log its errors, so that a failure delays
    no other server.

    :param log_name: name and UUID of the server, for the log.
    :returns: ``False`` if the function returns ``False``, which means that it
        had nothing to do.
    :raises Deposed: if the leader no longer leads.
    :raises StoreAway: if the store does not answer.
    """
    try:
        return function(*arguments) is not False
    except (exception.Deposed, exception.StoreAway):
        raise
    except exception.ClusterError as error:
        LOG.warning('server %s: %s', log_name, error)
    except Exception as error:  # noqa: BLE001 - others leave
        _UNEXPECTED.put(quarantine.InputKind.SERVER, log_name, error)
    return True


def _may_be_due(
    leave: eviction.Eviction,
    servers: Mapping[str, nova_module.Server],
    now: float,
) -> bool:
    """Return whether a step of an eviction may be due."""
    return (
        leave.state is not _S.TOLD
        or leave.at <= now
        or leave.server not in servers
    )
