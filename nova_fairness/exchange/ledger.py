# SPDX-License-Identifier: Apache-2.0

"""The newest report of every node, and why some are not used.

Only two things order the reports of a node: the boot id of its agent's run,
and the sequence number in that run. Ages are counted from when a report
arrived here, so a sender's clock means nothing.
"""

import collections
from collections.abc import Sequence
import dataclasses
from typing import NamedTuple

from nova_fairness import exception
from nova_fairness.exchange import codec
from nova_fairness.exchange import limits as bounds
from nova_fairness.exchange import tables
from nova_fairness.model import report
from nova_fairness.model import wording


class PendingMessage(NamedTuple):
    """One message.

    :ivar short: what is known of it.
    :ivar arrived_s: when it came, on the monotonic clock of this node.
    """

    short: codec.Short
    arrived_s: float


class Refusal(NamedTuple):
    """Of a message whose numbers were looked at.

    :ivar host: that sent it.
    :ivar error: what was wrong with it.
    """

    host: str
    error: exception.ReportRefused


class MessageResults(NamedTuple):
    """The result of some messages.

    :ivar accepted: number of those that count now.
    :ivar refusals: of the others.
    """

    accepted: int = 0
    refusals: Sequence[Refusal] = ()


NOTHING_SETTLED = MessageResults()


RETIRED = 64
"""Boot ids of former runs that are refused, per host."""

AHEAD = 1_000
"""Rounds that a sequence number may leap without time for them."""

_ROUNDS_PER_S = 10.0
"""More than the shortest interval allows."""


@dataclasses.dataclass(slots=True)
class PeerReport:
    """Its newest report, and what is needed to judge the next.

    :ivar heard_s: when something of it was accepted or refused last.
    :ivar arrived_s: when the newest report was accepted.
    :ivar refusal: why the newest message was not accepted, empty if it was.
    :ivar lasting: what its newest message said; goes with ``newest``.
    """

    heard_s: float
    newest: report.NodeReport | None = None
    lasting: codec.StaticContent | None = None
    boot_id: str = ''
    sequence: int = -1
    arrived_s: float = 0.0
    refusal: str = ''
    retired: collections.deque[str] = dataclasses.field(
        default_factory=lambda: collections.deque(maxlen=RETIRED)
    )

    @property
    def rows(self) -> int:
        """Rows of users in its newest report."""
        return 0 if self.newest is None else len(self.newest.users)

    def take(
        self,
        new: report.NodeReport,
        lasting: codec.StaticContent | None,
        arrived_s: float,
    ) -> None:
        """Put a report in the place of the one before."""
        if self.boot_id and self.boot_id != new.boot_id:
            self.retired.append(self.boot_id)
        self.newest, self.lasting = new, lasting
        self.boot_id, self.sequence = new.boot_id, new.sequence
        self.arrived_s, self.refusal = arrived_s, ''

    def why_nothing(self, age_s: float) -> str:
        """Say why it has no report that can be used.

        :param age_s: since its newest report was accepted.
        """
        silent = f'{report.SILENT} for {age_s:.0f} s' if self.boot_id else ''
        return self.refusal or silent or 'sent nothing usable'

    def check_order(
        self, new: codec.Head | report.NodeReport, now_s: float
    ) -> None:
        """Let only what is newer than the newest pass.

        :raises ReportRefused: if it is not.
        """
        if new.boot_id in self.retired:
            raise exception.ReportRefused(
                'replayed',
                f'{new.host} sent a report of a run that ended: either it is '
                'replayed, or two agents have this name',
            )
        if new.boot_id != self.boot_id:
            return
        if new.sequence <= self.sequence:
            same = new.sequence == self.sequence
            raise exception.ReportRefused(
                'duplicate' if same else 'late',
                f'{new.host} sent report {new.sequence} after report'
                f' {self.sequence}',
            )
        elapsed_s = max(0.0, now_s - self.arrived_s)
        most = self.sequence + AHEAD + int(elapsed_s * _ROUNDS_PER_S)
        if new.sequence > most:
            raise exception.ReportRefused(
                'future',
                f'{new.host} sent report {new.sequence} after report'
                f' {self.sequence}; expected at most {most}',
            )


_OWN_INTERVALS = 10.0
"""Up to so many own intervals a slower peer's interval counts."""


class ReportLedger:
    """Decides which report of each peer counts; not thread-safe.

    Its memory is bounded: by hosts, by rows of users, by boot ids. Numbers
    that are not read yet take as much of it as those that are.

    :param host: the node's own name.
    :param boot_id: of its agent's run.
    :param limits: how much is kept and believed.
    """

    def __init__(self, host: str, boot_id: str, limits: bounds.Bounds) -> None:
        self._host = host
        self._boot_id = boot_id
        self._limits = limits
        self._peers: dict[str, PeerReport] = {}
        self._waiting: dict[str, PendingMessage] = {}
        self._rows = 0

    @property
    def hosts(self) -> int:
        """Number of peers that are remembered."""
        return len(self._peers)

    @property
    def rows(self) -> int:
        """Rows of users in all reports that are kept."""
        return self._rows

    def expect(
        self, head: codec.Head, now_s: float
    ) -> codec.StaticContent | None:
        """Look whether a message is news, before all of it is read.

        :param now_s: monotonic clock of this node, seconds.
        :returns: what the host's newest message said, if it is still kept.
        :raises ReportRefused: as accept() does, but for ``full``.
        """
        if head.host == self._host:
            self._refuse_own(head)
        peer = self._peers.get(head.host)
        if peer is None:
            return None
        peer.heard_s = now_s
        peer.check_order(head, now_s)
        return peer.lasting

    def postpone(self, short: codec.Short, now_s: float) -> bool:
        """Keep a message until its numbers are asked for.

        :param short: made of what expect() gave.
        :param now_s: monotonic clock of this node, seconds.
        :returns: False if one of its host was not settled yet.
        """
        waiting = PendingMessage(short, now_s)
        return self._waiting.setdefault(short.head.host, waiting) is waiting

    def settle(self, host: str = '') -> MessageResults:
        """Check the postponed numbers of messages.

        :param host: sender; empty for all.
        """
        if host:
            found = self._waiting.pop(host, None)
            waiting = [] if found is None else [found]
        else:
            waiting = [*self._waiting.values()]
            self._waiting.clear()
        if not waiting:
            return NOTHING_SETTLED
        numbers = [item.short.numbers for item in waiting]
        refusals = []
        for item, users in zip(
            waiting, tables.read_together(numbers, self._limits), strict=True
        ):
            error = self._settle(item, users)
            if error is not None:
                host = item.short.head.host
                refusals.append(Refusal(host, error))
        return MessageResults(len(waiting) - len(refusals), refusals)

    def _settle(
        self,
        item: PendingMessage,
        users: report.UserTable | exception.ReportRefused,
    ) -> exception.ReportRefused | None:
        short, arrived_s = item
        if isinstance(users, exception.ReportRefused):
            why = f'{report.REFUSED} {users}'
            self.refused(short.head.host, why, arrived_s)
            return users
        peer = self._peers.get(short.head.host)
        # Another thread may have accepted something newer meanwhile.
        if peer is None or peer.lasting is not short.lasting:
            return exception.ReportRefused(
                'late', f'{short.head.host} sent something newer meanwhile'
            )
        try:
            peer.check_order(short.head, arrived_s)
        except exception.ReportRefused as error:
            return error
        peer.take(short.complete(users), short.lasting, arrived_s)
        return None

    def accept(
        self,
        new: report.NodeReport,
        now_s: float,
        lasting: codec.StaticContent | None = None,
    ) -> None:
        """Take a report over, if it is the newest of its host.

        :param now_s: monotonic clock of this node, seconds.
        :param lasting: what expect() shall give from now on.
        :raises ReportRefused: if it is not used; the reason is ``own``,
            ``namesake``, ``duplicate``, ``late``, ``future``, ``replayed``
            or ``full``.
        """
        if new.host == self._host:
            self._refuse_own(new)
        peer = self._remembered(new.host, now_s)
        peer.heard_s = now_s
        peer.check_order(new, now_s)
        more = len(new.users) - peer.rows
        self._check_room(new.host, more)
        self._rows += more
        peer.take(new, lasting, now_s)

    def refused(self, host: str, why: str, now_s: float) -> None:
        """Remember why a host's message was not used.

        A report of it that was accepted before stays until it is too old.
        """
        if host in ('', self._host):
            return
        try:
            peer = self._remembered(host, now_s)
        except exception.ReportRefused:
            return
        peer.heard_s, peer.refusal = now_s, why

    def view(
        self,
        now_s: float,
        own: report.NodeReport | None,
        metric: str,
        interval_s: float,
    ) -> report.View:
        """The newest usable report of every node.

        :param now_s: monotonic clock, seconds.
        :param own: newest report of this node; always in the view.
        :param metric: reports of another one are left out whole.
        :param interval_s: of the own rounds, from which ages are counted.
        """
        self._forget(now_s)
        found: dict[str, tuple[report.NodeReport, float]] = {}
        if own is not None:
            found[own.host] = own, 0.0
        left_out: dict[str, str] = {}
        for host, peer in self._peers.items():
            age_s = max(0.0, now_s - peer.arrived_s)
            newest = self._young(peer, age_s, interval_s)
            if newest is None:
                left_out[host] = peer.why_nothing(age_s)
            elif newest.metric != metric:
                left_out[host] = (
                    f'{report.OTHER_METRIC} with {newest.metric}, not with '
                    f'{metric}'
                )
            else:
                found[host] = newest, age_s
        hosts = sorted(found)
        return report.View(
            reports={host: found[host][0] for host in hosts},
            age_s={host: found[host][1] for host in hosts},
            left_out=dict(sorted(left_out.items())),
        )

    def _young(
        self, peer: PeerReport, age_s: float, interval_s: float
    ) -> report.NodeReport | None:
        """A peer's report unless it is too old, which drops it."""
        if peer.newest is not None and age_s > self._oldest_s(
            peer.newest.interval_s, interval_s
        ):
            self._drop(peer)
        return peer.newest

    def _oldest_s(self, theirs_s: float, own_s: float) -> float:
        """The age at which a report of a peer is too old."""
        counted_s = min(theirs_s, _OWN_INTERVALS * own_s)
        return self._limits.view_max_age * max(own_s, counted_s)

    def _refuse_own(self, new: codec.Head | report.NodeReport) -> None:
        if new.boot_id == self._boot_id:
            raise exception.ReportRefused(
                'own', 'it is the report of this node'
            )
        raise exception.ReportRefused(
            'namesake',
            f'another agent calls itself {self._host}, or did before this '
            'one started; expected each host to have a name of its own',
        )

    def _remembered(self, host: str, now_s: float) -> PeerReport:
        peer = self._peers.get(host)
        if peer is not None:
            return peer
        if len(self._peers) >= self._limits.max_peers:
            self._make_room(host)
        peer = self._peers[host] = PeerReport(heard_s=now_s)
        return peer

    def _make_room(self, host: str) -> None:
        """Forget the peer that is silent longest and has no usable report."""
        gone = [
            (peer.heard_s, name)
            for name, peer in self._peers.items()
            if peer.newest is None
        ]
        if not gone:
            raise exception.ReportRefused(
                'full',
                f'there is no room for {host}: {self._limits.max_peers} peers '
                'are known ([fairness_exchange] max_peers)',
            )
        del self._peers[min(gone)[1]]

    def _check_room(self, host: str, more: int) -> None:
        most = self._limits.max_total_users
        if more > 0 and self._rows + more > most:
            raise exception.ReportRefused(
                'full',
                f'there is no room for {wording.counted(more, "more user")}'
                f' of {host}: at most '
                f'{most} of all hosts are kept ([fairness_exchange] '
                'max_peers)',
            )

    def _forget(self, now_s: float) -> None:
        silent = [
            host
            for host, peer in self._peers.items()
            if now_s - peer.heard_s > self._limits.forget_after_s
        ]
        for host in silent:
            self._drop(self._peers.pop(host))

    def _drop(self, peer: PeerReport) -> None:
        self._rows -= peer.rows
        peer.newest = peer.lasting = None
