# SPDX-License-Identifier: Apache-2.0

"""Whether users are worse off with the weights of a node than without them.

A policy may give a user less on one node because the user has plenty on
others. So the heaviness of users in the whole cloud is compared: with the CPU
time that their VMs had, and with the CPU time that the same VMs would have had
with neutral weights. Weights do harm if they take CPU time from users and give
it to heavier users. If the harm lasts, the weights of the node are neutral for
a while, whatever the cause.

If the kernel does not divide by weights, the same error is assumed for neutral
weights. So a node with neutral weights does no harm.

All functions compute many nodes at once: an agent has one node, a simulator
has thousands.
"""

from collections.abc import Callable
import dataclasses

import numpy as np

from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import filling
from nova_fairness.shares import grouping

Scalars = usage_model.Scalars
Indices = usage_model.Indices
Mask = resources.Mask

MARGIN = 0.02
"""Harm that counts as none: part of a user's CPU time on all nodes that the
user lacks beyond the gain of others. By as much the default policy may be
worse than no agent."""

LASTING = 8
"""Rounds with harm after which the weights of a node become neutral. The
default policy needs five rounds to adapt to a change."""

DOUBT = 2
"""Rounds with harm that a round without harm cancels: noise alone does not
cause harm in two of three rounds."""

REST = 30
"""Rounds for which a node is neutral the first time."""

LONGEST = 480
"""Largest number of rounds for which a node is neutral. The number doubles
each time, until the node did no harm for as long as it was neutral."""

FARTHEST = 4.0
"""Largest factor by which a kernel's division differs from the weights."""

_FULL = 1e-9

Weigh = Callable[[Scalars], Scalars]
"""Function of the CPU time that each VM would have had less, (n,). It returns
the heaviness of each VM, (n,), if only its own node were divided in this
way."""


@dataclasses.dataclass(frozen=True, eq=False)
class CpuDivision:
    """Division of the CPU time of nodes in an interval; in one unit.

    :ivar node: (n,) index of each VM's node.
    :ivar nodes: number of nodes m.
    :ivar user: (n,) index of each VM's user; the same on all nodes.
    :ivar received: (n,) CPU time of each VM, >= 0.
    :ivar wanted: (n,) CPU time that each VM would have had without
        competition.
    :ivar parts: (n,) share of each VM by the kernel's units, > 0.
    :ivar neutral: (n,) share of each VM with a neutral weight, > 0.
    :ivar user_total: (n,) CPU time of each VM's user on all nodes.
    :ivar is_steered: (n,) whether a VM is steered and its use is known.
    """

    node: Indices
    nodes: int
    user: Indices
    received: Scalars
    wanted: Scalars
    parts: Scalars
    neutral: Scalars
    user_total: Scalars
    is_steered: Mask

    def gains(self) -> Scalars:
        """Return the CPU time that VMs gained by their weights, (n,).

        It is negative for VMs that lost CPU time.
        """
        had = np.where(self.is_steered, self.received, 0.0)
        wanted = np.where(self.is_steered, np.maximum(self.wanted, had), 0.0)
        whole = grouping.sum_by(self.node, had, self.nodes)
        promised, _ = filling.fill(whole, self.node, wanted, self.parts)
        worth = np.divide(had, promised, np.ones(len(had)), where=promised > 0)
        size = self.neutral * worth.clip(1 / FARTHEST, FARTHEST)
        # A VM that gets all it wants would not get more without weights.
        asked = np.where(promised >= (1 - _FULL) * wanted, had, wanted)
        return np.asarray(had - filling.fill(whole, self.node, asked, size)[0])


@dataclasses.dataclass(frozen=True, eq=False)
class RoundCounts:
    """Counts of rounds of each node, (m,) each.

    :ivar harmful: rounds with harm, less those that rounds without harm
        cancelled.
    :ivar harmless: newest rounds in a row without harm.
    :ivar rest: rounds for which the node will still be neutral.
    :ivar next_rest: rounds for which the node would be neutral the next time.
    """

    harmful: Indices
    harmless: Indices
    rest: Indices
    next_rest: Indices

    @classmethod
    def unknown(cls, nodes: int) -> 'RoundCounts':
        """Return the counts of nodes that were never seen before."""
        none, first = np.zeros(nodes, np.intp), np.full(nodes, REST, np.intp)
        return cls(none, none.copy(), none.copy(), first)

    def select(self, nodes: Indices) -> 'RoundCounts':
        """Return the counts of some nodes."""
        return RoundCounts(
            self.harmful[nodes],
            self.harmless[nodes],
            self.rest[nodes],
            self.next_rest[nodes],
        )

    def replace_nodes(self, nodes: Indices, other: 'RoundCounts') -> None:
        """Replace the counts of some nodes by those of others."""
        self.harmful[nodes] = other.harmful
        self.harmless[nodes] = other.harmless
        self.rest[nodes] = other.rest
        self.next_rest[nodes] = other.next_rest

    def after_round(self, harm: Scalars) -> 'RoundCounts':
        """Return the counts after one more round.

        :param harm: (m,) harm in that round, see :class:`IntervalVerdict`.
        """
        rests, bad = self.rest > 0, harm > MARGIN
        harmful = np.where(bad, self.harmful + 1, self.harmful - DOUBT)
        harmful = np.where(rests, 0, harmful).clip(0)
        harmless = np.where(bad | rests, 0, self.harmless + 1)
        returns = harmful >= LASTING
        longer = np.minimum(2 * self.next_rest, LONGEST)
        shorter = np.where(harmless >= self.next_rest, REST, self.next_rest)
        return RoundCounts(
            np.where(returns, 0, harmful),
            harmless,
            np.where(returns, self.next_rest, self.rest - rests),
            np.where(returns, longer, shorter),
        )


@dataclasses.dataclass(frozen=True, eq=False)
class IntervalVerdict:
    """Harm by weights in an interval, and the nodes that become neutral.

    :ivar harm: (m,) largest part of its CPU time that a user lacks because of
        weights, less the gain of others; 0 if no user is harmed.
    :ivar harmed: (m,) index of that user; -1 if no user is harmed.
    :ivar neutral: (m,) whether the node's weights must be neutral now.
    :ivar returned: (m,) whether they become neutral in this round.
    :ivar past: counts for the next interval.
    """

    harm: Scalars
    harmed: Indices
    neutral: Mask
    returned: Mask
    past: RoundCounts


def judge(
    now: CpuDivision, past: RoundCounts, weigh: Weigh
) -> IntervalVerdict:
    """Judge whether the weights of nodes did harm in an interval.

    :param past: counts of the same nodes, from the last call.
    :param weigh: returns heaviness; it is called only if a user has clearly
        less than without weights.
    """
    harm, harmed = _harm(now, now.gains(), weigh)
    kept = past.after_round(harm)
    neutral = kept.rest > 0
    return IntervalVerdict(
        harm, harmed, neutral, neutral & (past.rest == 0), kept
    )


def _harm(
    now: CpuDivision, gained: Scalars, weigh: Weigh
) -> tuple[Scalars, Indices]:
    """Return the harm on each node, and the user with most harm: (m,) each."""
    harm = np.zeros(now.nodes)
    harmed = np.full(now.nodes, -1, dtype=np.intp)
    users = int(now.user.max(initial=0)) + 1
    key, cell = np.unique(now.node * users + now.user, return_inverse=True)
    cell = cell.reshape(-1)
    node, user = key // users, key % users
    change = grouping.sum_by(cell, gained, len(key))
    count = np.bincount(cell, minlength=len(key))
    total = grouping.sum_by(cell, now.user_total, len(key)) / count
    most = np.maximum(total, total - change)
    part = np.divide(
        np.abs(change), most, np.zeros(len(key)), where=most > 0
    ).clip(0.0, 1.0)
    doubtful = np.unique(node[(change < 0) & (part > MARGIN)])
    if not doubtful.size:
        return harm, harmed
    levels = [
        grouping.sum_by(cell, weigh(less), len(key)) / count
        for less in (np.zeros(len(gained)), gained)
    ]
    for place in doubtful:
        rows = slice(*np.searchsorted(node, [place, place + 1]))
        some, who = _harm_of_node(
            change[rows], part[rows], levels[0][rows], levels[1][rows]
        )
        if some > 0:
            harm[place], harmed[place] = some, user[rows][who]
    return harm, harmed


def _harm_of_node(
    change: Scalars, part: Scalars, with_weights: Scalars, neutral: Scalars
) -> tuple[float, int]:
    """Compare the losses of users with the gains of users who are not heavier.

    At each level of heaviness the losses and the gains of users below it are
    added up. Losses beyond the gains went to heavier users.

    :param change: (u,) CPU time that each user gained.
    :param part: (u,) that gain or loss, as a part of the user's larger total.
    :param with_weights: (u,) heaviness of each user.
    :param neutral: (u,) heaviness of each user with neutral weights.
    :returns: harm less the benefit of weights, and the row of the user with
        most harm.
    """
    low = np.minimum(with_weights, neutral)
    high = np.maximum(with_weights, neutral)
    level = np.concatenate([low, high])[:, np.newaxis]
    below = np.divide(
        level - low,
        high - low,
        (level >= low).astype(np.float64),
        where=high > low,
    ).clip(0.0, 1.0)
    lost = below * -np.minimum(change, 0.0)
    won = below * np.maximum(change, 0.0)
    loss, gain = lost.sum(axis=1), won.sum(axis=1)
    up = np.divide(loss - gain, loss, np.zeros(len(loss)), where=loss > gain)
    down = np.divide(gain - loss, gain, np.zeros(len(loss)), where=gain > loss)
    losses = below * np.where(change < 0, part, 0.0)
    harm = up * losses.max(axis=1)
    good = down * (below * np.where(change > 0, part, 0.0)).max(axis=1)
    at = int(harm.argmax())
    return float(harm[at] - good.max()), int(losses[at].argmax())
