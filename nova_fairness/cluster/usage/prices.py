# SPDX-License-Identifier: Apache-2.0

"""Prices of hosts: the spending of all servers of a host, now and in the
past.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import math

from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import cluster
from nova_fairness.model import market

SOLD = 'VCPU'
"""Resource class that servers pay for."""

EVERY_S = 600.0
"""Seconds between two writes of changed prices."""

_CLEANED_S = 3600.0


def host_prices(
    snapshot: cluster.ClusterSnapshot,
    rates: Mapping[str, float],
    now: float,
) -> list[market.Price]:
    """Return the prices of all hosts that have capacity to sell, sorted by
    name.

    :param rates: rates in force, by UUID of the server.
    :param now: seconds of the epoch.
    """
    if SOLD not in snapshot.classes:
        return []
    spent: dict[str, float] = {}
    for each in snapshot.running:
        # A server with unknown amounts counts as an ordinary one.
        if not each.amounts or SOLD in dict(each.amounts):
            rate = rates.get(each.uuid, 0.0)
            spent[each.host] = spent.get(each.host, 0.0) + rate
    column = snapshot.classes.index(SOLD)
    found = [
        market.Price(
            each.name,
            SOLD,
            now,
            round(spent.get(each.name, 0.0), 3),
            float(capacity),
        )
        for each, capacity in zip(
            snapshot.providers,
            snapshot.inventory.capacity[:, column],
            strict=True,
        )
        if capacity > 0
    ]
    return sorted(found, key=lambda each: each.host)


def prices_for_project(
    snapshot: cluster.ClusterSnapshot,
    rates: Mapping[str, float],
    now: float,
    project: str,
    lowest: float,
    name: Callable[[str], str],
) -> list[market.Price]:
    """Return the prices that a project may read, with host names that only
    this project sees.

    The spending of the project itself does not count: otherwise a changed rate
    of one server would reveal its host. Amounts are rounded down, and servers
    with the lowest rate do not count: otherwise prices would reveal the number
    of servers.

    :param rates: rates in force, by UUID of the server.
    :param now: seconds of the epoch.
    :param lowest: rate of servers without a group.
    :param name: returns the name of a host for this project.
    """
    counted = {
        each.uuid: rates.get(each.uuid, 0.0)
        for each in snapshot.running
        if each.project != project and rates.get(each.uuid, 0.0) > lowest
    }
    found = [
        dataclasses.replace(
            each,
            host=name(each.host),
            price=_rounded_down(each.price),
            capacity=_rounded_down(each.capacity),
        )
        for each in host_prices(snapshot, counted, now)
    ]
    return sorted(found, key=lambda each: each.host)


def _rounded_down(amount: float) -> float:
    """Return the largest of the numbers 1, 2, 5, 10, 20 and so on that is
    not above an amount.
    """
    if amount <= 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(amount))
    # Rounding may make a power of ten slightly too small.
    first = next(
        (step for step in (10, 5, 2) if amount >= step * power * (1 - 1e-9)), 1
    )
    return round(first * power, 6)


class PriceHistory:
    """Stores prices when they change.

    :param store: store of prices.
    :param keep_s: seconds for which prices are stored.
    """

    def __init__(self, store: store_module.Store, keep_s: float) -> None:
        self._store = store
        self._keep_s = keep_s
        self._last: dict[str, market.Price] = {}
        self._looked_at: float | None = None
        self._cleaned_at: float | None = None
        self._epoch = 0

    def see(
        self,
        look: Callable[[], list[market.Price]],
        now: float,
        epoch: int,
    ) -> None:
        """Store prices that changed since the last call, if the interval has
        passed.

        :param look: returns the present prices.
        :param epoch: epoch of the leader.
        :raises StoreError: if the prices cannot be stored; the next call tries
            again.
        """
        if epoch != self._epoch:
            # Another leader may have written: all prices are stored once.
            self._epoch, self._last, self._looked_at = epoch, {}, None
        if not is_due(self._looked_at, now, EVERY_S):
            return
        found = look()
        new = [each for each in found if self._has_changed(each)]
        if new:
            self._store.market.prices.add(new, epoch)
        self._last = {each.host: each for each in found}
        self._looked_at = now
        if is_due(self._cleaned_at, now, _CLEANED_S):
            self._store.market.prices.remove_older(now - self._keep_s)
            self._cleaned_at = now

    def _has_changed(self, price: market.Price) -> bool:
        last = self._last.get(price.host)
        return last is None or dataclasses.replace(last, at=price.at) != price


def is_due(last: float | None, now: float, every_s: float) -> bool:
    """Whether an interval has passed, or the clock was set back.

    :param last: start of the interval, seconds of the epoch; ``None`` if there
        is none.
    :param now: seconds of the epoch.
    """
    return last is None or not 0 <= now - last < every_s
