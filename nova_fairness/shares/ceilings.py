# SPDX-License-Identifier: Apache-2.0

"""Ceilings: largest amounts of an account and all below it at the same time.

Preemptible servers do not count: they have limits of their own.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import NamedTuple

from nova_fairness.model import cluster
from nova_fairness.model import request as request_model
from nova_fairness.shares import tree as tree_module

_Bound = tuple[str, str, int]
"""An account, a class, and its ceiling."""


class ExceededCeiling(NamedTuple):
    """A ceiling that a start would exceed.

    :ivar account: name of the account.
    :ivar resource: resource class of Placement.
    :ivar asked: amount for which requests ask.
    :ivar used: present amount of the account and all below it.
    :ivar ceiling: largest amount that these may have.
    """

    account: str
    resource: str
    asked: int
    used: int
    ceiling: int


class Ceilings:
    """Use of accounts under their ceilings, while a plan is made.

    :param snapshot: has the accounts and the running servers.
    """

    def __init__(self, snapshot: cluster.ClusterSnapshot) -> None:
        self._above = tree_module.AccountsWithSetting(
            snapshot.accounts, lambda account: bool(account.ceiling)
        )
        self._used: dict[tuple[str, str], int] = {}
        if self._above:
            for owner, amounts in _normal_amounts(snapshot.running).items():
                self._add_use(*owner, amounts, 1)

    def passed(
        self,
        requests: Iterable[request_model.Request],
        *,
        is_alone: bool = False,
    ) -> ExceededCeiling | None:
        """The ceiling that a start would exceed, of the lowest account.

        :param requests: requests that start together.
        :param is_alone: whether to ignore all present use.
        """
        if not self._above:
            return None
        asked: dict[_Bound, int] = {}
        for each in requests:
            if each.is_preemptible:
                continue
            amounts, count = dict(each.demand.amounts), len(each.servers)
            for bound in self._ceilings_above(each.project, each.user):
                much = amounts.get(bound[1], 0) * count
                asked[bound] = asked.get(bound, 0) + much
        for (account, resource, ceiling), much in asked.items():
            used = self._used.get((account, resource), 0)
            if much and (0 if is_alone else used) + much > ceiling:
                return ExceededCeiling(account, resource, much, used, ceiling)
        return None

    def take(self, request: request_model.Request) -> None:
        """Count a request that starts."""
        if self._above and not request.is_preemptible:
            amounts, count = dict(request.demand.amounts), len(request.servers)
            self._add_use(request.project, request.user, amounts, count)

    def _add_use(
        self, project: str, user: str, amounts: Mapping[str, int], count: int
    ) -> None:
        for account, resource, _ in self._ceilings_above(project, user):
            much = amounts.get(resource, 0) * count
            used = self._used.get((account, resource), 0)
            self._used[account, resource] = used + much

    def _ceilings_above(self, project: str, user: str) -> Iterator[_Bound]:
        """Ceilings above a user, the lowest account's first."""
        for account in self._above.of(project, user):
            for resource, ceiling in account.ceiling:
                yield account.name, resource, ceiling


def _normal_amounts(
    running: Iterable[cluster.Running],
) -> dict[tuple[str, str], dict[str, int]]:
    """Amounts of servers that are not preemptible, by project and user."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    for each in running:
        if each.band is request_model.Band.NORMAL:
            own = found.setdefault((each.project, each.user), {})
            for name, much in each.amounts:
                own[name] = own.get(name, 0) + much
    return found
