# SPDX-License-Identifier: Apache-2.0

"""Units that are alike: a reason that keeps one keeps all of them.

Of thousands that wait most are alike, and a plan need not look for the reason
of each again. In a round everything only gets less, so a unit that could not
start once cannot later. Its reason may be another one then, but a round in
which something starts reports no reasons: another one follows.
"""

from collections.abc import Iterable
from typing import Literal

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.planners.fairqueue import order

BEHIND: Literal[reason.Reason.BEHIND_OTHERS] = reason.Reason.BEHIND_OTHERS

Failed = reason.Why | reason.Lazy | Literal[reason.Reason.BEHIND_OTHERS]
"""Why a unit does not start. How many are before it differs for each."""


class Alike:
    """Kinds of units, and why units of a kind do not start.

    :param units: that wait.
    :param accounts: of the share tree.

    :ivar held_back: what keeps units from being tried.
    :ivar failed: why units that were tried did not start.
    :ivar sharing: kinds that need more than what is guaranteed.
    :ivar tried: kinds that nothing keeps from being tried, as long as nothing
        starts.
    """

    def __init__(
        self,
        units: Iterable[order.Unit],
        accounts: Iterable[cluster.Account],
    ) -> None:
        self._kinds = _kinds(units, accounts)
        self.held_back: dict[int, Failed] = {}
        self.failed: dict[int, Failed] = {}
        self.sharing: set[int] = set()
        self.tried: set[int] = set()

    def forget(self) -> None:
        """Let a round begin, or what is kept change."""
        self.tried.clear()
        self.held_back.clear()
        self.failed.clear()
        self.sharing.clear()

    def of(self, unit: order.Unit) -> int:
        """Number of the kind of a unit."""
        return self._kinds[unit.requests[0].uuid]


def _kinds(
    units: Iterable[order.Unit], accounts: Iterable[cluster.Account]
) -> dict[str, int]:
    """Number of the kind by UUID; units of server groups are like no other."""
    # Who asks counts only where users have limits of their own.
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
