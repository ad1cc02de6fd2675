# SPDX-License-Identifier: Apache-2.0

"""Ceilings: the most that an account and all below it may have at once.

What preemptible servers have does not count: they have limits of their own.
"""

from collections.abc import Iterable
from typing import NamedTuple

from nova_fairness.model import cluster
from nova_fairness.model import request as request_model
from nova_fairness.shares import tree as tree_module

_Amounts = Iterable[tuple[str, int]]


class Over(NamedTuple):
    """A ceiling that would be passed.

    :ivar account: its name.
    :ivar resource: class of Placement.
    :ivar asked: that is wanted of it.
    :ivar used: that the account has, with all below it.
    :ivar ceiling: that it may have.
    """

    account: str
    resource: str
    asked: int
    used: int
    ceiling: int


class Ceilings:
    """What accounts have of what they may have, while a plan is made.

    :param snapshot: says which accounts there are, and what runs.
    """

    def __init__(self, snapshot: cluster.ClusterSnapshot) -> None:
        self._above = tree_module.Above(
            snapshot.accounts, lambda account: bool(account.ceiling)
        )
        self._used: dict[tuple[str, str], int] = {}
        if self._above:
            for each in snapshot.running:
                if each.band is request_model.Band.NORMAL:
                    self._add(each.project, each.user, each.amounts, 1)

    def passed(self, requests: Iterable[request_model.Request]) -> Over | None:
        """The ceiling that a start would pass, the lowest account's first.

        :param requests: that start together.
        """
        if not self._above:
            return None
        asked: dict[tuple[str, str], int] = {}
        ceilings: dict[tuple[str, str], int] = {}
        for each in requests:
            if each.is_preemptible:
                continue
            amounts = dict(each.demand.amounts)
            for account in self._above.of(each.project, each.user):
                for resource, ceiling in account.ceiling:
                    much = amounts.get(resource, 0) * len(each.servers)
                    key = account.name, resource
                    ceilings[key] = ceiling
                    asked[key] = asked.get(key, 0) + much
        for key, much in asked.items():
            used = self._used.get(key, 0)
            if much and used + much > ceilings[key]:
                return Over(*key, much, used, ceilings[key])
        return None

    def take(self, request: request_model.Request) -> None:
        """A request starts."""
        if self._above and not request.is_preemptible:
            amounts, count = request.demand.amounts, len(request.servers)
            self._add(request.project, request.user, amounts, count)

    def _add(
        self, project: str, user: str, amounts: _Amounts, count: int
    ) -> None:
        for account in self._above.of(project, user):
            named = dict(amounts)
            for resource, _ in account.ceiling:
                key = account.name, resource
                much = named.get(resource, 0) * count
                self._used[key] = self._used.get(key, 0) + much
