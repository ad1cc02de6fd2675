# SPDX-License-Identifier: Apache-2.0

"""Election of the one process, among several, that acts.

The leader renews its lease by taking over from itself: the epoch grows. A
process takes over if it sees no new epoch for the time of a lease. During long
work the epoch must not change, since every write names it: then the leader
only writes the time beside it again. A process that ends gives the lease back,
so that the next process does not wait for its end. Each process uses only its
own clock. Correctness does not depend on the lease: it only avoids wasted
work.
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
    """Takes part in the election for one process.

    :param store: stores the leader.
    :param holder: name of the process, not empty.
    :param lease_s: seconds after which a silent leader is deposed.
    :param clock: seconds of the epoch.
    :param monotonic: seconds that never go back.
    :ivar leads_since: when this process last took over from another one,
        seconds of the epoch.
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
        """The epoch to act in; ``None`` while another process leads.

        :raises StoreError: if the leader cannot be read.
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
                if now_s - self._taken_at_s < self._part_s:
                    return leader.epoch
            elif now_s - self._seen_at_s < self._lease_s:
                self._wait_for(leader)
                return None
        return self._take_over(leader.epoch, now_s)

    @property
    def _part_s(self) -> float:
        """Seconds after which the leader renews its lease."""
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

    def _wait_for(self, leader: records.Leader) -> None:
        """Log once which leader this process waits for."""
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
        """Declare that this thread works under the lease from now on."""
        self._works = threading.get_ident()

    def end(self) -> None:
        """Declare that the work under the lease is over."""
        self._works = None

    def renew(self) -> None:
        """Renew the lease during long work; the epoch does not change.

        Long work calls this often. It does nothing soon after the last
        renewal, nor in other threads: their progress proves nothing about the
        thread that works.

        :raises Deposed: if another process leads.
        """
        now_s = self._monotonic()
        if self._works != threading.get_ident() or self._resigned:
            return
        self.beat()
        if now_s - self._renewed_at_s < self._part_s:
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
        """End leading, so that the next process can lead at once.

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
