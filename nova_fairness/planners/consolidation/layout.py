# SPDX-License-Identifier: Apache-2.0

"""Layout: the hosts of servers while a plan is made.

A server is an *item* here, with an index in the arrays. Members of a group
that must be on one host stay there: Nova cannot move one of them alone. Arrays
have a column per host of :class:`.hosts.Hosts`.
"""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import functools

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import request
from nova_fairness.planners import free_amounts
from nova_fairness.planners import hosts as hosts_module
from nova_fairness.planners import weighers

Rows = hosts_module.Rows
Marks = hosts_module.Marks
Fractions = hosts_module.Fractions

NOWHERE = -1
"""Row of an item that is on no host."""

_MEMORY = 'MEMORY_MB'


@dataclasses.dataclass(frozen=True, eq=False)
class Item:
    """A server in a layout.

    :ivar uuid: UUID of the server.
    :ivar shape: amounts that the server needs and its possible hosts; ``None``
        if it may not be moved.
    :ivar apart: server group whose policy keeps its members apart; ``None``
        without such a group.
    :ivar amounts: (c,) amounts of the server.
    """

    uuid: str
    shape: hosts_module.Shape | None
    apart: request.Group | None
    amounts: cluster.Amounts


def item_of(
    uuid: str,
    shape: hosts_module.Shape,
    apart: request.Group | None,
    classes: tuple[str, ...],
) -> Item:
    """Build an item for a future server, or for all servers that must stay
    together.
    """
    amounts = np.zeros(len(classes), dtype=np.int64)
    amounts[shape.columns] = shape.amounts[:, 0]
    return Item(uuid, shape, apart, amounts)


class HostLayout(free_amounts.FreeAmounts):
    """Servers on hosts; a planner moves them and undoes moves.

    :param snapshot: state of the cloud.
    :param rule: chooses the host of an item among the hosts with room.

    :ivar hosts: the hosts.
    :ivar items: (n,) items in the order of their UUIDs.
    :ivar at: (n,) row of the host of each item, or :data:`NOWHERE`.
    :ivar size: (n,) size of each item; amounts of scarce classes count more.
    :ivar cost: (n,) memory that a move of each item sends, MB, at least 1.
    """

    def __init__(
        self, snapshot: cluster.ClusterSnapshot, rule: weighers.Rule
    ) -> None:
        self.hosts = hosts_module.Hosts(snapshot)
        super().__init__(self.hosts.free)
        self._rule = rule
        self._classes = snapshot.classes
        self._changes: list[tuple[int, int]] = []
        row = {name: n for n, name in enumerate(self.hosts.names)}
        listed = [each for each in snapshot.running if each.host in row]
        listed.sort(key=lambda each: each.uuid)
        together = collections.Counter(
            each.bound.uuid
            for each in listed
            if each.bound and each.bound.rule is request.Rule.TOGETHER
        )
        self.items = [self._build_item(each, together) for each in listed]
        self.at = np.array([row[each.host] for each in listed], dtype=np.intp)
        shape = (len(self.items), len(self._classes))
        amounts = [each.amounts for each in self.items]
        self.amounts = np.array(amounts, dtype=np.int64).reshape(shape)
        self.may_move = np.array(
            [each.shape is not None for each in self.items], dtype=bool
        )
        self.size = self.amounts @ self.worth
        self.cost = np.ones(len(self.items), dtype=np.int64)
        if _MEMORY in self._classes:
            memory = self.amounts[:, self._classes.index(_MEMORY)]
            sends = np.array([each.sends for each in listed])
            sent = np.rint(memory * sends).astype(np.int64)
            self.cost = np.maximum(sent, 1)
        self._apart: dict[str, cluster.Amounts] = {}
        for n, row in enumerate(self.at):
            self._count_group_member(n, int(row), 1)

    @property
    def used(self) -> cluster.Amounts:
        """Return the amounts in use, (c, p)."""
        found: cluster.Amounts = self.hosts.capacity - self.free
        return found

    @property
    def busy(self) -> Marks:
        """Return whether any amount of each host is in use, (p,)."""
        return np.asarray((self.used > 0).any(axis=0))

    @property
    def targets(self) -> Marks:
        """Return whether each host is in use and accepts new servers, (p,)."""
        return self.busy & self.hosts.takes

    @functools.cached_property
    def worth(self) -> Fractions:
        """Return the weight of one unit of each class in the size of an item,
        (c,).

        It is 1 / capacity of the cloud, multiplied by the used part of the
        class, so that amounts of scarce classes count more.
        """
        total = self.hosts.capacity.sum(axis=1)
        used = np.minimum(self.hosts.used.sum(axis=1), total)
        safe = np.maximum(total, 1).astype(np.float64)
        worth: Fractions = used / safe**2
        return worth

    @functools.cached_property
    def inverse(self) -> Fractions:
        """Return 1 / capacity, (c, p); 0 where a host has no capacity of a
        class.
        """
        capacity = self.hosts.capacity
        return np.where(capacity > 0, 1.0 / np.maximum(capacity, 1), 0.0)

    @property
    def stay(self) -> cluster.Amounts:
        """Return the amounts in use, without those of items that may be
        moved, (c, p).
        """
        stay = self.used
        for n in np.flatnonzero(self.may_move & (self.at != NOWHERE)):
            stay[:, self.at[n]] -= self.amounts[n]
        return stay

    def on(self, row: int) -> Rows:
        """Return the items on a host."""
        return np.flatnonzero(self.at == row)

    def alike(self, items: Iterable[int]) -> list[list[int]]:
        """Return the items in lists; the items of one list are
        interchangeable.
        """
        found: dict[tuple[int, str], list[int]] = {}
        for n in items:
            item = self.items[n]
            group = item.apart.uuid if item.apart else ''
            found.setdefault((id(item.shape), group), []).append(n)
        return list(found.values())

    def load(self) -> Fractions:
        """Return the use of each host, (p,); amounts of scarce classes
        count more.
        """
        load: Fractions = self.used.T @ self.worth
        return load

    def over(self) -> Fractions:
        """Return the use of each host beyond the average of all hosts, (p,).

        This is a part of the host, in the class with the largest excess.
        """
        parts = self.used * self.inverse
        if not parts.size:
            return np.zeros(parts.shape[1])
        over: Fractions = parts - parts.mean(axis=1, keepdims=True)
        return np.asarray(over.max(axis=0))

    def fitting(self, n: int, allowed: Marks) -> Rows:
        """Return the rows of the allowed hosts that have room for an item."""
        shape = self.items[n].shape
        if shape is None:
            return np.zeros(0, dtype=np.intp)
        allowed = self.permitted(n, allowed)
        return shape.rows[
            hosts_module.fitting_hosts(self.free, shape, allowed)
        ]

    def find(self, n: int, allowed: Marks) -> int:
        """Return the row of the host that the rule chooses for an item, or
        :data:`NOWHERE`.

        :param allowed: (p,) hosts that may be used.
        """
        item = self.items[n]
        if item.shape is None:
            return NOWHERE
        found = weighers.choose_host(
            self.hosts,
            self.free,
            item.shape,
            self._rule,
            weighers.salt_of(item.uuid),
            self.permitted(n, allowed),
        )
        return int(found[0]) if len(found) else NOWHERE

    def permitted(self, n: int, allowed: Marks) -> Marks:
        """Return the allowed hosts that the server group of an item
        permits, (p,).
        """
        group = self.items[n].apart
        if group is None or group.uuid not in self._apart:
            return allowed
        return allowed & (self._apart[group.uuid] < group.per_host)

    def choice(self, n: int, allowed: Marks) -> int:
        """Return the number of allowed hosts on which an item fits when
        they are empty.
        """
        shape = self.items[n].shape
        if shape is None:
            return 0
        return int(np.count_nonzero(self.permitted(n, allowed)[shape.rows]))

    def keeps_apart(self, n: int, row: int, more: int = 0) -> bool:
        """Whether the server group of an item permits it on a host.

        :param more: number of members of the group that are moving to the
            host.
        """
        group = self.items[n].apart
        if group is None or group.uuid not in self._apart:
            return True
        return bool(self._apart[group.uuid][row] + more < group.per_host)

    def holds(self, n: int) -> cluster.Amounts:
        """Return the largest number of items like this one on each host,
        regardless of the free room, (p,).
        """
        item = self.items[n]
        most = np.full(len(self.hosts.names), len(self.items))
        if item.apart is not None:
            there = self._apart.get(item.apart.uuid, np.zeros_like(most))
            most = np.maximum(item.apart.per_host - there, 0)
        rows = () if item.shape is None else item.shape.rows
        return np.where(np.isin(np.arange(len(most)), rows), most, 0)

    def know(self, group: request.Group, rows: Rows) -> None:
        """Store the hosts of the members of a server group, one row for
        each member.
        """
        count = len(self.hosts.names)
        self._apart[group.uuid] = np.bincount(rows, minlength=count)

    def put(self, n: int, row: int) -> None:
        """Put an item on a host, or on no host with :data:`NOWHERE`."""
        before = int(self.at[n])
        self._changes.append((n, before))
        self._move_item(n, before, row)

    def expect(self, n: int, row: int) -> None:
        """Count an item also on the host to which it is moving.

        It uses room on both hosts until it arrives. :meth:`back` does not undo
        this.
        """
        self.take(row, self.amounts[n])
        self._count_group_member(n, row, 1)

    def mark(self) -> int:
        """Return a mark of the present state, to which :meth:`back` can
        return.
        """
        return len(self._changes)

    def back(self, mark: int) -> None:
        """Undo all changes since a mark."""
        while len(self._changes) > mark:
            n, before = self._changes.pop()
            self._move_item(n, int(self.at[n]), before)

    def add(self, item: Item) -> int:
        """Add an item that is on no host.

        :returns: its index.
        """
        self.items.append(item)
        self.at = np.append(self.at, NOWHERE)
        self.amounts = np.vstack([self.amounts, item.amounts])
        self.may_move = np.append(self.may_move, True)
        self.size = np.append(self.size, item.amounts @ self.worth)
        self.cost = np.append(self.cost, 0)
        return len(self.items) - 1

    def _move_item(self, n: int, before: int, row: int) -> None:
        amounts = self.amounts[n]
        if before != NOWHERE:
            self.give_back(before, amounts)
            self._count_group_member(n, before, -1)
        if row != NOWHERE:
            self.take(row, amounts)
            self._count_group_member(n, row, 1)
        self.at[n] = row

    def _count_group_member(self, n: int, row: int, sign: int) -> None:
        group = self.items[n].apart
        if group is not None:
            nothing = np.zeros(len(self.hosts.names), dtype=np.int64)
            counts = self._apart.setdefault(group.uuid, nothing)
            counts[row] += sign

    def _build_item(
        self, each: cluster.Running, together: Mapping[str, int]
    ) -> Item:
        group = each.bound
        is_bound = group is not None and together[group.uuid] > 1
        amounts = cluster.amounts_vector(dict(each.amounts), self._classes)
        is_apart = group is not None and group.rule is request.Rule.APART
        return Item(
            each.uuid,
            None if is_bound else self._shape_of(each),
            group if is_apart else None,
            amounts,
        )

    def _shape_of(self, each: cluster.Running) -> hosts_module.Shape | None:
        is_known = set(self._classes) >= dict(each.amounts).keys()
        if each.demand is None or not each.amounts or not is_known:
            return None
        return self.hosts.shape(
            dataclasses.replace(each.demand, amounts=each.amounts)
        )
