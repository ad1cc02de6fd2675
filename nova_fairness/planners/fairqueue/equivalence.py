# SPDX-License-Identifier: Apache-2.0

"""Kinds of equal units: a reason to wait holds for all units of a kind.

Of thousands of waiting units most are alike, so a plan looks for the reason of
each kind only once. In a round free amounts only get less, so a unit that
could not start once cannot start later. Its reason may be different later, but
a round that starts units reports no reasons: a further round follows.
"""

from collections.abc import Iterable
from typing import Literal

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.planners.fairqueue import order

BEHIND: Literal[reason.Reason.BEHIND_OTHERS] = reason.Reason.BEHIND_OTHERS

Failed = reason.Why | reason.Lazy | Literal[reason.Reason.BEHIND_OTHERS]
"""Why a unit does not start. The number of requests before it is left out,
because it differs for each unit.
"""


class UnitKinds:
    """Kinds of units, and why units of a kind do not start.

    :param units: waiting units.
    :param accounts: accounts of the share tree.

    :ivar held_back: reasons for which units are not tried, by kind.
    :ivar failed: reasons for which tried units did not start, by kind.
    :ivar sharing: kinds that need more than the guaranteed part.
    :ivar tried: kinds that may be tried, as long as no unit starts.
    """

    def __init__(
        self,
        units: Iterable[order.Unit],
        accounts: Iterable[cluster.Account],
    ) -> None:
        self._kinds = _kind_numbers(units, accounts)
        self.held_back: dict[int, Failed] = {}
        self.failed: dict[int, Failed] = {}
        self.sharing: set[int] = set()
        self.tried: set[int] = set()

    def forget(self) -> None:
        """Clear all reasons, for a new round or after a reservation."""
        self.tried.clear()
        self.held_back.clear()
        self.failed.clear()
        self.sharing.clear()

    def of(self, unit: order.Unit) -> int:
        """Return the number of the kind of a unit."""
        return self._kinds[unit.requests[0].uuid]


def _kind_numbers(
    units: Iterable[order.Unit], accounts: Iterable[cluster.Account]
) -> dict[str, int]:
    """Return the number of the kind of each unit, by UUID of its first
    request.

    Units of server groups are kinds of their own.
    """
    # The user counts only if users have limits of their own.
    bound = any(
        '/' in each.name
        and (
            each.windows
            or each.fault
            or each.ceiling
            or each.budget_hours is not None
        )
        for each in accounts
    )
    known: dict[tuple[object, ...], int] = {}
    kinds: dict[str, int] = {}
    for unit in units:
        each = unit.requests[0]
        alike: tuple[object, ...] = (
            each.project,
            each.user if bound else '',
            each.band,
            each.demand,
            len(each.servers),
            each.time_limit_s,
            each.extended_s,
        )
        if each.group or len(unit.requests) > 1:
            alike = (each.uuid,)
        kinds[each.uuid] = known.setdefault(alike, len(known))
    return kinds
