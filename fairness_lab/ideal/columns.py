# SPDX-License-Identifier: Apache-2.0

"""Turn wants of VMs into columns and limits of a linear program.

A column is the progress, 0..1, of VMs that are alike: of those of one user
on one node with one resource, or of one VM that uses several resources in
proportion.
"""

import dataclasses

import numpy as np

from fairness_lab.ideal import program as program_module

Floats = program_module.Floats
Places = program_module.Places
Bools = program_module.Bools


@dataclasses.dataclass(frozen=True, eq=False)
class Wishes:
    """Demands of VMs: owner, amount, resource and node.

    :ivar capacity: (m, r) of each node, amounts of one unit of time.
    :ivar demand: (n, r) finite, >= 0: what each VM would use if it could.
    :ivar node: (n,) of each VM; -1 for one that is not there.
    :ivar user: (n,) owner of each VM.
    :ivar coupled: (n, r) resources that a VM uses in the proportion of its
        demand; the others it uses independently.
    :ivar size: (n, r) > 0: what the kernel weighs a VM by at weight 1.
    :ivar quota: (u, r) >= 0: the part of the supply that is each user's.
    :ivar exempt: (n,) VMs whose weight is always 1, in the middle of those
        that others can have.
    """

    capacity: Floats
    demand: Floats
    node: Places
    user: Places
    coupled: Bools
    size: Floats
    quota: Floats
    exempt: Bools


@dataclasses.dataclass(frozen=True, eq=False)
class Columns:
    """Columns of a linear program, and their uses at a progress of 1.

    A *use* is the use of one resource by the VMs of a column.

    :ivar node: (c,) node of each column.
    :ivar user: (c,) user of each column.
    :ivar column: (k,) column of each use.
    :ivar resource: (k,) resource of each use.
    :ivar amount: (k,) amount of each use, > 0.
    :ivar size: (k,) > 0: what the kernel weighs the column by.
    :ivar scarce: (k,) whether all VMs together want more of it on the
        column's node than there is.
    :ivar steered: (c,) whether its VMs can have other weights.
    """

    node: Places
    user: Places
    column: Places
    resource: Places
    amount: Floats
    size: Floats
    scarce: Bools
    steered: Bools

    @property
    def place(self) -> Places:
        """Node of each use, (k,)."""
        return self.node[self.column]


def fractions_of_quota(quota: Floats, used: Floats | Places) -> Floats:
    """Amounts of users as fractions of their quotas, (u, r).

    :param quota: (u, r) or (u,) >= 0.
    :param used: of the same shape, in the same units.
    :returns: of the same shape; 0 where there is no quota.
    """
    entitled = quota > 0
    return np.where(entitled, used / np.where(entitled, quota, 1.0), 0.0)


def columns(wishes: Wishes, *, alike: bool) -> Columns:
    """Create columns of all VMs that exist and want something.

    :param alike: join only VMs that want the same per unit of their size,
        as is right where their weights are bounded.
    """
    there = (wishes.node >= 0)[:, np.newaxis]
    possible = wishes.capacity[wishes.node] > 0
    wanted = there & possible & (wishes.demand > 0)
    # A VM that lacks one of the things it needs together does not progress.
    starved = there & wishes.coupled & (wishes.demand > 0) & ~possible
    together = (
        wanted & wishes.coupled & ~np.any(starved, axis=1, keepdims=True)
    )
    vm, resource = np.nonzero(together)
    _, place = np.unique(vm, return_inverse=True)
    one_vm, one = np.nonzero(wanted & ~wishes.coupled)
    key, first = _column_of_uses(wishes, one_vm, one, alike=alike)
    count = int(place.max()) + 1 if len(place) else 0
    vms = np.concatenate([np.unique(vm), one_vm[first]]).astype(np.intp)
    everything = (vm, resource), (one_vm, one)
    amount, size = (
        np.concatenate(
            [
                values[everything[0]],
                np.bincount(key, values[everything[1]], len(first)),
            ]
        )
        for values in (wishes.demand, wishes.size)
    )
    resources = np.concatenate([resource, one[first]])
    column = np.concatenate([place, count + np.arange(len(first))])
    return Columns(
        node=wishes.node[vms],
        user=wishes.user[vms],
        column=column,
        resource=resources,
        amount=amount,
        size=size,
        scarce=_is_scarce(
            wishes.capacity, wishes.node[vms][column], resources, amount
        ),
        steered=~wishes.exempt[vms],
    )


def progress(wishes: Wishes, received: Floats) -> Floats:
    """Progress of the columns of :func:`columns`, of VMs that are alike.

    :param wishes: in which no VM uses resources together.
    :param received: (n, r) what each VM has.
    :returns: (c,) 0..1.
    """
    there = (wishes.node >= 0)[:, np.newaxis]
    possible = wishes.capacity[wishes.node] > 0
    vm, resource = np.nonzero(there & possible & (wishes.demand > 0))
    key, first = _column_of_uses(wishes, vm, resource, alike=True)
    had, wanted = (
        np.bincount(key, values[vm, resource], len(first))
        for values in (received, wishes.demand)
    )
    return np.asarray(had / wanted)


def _column_of_uses(
    wishes: Wishes, vm: Places, resource: Places, *, alike: bool
) -> tuple[Places, Places]:
    """Assign each pair of VM and resource to a column.

    Pairs of one user, node and resource have the same column.

    :param alike: join only VMs that want the same per unit of their size.
    :returns: (k,) column of each pair, and (c,) first pair of each column.
    """
    keys = [wishes.node[vm], wishes.user[vm], resource]
    if alike:
        per_unit = wishes.demand[vm, resource] / wishes.size[vm, resource]
        _, grade = np.unique(
            np.round(np.log(per_unit), 9), return_inverse=True
        )
        keys += [grade, wishes.exempt[vm].astype(np.intp)]
    if not len(vm):
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    _, first, key = np.unique(
        np.stack(keys), axis=1, return_index=True, return_inverse=True
    )
    return key.reshape(-1), first


def _is_scarce(
    capacity: Floats, node: Places, resource: Places, amount: Floats
) -> Bools:
    nodes, kinds = capacity.shape
    cell = node * kinds + resource
    total = np.bincount(cell, amount, nodes * kinds)
    return np.asarray(total[cell] > capacity.ravel()[cell] * (1 + 1e-12))


def capacity_limits(
    found: Columns, capacity: Floats
) -> tuple[program_module.SparseEntries, Places]:
    """Rows that limit the use of scarce resources to the capacity.

    :returns: entries, as parts of what there is; and the cell
        (node x resources + resource) of each row. Bounds are 1.
    """
    kinds = capacity.shape[1]
    cell = found.place[found.scarce] * kinds + found.resource[found.scarce]
    cells, row = np.unique(cell, return_inverse=True)
    part = found.amount[found.scarce] / capacity.ravel()[cell]
    return program_module.SparseEntries(
        row, found.column[found.scarce], part
    ), cells


def quota_entries(
    found: Columns, quota: Floats
) -> program_module.SparseEntries:
    """Entries of users' fractions of their quotas, by resource.

    :returns: (u x r, c) entries, row = user x resources + resource.
    """
    entitled = quota[found.user[found.column], found.resource]
    part = found.amount / np.where(entitled > 0, entitled, 1.0)
    row = found.user[found.column] * quota.shape[1] + found.resource
    entries = program_module.SparseEntries(row, found.column, part)
    known = entitled > 0
    return program_module.SparseEntries(
        entries.row[known], entries.column[known], entries.value[known]
    )
