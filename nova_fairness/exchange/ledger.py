# SPDX-License-Identifier: Apache-2.0

"""The newest report of every node, and why some are not used.

The boot id of an agent's run, and the sequence number in that run, order the
reports of a node. Ages count from the arrival on this node, so that the
sender's clock does not matter.
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
    """A message whose numbers are not parsed yet.

    :ivar short: its parsed parts.
    :ivar arrived_s: time of arrival, monotonic clock of this node.
    """

    short: codec.ShortMessage
    arrived_s: float


class Refusal(NamedTuple):
    """The refusal of a message that was parsed.

    The refusal of a message that cannot be parsed has no sender.

    :ivar host: sender.
    :ivar error: cause.
    """

    host: str
    error: exception.ReportRefused


class MessageResults(NamedTuple):
    """The result of some messages.

    :ivar accepted: number of accepted ones.
    :ivar refusals: of the others.
    """

    accepted: int = 0
    refusals: Sequence[Refusal] = ()


NOTHING_SETTLED = MessageResults()


MAX_RETIRED_RUNS = 64
"""Number of boot ids of former runs that are refused, per host."""

MAX_SEQUENCE_LEAP = 1_000
"""Largest increase of a sequence number besides the elapsed rounds."""

_ROUNDS_PER_S = 10.0
"""Upper bound of a peer's rounds per second."""


@dataclasses.dataclass(slots=True)
class PeerReport:
    """A peer's newest report, and the data to validate its next one.

    :ivar heard_s: time of the last accepted or refused message.
    :ivar arrived_s: time of arrival of the newest report.
    :ivar refusal: why the newest message was refused; empty if it was
        accepted.
    :ivar lasting: static content of the newest report.
    """

    heard_s: float
    newest: report.NodeReport | None = None
    lasting: codec.StaticContent | None = None
    boot_id: str = ''
    sequence: int = -1
    arrived_s: float = 0.0
    refusal: str = ''
    retired: collections.deque[str] = dataclasses.field(
        default_factory=lambda: collections.deque(maxlen=MAX_RETIRED_RUNS)
    )

    @property
    def rows(self) -> int:
        """The number of user rows in the newest report."""
        return 0 if self.newest is None else len(self.newest.users)

    def replace(
        self,
        new: report.NodeReport,
        lasting: codec.StaticContent | None,
        arrived_s: float,
    ) -> None:
        """Replace the newest report."""
        if self.boot_id and self.boot_id != new.boot_id:
            self.retired.append(self.boot_id)
        self.newest, self.lasting = new, lasting
        self.boot_id, self.sequence = new.boot_id, new.sequence
        self.arrived_s, self.refusal = arrived_s, ''

    def why_unusable(self, age_s: float) -> str:
        """Return why the peer has no usable report.

        :param age_s: seconds since its newest report was accepted.
        """
        silent = f'{report.SILENT} for {age_s:.0f} s' if self.boot_id else ''
        return self.refusal or silent or 'sent nothing usable'

    def check_order(
        self, new: codec.Head | report.NodeReport, now_s: float
    ) -> None:
        """Check that a message is newer than the newest report.

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
        most = (
            self.sequence + MAX_SEQUENCE_LEAP + int(elapsed_s * _ROUNDS_PER_S)
        )
        if new.sequence > most:
            raise exception.ReportRefused(
                'future',
                f'{new.host} sent report {new.sequence} after report'
                f' {self.sequence}; expected at most {most}',
            )


_OWN_INTERVALS = 10.0
"""Largest interval of a slower peer that counts, in intervals of this node."""


class ReportLedger:
    """Decides which report of each peer is used; not thread-safe.

    Its memory is bounded: by hosts, by user rows, by boot ids. Numbers that
    are not parsed yet count like parsed ones.

    :param host: name of this node.
    :param boot_id: of this node's run.
    :param limits: bounds of peers' claims.
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
        """The number of stored peers."""
        return len(self._peers)

    @property
    def rows(self) -> int:
        """The number of user rows in all stored reports."""
        return self._rows

    def static_content(
        self, head: codec.Head, now_s: float
    ) -> codec.StaticContent | None:
        """Check by its head whether a message is new.

        :param now_s: monotonic clock of this node, seconds.
        :returns: static content of the host's newest message, if stored.
        :raises ReportRefused: as accept() does, except ``full``.
        """
        if head.host == self._host:
            self._refuse_own(head)
        peer = self._peers.get(head.host)
        if peer is None:
            return None
        peer.heard_s = now_s
        peer.check_order(head, now_s)
        return peer.lasting

    def postpone(self, short: codec.ShortMessage, now_s: float) -> bool:
        """Store a message until its numbers are needed.

        :param short: based on the result of static_content().
        :param now_s: monotonic clock of this node, seconds.
        :returns: ``False`` if another message of its host is still pending.
        """
        waiting = PendingMessage(short, now_s)
        return self._waiting.setdefault(short.head.host, waiting) is waiting

    def settle(self, host: str = '') -> MessageResults:
        """Parse and validate the numbers of pending messages.

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
            waiting, tables.parse_tables(numbers, self._limits), strict=True
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
        peer.replace(short.complete(users), short.lasting, arrived_s)
        return None

    def accept(
        self,
        new: report.NodeReport,
        now_s: float,
        lasting: codec.StaticContent | None = None,
    ) -> None:
        """Store a report if it is the newest of its host.

        :param now_s: monotonic clock of this node, seconds.
        :param lasting: static content for the host's next message.
        :raises ReportRefused: if it is not used; the reason is ``own``,
            ``namesake``, ``duplicate``, ``late``, ``future``, ``replayed`` or
            ``full``.
        """
        if new.host == self._host:
            self._refuse_own(new)
        peer = self._peer_of(new.host, now_s)
        peer.heard_s = now_s
        peer.check_order(new, now_s)
        more = len(new.users) - peer.rows
        self._check_row_limit(new.host, more)
        self._rows += more
        peer.replace(new, lasting, now_s)

    def refused(self, host: str, why: str, now_s: float) -> None:
        """Store why a host's message was refused.

        Its last accepted report stays in use until it is too old.
        """
        if host in ('', self._host):
            return
        try:
            peer = self._peer_of(host, now_s)
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
        """Return the newest usable report of every node.

        :param now_s: monotonic clock, seconds.
        :param own: newest report of this node; always in the view.
        :param metric: reports with another metric are left out.
        :param interval_s: of this node's rounds, by which ages are judged.
        """
        self._delete_silent_peers(now_s)
        found: dict[str, tuple[report.NodeReport, float]] = {}
        if own is not None:
            found[own.host] = own, 0.0
        left_out: dict[str, str] = {}
        for host, peer in self._peers.items():
            age_s = max(0.0, now_s - peer.arrived_s)
            newest = self._fresh_report(peer, age_s, interval_s)
            if newest is None:
                left_out[host] = peer.why_unusable(age_s)
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

    def _fresh_report(
        self, peer: PeerReport, age_s: float, interval_s: float
    ) -> report.NodeReport | None:
        """Return a peer's report; delete it and return ``None`` if it is
        too old.
        """
        if peer.newest is not None and age_s > self._max_age_s(
            peer.newest.interval_s, interval_s
        ):
            self._drop_report(peer)
        return peer.newest

    def _max_age_s(self, theirs_s: float, own_s: float) -> float:
        """Return the age at which a peer's report is too old, in seconds."""
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

    def _peer_of(self, host: str, now_s: float) -> PeerReport:
        peer = self._peers.get(host)
        if peer is not None:
            return peer
        if len(self._peers) >= self._limits.max_peers:
            self._delete_oldest_peer(host)
        peer = self._peers[host] = PeerReport(heard_s=now_s)
        return peer

    def _delete_oldest_peer(self, host: str) -> None:
        """Delete the peer with the longest silence and no usable report."""
        gone = [
            (peer.heard_s, name)
            for name, peer in self._peers.items()
            if peer.newest is None
        ]
        if not gone:
            raise exception.ReportRefused(
                'full',
                f'{host}: refused: {self._limits.max_peers} peers '
                'are known ([fairness_exchange] max_peers)',
            )
        del self._peers[min(gone)[1]]

    def _check_row_limit(self, host: str, more: int) -> None:
        most = self._limits.max_total_users
        if more > 0 and self._rows + more > most:
            raise exception.ReportRefused(
                'full',
                f'there is no room for {wording.counted(more, "more user")}'
                f' of {host}: at most '
                f'{most} of all hosts are kept ([fairness_exchange] '
                'max_peers)',
            )

    def _delete_silent_peers(self, now_s: float) -> None:
        silent = [
            host
            for host, peer in self._peers.items()
            if now_s - peer.heard_s > self._limits.forget_after_s
        ]
        for host in silent:
            self._drop_report(self._peers.pop(host))

    def _drop_report(self, peer: PeerReport) -> None:
        self._rows -= peer.rows
        peer.newest = peer.lasting = None
