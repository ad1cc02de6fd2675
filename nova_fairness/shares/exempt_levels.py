# SPDX-License-Identifier: Apache-2.0

"""Fair division of nodes on which some VMs always have weight 1.

On such a node a common factor of all other weights decides how much these VMs
get. This is the *level* of the node: the rate per size at weight 1. For given
levels these VMs get a given amount, which counts for their owners. The other
VMs share the rest, each between the least and the largest weight.

Then levels change. If a level rises, the VMs with weight 1 get more, and so do
VMs at the least or largest weight. The other VMs of the node pay for it. So
the CPU time of each VM has a price, which is the higher the lighter its owner
is. A level rises if those who get more have the higher mean price, and falls
if they have the lower one.

These turns need not converge, because each changes what is fair on other
nodes. So the best division of all turns counts.

A node without such VMs can have a level, too: it decides where the range of
its weights lies. If an owner at the least weight is heavier than others, these
have the more, the nearer all of them are to the largest weight. The case is a
user with VMs as wide as three nodes beside two users with small ones, who
lacked 22 % of what they can have.
"""

import dataclasses

import numpy as np

from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import beside_exempt
from nova_fairness.shares import filling
from nova_fairness.shares import maxmin
from nova_fairness.shares import weighted

TURNS = 60
"""Number of turns. After 40 of them levels of 1,000 nodes hardly moved."""

SHORT_TURN = 3
"""Newton steps of a turn at most. The first two turns and the last are longer:
they solve the division, and the steps between follow small changes of levels.
On 1,000 nodes a whole turn takes about 25 steps, and a round has time for two
or three."""

HALF = TURNS // 2
"""Turn from which prices of owners between the bounds follow from weights, on
nodes without exempt VMs. Before it, a small difference of the heaviness of two
owners moves the levels of all nodes in one direction and back."""

STEEP = 100.0
"""Power of the heaviness by which prices fall. Of two owners the one who is
3 % lighter has a price about 20 times as high, so that the lightest decide.
With much steeper prices the noise of a division would decide."""

PRICE_STEPS = 10
"""Repetitions for prices of owners whose weights are between the bounds."""

AGAIN = 12
"""Number of turns after a change of rows. Levels continue from where they
were."""

EDGE = 0.05
"""Distance from the least or largest weight (natural logarithm) below which a
VM counts as partly at it."""

FEW = 0.02
"""Part of a node. If VMs between the bounds have less than that, VMs at the
bounds decide whether the level rises or falls."""

FIRST_STEP = 0.05
"""Change of the natural logarithm of a level in the first turn. The prices
show the direction, but not how far."""

LONGER, SHORTER = 1.3, 0.5
"""Factors of the next step of a level: after a step in the same direction, and
after one in the other direction."""

FARTHEST, NEAREST = 0.2, 0.004
"""Largest and smallest step of a level."""

NEXT_STEP = 0.03
"""Smallest step of a level after a change of rows, if the search was finished
before. Smaller steps would not reach a level that is farther off."""

MARGIN = 0.001
"""Distance of levels from their bounds. At the bounds weights are known, and
nothing can be searched."""

CLEARLY = 0.005
"""Part of a user's heaviness. Users differ between two divisions only if
their heaviness differs by more than this part."""

ROUGH, ROUGH_TURN = 0.03, 12
"""Sharpness ``e`` above which a short turn goes on, and its Newton steps then.
Policies use a division with up to 0.05."""

HEAVIER = 0.05
"""Difference of heaviness (natural logarithm) of an owner at the least weight
and one above it, from which levels of nodes without fixed rows are searched. A
division without levels leaves differences of 1 %."""

AT_LEAST = 0.01
"""Distance of the natural logarithm of a weight from the least one, or from
the largest, below which the weight counts as that."""

_STAGE = 2
"""Stage of :mod:`.maxmin` in which the whole turns begin but the first."""

_LEAST = 1e-6
"""Least part of a node that VMs without weight 1 share."""

Scalars = usage_model.Scalars
Indices = usage_model.Indices
Mask = resources.Mask


@dataclasses.dataclass(frozen=True, eq=False)
class MixedRows:
    """Rows of a demand: of VMs with weight 1 and of other VMs.

    :ivar node: (p,) index of each row's node.
    :ivar cell: (p,) index of each row's cell.
    :ivar owner: (p,) index of each row's owner.
    :ivar user: (k,) index of each owner's user.
    :ivar wanted: (p,) CPU time that each row wants, > 0.
    :ivar size: (p,) vCPUs of each row, > 0.
    :ivar supply: (m,) CPU time of each node.
    :ivar short: (m,) whether rows want more than the node has.
    :ivar fixed: (p,) whether the row has weight 1 and its node is short.
    :ivar mixed: (m,) whether the node has a level: it has a fixed row, or its
        level was set free.
    :ivar low: (m,) level if all other rows have the largest weight; infinite
        without a level.
    :ivar high: (m,) level if all other rows have the least weight; infinite
        without a level.
    :ivar reach: largest distance of a weight from neutral, a logarithm.
    """

    node: Indices
    cell: Indices
    owner: Indices
    user: Indices
    wanted: Scalars
    size: Scalars
    supply: Scalars
    short: Mask
    fixed: Mask
    mixed: Mask
    low: Scalars
    high: Scalars
    reach: float

    @classmethod
    def of(
        cls,
        rows: maxmin.DemandRows,
        cell: Indices,
        short: Mask,
        exempt: Mask,
        ratio: float,
        free: Mask | None = None,
    ) -> 'MixedRows | None':
        """Return the rows of a demand.

        :param cell: (p,) index of each row's cell.
        :param short: (m,) whether rows want more than the node has.
        :param exempt: (p,) whether the row has weight 1.
        :param ratio: largest weight of a node divided by the smallest, >= 1.
        :param free: (m,) nodes that have a level without such rows.
        :returns: ``None`` if no node has a level.
        """
        node = rows.node
        # A node that only measurements call short has no level: its rows do
        # not want more than it has.
        fixed = exempt & (short & rows.short())[node]
        mixed = np.bincount(node[fixed], minlength=len(rows.supply)) > 0
        if free is not None:
            mixed = mixed | free
        if not mixed.any():
            return None
        reach = float(np.log(ratio) / 2)

        def level(log: float) -> Scalars:
            shares = rows.size * np.exp(np.where(fixed, 0.0, log))
            _, levels = filling.fill(rows.supply, node, rows.wanted, shares)
            return np.where(mixed, np.log(levels), np.inf)

        return cls(
            node=node,
            cell=cell,
            owner=rows.owner,
            user=rows.user,
            wanted=rows.wanted,
            size=rows.size,
            supply=rows.supply,
            short=short,
            fixed=fixed,
            mixed=mixed,
            low=level(reach),
            high=level(-reach),
            reach=reach,
        )

    @property
    def full_rates(self) -> Scalars:
        """Logarithms of rates per size at which rows lack nothing, (p,)."""
        return np.asarray(np.log(self.wanted / self.size))

    def divide_at_levels(
        self,
        levels: Scalars | None,
        weigh: weighted.Weigh,
        begin: maxmin.SearchState | None,
        steps: int,
    ) -> maxmin.MaxMinDivision:
        """Divide all nodes at given levels.

        :param levels: (m,); ``None`` to divide as if no row had weight 1.
        :param weigh: returns the heaviness of owners, as in :mod:`.maxmin`.
        :param begin: state of an earlier search.
        :param steps: Newton steps at most.
        """
        nodes = len(self.supply)
        wanted, left, node = self.wanted, self.supply, self.node
        floor = np.full(2 * nodes, np.nan)
        if levels is not None:
            wanted = self.most_at_levels(levels)
            had = np.bincount(node[self.fixed], wanted[self.fixed], nodes)
            left = np.maximum(left - had, _LEAST * left)
            node = np.where(self.fixed, nodes + node, node)
            floor[:nodes] = np.where(self.mixed, levels - self.reach, np.nan)
        plenty = np.full(nodes, np.inf)
        # Nodes of the rows must ascend.
        order = np.argsort(node, kind='stable')
        back = np.argsort(order, kind='stable')
        found = maxmin.divide(
            maxmin.DemandRows(
                node=node[order],
                owner=self.owner[order],
                user=self.user,
                wanted=wanted[order],
                size=self.size[order],
                supply=np.append(np.where(self.short, left, plenty), plenty),
                floor=floor,
            ),
            lambda got: weigh(got[back]),
            float(np.exp(2 * self.reach)),
            begin,
            steps,
            repairs=False,
        )
        return dataclasses.replace(
            found, got=found.got[back], log=found.log[back]
        )

    def most_at_levels(self, levels: Scalars) -> Scalars:
        """Return the most that rows can get at these levels, (p,).

        On mixed nodes they get at most what the largest weight gives, and
        fixed rows what weight 1 gives.
        """
        top = levels[self.node] + np.where(self.fixed, 0.0, self.reach)
        full = self.full_rates
        most = self.size * np.exp(np.minimum(full, top))
        return np.where(full > top, most, self.wanted)

    def weights(
        self, found: maxmin.MaxMinDivision, levels: Scalars | None
    ) -> Scalars:
        """Return logarithms of weights within the bounds, (p,).

        Fixed rows have weight 1. On nodes without fixed rows only the ratios
        of weights count.
        """
        if levels is None:
            return self._weights_of_mixed_nodes(found)
        log = found.log + self.reach
        log = np.where(self.fixed, 0.0, log.clip(-self.reach, self.reach))
        return np.where(self.mixed[self.node], log, found.log)

    def steered_weights(self, log: Scalars, cells: int) -> Scalars:
        """Return the weight of the rows of each cell that are not fixed.

        :param log: (p,) logarithms of the weights of rows.
        :param cells: number of cells.
        :returns: (cells,) logarithms; 0 for cells with fixed rows only.
        """
        own = np.full(cells, -np.inf)
        free = ~self.fixed
        np.maximum.at(own, self.cell[free], log[free])
        return np.where(np.isfinite(own), own, 0.0)

    def _weights_of_mixed_nodes(self, found: maxmin.MaxMinDivision) -> Scalars:
        """Return weights that give cells nearly what ``found`` gives them."""
        log = found.log.copy()
        here = np.flatnonzero(self.mixed[self.node])
        names, cell = np.unique(self.cell[here], return_inverse=True)
        node = np.unique(self.node[here], return_inverse=True)[1]
        due = np.bincount(self.cell, found.got).astype(np.float64)[names]
        log[here] = beside_exempt.weights_for_amounts(
            node,
            cell,
            log[here] + self.reach,
            self.wanted[here],
            self.size[here],
            due,
            self.fixed[here],
            self.reach,
        )
        return log

    def amounts_by_weights(self, log: Scalars) -> Scalars:
        """Return the amounts that the kernel gives to each row, (p,).

        :param log: (p,) logarithms of the weights.
        """
        supply = np.where(self.short, self.supply, np.inf)
        got, _ = filling.fill(
            supply, self.node, self.wanted, self.size * np.exp(log)
        )
        return got

    def first_levels(self, found: maxmin.MaxMinDivision) -> Scalars:
        """Return the first levels: the middle of the rates of each node, (m,).

        :param found: division as if no row was fixed.
        """
        rate = np.log(found.got / self.size)
        high, low = (
            self._largest_by_node(rate, True),
            -self._largest_by_node(-rate, True),
        )
        with np.errstate(invalid='ignore'):
            return self._within_bounds((high + low) / 2)

    def nearest_levels(self, levels: Scalars) -> Scalars:
        """Return the nearest levels that weights can give, (m,).

        :param levels: (m,) of similar rows; not finite where a node had no
            fixed row, which then gets the middle level.
        """
        with np.errstate(invalid='ignore'):
            middle = (self.low + self.high) / 2
        return self._within_bounds(
            np.where(np.isfinite(levels), levels, middle)
        )

    def next_levels(
        self,
        levels: Scalars,
        steps: Scalars,
        found: maxmin.MaxMinDivision,
        heaviness: Scalars,
        *,
        weights_decide: bool,
    ) -> tuple[Scalars, Scalars]:
        """Return the levels of the next turn, and the steps to them, (m,).

        :param steps: (m,) steps of the turn before.
        :param found: division at the present levels.
        :param heaviness: (k,) heaviness of owners in that division.
        :param weights_decide: whether prices of owners whose weights are
            between the bounds follow from their weights, not their heaviness.
        """
        way = np.sign(
            self._price_differences(
                levels, found, heaviness, weights_decide=weights_decide
            )
        )
        factor = np.where(way * steps > 0, LONGER, SHORTER)
        size = (np.abs(steps) * factor).clip(NEAREST, FARTHEST)
        now = np.where(self.mixed, levels, 0.0)
        # Where nothing pulls, the next step is shorter in either direction.
        new = self._within_bounds(now + way * size)
        return new, np.where(way == 0, size, way * size)

    def _price_differences(
        self,
        levels: Scalars,
        found: maxmin.MaxMinDivision,
        heaviness: Scalars,
        *,
        weights_decide: bool,
    ) -> Scalars:
        """Return by how much prices of gains exceed prices of losses, (m,).

        Gains and losses are the changes of the rows' amounts if the level of
        the node rises a little.

        :returns: differences of the logarithms of mean prices; 0 where no
            amount changes.
        """
        rate = np.log(found.got / self.size)
        light = -np.log(np.maximum(heaviness, weighted.LIGHT))
        price = STEEP * light[self.owner]
        at = np.where(self.mixed, levels, 0.0)[self.node]
        waits = self.mixed[self.node] & (
            rate < self.full_rates - weighted.SAME
        )
        steered = waits & ~self.fixed
        above = ((rate - (at - self.reach)) / EDGE).clip(0.0, 1.0)
        below = ((at + self.reach - rate) / EDGE).clip(0.0, 1.0)
        part = np.where(steered, np.minimum(above, below), 0.0)
        free = part * found.got
        bound = np.where(waits, 1.0 - part, 0.0) * found.got
        if weights_decide:
            price = self._prices_of_weights(price, free, bound)
        gain = self._mean_prices(price, bound)
        # With no row between the bounds, the cheapest pays for a higher
        # level, and the dearest gets what a lower one leaves.
        payer = -self._largest_by_node(-price, steered & (above > 0.5))
        taker = self._largest_by_node(price, steered & (below > 0.5))
        count = np.bincount(self.node, free, len(self.supply))
        with np.errstate(invalid='ignore'):
            alone = np.where(
                gain > payer, gain - payer, np.minimum(gain - taker, 0.0)
            )
            pull = np.where(
                count > FEW * self.supply,
                gain - self._mean_prices(price, free),
                alone,
            )
        return np.where(np.isfinite(pull), pull, 0.0)

    def _prices_of_weights(
        self, price: Scalars, free: Scalars, bound: Scalars
    ) -> Scalars:
        """Return prices at which no owner should have another weight, (p,).

        A higher weight takes from all rows of the owner's nodes, in proportion
        to their amounts. So the price of an owner whose weight is between the
        bounds is the mean price on these nodes.

        :param price: (p,) logarithms, which owners at the bounds keep.
        :param free: (p,) amounts of rows between the bounds.
        :param bound: (p,) amounts of other rows that wait.
        """
        owners = int(self.owner.max()) + 1
        all_free = np.bincount(self.owner, free, owners)
        part = all_free / np.maximum(
            np.bincount(self.owner, free + bound, owners), weighted.LIGHT
        )
        inside = (part > 0.5)[self.owner]
        if not inside.any():
            return price
        size = np.where(all_free > 0, all_free, 1.0)
        amount = free + bound
        for _ in range(PRICE_STEPS):
            mean = self._mean_prices(price, amount)[self.node]
            known = np.where(np.isfinite(mean), mean, price)
            top = self._largest_by_owner(known, free > 0, owners)
            paid = free * np.exp(np.minimum(known - top[self.owner], 0.0))
            with np.errstate(divide='ignore'):
                own = top + np.log(
                    np.bincount(self.owner, paid, owners) / size
                )
            price = np.where(inside, own[self.owner], price)
        return price

    def _mean_prices(self, price: Scalars, amount: Scalars) -> Scalars:
        """Return the mean price of some amounts on each node, (m,).

        :param price: (p,) logarithms.
        :param amount: (p,) amounts of rows, >= 0.
        :returns: logarithms; NaN where the amount is 0.
        """
        top = self._largest_by_node(price, amount > 0)
        some = np.where(np.isfinite(top), top, 0.0)
        nodes = len(self.supply)
        paid = amount * np.exp(np.minimum(price - some[self.node], 0.0))
        with np.errstate(divide='ignore', invalid='ignore'):
            mean = np.bincount(self.node, paid, nodes) / np.bincount(
                self.node, amount, nodes
            )
            return np.asarray(some + np.log(mean))

    def _within_bounds(self, levels: Scalars) -> Scalars:
        """Return levels that weights can give, (m,); infinite elsewhere."""
        with np.errstate(invalid='ignore'):
            margin = np.minimum(MARGIN, (self.high - self.low) / 2)
            low, high = self.low + margin, self.high - margin
        return np.where(
            self.mixed, np.minimum(np.maximum(levels, low), high), np.inf
        )

    def _largest_by_owner(
        self, values: Scalars, counts: Mask, owners: int
    ) -> Scalars:
        """Return the largest value of some rows of each owner, (k,).

        :param counts: (p,) whether the row is one of them.
        """
        most = np.full(owners, -np.inf)
        np.maximum.at(most, self.owner[counts], values[counts])
        return np.where(np.isfinite(most), most, 0.0)

    def _largest_by_node(
        self, values: Scalars, counts: Mask | bool
    ) -> Scalars:
        """Return the largest value of some rows of each mixed node, (m,).

        :param counts: (p,) whether the row is one of them.
        """
        most = np.full(len(self.supply), -np.inf)
        rows = np.flatnonzero(self.mixed[self.node] & counts)
        np.maximum.at(most, self.node[rows], values[rows])
        return most


@dataclasses.dataclass(frozen=True, eq=False)
class LevelSearch:
    """Search for the levels of mixed nodes, turn by turn.

    :ivar finished_turns: number of finished turns.
    :ivar levels: (m,) levels of the present turn; ``None`` in the first turn,
        which divides as if all VMs were steered.
    :ivar steps: (m,) steps of levels to the present turn.
    :ivar best: best division of the finished turns: weights that a kernel can
        have, and what they give; ``None`` before the first ended.
    :ivar best_heaviness: (k,) heaviness of owners in the best division.
    :ivar best_levels: (m,) levels of the best division; ``None`` if it is
        that of the first turn.
    :ivar made: Newton steps in the present turn.
    """

    finished_turns: int = 0
    levels: Scalars | None = None
    steps: Scalars | None = None
    best: maxmin.MaxMinDivision | None = None
    best_heaviness: Scalars | None = None
    best_levels: Scalars | None = None
    made: int = 0

    @property
    def is_over(self) -> bool:
        """Whether all turns are finished."""
        return self.finished_turns >= TURNS

    @property
    def is_short_turn(self) -> bool:
        """Whether the present turn ends after a few steps."""
        return 1 < self.finished_turns < TURNS - 1

    def begin_of_turn(self, at: maxmin.SearchState) -> maxmin.SearchState:
        """Return the state from which the search of the next turn begins.

        :param at: state of the search of the turn before.
        """
        begin = maxmin.with_other_rows(at)
        if self.is_short_turn:
            return begin
        # After a large change of levels steps of the last stages do not help.
        return maxmin.at_earlier_stage(begin, _STAGE)

    def with_other_rows(
        self, rows: MixedRows, nodes: Indices
    ) -> 'LevelSearch':
        """Return the search of similar rows that continues from this one.

        :param nodes: (m,) earlier index of each node; -1 for a new one.
        """
        nothing = np.full(len(nodes), np.nan)
        if self.levels is None or self.steps is None:
            # In a large cloud the first turn would begin again in each round.
            levels = rows.nearest_levels(nothing)
            return LevelSearch(1, levels, np.full(len(nodes), FIRST_STEP))
        levels, steps = self.levels, self.steps
        if self.is_over:
            levels = levels if self.best_levels is None else self.best_levels
            size = np.maximum(np.abs(steps), NEXT_STEP)
            steps = np.copysign(size, steps)
        is_old = nodes >= 0
        levels = np.where(is_old, levels[nodes], nothing)
        return LevelSearch(
            min(self.finished_turns, TURNS - AGAIN),
            rows.nearest_levels(levels),
            np.where(is_old, steps[nodes], FIRST_STEP),
            made=self.made,
        )

    def continued(
        self,
        rows: MixedRows,
        weigh: weighted.Weigh,
        begin: maxmin.SearchState | None,
        steps: int,
    ) -> tuple['LevelSearch', maxmin.MaxMinDivision]:
        """Run steps of the present turn, and begin the next if it ends.

        :param weigh: returns the heaviness of owners, as in :mod:`.maxmin`.
        :param begin: state of the search of the division.
        :param steps: Newton steps at most.
        :returns: the search, and the division by weights that a kernel can
            have, with the state of its search.
        """
        if self.is_short_turn:
            steps = min(steps, max(1, SHORT_TURN - self.made))
        found = rows.divide_at_levels(self.levels, weigh, begin, steps)
        log = rows.weights(found, self.levels)
        got = rows.amounts_by_weights(log)
        tried = dataclasses.replace(found, got=got, log=log)
        made = self.made + new_steps(begin, found.at)
        enough = SHORT_TURN if found.sharpness <= ROUGH else ROUGH_TURN
        is_last_step = self.is_short_turn and made >= enough
        if found.is_over or is_last_step:
            return self._after_turn(rows, weigh, found, tried), tried
        return dataclasses.replace(self, made=made), tried

    def _after_turn(
        self,
        rows: MixedRows,
        weigh: weighted.Weigh,
        found: maxmin.MaxMinDivision,
        tried: maxmin.MaxMinDivision,
    ) -> 'LevelSearch':
        """Return the state after a turn: the best division and new levels.

        :param found: division of the turn.
        :param tried: division by the nearest weights that a kernel can have.
        """
        best, least, known = self.best, self.best_heaviness, self.best_levels
        heaviness, _ = weigh(tried.got)
        if least is None or is_fairer(heaviness, least):
            best, least, known = tried, heaviness, self.levels
        weights_decide = not rows.fixed.any() and self.finished_turns >= HALF
        if self.levels is None or self.steps is None:
            levels = rows.first_levels(found)
            steps = np.full(len(levels), FIRST_STEP)
        elif weights_decide and self.finished_turns == HALF:
            levels = rows.first_levels(best or tried)
            levels = levels if known is None else known
            steps = np.full(len(levels), FIRST_STEP)
        else:
            levels, steps = rows.next_levels(
                self.levels,
                self.steps,
                found,
                weigh(found.got)[0],
                weights_decide=weights_decide,
            )
            if self.finished_turns + 2 == TURNS and known is not None:
                levels = known
        return LevelSearch(
            self.finished_turns + 1, levels, steps, best, least, known
        )


def nodes_to_free(
    rows: maxmin.DemandRows,
    weigh: weighted.Weigh,
    found: maxmin.MaxMinDivision,
    ratio: float,
) -> Mask:
    """Return the nodes whose levels can give some owner clearly more, (m,).

    They are all nodes with a row at the least weight, if on one of them its
    owner is heavier than one who waits above it.

    :param weigh: returns the heaviness of owners, as in :mod:`.maxmin`.
    :param found: division without levels.
    :param ratio: largest weight of a node divided by the smallest, >= 1.
    """
    node, nodes = rows.node, len(rows.supply)
    waits = rows.short()[node] & (
        found.got < rows.wanted * (1 - weighted.SAME)
    )
    light = np.maximum(weigh(found.got)[0], weighted.LIGHT)
    heavy = np.log(light)[rows.owner]
    is_least = found.log <= AT_LEAST - np.log(ratio)
    low = waits & is_least
    between = waits & ~is_least & (found.log < -AT_LEAST)
    above, below = np.full(nodes, -np.inf), np.full(nodes, np.inf)
    np.maximum.at(above, node[low], heavy[low])
    np.minimum.at(below, node[between], heavy[between])
    if not (above - below > HEAVIER).any():
        return np.zeros(nodes, dtype=np.bool_)
    return np.asarray(np.isfinite(above))


def new_steps(
    begin: maxmin.SearchState | None, at: maxmin.SearchState | None
) -> int:
    """Return the number of Newton steps from one state to another, >= 1."""
    before = 0 if begin is None else begin.made
    after = before if at is None else at.made
    return max(1, after - before)


def is_fairer(heaviness: Scalars, other: Scalars) -> bool:
    """Whether the lightest owners have more; if they have the same, the next.

    :param heaviness: (k,) heaviness of owners, in any order; so is ``other``.
    """
    mine, theirs = np.sort(heaviness), np.sort(other)
    apart = mine - theirs
    clear = np.abs(apart) > CLEARLY * np.maximum(
        np.abs(theirs), weighted.LIGHT
    )
    first = int(np.argmax(clear))
    return bool(clear[first] and apart[first] > 0)
