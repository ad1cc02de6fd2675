# SPDX-License-Identifier: Apache-2.0

"""Competitors for one resource, on many nodes at once."""

import dataclasses
import functools

import numpy as np

from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

Scalars = usage_model.Scalars
Mask = resources.Mask

FINEST_SCALE = 0.25
"""Errors are relative to the contenders' mean absolute heaviness, which
makes the loop as fast in a cloud of a thousand users as in one of two; not
below this, because a metric with credits can be near zero for everybody."""

SIBLING_PULL = 0.5
"""Part of their distance by which VMs that the metric treats as one approach
each other in a round."""

SIBLING_SNAP = 0.05
"""Distance of two such weights (natural logarithm) that they close at once:
steps that become ever smaller would end at what is too small to be written."""

OFF_CENTRE = 0.1
"""Largest distance (natural logarithm) of the middle of the contenders'
weights from neutral: weights that drift together lose range."""


@dataclasses.dataclass(frozen=True, eq=False)
class Contest:
    """The VMs of the nodes on which something is contended.

    :ivar names: (m,) numbers of these nodes among all.
    :ivar node: (n,) index of each VM's node, 0..m-1.
    :ivar user: (n,) index of each VM's user.
    :ivar playing: (n,) who wants more.
    :ivar size: (n,) > 0: what the kernel weighs each VM by at weight 1.
    """

    names: usage_model.Indices
    node: usage_model.Indices
    user: usage_model.Indices
    playing: Mask
    size: Scalars

    def any(self, rows: Mask) -> Mask:
        """Tell which nodes have one of the rows, (m,)."""
        return np.asarray(
            np.bincount(self.node[rows], minlength=len(self.names)) > 0
        )

    def free(self, cut: Mask) -> Mask:
        """Contenders who can answer, (n,).

        A VM at a bound cannot, so that the others become equal among
        themselves; where all are at a bound, all count.
        """
        free = self.playing & ~cut
        return np.asarray(
            np.where(self.any(free)[self.node], free, self.playing)
        )

    def mean(self, values: Scalars, rows: Mask) -> Scalars:
        """Each node's mean over users of their means over rows.

        Each user counts once, however many VMs it has.

        :returns: (m,); 0 for a node without such rows.
        """
        group, node = self._users
        count = np.bincount(group[rows], minlength=len(node))
        total = np.bincount(group[rows], values[rows], len(node))
        there = count > 0
        means = total[there] / count[there]
        users = np.bincount(node[there], minlength=len(self.names))
        sums = np.bincount(node[there], means, len(self.names))
        return np.asarray(sums / np.maximum(users, 1))

    def error(self, heaviness: Scalars, log: Scalars, at_top: Mask) -> Scalars:
        """Heaviness of VMs beyond that of their competitors.

        That is the mean over the contenders' parts of the divided resource: a
        VM leaves amounts to these, and takes amounts from these. So contenders
        at a bound count, too, though they can only take or only give.

        A light VM whose weight is the highest allowed gets more only if all
        others get less. So all but the lightest of these are compared with
        it as well, and the larger error counts.

        :param log: (n,) logarithms of the weights.
        :param at_top: (n,) whether the weight is the highest allowed.
        """
        part = np.where(self.playing, self.size * np.exp(log), 0.0)
        count = len(self.names)
        total = np.bincount(self.node, part, count)
        heavy = np.bincount(self.node, part * heaviness, count)
        reference = (heavy / np.where(total > 0, total, 1.0))[self.node]
        stuck = at_top & self.playing & (heaviness < reference)
        least = np.full(count, np.inf)
        np.minimum.at(least, self.node[stuck], heaviness[stuck])
        lightest = stuck & (heaviness <= least[self.node])
        reference = np.where(
            lightest, reference, np.minimum(reference, least[self.node])
        )
        scale = self.mean(np.abs(heaviness), self.playing)
        scale = scale.clip(min=FINEST_SCALE)
        return np.asarray((heaviness - reference) / scale[self.node])

    def centring(
        self, log: Scalars, settled: Mask, cut: Mask, full: Mask
    ) -> Scalars:
        """Shift the contenders so that the middle of their range is neutral.

        A common factor changes no share. Bounds lie symmetrically around
        neutral, so a centred range uses all of what they allow.

        :param log: (n,) logarithms of the weights.
        :param settled: (m,) nodes at rest are left alone.
        :param cut: (n,) who is at a bound; then any shift counts.
        :param full: (m,) nodes with VMs at both bounds, whose range is used.
        """
        count = np.bincount(self.node[self.playing], minlength=len(settled))
        high = np.full(len(settled), -np.inf)
        low = np.full(len(settled), np.inf)
        np.maximum.at(high, self.node[self.playing], log[self.playing])
        np.minimum.at(low, self.node[self.playing], log[self.playing])
        held = self.any(cut)
        moved = (count > 1) & (held | ~settled) & ~full
        middle = np.where(moved, high, 0.0) + np.where(moved, low, 0.0)
        middle /= 2
        middle = np.where(held | (np.abs(middle) > OFF_CENTRE), middle, 0.0)
        return np.where(self.playing, -middle[self.node], 0.0)

    def pull(self, log: Scalars, heaviness: Scalars) -> Scalars:
        """Draw VMs together that the metric does not tell apart.

        Exactly equal heaviness within a user says that the metric weighs
        users and not VMs; then only history made their weights differ.
        Exactly equal heaviness of all VMs of a node says that it weighs
        nothing.
        """
        chosen = np.flatnonzero(self.playing)
        keys = (heaviness[chosen], self.user[chosen], self.node[chosen])
        group = _groups(keys)
        count = np.bincount(group)
        means = np.bincount(group, log[chosen]) / np.maximum(count, 1)
        pull = np.zeros(len(log))
        pull[chosen] = _part_of(means[group] - log[chosen])
        blind = self._alike(heaviness)[self.node]
        return np.where(blind & self.playing, _part_of(-log), pull)

    def _alike(self, heaviness: Scalars) -> Mask:
        """Tell on which nodes all VMs, two at least, are equally heavy."""
        nodes = len(self.names)
        high, low = np.full(nodes, -np.inf), np.full(nodes, np.inf)
        np.maximum.at(high, self.node, heaviness)
        np.minimum.at(low, self.node, heaviness)
        several = np.bincount(self.node, minlength=nodes) > 1
        return np.asarray(several & (high == low))

    @functools.cached_property
    def _users(self) -> tuple[usage_model.Indices, usage_model.Indices]:
        """Number the users of each node: (n,), and the node of each."""
        group = _groups((self.user, self.node))
        node = np.zeros(int(group.max(initial=-1)) + 1, dtype=np.intp)
        node[group] = self.node
        return group, node


def _groups(
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


def _part_of(distance: Scalars) -> Scalars:
    near = np.abs(distance) <= SIBLING_SNAP
    return np.asarray(np.where(near, distance, SIBLING_PULL * distance))
