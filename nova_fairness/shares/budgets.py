# SPDX-License-Identifier: Apache-2.0

"""Budgets: amounts that accounts may use in a period, and the rest of them.

Use is counted in units, a weighted sum of resource classes (like Slurm's
``TRESBillingWeights``), times seconds. When a server starts, its use until its
end is charged at once: a server that starts within a budget stays within it. A
server that ends sooner gives the rest of its charge back.

Amounts are for two periods, (2,): the present one and the next. Servers
without an end count until the end of both periods.
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
        """Starts of the present period and of the next two.

        :param now: seconds of the epoch.
        :returns: seconds of the epoch.
        """
        first = dt.datetime.fromtimestamp(now, dt.UTC).replace(
            hour=0, minute=0, second=0, microsecond=0
        )
        if self is Period.WEEK:
            first -= dt.timedelta(days=first.weekday())
        elif self is Period.MONTH:
            first = first.replace(day=1)
        second = self._next_start(first)
        third = self._next_start(second)
        return first.timestamp(), second.timestamp(), third.timestamp()

    def _next_start(self, first: dt.datetime) -> dt.datetime:
        if self is Period.MONTH:
            return (first + dt.timedelta(days=32)).replace(day=1)
        return first + dt.timedelta(days=7 if self is Period.WEEK else 1)


@dataclasses.dataclass(frozen=True)
class BudgetTerms:
    """Units and period of budgets.

    :ivar period: period after which budgets are full again.
    :ivar weights: units per amount of each class, >= 0; a class without an
        entry does not count.
    :ivar preemptible: part of the use of preemptible servers that counts, 0
        to 1.
    """

    period: Period = Period.MONTH
    weights: Mapping[str, float] = dataclasses.field(
        default_factory=lambda: {'VCPU': 1.0}
    )
    preemptible: float = 0.0


def open_budgets(
    snapshot: cluster.ClusterSnapshot,
    terms: BudgetTerms,
    spent: Mapping[str, float],
    at: float,
    now: float,
) -> cluster.Budgets | None:
    """Budgets of accounts, less use and commitments; ``None`` without any.

    :param snapshot: has the accounts and the running servers.
    :param terms: units and period of budgets.
    :param spent: unit-seconds used in this period by each account and all
        accounts below it.
    :param at: time up to which this use is known, seconds of the epoch.
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
    """The parts of a budget of this period, in unit-seconds.

    :ivar used_s: used amount.
    :ivar committed_s: amount that running servers will use until their ends,
        or until the end of the period.
    :ivar left_s: amount that is neither used nor committed, >= 0.
    """

    used_s: float
    committed_s: float
    left_s: float


def budget_parts(
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
    """Lack of an account in one of the two periods.

    :ivar account: name of the account.
    :ivar asked_s: needed unit-seconds.
    :ivar left_s: unit-seconds that the budget has left, >= 0.
    """

    account: str
    asked_s: float
    left_s: float


class BudgetUse:
    """Budgets while a plan is made.

    :param budgets: budgets before the plan; ``None`` if there are none.
    :param accounts: of the share tree.
    """

    def __init__(
        self,
        budgets: cluster.Budgets | None,
        accounts: Iterable[cluster.Account],
    ) -> None:
        self._budgets = budgets
        left = {} if budgets is None else budgets.left
        # For two numbers, tuples are faster than arrays.
        self._left: dict[str, _Seconds] = dict(left)
        self._above = tree_module.AccountsWithSetting(
            accounts, lambda account: account.name in left
        )

    def left(self) -> cluster.Budgets | None:
        """Budgets, less the amounts taken so far."""
        if self._budgets is None:
            return None
        return dataclasses.replace(self._budgets, left=dict(self._left))

    def lacking(
        self, requests: Iterable[request_model.Request], now: float
    ) -> BudgetLack | None:
        """The largest lack of a budget for a start; ``None`` if none lacks.

        :param requests: requests that start together.
        :param now: time of the start, seconds of the epoch.
        """
        if self._budgets is None:
            return None
        needed: dict[str, _Seconds] = {}
        for each in requests:
            cost = self._cost(self._units_of_request(each), each.ends_at(now))
            for account in self._above.of(each.project, each.user):
                others = needed.get(account.name, _NOTHING)
                needed[account.name] = _add_seconds(others, cost)
        return self._most_lacking(needed)

    def extension_lack(
        self, request: request_model.Request, since: float, by_s: float
    ) -> BudgetLack | None:
        """The largest lack of a budget if running servers run longer.

        :param request: request of these servers.
        :param since: their start, seconds of the epoch.
        :param by_s: additional seconds, > 0.
        """
        cost = self._extension_cost(request, since, by_s)
        above = self._above.of(request.project, request.user)
        return self._most_lacking({each.name: cost for each in above})

    def take(self, request: request_model.Request, now: float) -> None:
        """Charge a request that starts."""
        cost = self._cost(
            self._units_of_request(request), request.ends_at(now)
        )
        self._charge_accounts(request.project, request.user, cost)

    def take_running(self, servers: Iterable[cluster.Running]) -> None:
        """Charge the use of running servers until their ends."""
        units = functools.cache(self._units_of_server)
        # Servers of one owner with the same end are charged together.
        total: dict[tuple[str, str, float | None], float] = {}
        for each in servers:
            key = each.project, each.user, each.ends_at
            total[key] = total.get(key, 0.0) + units(each.amounts, each.band)
        for (project, user, end), together in total.items():
            if self._above.of(project, user):
                self._charge_accounts(project, user, self._cost(together, end))

    def take_extension(
        self, request: request_model.Request, since: float, by_s: float
    ) -> None:
        """Charge servers that run longer; see :meth:`extension_lack`."""
        self._charge_accounts(
            request.project,
            request.user,
            self._extension_cost(request, since, by_s),
        )

    def _charge_accounts(
        self, project: str, user: str, cost: _Seconds
    ) -> None:
        for each in self._above.of(project, user):
            self._left[each.name] = _add_seconds(
                self._left[each.name], cost, -1.0
            )

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

    def _extension_cost(
        self, request: request_model.Request, since: float, by_s: float
    ) -> _Seconds:
        end, units = request.ends_at(since), self._units_of_request(request)
        later = None if end is None else end + by_s
        return _add_seconds(
            self._cost(units, later), self._cost(units, end), -1.0
        )

    def _cost(self, units: float, end: float | None) -> _Seconds:
        """Unit-seconds of servers until their end, in both periods."""
        if self._budgets is None:
            return _NOTHING
        until = math.inf if end is None else end
        begin, (second, third) = self._budgets.at, self._budgets.ends
        return (
            units * max(min(until, second) - begin, 0.0),
            units * max(min(until, third) - second, 0.0),
        )

    def _units_of_request(self, request: request_model.Request) -> float:
        one = self._units_of_server(request.demand.amounts, request.band)
        return one * len(request.servers)

    def _units_of_server(
        self,
        amounts: tuple[tuple[str, int], ...],
        band: request_model.Band,
    ) -> float:
        """Units of one server."""
        if self._budgets is None:
            return 0.0
        weights = self._budgets.weights
        units = sum(weights.get(name, 0.0) * much for name, much in amounts)
        if band is request_model.Band.PREEMPTIBLE:
            units *= self._budgets.preemptible
        return units


def _add_seconds(
    one: _Seconds, other: _Seconds, times: float = 1.0
) -> _Seconds:
    return one[0] + times * other[0], one[1] + times * other[1]
