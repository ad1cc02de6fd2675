# SPDX-License-Identifier: Apache-2.0

"""Budgets: amounts that accounts may use in a period, and their rest.

Use is counted in units, a weighted sum of resource classes (as Slurm's
``TRESBillingWeights``), times seconds. A server is charged until its end from
the moment on at which it starts: one that starts within a budget stays within
it. A server that ends sooner gives the rest of its charge back.

Amounts are of two periods, (2,): of the one that goes on, and of the next.
Servers without an end count in both for as long as these last.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import datetime as dt
import enum
import functools
import math
from typing import NamedTuple

from nova_fairness.model import cluster
from nova_fairness.model import request as request_model
from nova_fairness.shares import tree as tree_module

_Seconds = tuple[float, float]
"""Unit-seconds of both periods."""

_NOTHING = (0.0, 0.0)

HOUR_S = 3600.0


class Period(enum.Enum):
    """Time after which budgets are full again, by the calendar of UTC."""

    DAY = 'day'
    WEEK = 'week'
    """From Monday on."""
    MONTH = 'month'

    def around(self, now: float) -> tuple[float, float, float]:
        """When the present one, the next and the one after that begin.

        :param now: seconds of the epoch, as the results.
        """
        first = dt.datetime.fromtimestamp(now, dt.UTC).replace(
            hour=0, minute=0, second=0, microsecond=0
        )
        if self is Period.WEEK:
            first -= dt.timedelta(days=first.weekday())
        elif self is Period.MONTH:
            first = first.replace(day=1)
        second = self._after(first)
        third = self._after(second)
        return first.timestamp(), second.timestamp(), third.timestamp()

    def _after(self, first: dt.datetime) -> dt.datetime:
        if self is Period.MONTH:
            return (first + dt.timedelta(days=32)).replace(day=1)
        return first + dt.timedelta(days=7 if self is Period.WEEK else 1)


@dataclasses.dataclass(frozen=True)
class BudgetTerms:
    """Units and period of budgets.

    :ivar period: after which they are full again.
    :ivar weights: units that one of a class counts as, >= 0; a class that is
        not named counts for nothing.
    :ivar preemptible: part of the use of preemptible servers that counts, 0
        to 1.
    """

    period: Period = Period.MONTH
    weights: Mapping[str, float] = dataclasses.field(
        default_factory=lambda: {'VCPU': 1.0}
    )
    preemptible: float = 0.0


def opened(
    snapshot: cluster.ClusterSnapshot,
    terms: BudgetTerms,
    spent: Mapping[str, float],
    at: float,
    now: float,
) -> cluster.Budgets | None:
    """Budgets of all that have one, less what is spent; ``None`` without.

    :param snapshot: says which accounts there are, and what runs.
    :param terms: what is counted.
    :param spent: unit-seconds of this period by account, with all below it.
    :param at: up to when these are known, seconds of the epoch.
    :param now: seconds of the epoch.
    """
    hours = {
        each.name: each.budget_hours
        for each in snapshot.accounts
        if each.budget_hours is not None
    }
    if not hours:
        return None
    begin, second, third = terms.period.around(now)
    used = {name: spent.get(name, 0.0) for name in hours}
    left = {
        name: (HOUR_S * much - used[name], HOUR_S * much)
        for name, much in hours.items()
    }
    full = cluster.Budgets(
        terms.weights,
        terms.preemptible,
        max(at, begin),
        (second, third),
        left,
        used,
    )
    spending = BudgetUse(full, snapshot.accounts)
    spending.take_running(snapshot.running)
    return spending.left()


class BudgetParts(NamedTuple):
    """A budget of this period, divided.

    :ivar used_s: unit-seconds that were used.
    :ivar committed_s: that running servers will use until their ends, or
        until the end of the period.
    :ivar left_s: that are neither, >= 0.
    """

    used_s: float
    committed_s: float
    left_s: float


def divided(
    account: cluster.Account, found: cluster.Budgets | None
) -> BudgetParts | None:
    """Divide the budget of an account; ``None`` if it has none."""
    if found is None or account.budget_hours is None:
        return None
    if account.name not in found.left:
        return None
    used, left = found.used[account.name], found.left[account.name][0]
    committed = HOUR_S * account.budget_hours - used - left
    return BudgetParts(used, max(committed, 0.0), max(left, 0.0))


class BudgetLack(NamedTuple):
    """Amount that an account lacks.

    :ivar account: its name.
    :ivar asked_s: unit-seconds that are needed in one of the periods.
    :ivar left_s: that are left of it, >= 0.
    """

    account: str
    asked_s: float
    left_s: float


class BudgetUse:
    """Budgets while a plan is made.

    :param budgets: at its begin; ``None`` if there are none.
    :param accounts: of the share tree.
    """

    def __init__(
        self,
        budgets: cluster.Budgets | None,
        accounts: Iterable[cluster.Account],
    ) -> None:
        self._budgets = budgets
        left = {} if budgets is None else budgets.left
        # Of two numbers, tuples are quicker than arrays.
        self._left: dict[str, _Seconds] = dict(left)
        self._above = tree_module.Above(
            accounts, lambda account: account.name in left
        )

    def left(self) -> cluster.Budgets | None:
        """Budgets less what was taken."""
        if self._budgets is None:
            return None
        return dataclasses.replace(self._budgets, left=dict(self._left))

    def lacking(
        self, requests: Iterable[request_model.Request], now: float
    ) -> BudgetLack | None:
        """Say whose budget is too small for a start, the largest lack first.

        :param requests: that start together.
        :param now: when, seconds of the epoch.
        """
        if self._budgets is None:
            return None
        needed: dict[str, _Seconds] = {}
        for each in requests:
            cost = self._cost(self._units(each), each.ends_at(now))
            for account in self._above.of(each.project, each.user):
                others = needed.get(account.name, _NOTHING)
                needed[account.name] = _sum(others, cost)
        return self._most_lacking(needed)

    def lacking_extension(
        self, request: request_model.Request, since: float, by_s: float
    ) -> BudgetLack | None:
        """The same for servers that run and are to run longer.

        :param request: whose servers these are.
        :param since: when they started, seconds of the epoch.
        :param by_s: seconds, > 0.
        """
        cost = self._extension(request, since, by_s)
        above = self._above.of(request.project, request.user)
        return self._most_lacking({each.name: cost for each in above})

    def take(self, request: request_model.Request, now: float) -> None:
        """A request starts."""
        cost = self._cost(self._units(request), request.ends_at(now))
        self._take(request.project, request.user, cost)

    def take_running(self, servers: Iterable[cluster.Running]) -> None:
        """Servers go on until their ends."""
        units = functools.cache(self._unit)
        # Those of one owner that end at once cost what all of them are.
        total: dict[tuple[str, str, float | None], float] = {}
        for each in servers:
            key = each.project, each.user, each.ends_at
            total[key] = total.get(key, 0.0) + units(each.amounts, each.band)
        for (project, user, end), together in total.items():
            if self._above.of(project, user):
                self._take(project, user, self._cost(together, end))

    def take_extension(
        self, request: request_model.Request, since: float, by_s: float
    ) -> None:
        """Its servers run longer."""
        self._take(
            request.project,
            request.user,
            self._extension(request, since, by_s),
        )

    def _take(self, project: str, user: str, cost: _Seconds) -> None:
        for each in self._above.of(project, user):
            self._left[each.name] = _sum(self._left[each.name], cost, -1.0)

    def _most_lacking(
        self, needed: Mapping[str, _Seconds]
    ) -> BudgetLack | None:
        found = [
            BudgetLack(name, much, max(left, 0.0))
            for name, each in needed.items()
            for much, left in zip(each, self._left[name], strict=True)
            if 0 < much > left
        ]
        if not found:
            return None
        return max(
            found, key=lambda each: (each.asked_s - each.left_s, each.account)
        )

    def _extension(
        self, request: request_model.Request, since: float, by_s: float
    ) -> _Seconds:
        end, units = request.ends_at(since), self._units(request)
        later = None if end is None else end + by_s
        return _sum(self._cost(units, later), self._cost(units, end), -1.0)

    def _cost(self, units: float, end: float | None) -> _Seconds:
        """Unit-seconds in both periods."""
        if self._budgets is None:
            return _NOTHING
        until = math.inf if end is None else end
        begin, (second, third) = self._budgets.at, self._budgets.ends
        return (
            units * max(min(until, second) - begin, 0.0),
            units * max(min(until, third) - second, 0.0),
        )

    def _units(self, request: request_model.Request) -> float:
        one = self._unit(request.demand.amounts, request.band)
        return one * len(request.servers)

    def _unit(
        self,
        amounts: tuple[tuple[str, int], ...],
        band: request_model.Band,
    ) -> float:
        """Units that one server counts as."""
        if self._budgets is None:
            return 0.0
        weights = self._budgets.weights
        units = sum(weights.get(name, 0.0) * much for name, much in amounts)
        if band is request_model.Band.PREEMPTIBLE:
            units *= self._budgets.preemptible
        return units


def _sum(one: _Seconds, other: _Seconds, times: float = 1.0) -> _Seconds:
    return one[0] + times * other[0], one[1] + times * other[1]
