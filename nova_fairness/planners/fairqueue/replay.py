# SPDX-License-Identifier: Apache-2.0

"""Replay of past requests with other shares or another order, to compare their
waits.

Room becomes free as it did in the past: at each time at which a request was
sent, its part of the cloud becomes free for the requests that wait then. The
order chooses the first of them. If the first request needs more room than is
free, it keeps the free room, and no other request passes it.

So the same requests start in the same room, in another sequence. Hosts, server
groups, ceilings, budgets and guaranteed parts do not count, and the ledger is
empty at the beginning. So the waits are only good for a comparison of two
replays.
"""

from collections.abc import Generator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

import numpy as np
import numpy.typing as npt

from nova_fairness.model import cluster
from nova_fairness.model import request as request_model
from nova_fairness.planners.fairqueue import estimates
from nova_fairness.planners.fairqueue import order as order_module
from nova_fairness.shares import ledger
from nova_fairness.shares import tree as tree_module

_ROUNDING = 1e-9
"""Tolerated rounding error of sums of parts of the cloud."""

Waits = Mapping[str, float]
"""Wait in seconds, by UUID of the request."""

Steps = Generator[None, None, Waits]
"""Yields after every started request; returns waits."""


@dataclasses.dataclass(frozen=True, slots=True)
class PastRequest:
    """A request that was sent to Nova.

    :ivar request: the request.
    :ivar sent_at: time at which it was sent, seconds of the epoch.
    :ivar lasted_s: seconds from ``sent_at`` to its end, or until now; >= 0.
    """

    request: request_model.Request
    sent_at: float
    lasted_s: float


def replay_waits(
    past: Sequence[PastRequest],
    snapshot: cluster.ClusterSnapshot,
    order: order_module.Order,
    kept: estimates.Kept,
) -> Steps:
    """Replay requests; each priority class has its own room.

    :param past: requests, in any sequence.
    :param snapshot: snapshot with the accounts and the capacity.
    :param order: order of the queue.
    :param kept: decay of use.
    :returns: wait of each request in the replay.
    :raises PluginMisbehaved: if the order fails.
    """
    found: dict[str, float] = {}
    for band in request_model.Band:
        those = [each for each in past if each.request.band is band]
        found |= yield from _Replay(those, snapshot, order, kept).run()
    return found


class _Replay:
    """Replay of the requests of one priority class."""

    def __init__(
        self,
        past: Sequence[PastRequest],
        snapshot: cluster.ClusterSnapshot,
        order: order_module.Order,
        kept: estimates.Kept,
    ) -> None:
        self._past, self._order, self._kept = past, order, kept
        users = {(e.request.project, e.request.user) for e in past}
        named = tree_module.with_missing_accounts(snapshot.accounts, (), users)
        self._parents = {each.name: each.parent for each in named}
        above = {
            name
            for each in past
            for name in self._accounts_above(each.request.account)
        }
        # Accounts without requests change no result, and cost time.
        self._cloud = dataclasses.replace(
            snapshot,
            requests=(),
            used={},
            running=(),
            granted={},
            wanting=frozenset(),
            accounts=tuple(e for e in named if e.name in above),
        )
        capacity = snapshot.inventory.capacity.sum(axis=0, dtype=np.float64)
        self._parts = {
            each.request.uuid: ledger.parts_of_capacity(
                len(each.request.servers)
                * cluster.amounts_vector(
                    dict(each.request.demand.amounts), snapshot.classes
                ).astype(np.float64),
                capacity,
            )
            for each in past
        }
        self._room, self._faded_at = 0.0, 0.0
        self._history: dict[str, npt.NDArray[np.float64]] = {}
        self._waiting: dict[str, PastRequest] = {}

    def run(self) -> Steps:
        """Free room at the times of the past, and start the first requests."""
        arrivals = sorted(
            self._past,
            key=lambda e: (e.request.asked_at, e.request.uuid),
            reverse=True,
        )
        found: dict[str, float] = {}
        slots = sorted(
            self._past, key=lambda each: (each.sent_at, each.request.uuid)
        )
        for slot in slots:
            now = slot.sent_at
            while arrivals and arrivals[-1].request.asked_at <= now:
                each = arrivals.pop()
                self._waiting[each.request.uuid] = each
            self._room += self._request_size(slot.request.uuid)
            while (uuid := self._take_next(now)) is not None:
                started = self._waiting.pop(uuid)
                found[uuid] = now - started.request.asked_at
                self._room -= self._request_size(uuid)
                self._charge_request(started)
                yield
        return found

    def _request_size(self, uuid: str) -> float:
        """Return the part of the cloud that a request needs, in its largest
        class.
        """
        return float(self._parts[uuid].max(initial=0.0))

    def _take_next(self, now: float) -> str | None:
        """Return the first request if there is room for it; otherwise
        ``None``.
        """
        room = self._room + _ROUNDING
        if not any(self._request_size(uuid) <= room for uuid in self._waiting):
            return None
        self._decay_use(now)
        waiting = [each.request for each in self._waiting.values()]
        seen = dataclasses.replace(self._cloud, history=dict(self._history))
        first = order_module.arranged(waiting, seen, now, self._order)[0]
        return first.uuid if self._request_size(first.uuid) <= room else None

    def _decay_use(self, now: float) -> None:
        if self._history:
            part = self._kept(max(now - self._faded_at, 0.0))
            self._history = {n: part * e for n, e in self._history.items()}
        self._faded_at = now

    def _charge_request(self, started: PastRequest) -> None:
        """Charge all use of a request, until its end, at its start."""
        part = 1.0 - self._kept(started.lasted_s)
        use = part * self._parts[started.request.uuid]
        for name in self._accounts_above(started.request.account):
            self._history[name] = self._history.get(name, 0.0) + use

    def _accounts_above(self, account: str) -> list[str]:
        found = []
        up: str | None = account
        while up is not None:
            found.append(up)
            up = self._parents[up]
        return found
