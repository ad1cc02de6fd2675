# SPDX-License-Identifier: Apache-2.0

"""VMs that compete for one resource, on many nodes."""

import dataclasses
import functools

import numpy as np

from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

Scalars = usage_model.Scalars
Mask = resources.Mask

FINEST_SCALE = 0.25
"""Least heaviness to which errors are relative. Errors are relative to the
mean absolute heaviness of contenders, so that the loop is as fast with a
thousand users as with two. A metric with credits can be near zero for all."""

SIBLING_PULL = 0.5
"""Part of their distance by which the weights of VMs approach each other in a
round if the metric does not distinguish these VMs."""

SIBLING_SNAP = 0.05
"""Distance of two such weights (natural logarithm) from which they become
equal in one round. Otherwise steps would become too small to be written."""

OFF_CENTRE = 0.1
"""Largest distance (natural logarithm) of the middle of the contenders'
weights from neutral: weights that drift together lose range."""


@dataclasses.dataclass(frozen=True, eq=False)
class Contest:
    """VMs of the nodes on which a control is contended.

    :ivar node_indices: (m,) indices of these nodes among all nodes.
    :ivar node: (n,) index of each VM's node, 0..m-1.
    :ivar user: (n,) index of each VM's user.
    :ivar competes: (n,) contenders: VMs that want more.
    :ivar size: (n,) > 0, share of the kernel that each VM has at weight 1.
    """

    node_indices: usage_model.Indices
    node: usage_model.Indices
    user: usage_model.Indices
    competes: Mask
    size: Scalars

    def nodes_with_any(self, rows: Mask) -> Mask:
        """Return which nodes have one of these VMs, (m,).

        :param rows: (n,) whether the VM is one of them.
        """
        return np.asarray(
            np.bincount(self.node[rows], minlength=len(self.node_indices)) > 0
        )

    def movable(self, cut: Mask) -> Mask:
        """Return the contenders whose weights can change, (n,).

        If all contenders of a node are at a bound, all of them count.

        :param cut: (n,) VMs whose weights are at a bound.
        """
        free = self.competes & ~cut
        return np.asarray(
            np.where(self.nodes_with_any(free)[self.node], free, self.competes)
        )

    def mean_by_node(self, values: Scalars, rows: Mask) -> Scalars:
        """Return the mean over the users of each node of their VMs' means.

        Each user counts once, however many VMs the user has.

        :param rows: (n,) VMs that are considered.
        :returns: (m,); 0 for a node without such VMs.
        """
        group, node = self._user_groups
        count = np.bincount(group[rows], minlength=len(node))
        total = np.bincount(group[rows], values[rows], len(node))
        there = count > 0
        means = total[there] / count[there]
        users = np.bincount(node[there], minlength=len(self.node_indices))
        sums = np.bincount(node[there], means, len(self.node_indices))
        return np.asarray(sums / np.maximum(users, 1))

    def relative_error(
        self, heaviness: Scalars, log: Scalars, at_top: Mask
    ) -> Scalars:
        """Return the relative distance of heaviness from that of competitors.

        The heaviness of competitors is a mean in which each contender counts
        by its part of the resource, because the kernel divides changes in that
        proportion. Contenders at a bound count, too.

        A light VM at the highest weight gets more only if all others get
        less. So the others are also compared with the lightest of these VMs,
        and the larger error counts.

        :param log: (n,) logarithms of the weights.
        :param at_top: (n,) whether the weight is the highest allowed.
        :returns: (n,).
        """
        part = np.where(self.competes, self.size * np.exp(log), 0.0)
        count = len(self.node_indices)
        total = np.bincount(self.node, part, count)
        heavy = np.bincount(self.node, part * heaviness, count)
        reference = (heavy / np.where(total > 0, total, 1.0))[self.node]
        stuck = at_top & self.competes & (heaviness < reference)
        least = np.full(count, np.inf)
        np.minimum.at(least, self.node[stuck], heaviness[stuck])
        lightest = stuck & (heaviness <= least[self.node])
        reference = np.where(
            lightest, reference, np.minimum(reference, least[self.node])
        )
        scale = self.mean_by_node(np.abs(heaviness), self.competes)
        scale = scale.clip(min=FINEST_SCALE)
        return np.asarray((heaviness - reference) / scale[self.node])

    def centring_shifts(
        self, log: Scalars, settled: Mask, cut: Mask, full: Mask
    ) -> Scalars:
        """Return shifts after which the middle of contenders is neutral, (n,).

        A common factor changes no share. Bounds are symmetric around neutral,
        so centred weights can use the whole range.

        :param log: (n,) logarithms of the weights.
        :param settled: (m,) nodes without steps, which are not shifted.
        :param cut: (n,) VMs at a bound; their nodes are shifted by any amount.
        :param full: (m,) nodes with VMs at both bounds, which are not shifted.
        """
        count = np.bincount(self.node[self.competes], minlength=len(settled))
        high = np.full(len(settled), -np.inf)
        low = np.full(len(settled), np.inf)
        np.maximum.at(high, self.node[self.competes], log[self.competes])
        np.minimum.at(low, self.node[self.competes], log[self.competes])
        held = self.nodes_with_any(cut)
        moved = (count > 1) & (held | ~settled) & ~full
        middle = np.where(moved, high, 0.0) + np.where(moved, low, 0.0)
        middle /= 2
        middle = np.where(held | (np.abs(middle) > OFF_CENTRE), middle, 0.0)
        return np.where(self.competes, -middle[self.node], 0.0)

    def equalizing_shifts(self, log: Scalars, heaviness: Scalars) -> Scalars:
        """Return shifts that make weights equal if heaviness is equal, (n,).

        If VMs of one user are exactly equally heavy, the metric weighs users
        and not VMs, and only history made their weights differ. If all VMs of
        a node are exactly equally heavy, weights return to neutral.

        :param log: (n,) logarithms of the weights.
        """
        chosen = np.flatnonzero(self.competes)
        keys = (heaviness[chosen], self.user[chosen], self.node[chosen])
        group = _group_indices(keys)
        count = np.bincount(group)
        means = np.bincount(group, log[chosen]) / np.maximum(count, 1)
        pull = np.zeros(len(log))
        pull[chosen] = _partial_shift(means[group] - log[chosen])
        blind = self._nodes_of_equals(heaviness)[self.node]
        return np.where(blind & self.competes, _partial_shift(-log), pull)

    def _nodes_of_equals(self, heaviness: Scalars) -> Mask:
        """Return nodes whose VMs, two or more, are equally heavy, (m,)."""
        nodes = len(self.node_indices)
        high, low = np.full(nodes, -np.inf), np.full(nodes, np.inf)
        np.maximum.at(high, self.node, heaviness)
        np.minimum.at(low, self.node, heaviness)
        several = np.bincount(self.node, minlength=nodes) > 1
        return np.asarray(several & (high == low))

    @functools.cached_property
    def _user_groups(self) -> tuple[usage_model.Indices, usage_model.Indices]:
        """Index of each VM's pair of user and node, (n,), and its node."""
        group = _group_indices((self.user, self.node))
        node = np.zeros(int(group.max(initial=-1)) + 1, dtype=np.intp)
        node[group] = self.node
        return group, node


def _group_indices(
    keys: tuple[Scalars | usage_model.Indices, ...],
) -> usage_model.Indices:
    """Number the groups of rows in which all keys are equal."""
    order = np.lexsort(keys)
    new = np.zeros(len(order), dtype=np.bool_)
    for key in keys:
        values = key[order]
        new[1:] |= values[1:] != values[:-1]
    group = np.empty(len(order), dtype=np.intp)
    group[order] = np.cumsum(new)
    return group


def _partial_shift(distance: Scalars) -> Scalars:
    near = np.abs(distance) <= SIBLING_SNAP
    return np.asarray(np.where(near, distance, SIBLING_PULL * distance))
