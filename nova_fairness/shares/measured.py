# SPDX-License-Identifier: Apache-2.0

"""Charges of accounts: for their allocations, or for their use.

Agents measure the use of CPU time and memory by users. For all other classes,
and for users that no agent knows, only the allocation is known.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import enum
import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

RESOURCES: Mapping[str, str] = {'VCPU': 'cpu_time', 'MEMORY_MB': 'memory'}
"""Resource that agents measure for a resource class of Placement."""


class Charge(enum.Enum):
    """Kind of use that is charged."""

    ALLOCATED = 'allocated'
    USED = 'used'
    LARGER = 'larger'
    """The larger of both, in every class."""


@dataclasses.dataclass(frozen=True)
class MeasuredUse:
    """Use of all nodes that agents know.

    :ivar by_project: whether use is known by project; otherwise by user, for
        all projects of the user together.
    :ivar parts: use as a part of the capacity of these nodes, >= 0, by id of
        the project or user, then by resource.
    """

    by_project: bool
    parts: Mapping[str, Mapping[str, float]]


def charged_amounts(
    charge: Charge,
    own: Mapping[str, Floats],
    lent: Mapping[str, Floats],
    lent_counts: float,
    measured: MeasuredUse | None,
    capacity: Mapping[str, float],
    most: Mapping[str, float] | None = None,
) -> dict[str, Floats]:
    """(c,) Amounts that accounts are charged for their own use, by name.

    If use is known for several accounts together, such as those of one user
    in two projects, it is divided in proportion to their allocations.

    :param charge: kind of use that is charged.
    :param own: (c,) allocated amounts of normal servers, by account.
    :param lent: (c,) allocated amounts of preemptible servers, by account.
    :param lent_counts: part of ``lent`` that is charged, 0 to 1.
    :param measured: measured use; ``None`` if it is not known.
    :param capacity: capacity of the cloud by class, in the order of columns.
    :param most: largest possible use as a multiple of the allocation, by
        class; ``None`` for no bound.
    """
    names = sorted({*own, *lent})
    none = np.zeros(len(capacity))
    counts = {
        name: own.get(name, none) + lent_counts * lent.get(name, none)
        for name in names
    }
    if charge is Charge.ALLOCATED or measured is None:
        return counts
    owned = _accounts_of_owners(names, measured.by_project)
    for c, (resource_class, much) in enumerate(capacity.items()):
        resource = RESOURCES.get(resource_class, '')
        for owner, accounts in owned.items():
            part = measured.parts.get(owner, {}).get(resource)
            there = sum(
                own.get(name, none)[c] + lent.get(name, none)[c]
                for name in accounts
            )
            if part is None or not there:
                continue
            times = math.inf if most is None else most.get(resource_class, 1.0)
            total = min(part * much, times * there)
            for name in accounts:
                used = total * counts[name][c] / there
                if charge is Charge.LARGER:
                    used = max(used, counts[name][c])
                counts[name][c] = used
    return counts


def _accounts_of_owners(
    names: Iterable[str], by_project: bool
) -> dict[str, list[str]]:
    """Accounts of each project, or of each user in all their projects."""
    found: dict[str, list[str]] = {}
    for name in names:
        project, _, user = name.partition('/')
        found.setdefault(project if by_project else user, []).append(name)
    return found
