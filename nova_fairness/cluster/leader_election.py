# SPDX-License-Identifier: Apache-2.0

"""Election of the one process, of several, that acts.

The leader renews its lease by taking over from itself: the epoch grows. A
process that sees the epoch stand still for a lease takes over. Within long
work the epoch must stay, since every write names it: then only the time beside
it is written again. A process that ends gives the lease back, so that the next
one need not wait for it. Only the own clock counts. Nothing but spared work
depends on all this.
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
    """Takes part for one process.

    :param store: where leaders are written.
    :param holder: name of the process, not empty.
    :param lease_s: after which a silent leader is deposed.
    :param clock: seconds of the epoch.
    :param monotonic: seconds that never go back.

    :ivar leads_since: when it took over from another process last, seconds of
        the epoch of time.
    :ivar beat: called whenever long work says that it goes on.
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

        :raises StoreError: if it is not known.
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
        """Seconds after which leading is renewed."""
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
        """Log once whose lease this process waits for."""
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
        """Say that this thread works under the lease from now on."""
        self._works = threading.get_ident()

    def end(self) -> None:
        """Say that the work is over."""
        self._works = None

    def renew(self) -> None:
        """Say that this process works still; the epoch stays.

        To be called often within long work. It does nothing while there is
        time left, and in other threads: that they go on says nothing of the
        one that works.

        :raises Deposed: if another process leads.
        """
        now_s = self._monotonic()
        if self._works != threading.get_ident() or self._resigned:
            return
        self.beat()
        if now_s - self._renewed_at_s < self._part_s:
            return
        # The clock may have gone back, and others look for a change.
        self._since = max(self._clock(), self._since + _LATER_S)
        try:
            self._store.renew(self._epoch, self._since)
        except exception.StoreAway as error:
            # What is written next fails, too, and ends the work.
            LOG.warning('the lease is not renewed: %s', error)
            return
        self._renewed_at_s = now_s

    def resign(self) -> None:
        """End leading, and let the next process lead at once.

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
