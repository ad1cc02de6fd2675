# SPDX-License-Identifier: Apache-2.0

"""Election of the leader among the service processes; only the leader acts.

The leader renews its lease by a new election of itself, which increments the
epoch. Another process becomes the leader if it sees no new epoch for the time
of a lease. During long work the epoch must not change, because every write
contains it; then the leader only updates the time that is stored with the
epoch. A process that ends releases the lease, so that the next process can
lead at once. Each process uses only its own clock. Correctness does not depend
on the lease, which only avoids wasted work.
"""

from collections.abc import Callable
import threading

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import store as store_module

LOG = logging.getLogger(__name__)

_RENEWALS_PER_LEASE = 3
_LATER_S = 0.001


class Election:
    """Takes part in the election of the leader for one process.

    :param store: store that contains the leader.
    :param holder: name of the process, not empty.
    :param lease_s: seconds without renewal after which another process may
        become the leader.
    :param clock: returns seconds of the epoch.
    :param monotonic: returns monotonic time, seconds.
    :ivar leads_since: time at which this process became the leader, seconds of
        the epoch.
    :ivar beat: called when long work makes progress.
    """

    def __init__(
        self,
        store: store_module.Store,
        holder: str,
        lease_s: float,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        self._store = store
        self._holder = holder
        self._lease_s = lease_s
        self._clock = clock
        self._monotonic = monotonic
        self._epoch = 0
        self.leads_since = 0.0
        self.beat: Callable[[], None] = lambda: None
        self._since = 0.0
        self._taken_at_s = self._renewed_at_s = 0.0
        self._seen: tuple[int, float] | None = None
        self._seen_at_s = 0.0
        self._resigned = False
        self._awaited = ''
        self._works: int | None = None

    def lead(self) -> int | None:
        """Return the epoch in which this process is the leader; ``None`` if
        another process is. Start an election if the lease is over.

        :raises StoreError: if the leader cannot be read from the store.
        """
        if self._resigned:
            return None
        now_s = self._monotonic()
        leader = self._store.leader()
        if (leader.epoch, leader.since) != self._seen:
            self._seen = leader.epoch, leader.since
            self._seen_at_s = now_s
        if leader.holder:
            if leader.epoch == self._epoch:
                if now_s - self._taken_at_s < self._renewal_interval_s:
                    return leader.epoch
            elif now_s - self._seen_at_s < self._lease_s:
                self._log_awaited_leader(leader)
                return None
        return self._take_over(leader.epoch, now_s)

    @property
    def _renewal_interval_s(self) -> float:
        """Return the seconds after which the leader renews its lease."""
        return self._lease_s / _RENEWALS_PER_LEASE

    def _take_over(self, epoch: int, now_s: float) -> int | None:
        self._since = self._clock()
        try:
            taken = self._store.take_over(epoch, self._holder, self._since)
        except exception.Deposed:
            return None
        if not self._epoch or epoch != self._epoch:
            LOG.info('process %s: leads since epoch %d', self._holder, taken)
            self.leads_since = self._since
        self._awaited = ''
        self._epoch = taken
        self._seen = taken, self._since
        self._seen_at_s = self._taken_at_s = self._renewed_at_s = now_s
        return taken

    def _log_awaited_leader(self, leader: records.Leader) -> None:
        """Log the leader that this process waits for, once per leader."""
        if leader.holder != self._awaited:
            LOG.info(
                'process %s: waits: %s leads since epoch %d; it takes over'
                ' if that is silent for %g s',
                self._holder,
                leader.host or leader.holder,
                leader.epoch,
                self._lease_s,
            )
        self._awaited = leader.holder

    def begin(self) -> None:
        """Declare that this thread starts work under the lease."""
        self._works = threading.get_ident()

    def end(self) -> None:
        """Declare that the work under the lease has ended."""
        self._works = None

    def renew(self) -> None:
        """Renew the lease during long work, without a new epoch.

        Long work calls this often. It does nothing soon after the last
        renewal, and nothing in other threads, whose progress does not show
        that the working thread makes progress.

        :raises Deposed: if another process is the leader.
        """
        now_s = self._monotonic()
        if self._works != threading.get_ident() or self._resigned:
            return
        self.beat()
        if now_s - self._renewed_at_s < self._renewal_interval_s:
            return
        # The clock may have gone back, and other processes look for a new
        # time.
        self._since = max(self._clock(), self._since + _LATER_S)
        try:
            self._store.renew_lease(self._epoch, self._since)
        except exception.StoreAway as error:
            # The next write fails, too, and ends the work.
            LOG.warning('the lease is not renewed: %s', error)
            return
        self._renewed_at_s = now_s

    def resign(self) -> None:
        """Release the lease, so that the next process can lead at once.

        All later writes of this process are refused.
        """
        self._resigned = True
        if not self._epoch:
            return
        try:
            if self._store.leader().epoch == self._epoch:
                self._store.take_over(self._epoch, '', self._clock())
                LOG.info('the lease is given back')
        except exception.Deposed:
            pass
        except exception.StoreError as error:
            LOG.warning('the lease ends by itself: %s', error)
