# SPDX-License-Identifier: Apache-2.0

"""Spending of groups of servers, and the funds that their accounts have left.

All amounts are integers, so that sums are exact. Rates are in thousandths of
the currency per CPU-hour, use is in microseconds of a CPU, and money is in
units of their product: one unit of the currency is :data:`UNIT` of these.
"""

import collections
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

from nova_fairness.model import cluster
from nova_fairness.model import market
from nova_fairness.model import request as request_model
from nova_fairness.shares import tree as tree_module

THOUSANDTHS = 1000
UNIT = 3_600_000_000 * THOUSANDTHS


def rates_in_force(
    groups: Mapping[tuple[str, str], market.SpendingGroup],
    running: Iterable[cluster.Running],
    empty: Collection[str],
    lowest: int,
) -> dict[str, int]:
    """Rates of servers, in thousandths, by UUID.

    The rate of a group is divided by the number of servers for which it was
    set, or by the number of its servers if this is larger. No server has less
    than the lowest rate. A server in no group, or of a user without funds, has
    the lowest rate.

    :param groups: groups by project and name.
    :param running: the servers.
    :param empty: accounts of users without funds.
    :param lowest: lowest rate, thousandths, >= 1.
    """
    listed = list(running)
    members = collections.Counter(
        (e.project, e.pays) for e in listed if e.pays
    )
    found = {}
    for each in listed:
        group = groups.get((each.project, each.pays))
        account = request_model.account_of(each.project, each.user)
        rate = lowest
        if group is not None and account not in empty:
            count = max(group.count, members[each.project, each.pays])
            rate = max(int(group.rate * THOUSANDTHS / count), lowest)
        found[each.uuid] = rate
    return found


class Funds:
    """Funds of accounts, and their spending.

    :param accounts: of the share tree.
    :param spent: spent units, by account of a user.
    """

    def __init__(
        self, accounts: Iterable[cluster.Account], spent: Mapping[str, int]
    ) -> None:
        self._accounts = {each.name: each for each in accounts}
        self.spent = dict(spent)
        self._chains: dict[str, tuple[str, ...]] = {}
        self.left = {
            each.name: round(each.funds * UNIT)
            for each in self._accounts.values()
            if each.funds is not None
        }
        """Units that accounts with funds have left; below 0 if funds were set
        to less than the spent amount."""
        for account, units in spent.items():
            for name in self._funded_accounts(account):
                self.left[name] -= units

    def charge(self, account: str, units: int) -> int:
        """Charge the owed units, at most as many as are left.

        :param account: account of a user.
        :param units: owed units, >= 0.
        :returns: charged units.
        """
        names = self._funded_accounts(account)
        for name in names:
            units = min(units, max(self.left[name], 0))
        for name in names:
            self.left[name] -= units
        if units:
            self.spent[account] = self.spent.get(account, 0) + units
        return units

    def is_empty(self, account: str) -> bool:
        """Whether the account of a user has no funds left."""
        return any(
            self.left[name] <= 0 for name in self._funded_accounts(account)
        )

    def _funded_accounts(self, account: str) -> tuple[str, ...]:
        """The user's account and those above it that have funds set."""
        if account not in self._chains:
            project, _, user = account.partition('/')
            above = tree_module.account_chain(self._accounts, project, user)
            self._chains[account] = tuple(
                each.name for each in above if each.funds is not None
            )
        return self._chains[account]
