# SPDX-License-Identifier: Apache-2.0

"""The newest report of every node, and why some are not used.

Only two things order the reports of a node: the boot id of its agent's run,
and the sequence number in that run. Ages are counted from when a report
arrived here, so a sender's clock means nothing.
"""

from nova_fairness import exception
from nova_fairness.exchange import codec
from nova_fairness.exchange import known as known_module
from nova_fairness.exchange import limits as bounds
from nova_fairness.exchange import peer as peer_module
from nova_fairness.exchange import postponed
from nova_fairness.exchange import unread
from nova_fairness.model import report

_OWN_INTERVALS = 10.0
"""Up to so many own intervals a slower peer's interval counts."""


class Ledger:
    """Decides which report of each peer counts; not thread-safe.

    Its memory is bounded: by hosts, by rows of users, by boot ids. Numbers
    that nobody has looked at yet take no more of it than those that were.

    :param host: the node's own name.
    :param boot_id: of its agent's run.
    :param limits: how much is kept and believed.
    """

    def __init__(self, host: str, boot_id: str, limits: bounds.Bounds) -> None:
        self._host = host
        self._boot_id = boot_id
        self._limits = limits
        self._peers: dict[str, peer_module.Peer] = {}
        self._postponed = postponed.Postponed()
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
    ) -> known_module.Known | None:
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
        return peer.known

    def postpone(self, short: codec.Short, now_s: float) -> bool:
        """Keep a message until somebody wants to see its numbers.

        :param short: made of what expect() gave.
        :param now_s: monotonic clock of this node, seconds.
        :returns: False if one of its host was not settled yet.
        """
        return self._postponed.put(short, now_s)

    def settle(self, host: str = '') -> postponed.Settled:
        """Look at the numbers that were postponed.

        :param host: whose; empty: everybody's.
        """
        waiting = self._postponed.take(host)
        if not waiting:
            return postponed.NOTHING
        numbers = [item.short.numbers for item in waiting]
        refusals = []
        for item, users in zip(
            waiting, unread.read(numbers, self._limits), strict=True
        ):
            error = self._settle(item, users)
            if error is not None:
                host = item.short.host
                refusals.append(postponed.Refusal(host, error))
        return postponed.Settled(len(waiting) - len(refusals), refusals)

    def _settle(
        self,
        item: postponed.Waiting,
        users: report.UserTable | exception.ReportRefused,
    ) -> exception.ReportRefused | None:
        short, arrived_s = item
        if isinstance(users, exception.ReportRefused):
            why = f'{report.REFUSED} {users}'
            self.refused(short.host, why, arrived_s)
            return users
        peer = self._peers.get(short.host)
        # Another thread may have accepted something newer meanwhile.
        if peer is None or peer.known is not short.known:
            return exception.ReportRefused(
                'late', f'{short.host} sent something newer meanwhile'
            )
        try:
            peer.check_order(short.head, arrived_s)
        except exception.ReportRefused as error:
            return error
        peer.take(short.complete(users), short.known, arrived_s)
        return None

    def accept(
        self,
        new: report.NodeReport,
        now_s: float,
        known: known_module.Known | None = None,
    ) -> None:
        """Take a report over, if it is the newest of its host.

        :param now_s: monotonic clock of this node, seconds.
        :param known: what expect() shall give from now on.
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
        peer.take(new, known, now_s)

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
        self, peer: peer_module.Peer, age_s: float, interval_s: float
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
            raise exception.ReportRefused('own', 'it is the own report')
        raise exception.ReportRefused(
            'namesake',
            f'another agent calls itself {self._host}, or did before this '
            'one started; expected each host to have a name of its own',
        )

    def _remembered(self, host: str, now_s: float) -> peer_module.Peer:
        peer = self._peers.get(host)
        if peer is not None:
            return peer
        if len(self._peers) >= self._limits.max_peers:
            self._make_room(host)
        peer = self._peers[host] = peer_module.Peer(heard_s=now_s)
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
                f'{host} is one too many: {self._limits.max_peers} peers are '
                'known ([fairness_exchange] max_peers)',
            )
        del self._peers[min(gone)[1]]

    def _check_room(self, host: str, more: int) -> None:
        most = self._limits.max_total_users
        if more > 0 and self._rows + more > most:
            raise exception.ReportRefused(
                'full',
                f'{host} brings {more} users more than there is room for: '
                f'{most} rows ([fairness_exchange] max_total_users)',
            )

    def _forget(self, now_s: float) -> None:
        silent = [
            host
            for host, peer in self._peers.items()
            if now_s - peer.heard_s > self._limits.forget_after_s
        ]
        for host in silent:
            self._drop(self._peers.pop(host))

    def _drop(self, peer: peer_module.Peer) -> None:
        self._rows -= peer.rows
        peer.newest = peer.known = None
