# SPDX-License-Identifier: Apache-2.0

"""Election of the one process, of several, that acts.

Leading is renewed by taking over from oneself: the epoch grows, and whoever
sees it stand still for a lease takes over. Only the own clock counts, and
nothing but spared work hangs on it: every write names its epoch.
"""

from collections.abc import Callable

from nova_fairness import exception
from nova_fairness.cluster.store import store as store_module

_RENEWALS_PER_LEASE = 3


class Election:
    """Takes part for one process.

    :param store: where leaders are written.
    :param holder: name of the process.
    :param lease_s: after which a silent leader is deposed.
    :param clock: seconds of the epoch.
    :param monotonic: seconds that never go back.
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
        self._seen = -1
        self._seen_at_s = 0.0

    def lead(self) -> int | None:
        """The epoch to act in; ``None`` while another process leads.

        :raises StoreError: if it is not known.
        """
        now_s = self._monotonic()
        epoch = self._store.leader().epoch
        if epoch != self._seen:
            self._seen, self._seen_at_s = epoch, now_s
        silent_s = now_s - self._seen_at_s
        mine = epoch == self._epoch and epoch > 0
        if mine and silent_s < self._lease_s / _RENEWALS_PER_LEASE:
            return epoch
        if not mine and epoch > 0 and silent_s < self._lease_s:
            return None
        try:
            taken = self._store.take_over(epoch, self._holder, self._clock())
        except exception.Deposed:
            return None
        self._epoch = self._seen = taken
        self._seen_at_s = now_s
        return taken
