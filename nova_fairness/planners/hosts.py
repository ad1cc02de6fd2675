# SPDX-License-Identifier: Apache-2.0

"""Hosts that can run a server when they are empty.

Arrays here have a column per host, in the order of the hosts' UUIDs, so that
ties do not depend on the order in which hosts were listed.
"""

from collections.abc import Callable
from collections.abc import Iterable
import dataclasses
import functools
import zlib

import numpy as np
import numpy.typing as npt

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request

Rows = npt.NDArray[np.intp]
Marks = npt.NDArray[np.bool_]
Fractions = npt.NDArray[np.float64]


MOST = 2**31 - 1
"""Largest amount in Placement."""

_OF_EVERY_HOST = frozenset({'MEMORY_MB', 'DISK_GB'})
"""Resource classes that every host of Nova has. If no host has such a
class, hosts are still being installed, and Nova cannot decide better than
the planner.
"""


@dataclasses.dataclass(frozen=True, eq=False)
class Shape:
    """Amounts that one server needs, and the hosts that are large enough.

    :ivar columns: (k,) indices of the resource classes that the server needs.
    :ivar amounts: (k, 1) amounts of these classes, > 0.
    :ivar rows: (m,) hosts that can run the server when they are empty; several
        shapes share the array.
    :ivar of_all: (c, p) capacity of all hosts.
    :ivar never: why no host could ever run the server; ``None`` if a host
        could.
    """

    columns: Rows
    amounts: cluster.Amounts
    rows: Rows
    of_all: cluster.Amounts
    never: reason.Why | None = None

    # In a full cloud these properties of most shapes are not used.

    @functools.cached_property
    def capacity(self) -> cluster.Amounts:
        """Return the capacity of the hosts of the shape, (k, m)."""
        return self.of_all[self.columns][:, self.rows]

    @functools.cached_property
    def inverse(self) -> Fractions:
        """Return 1 / capacity, (k, m)."""
        found: Fractions = 1.0 / self.capacity
        return found

    @functools.cached_property
    def count_when_empty(self) -> cluster.Amounts:
        """Return the number of such servers that fit on each host when it
        is empty, (m,).
        """
        return smallest_by_column(
            self.capacity // self.amounts, len(self.rows)
        )


class Hosts:
    """Hosts of a cloud, and the servers that can run on them.

    If a demand has alternatives, the first one that a host could give counts.
    :mod:`.alternatives` chooses one for each request.

    :param snapshot: state of the cloud.

    :ivar names: (p,) names of the hosts.
    :ivar free: (c, p) free amounts; negative where too much is used.
    :ivar used: (c, p) amounts in use.
    :ivar capacity: (c, p) capacity.
    """

    def __init__(self, snapshot: cluster.ClusterSnapshot) -> None:
        listed = snapshot.providers
        rows = sorted(range(len(listed)), key=lambda row: listed[row].uuid)
        self._providers = [listed[row] for row in rows]
        self.names = [each.name for each in self._providers]
        self._column = {name: c for c, name in enumerate(snapshot.classes)}
        have = snapshot.inventory
        self.free = _columns_of_rows(have.capacity - have.used, rows)
        self.used = _columns_of_rows(have.used, rows)
        self.capacity = _columns_of_rows(have.capacity, rows)
        self._step = _columns_of_rows(have.step, rows)
        self._is_plain = bool((self._step == 1).all())
        most = np.minimum(self.capacity, _columns_of_rows(have.unit, rows))
        self._gives = most // self._step * self._step
        self._falls_back = snapshot.falls_back
        self._knows_classes = snapshot.knows_classes
        self._shapes: dict[request.Demand, Shape] = {}
        self._known_matches: dict[tuple[object, ...], tuple[Rows, Rows]] = {}
        self._holding: dict[tuple[int, bytes], Rows] = {}

    def shape(self, demand: request.Demand) -> Shape:
        """Return the amounts of one server, and the hosts that can run it
        when empty.
        """
        if demand not in self._shapes:
            self._shapes[demand] = self._first_possible_shape(demand)
        return self._shapes[demand]

    def _first_possible_shape(self, demand: request.Demand) -> Shape:
        ways = demand.alternatives[: None if self._falls_back else 1]
        known = [each for each in ways if each.is_of(self._column)] or ways
        found = [self._compute_shape(each) for each in known]
        return next((each for each in found if len(each.rows)), found[0])

    def together(self, demands: Iterable[tuple[request.Demand, int]]) -> Shape:
        """Return the amounts of several servers, and the hosts that can run
        all of them when empty.

        :param demands: demands, and the number of servers with each; each
            server alone fits on a host.
        """
        total: dict[int, int] = {}
        rows = np.arange(len(self.names))
        for demand, count in demands:
            shape = self.shape(demand)
            rows = np.intersect1d(rows, shape.rows)
            for c, amount in zip(
                shape.columns, shape.amounts[:, 0], strict=True
            ):
                total[int(c)] = total.get(int(c), 0) + int(amount) * count
        columns = np.array(sorted(total), dtype=np.intp)
        amounts = np.array([total[int(c)] for c in columns], dtype=np.int64)
        amounts = amounts[:, np.newaxis]
        holds = (self.capacity[columns][:, rows] >= amounts).all(axis=0)
        return Shape(columns, amounts, rows[holds], self.capacity)

    def rows(self, names: Iterable[str]) -> Rows:
        """Return the rows of hosts by name; unknown names are left out."""
        found = [
            self._row_by_name[name]
            for name in names
            if name in self._row_by_name
        ]
        return np.array(found, dtype=np.intp)

    def _compute_shape(self, demand: request.Demand) -> Shape:
        matching, different = self._matching_hosts(demand)
        known = [
            (self._column[name], amount)
            for name, amount in demand.amounts
            if name in self._column
        ]
        columns = np.array([c for c, _ in known], dtype=np.intp)
        amounts = np.array([each for _, each in known], dtype=np.int64)
        amounts = amounts[:, np.newaxis]
        gives = self._largest_amounts(columns, amounts, different)
        holds: Marks = np.logical_and.reduce(gives >= amounts)
        if len(known) < len(demand.amounts):
            holds[:] = False
        never = None
        if not holds.any():
            never = self._never_reason(demand, gives, matching)
        rows = self._expand_matches(matching, different, holds)
        return Shape(columns, amounts, rows, self.capacity, never)

    def _expand_matches(
        self, matching: Rows, different: Rows, holds: Marks
    ) -> Rows:
        """Return matching hosts that equal a marked representative.

        :param different: one representative of each kind of matching hosts.
        :param holds: marks of the representatives.
        """
        if holds.all():
            return matching
        # The array of matching hosts stays alive, so its id is a safe key.
        key = (id(matching), holds.tobytes())
        if key not in self._holding:
            kinds = self._representatives[different[holds]]
            meant = np.isin(self._representatives[matching], kinds)
            self._holding[key] = matching[meant]
        return self._holding[key]

    def _largest_amounts(
        self, columns: Rows, amounts: cluster.Amounts, rows: Rows
    ) -> cluster.Amounts:
        """Return the largest amount of each class, in whole steps, up to
        the needed amount, (k, m).
        """
        gives = self._gives[columns][:, rows]
        most: cluster.Amounts
        if self._is_plain:
            most = np.minimum(gives, amounts)
        else:
            step = self._step[columns][:, rows]
            most = np.minimum(gives, amounts // step * step)
        return most

    def _never_reason(
        self, demand: request.Demand, gives: cluster.Amounts, matching: Rows
    ) -> reason.Why:
        lacks = [
            each for each in demand.amounts if each[0] not in self._column
        ]
        odd = [name for name, _ in lacks if name not in _OF_EVERY_HOST]
        if odd and self._knows_classes:
            return reason.why(reason.Reason.LEFT_TO_NOVA, odd[0])
        if not len(matching):
            return reason.why(
                reason.Reason.NO_HOST_MATCHES, hosts=float(len(self.names))
            )
        if lacks:
            return _too_large_reason(*lacks[0], 0)
        wanted = np.array([each for _, each in demand.amounts])
        missing = 1.0 - gives / wanted[:, np.newaxis]
        row = int(missing.max(axis=0).argmin())
        k = int(missing[:, row].argmax())
        name, amount = demand.amounts[k]
        return _too_large_reason(name, amount, int(gives[k, row]))

    def _matching_hosts(self, demand: request.Demand) -> tuple[Rows, Rows]:
        """Return the hosts that match a demand, and one host of each kind
        among them.
        """
        asked = (
            demand.zone,
            demand.host,
            demand.required,
            demand.forbidden,
            demand.aggregates,
            demand.without,
        )
        if asked not in self._known_matches:
            rows = np.flatnonzero(self._matches(demand))
            _, first = np.unique(
                self._representatives[rows], return_index=True
            )
            self._known_matches[asked] = rows, rows[np.sort(first)]
        return self._known_matches[asked]

    @functools.cached_property
    def _representatives(self) -> Rows:
        """Return for each host the first host with the same capacity, (p,)."""
        seen: dict[bytes, int] = {}
        amounts = np.concatenate([self.capacity, self._gives, self._step])
        found = [
            seen.setdefault(each.tobytes(), row)
            for row, each in enumerate(np.ascontiguousarray(amounts.T))
        ]
        return np.array(found, dtype=np.intp)

    def _matches(self, demand: request.Demand) -> Marks:
        found = self.takes.copy()
        if demand.zone:
            found &= self._marks_of_hosts(
                lambda each: each.zone == demand.zone
            )
        if demand.host:
            found &= self._marks_of_hosts(
                lambda each: each.name == demand.host
            )
        for trait in demand.required:
            found &= self._with_trait(trait)
        for trait in demand.forbidden:
            found &= ~self._with_trait(trait)
        for one_of in demand.aggregates:
            found &= self._in_aggregates(one_of)
        for name in demand.without:
            if name in self._column:
                found &= self.capacity[self._column[name]] <= 0
        return found

    @functools.cached_property
    def kind_of_host(self) -> Rows:
        """Return the kind of each host, (p,); hosts of one kind can run the
        same servers.
        """
        same: dict[object, int] = {}
        found = [
            same.setdefault(
                (
                    each.zone,
                    each.traits,
                    each.aggregates,
                    each.takes,
                    int(like),
                ),
                len(same),
            )
            for each, like in zip(
                self._providers, self._representatives, strict=True
            )
        ]
        return np.array(found, dtype=np.intp)

    @functools.cached_property
    def keys(self) -> npt.NDArray[np.uint64]:
        """Return a number for each host that depends only on its UUID,
        (p,).
        """
        sums = [zlib.crc32(each.uuid.encode()) for each in self._providers]
        return np.array(sums, dtype=np.uint64)

    @functools.cached_property
    def takes(self) -> Marks:
        """Return whether servers may start on each host, (p,)."""
        return self._marks_of_hosts(lambda each: each.takes)

    def _with_trait(self, trait: str) -> Marks:
        return self._marks_of_hosts(lambda each: trait in each.traits)

    def _in_aggregates(self, one_of: Iterable[str]) -> Marks:
        return self._marks_of_hosts(
            lambda each: not each.aggregates.isdisjoint(one_of)
        )

    def _marks_of_hosts(
        self, is_meant: Callable[[cluster.Provider], bool]
    ) -> Marks:
        return np.array([is_meant(each) for each in self._providers], bool)

    @functools.cached_property
    def _row_by_name(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.names)}


def _too_large_reason(name: str, asked: int, most: int) -> reason.Why:
    return reason.why(
        reason.Reason.TOO_LARGE, name, asked=float(asked), most=float(most)
    )


def _columns_of_rows(
    amounts: cluster.Amounts, rows: list[int]
) -> cluster.Amounts:
    return np.ascontiguousarray(amounts[rows].T)


def smallest_by_column(counts: cluster.Amounts, size: int) -> cluster.Amounts:
    """Return the smallest value of each column, (size,); :data:`MOST` if
    there are no rows.
    """
    if not len(counts):
        return np.full(size, MOST, dtype=np.int64)
    least: cluster.Amounts = counts.min(axis=0)
    return least


def fitting_hosts(
    free: cluster.Amounts, shape: Shape, allowed: Marks | None = None
) -> Rows:
    """Return the hosts that have room for one server.

    :param free: (c, p) free amounts.
    :param shape: shape of the server.
    :param allowed: (p,) hosts that may be used; ``None`` for all.
    :returns: indices of the hosts in ``shape.rows``, ascending.
    """
    if allowed is None:
        index = np.arange(len(shape.rows))
    else:
        index = np.flatnonzero(allowed[shape.rows])
    # Class by class: most hosts of a full cloud drop out with the first.
    for column, amount in zip(shape.columns, shape.amounts[:, 0], strict=True):
        if not len(index):
            break
        index = index[free[column][shape.rows[index]] >= amount]
    return index
