# SPDX-License-Identifier: Apache-2.0

"""The fewest possible hosts in use, found by an integer program.

Vector bin packing is hard. This is for clouds of a few dozen servers, to judge
the plans of other planners.
"""

import dataclasses
import itertools

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.planners import weighers
from nova_fairness.planners.consolidation import layout as layout_module
from nova_fairness.shares import programs

Rows = layout_module.Rows


@dataclasses.dataclass(frozen=True, slots=True)
class FewestHosts:
    """The fewest hosts in use, as far as the search found them.

    :ivar found: number of hosts of the best packing; ``None`` if no packing
        was found in time.
    :ivar bound: lower bound of the number of hosts.
    :ivar at: (n,) row of the host of each item in this packing, as in
        :class:`.layout.HostLayout`; ``None`` if there is none.
    """

    found: int | None
    bound: int
    at: Rows | None = dataclasses.field(default=None, compare=False)


def fewest(
    snapshot: cluster.ClusterSnapshot, longest_s: float | None = None
) -> FewestHosts:
    """Find the fewest hosts for all servers.

    :param longest_s: time limit of the search, seconds; ``None`` for no limit.
    """
    layout = layout_module.HostLayout(snapshot, weighers.fullest)
    program = _Program(layout)
    found = programs.solve_integer_program(
        program.cost, program.most, program.rows, longest_s
    )
    least = lower_bound(layout)
    if found is None:
        return FewestHosts(None, least)
    at_least = max(least, int(np.ceil(found.bound - 1e-6)))
    return FewestHosts(round(found.cost), at_least, program.at(found.chosen))


def lower_bound(layout: layout_module.HostLayout) -> int:
    """Return a lower bound of the number of hosts that can run all servers.

    For each class, hosts are counted from the largest down until their
    capacity is enough. The class with the largest count decides.
    """
    stay = layout.stay
    most = -np.sort(-layout.hosts.capacity, axis=1)
    total = layout.used.sum(axis=1)
    needed = (np.cumsum(most, axis=1) < total[:, np.newaxis]).sum(axis=1) + 1
    fewest = int(np.where(total > 0, needed, 0).max(initial=0))
    return max(fewest, int(stay.any(axis=0).sum()))


class _Program:
    """The integer program of the packing.

    Its columns contain whether each host is in use, then whether each item is
    on each host.
    """

    def __init__(self, layout: layout_module.HostLayout) -> None:
        self._layout = layout
        self._count = len(layout.hosts.names)
        self._entries: list[tuple[int, int, float]] = []
        self._bounds: list[tuple[float, float]] = []
        self._listed = pairs = self._item_host_pairs()
        self._add_capacity_rows(pairs)
        self._add_symmetry_rows()
        self.cost = np.zeros(self._count + len(pairs))
        self.cost[: self._count] = 1.0
        self.most = np.ones(len(self.cost))
        row, column, value = zip(*self._entries, strict=True)
        lower, upper = zip(*self._bounds, strict=True)
        self.rows = programs.ProgramRows(
            np.array(row, dtype=np.intp),
            np.array(column, dtype=np.intp),
            np.array(value, dtype=np.float64),
            np.array(lower, dtype=np.float64),
            np.array(upper, dtype=np.float64),
        )

    def at(self, chosen: Rows) -> Rows:
        """Return the row of the host of each item in a solution, (n,)."""
        at = self._layout.at.copy()
        for (n, row), is_there in zip(
            self._listed, chosen[self._count :], strict=True
        ):
            if is_there:
                at[n] = row
        return at

    def _add_row(
        self, entries: list[tuple[int, float]], lower: float, upper: float
    ) -> None:
        number = len(self._bounds)
        self._entries += [(number, column, value) for column, value in entries]
        self._bounds.append((lower, upper))

    def _item_host_pairs(self) -> list[tuple[int, int]]:
        """Return pairs of an item and the row of a host that can run it."""
        layout, takes = self._layout, self._layout.hosts.takes
        pairs: list[tuple[int, int]] = []
        for n in np.flatnonzero(layout.may_move):
            shape = layout.items[n].shape
            at = int(layout.at[n])
            rows = set() if shape is None else {*shape.rows[takes[shape.rows]]}
            # An item on a host where no server may start can stay there.
            first = len(pairs)
            pairs += [(int(n), int(row)) for row in sorted(rows | {at})]
            columns = range(first, len(pairs))
            self._add_row([(self._count + k, 1.0) for k in columns], 1, 1)
        return pairs

    def _add_capacity_rows(self, pairs: list[tuple[int, int]]) -> None:
        layout = self._layout
        stay = layout.stay
        on: dict[int, list[tuple[int, int]]] = {}
        for k, (n, row) in enumerate(pairs, self._count):
            on.setdefault(row, []).append((k, n))
        for row in range(self._count):
            there = on.get(row, [])
            is_used = float(stay[:, row].any())
            self._add_row([(row, 1.0)], is_used, 1)
            for c in range(len(stay)):
                room = max(
                    int(layout.hosts.capacity[c, row] - stay[c, row]), 0
                )
                entries = [(k, float(layout.amounts[n, c])) for k, n in there]
                self._add_row([*entries, (row, -float(room))], -np.inf, 0)
            self._add_group_rows(there)

    def _add_group_rows(self, there: list[tuple[int, int]]) -> None:
        groups: dict[str, list[tuple[int, float]]] = {}
        limits = {}
        for k, n in there:
            group = self._layout.items[n].apart
            if group is not None:
                groups.setdefault(group.uuid, []).append((k, 1.0))
                limits[group.uuid] = group.per_host
        for uuid, entries in groups.items():
            self._add_row(entries, 0, limits[uuid])

    def _add_symmetry_rows(self) -> None:
        """Require that among equal empty hosts the first one is used first."""
        kinds, empty = (
            self._layout.hosts.kind_of_host,
            ~self._layout.stay.any(axis=0),
        )
        for kind in np.unique(kinds):
            rows = np.flatnonzero((kinds == kind) & empty)
            for one, other in itertools.pairwise(rows):
                self._add_row([(int(one), 1.0), (int(other), -1.0)], 0, 1)
