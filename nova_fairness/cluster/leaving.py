# SPDX-License-Identifier: Apache-2.0

"""Servers leave: their owners are told, time passes, Nova acts, room is free.

Who leaves and why is decided elsewhere; here it is carried out, one step at a
time. A step is committed before its effect. After a crash, and whenever Nova
did not answer, the server is looked at before anything is done again. Whether
room is free is read from Placement, never believed: shelving can fail and
leave a server stopped on its host. Then the next action is done.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import datetime as dt

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster import placement as placement_module
from nova_fairness.cluster import servers as servers_module
from nova_fairness.cluster.store import leaves as leaves_module
from nova_fairness.model import leaving
from nova_fairness.model import reason

LOG = logging.getLogger(__name__)

LEAST_NOTICE_S = 120.0
"""Nova keeps the metadata that guests read for 15 s, and guests poll it."""

LEAVES_AT = 'fairness:leaves_at'
LEAVES_BY = 'fairness:leaves_by'
LEAVES_WHY = 'fairness:leaves_why'
"""Metadata of a server by which its guest knows."""

_A, _E, _S = leaving.Action, leaving.Event, leaving.State

_QUIET = frozenset({'SHUTOFF', 'SUSPENDED', 'SHELVED', 'SHELVED_OFFLOADED'})
_DONE: Mapping[leaving.Action, frozenset[str]] = {
    _A.STOP: _QUIET,
    _A.SUSPEND: _QUIET,
    _A.SHELVE: frozenset({'SHELVED_OFFLOADED'}),
    _A.DELETE: frozenset(),
}
"""Statuses of Nova in which an action has nothing more to do."""

_TASKS = {
    _A.STOP: 'powering-off',
    _A.SUSPEND: 'suspending',
    _A.SHELVE: 'shelving',
    _A.DELETE: 'deleting',
}
"""How Nova's task begins while it does an action."""

_AT_ONCE = 50
"""Servers that are acted on in one cycle: Nova has others to serve."""


@dataclasses.dataclass(frozen=True)
class Patience:
    """How long is waited.

    :ivar notice_s: from telling an owner to the first action, at least
        :data:`LEAST_NOTICE_S`.
    :ivar action_s: for an action, and for room to be free after it.
    """

    notice_s: float = 600.0
    action_s: float = 300.0


class Leaving:
    """Lets servers leave.

    :param leaves: where they are stored.
    :param nova: acts on them.
    :param placement: says whether their room is free.
    :param clock: seconds of the epoch.
    :param patience: how long is waited.
    """

    def __init__(
        self,
        leaves: leaves_module.Leaves,
        nova: servers_module.Nova,
        placement: placement_module.Placement,
        clock: Callable[[], float],
        patience: Patience,
    ) -> None:
        self._leaves = leaves
        self._nova = nova
        self._placement = placement
        self._clock = clock
        self._patience = patience
        self._turn = 0

    def choose(
        self,
        server: servers_module.Server,
        cause: leaving.Cause,
        why: reason.Why,
        actions: tuple[leaving.Action, ...],
        epoch: int,
        at: float = 0.0,
        request: str = '',
        asked_at: float | None = None,
    ) -> leaving.Leave:
        """Let a server leave; its owner is told before anything is done.

        :param cause: why, for programs.
        :param why: the same for its owner.
        :param actions: done one after the other until its room is free.
        :param epoch: of the leader that decided it.
        :param at: before that nothing is done, seconds of the epoch; at
            least the notice is waited.
        :param request: that it makes room for.
        :param asked_at: when it was asked for itself.
        :raises Outdated: if it leaves already.
        :raises Deposed: if that leader leads no more.
        """
        now = self._clock()
        leave = leaving.Leave(
            server.uuid,
            server.project,
            server.user,
            cause,
            why,
            actions,
            max(at, now + self._patience.notice_s),
            now,
            request=request,
            asked_at=asked_at,
        )
        before = self._leaves.of([server.uuid]).get(server.uuid)
        chosen = self._leaves.choose(leave, before, epoch)
        LOG.info('server %s is to leave: %s', server.uuid, why.sentence)
        return chosen

    def spare(self, leave: leaving.Leave, epoch: int) -> None:
        """Let a server stay to which nothing was done yet.

        :raises IllegalStep: if something was.
        :raises ClusterError: if it cannot be done now.
        """
        self._untell(leave, _E.SPARE, epoch)

    def welcome(self, leave: leaving.Leave, epoch: int) -> None:
        """Take note of a server that left and runs again.

        :raises IllegalStep: if it did not leave.
        :raises ClusterError: if it cannot be done now.
        """
        self._untell(leave, _E.RETURN, epoch)

    def _untell(
        self, leave: leaving.Leave, event: leaving.Event, epoch: int
    ) -> None:
        leaving.after(leave.state, event)
        try:
            for key in (LEAVES_AT, LEAVES_BY, LEAVES_WHY):
                self._nova.unmark(leave.server, key)
        except exception.CloudRefused as error:
            LOG.warning('what was told to a server stays there: %s', error)
        self._leaves.step(leave, event, epoch, self._clock())

    def work(
        self, servers: Mapping[str, servers_module.Server], epoch: int
    ) -> None:
        """Let all that leave take the steps that are due.

        :param servers: as they were a moment ago, by UUID.
        :param epoch: of the leader.
        :raises Deposed: if that leader leads no more.
        :raises StoreAway: if the store does not answer.
        """
        now = self._clock()
        live = [
            each
            for each in self._leaves.found(leaving.LIVE).values()
            if _is_due(each, servers, now)
        ]
        # A different one is first each time: who fails keeps nobody back.
        self._turn = (self._turn + _AT_ONCE) % max(len(live), 1)
        for leave in (live[self._turn :] + live[: self._turn])[:_AT_ONCE]:
            try:
                self._advance(leave, epoch)
            except (exception.Deposed, exception.StoreAway):
                raise
            except exception.ClusterError as error:
                LOG.warning('server %s: %s', leave.server, error)

    def _advance(self, leave: leaving.Leave, epoch: int) -> None:
        server = self._nova.server(leave.server)
        if (
            server is None or leave.state is not _S.CHOSEN
        ) and not self._placement.claimed(leave.server):
            self._step(leave, _E.FREE, epoch)
        elif leave.state is _S.CHOSEN:
            self._tell(leave, epoch)
        elif leave.state is _S.TOLD:
            self._begin(leave, server, epoch)
        elif leave.state is _S.ACTING:
            self._act(leave, server, epoch)
        else:
            self._look(leave, server, epoch)

    def _tell(self, leave: leaving.Leave, epoch: int) -> None:
        now = self._clock()
        at = max(leave.at, now + self._patience.notice_s)
        try:
            self._nova.mark(
                leave.server,
                {
                    LEAVES_AT: _time(at),
                    LEAVES_BY: leave.action.value,
                    LEAVES_WHY: leave.why.sentence,
                },
            )
        except exception.CloudRefused as error:
            # In some states Nova takes no metadata: notifications told it.
            if now < leave.at:
                raise
            LOG.warning('the guest is not told: %s', error)
            at = now
        self._step(leave, _E.TELL, epoch, at)

    def _begin(
        self,
        leave: leaving.Leave,
        server: servers_module.Server | None,
        epoch: int,
    ) -> None:
        """Begin with the first action, unless Nova is busy with the server."""
        late_s = self._clock() - leave.at
        if server and server.task and late_s < self._patience.action_s:
            return
        self._next(leave, epoch)

    def _next(self, leave: leaving.Leave, epoch: int) -> None:
        """Do the next action, if there is one."""
        if leave.is_last:
            self._step(leave, _E.GIVE_UP, epoch)
            LOG.warning('server %s has its room still', leave.server)
            return
        acting = self._step(leave, _E.ACT, epoch)
        # What was done before may have changed it.
        self._act(acting, self._nova.server(leave.server), epoch)

    def _act(
        self,
        leave: leaving.Leave,
        server: servers_module.Server | None,
        epoch: int,
    ) -> None:
        """Ask Nova, unless it has been asked by whoever died here."""
        is_at_it = server and _is_at_it(leave, server)
        if server and server.task and not (is_at_it or _interrupts(leave)):
            # Nova does something else; it would refuse.
            if self._is_late(leave):
                self._next(leave, epoch)
            return
        if server and not is_at_it and not _is_done(leave, server):
            try:
                self._nova.act(leave.server, leave.action)
            except exception.CloudRefused as error:
                LOG.warning('server %s: %s', leave.server, error)
                self._next(leave, epoch)
                return
        self._step(leave, _E.ASK, epoch)

    def _look(
        self,
        leave: leaving.Leave,
        server: servers_module.Server | None,
        epoch: int,
    ) -> None:
        """See whether an action gives room back, or failed."""
        if self._is_late(leave):
            self._next(leave, epoch)
        elif server is None or server.task:
            return
        elif _is_done(leave, server):
            if not leave.action.frees:
                self._next(leave, epoch)
        elif leave.action is _A.SHELVE and server.status == 'SHELVED':
            self._nova.offload(leave.server)
        else:
            LOG.warning(
                '%s of server %s failed', leave.action.value, leave.server
            )
            self._next(leave, epoch)

    def _is_late(self, leave: leaving.Leave) -> bool:
        waited_s = self._clock() - leave.changed_at
        return waited_s >= self._patience.action_s

    def _step(
        self,
        leave: leaving.Leave,
        event: leaving.Event,
        epoch: int,
        at: float | None = None,
    ) -> leaving.Leave:
        return self._leaves.step(leave, event, epoch, self._clock(), at)


def _is_due(
    leave: leaving.Leave,
    servers: Mapping[str, servers_module.Server],
    now: float,
) -> bool:
    """Whether there may be something to do for a server."""
    return (
        leave.state is not _S.TOLD
        or leave.at <= now
        or leave.server not in servers
    )


def _is_at_it(leave: leaving.Leave, server: servers_module.Server) -> bool:
    return server.task.startswith(_TASKS[leave.action])


def _interrupts(leave: leaving.Leave) -> bool:
    """Whether Nova does an action whatever else it does."""
    return leave.action is _A.DELETE


def _is_done(leave: leaving.Leave, server: servers_module.Server) -> bool:
    return server.status in _DONE[leave.action]


def _time(at_s: float) -> str:
    at = dt.datetime.fromtimestamp(at_s, dt.UTC)
    return at.strftime('%Y-%m-%dT%H:%M:%SZ')
