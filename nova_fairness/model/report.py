# SPDX-License-Identifier: Apache-2.0

"""Reports that nodes exchange: totals per user, never per VM."""

import bisect
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses

import numpy as np
import numpy.typing as npt

from nova_fairness.model import node
from nova_fairness.model import resources

GRADES = 8
"""Number of groups into which a user's VMs on a node are divided, by the part
of a vCPU that they want.
"""


@dataclasses.dataclass(frozen=True, eq=False)
class UserTotals:
    """Sums over the VMs of one user on one node.

    :ivar instance_heaviness: sum of the heaviness of the instance stage,
        norm units.
    :ivar endowment: (r,) sum, amounts of the report's interval.
    :ivar usage: (r,) sum, amounts of the report's interval.
    :ivar instances: number of VMs, >= 1.
    :ivar wanted: (r,) sum of what they would use if there were plenty, amounts
        of the report's interval; ``None`` if not reported.
    :ivar grades: (2g,) vCPUs of each grade, then what these want, CPUs;
        ``None`` if not reported.
    :ivar exempt: (2g,) the part of the grades that is of VMs that are not
        steered; ``None`` if not reported.
    """

    instance_heaviness: float
    endowment: resources.Vector
    usage: resources.Vector
    instances: int
    wanted: resources.Vector | None = None
    grades: npt.NDArray[np.float64] | None = None
    exempt: npt.NDArray[np.float64] | None = None


class UserTable(Mapping[str, UserTotals]):
    """Totals of all users of a node: arrays that read like a mapping.

    :param ids: of the users, ascending, each once.
    :param instance_heaviness: (u,) sums.
    :param endowment: (u, r) sums.
    :param usage: (u, r) sums.
    :param instances: (u,) numbers of VMs, >= 1.
    :param wanted: (u, r) sums; ``None`` if not reported.
    :param grades: (u, 2g) vCPUs, then CPUs wanted; ``None`` if not reported.
    :param exempt: (u, 2g) the part of that of VMs that are not steered;
        ``None`` if there are none, or if not reported.
    """

    __slots__ = (
        'endowment',
        'exempt',
        'grades',
        'ids',
        'instance_heaviness',
        'instances',
        'usage',
        'wanted',
    )

    def __init__(
        self,
        ids: tuple[str, ...],
        instance_heaviness: npt.NDArray[np.float64],
        endowment: resources.Vector,
        usage: resources.Vector,
        instances: npt.NDArray[np.int64],
        wanted: resources.Vector | None = None,
        grades: npt.NDArray[np.float64] | None = None,
        exempt: npt.NDArray[np.float64] | None = None,
    ) -> None:
        self.ids = ids
        self.instance_heaviness = instance_heaviness
        self.endowment = endowment
        self.usage = usage
        self.instances = instances
        self.wanted = wanted
        self.grades = grades
        self.exempt = exempt

    @classmethod
    def of(cls, users: Mapping[str, UserTotals]) -> 'UserTable':
        """Convert a mapping, sorted by ID, to a table."""
        if isinstance(users, UserTable):
            return users
        shape = (len(users), len(resources.RESOURCES))
        entries = list(users.values())
        return UserTable(
            tuple(users),
            np.array([entry.instance_heaviness for entry in entries], float),
            np.array([entry.endowment for entry in entries]).reshape(shape),
            np.array([entry.usage for entry in entries]).reshape(shape),
            np.array([entry.instances for entry in entries], np.int64),
            _stacked([entry.wanted for entry in entries], shape[1]),
            _stacked([entry.grades for entry in entries], 2 * GRADES),
            _stacked([entry.exempt for entry in entries], 2 * GRADES),
        )

    def __getitem__(self, user: str) -> UserTotals:
        row = bisect.bisect_left(self.ids, user)
        if row == len(self.ids) or self.ids[row] != user:
            raise KeyError(user)
        return UserTotals(
            instance_heaviness=float(self.instance_heaviness[row]),
            endowment=self.endowment[row],
            usage=self.usage[row],
            instances=int(self.instances[row]),
            wanted=None if self.wanted is None else self.wanted[row],
            grades=None if self.grades is None else self.grades[row],
            exempt=None if self.exempt is None else self.exempt[row],
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __len__(self) -> int:
        return len(self.ids)


def _stacked(
    rows: list[npt.NDArray[np.float64] | None], width: int
) -> npt.NDArray[np.float64] | None:
    """Combine the rows to an array; ``None`` if a row is missing."""
    told = [row for row in rows if row is not None]
    if len(told) < len(rows):
        return None
    return np.array(told).reshape(len(rows), width)


@dataclasses.dataclass(frozen=True, eq=False)
class NodeReport:
    """The newest totals of one node.

    :ivar host: name of the node.
    :ivar boot_id: of the agent's run; a change says that it started again.
    :ivar sequence: number of the round in that run, ascending.
    :ivar interval_s: length of the measured interval, seconds.
    :ivar metric: name of the metric behind ``instance_heaviness``.
    :ivar resources: what the node has.
    :ivar users: totals by user id, sorted by id.
    """

    host: str
    boot_id: str
    sequence: int
    interval_s: float
    metric: str
    resources: node.NodeResources
    users: Mapping[str, UserTotals]


SILENT = 'silent'
OTHER_METRIC = 'measures'
REFUSED = 'refused:'
"""First words of reasons in :attr:`View.left_out`: they say which kind of
reason it is."""


@dataclasses.dataclass(frozen=True, eq=False)
class View:
    """Knowledge of a node: the newest usable report of each node.

    :ivar reports: by host, sorted by host; the node's own among them.
    :ivar age_s: seconds since each report arrived, by host.
    :ivar left_out: why a known peer is not in ``reports``, by host.
    """

    reports: Mapping[str, NodeReport]
    age_s: Mapping[str, float]
    left_out: Mapping[str, str]
