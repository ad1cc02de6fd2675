# SPDX-License-Identifier: Apache-2.0

"""Whether users are worse off with the weights of a node than without them.

A policy may give a user less on one node on purpose because it has plenty on
others. So users are compared by how heavy they are cloud-wide: with the
service under the weights in force, and with the service that the same VMs
would have had of the same CPU time with neutral weights. It does harm to take
from users and to give to heavier ones. Where that lasts, the node returns to
neutral for a while, whatever the cause.

Where a kernel's service differs from the weights, it is taken to differ with
neutral weights, too: a node with neutral weights does no harm.

All arithmetic takes many nodes at once: an agent has one, a simulator
thousands.
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
"""Part of what a user has on all nodes that they may lack, more than others
gain by it: as much as the default policy may be worse than no agent."""

LASTING = 8
"""Rounds that do harm until a node returns to neutral. The default policy has
settled after five."""

DOUBT = 2
"""Rounds that do harm for which a round counts that does none: noise alone
does not do harm in two of three rounds."""

REST = 30
"""Rounds for which a node is neutral after that, the first time ..."""

LONGEST = 480
"""... and at most: each time twice as long, until it did no harm for as long
as it was neutral."""

FARTHEST = 4.0
"""By a larger factor no kernel gives otherwise than weights say."""

_FULL = 1e-9

Weigh = Callable[[Scalars], Scalars]
"""(n,) CPU time that each VM would have had less -> (n,) heaviness by which
each would be treated, if only its own node were divided so."""


@dataclasses.dataclass(frozen=True, eq=False)
class CpuDivision:
    """How the CPU time of nodes was divided in an interval; in one unit.

    :ivar node: (n,) index of each VM's node.
    :ivar nodes: number of nodes m.
    :ivar user: (n,) index of each VM's user; the same on all nodes.
    :ivar had: (n,) >= 0.
    :ivar wanted: (n,) what each would have had of a plenty.
    :ivar parts: (n,) what each counts by what its kernel holds, > 0.
    :ivar neutral: (n,) what each counts with a neutral weight, > 0.
    :ivar total: (n,) what each VM's user had on all nodes.
    :ivar counts: (n,) whether a VM is steered and known.
    """

    node: Indices
    nodes: int
    user: Indices
    had: Scalars
    wanted: Scalars
    parts: Scalars
    neutral: Scalars
    total: Scalars
    counts: Mask

    def gained(self) -> Scalars:
        """Amounts that VMs had beyond those with neutral weights, (n,)."""
        had = np.where(self.counts, self.had, 0.0)
        wanted = np.where(self.counts, np.maximum(self.wanted, had), 0.0)
        whole = grouping.sum_by(self.node, had, self.nodes)
        promised, _ = filling.fill(whole, self.node, wanted, self.parts)
        worth = np.divide(had, promised, np.ones(len(had)), where=promised > 0)
        size = self.neutral * worth.clip(1 / FARTHEST, FARTHEST)
        # Who was to have all they want would have no more without weights.
        asked = np.where(promised >= (1 - _FULL) * wanted, had, wanted)
        return np.asarray(had - filling.fill(whole, self.node, asked, size)[0])


@dataclasses.dataclass(frozen=True, eq=False)
class RoundCounts:
    """Memory of nodes, (m,) each: counts of rounds.

    :ivar harmful: that did harm, less those that did none.
    :ivar harmless: in a row that did none.
    :ivar rest: for which a node is still neutral.
    :ivar next_rest: for which it would be neutral next.
    """

    harmful: Indices
    harmless: Indices
    rest: Indices
    next_rest: Indices

    @classmethod
    def unknown(cls, nodes: int) -> 'RoundCounts':
        """Memory of nodes never seen before."""
        none, first = np.zeros(nodes, np.intp), np.full(nodes, REST, np.intp)
        return cls(none, none.copy(), none.copy(), first)

    def picked(self, nodes: Indices) -> 'RoundCounts':
        """Some nodes."""
        return RoundCounts(
            self.harmful[nodes],
            self.harmless[nodes],
            self.rest[nodes],
            self.next_rest[nodes],
        )

    def put(self, nodes: Indices, other: 'RoundCounts') -> None:
        """Write other nodes in the place of some."""
        self.harmful[nodes] = other.harmful
        self.harmless[nodes] = other.harmless
        self.rest[nodes] = other.rest
        self.next_rest[nodes] = other.next_rest

    def after(self, harm: Scalars) -> 'RoundCounts':
        """The memory after one more round.

        :param harm: (m,) of :class:`IntervalVerdict`.
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
    """Judgement of an interval.

    :ivar harm: (m,) largest lack of a user by weights, as a part of all its
        amounts, beyond the gain of others; 0 where no user is harmed.
    :ivar harmed: (m,) index of that user; -1 where there is none.
    :ivar neutral: (m,) whether the node's weights are to be neutral now.
    :ivar returned: (m,) whether that begins now.
    :ivar past: to be remembered.
    """

    harm: Scalars
    harmed: Indices
    neutral: Mask
    returned: Mask
    past: RoundCounts


def judge(
    now: CpuDivision, past: RoundCounts, weigh: Weigh
) -> IntervalVerdict:
    """Judge an interval.

    :param past: of the same nodes, as this function returned it last.
    :param weigh: is asked only if a user has clearly less than without
        weights.
    """
    harm, harmed = _harm(now, now.gained(), weigh)
    kept = past.after(harm)
    neutral = kept.rest > 0
    return IntervalVerdict(
        harm, harmed, neutral, neutral & (past.rest == 0), kept
    )


def _harm(
    now: CpuDivision, gained: Scalars, weigh: Weigh
) -> tuple[Scalars, Indices]:
    """Harm on each node, and who has most of it: (m,) each."""
    harm = np.zeros(now.nodes)
    harmed = np.full(now.nodes, -1, dtype=np.intp)
    users = int(now.user.max(initial=0)) + 1
    key, cell = np.unique(now.node * users + now.user, return_inverse=True)
    cell = cell.reshape(-1)
    node, user = key // users, key % users
    change = grouping.sum_by(cell, gained, len(key))
    count = np.bincount(cell, minlength=len(key))
    total = grouping.sum_by(cell, now.total, len(key)) / count
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
    """Compare losses with the gains of those who are no heavier.

    At each level of heaviness it is added up what users lost below it and
    what users gained below it: what is lost beyond that went to heavier ones.

    :param change: (u,) CPU time gained.
    :param part: (u,) of that in what each has at best.
    :param with_weights: (u,) how heavy each is.
    :param neutral: (u,) how heavy each would be.
    :returns: harm less the good that weights do, and who is harmed most.
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
