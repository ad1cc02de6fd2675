# SPDX-License-Identifier: Apache-2.0

"""Moves that are worth it: goals, thresholds, and what is promised."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import types

from nova_fairness.cluster.move_plans import candidates
from nova_fairness.cluster.usage import prices
from nova_fairness.model import cluster
from nova_fairness.model import market
from nova_fairness.model import plans as model
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.model import tenants as tenants_model
from nova_fairness.planners.consolidation import balance
from nova_fairness.planners.consolidation import empty
from nova_fairness.planners.consolidation import planner
from nova_fairness.planners.consolidation import repack
from nova_fairness.planners.consolidation import rules as rules_module
from nova_fairness.planners.consolidation import utilisation
from nova_fairness.planners.consolidation import waves
from nova_fairness.planners.market import planner as market_planner
from nova_fairness.planners.tenants import planner as tenants_planner

_LOOKED_AT = 3
"""Requests for which a rescue is looked for at once, the next ones first."""

_MEMORY = 'MEMORY_MB'
_USUAL = rules_module.USUAL
_USUAL_HELP = tenants_planner.USUAL


@dataclasses.dataclass(frozen=True)
class GoalOptions:
    """Options that operators set.

    :ivar goals: that plans are made for, the one that matters most first.
    :ivar least_emptied: hosts that a plan empties at least, if its goal is to
        consolidate or to repack.
    :ivar spread: a host gives to others if it uses this much more than all
        do on average, as a part of it.
    :ivar margin: by which a plan that balances makes hosts more even at
        least, as a part; and part by which the mean price must fall for one
        of the market.
    :ivar planner: how moves are looked for.
    :ivar help: how those are that help owners.
    """

    goals: tuple[model.Goal, ...] = ()
    least_emptied: int = 1
    spread: float = 0.2
    margin: float = 0.05
    planner: rules_module.ConsolidationRules = _USUAL
    help: tenants_planner.TenantRules = _USUAL_HELP


@dataclasses.dataclass(frozen=True)
class Draft:
    """Moves that are worth it.

    :ivar goal: what they are for.
    :ivar subject: the request or the host that they are for; '' without.
    :ivar moves: in the order in which they are to be made.
    :ivar empties: names of hosts that have nothing on them afterwards.
    :ivar promised: what they are to bring.
    :ivar text: the same for people, where numbers do not say it.
    :ivar stays: servers that stay on the host that is to be emptied.
    """

    goal: model.Goal
    subject: str
    moves: tuple[model.Move, ...]
    empties: tuple[str, ...]
    promised: model.PlanOutcome
    text: str = ''
    stays: tuple[model.Stay, ...] = ()


@dataclasses.dataclass(frozen=True)
class GoalInput:
    """The cloud, and what is wanted of it.

    :ivar snapshot: with what those servers need that may move.
    :ivar waiting: where requests stand that do not start now, by UUID, in
        their order.
    :ivar tenants: what servers want of CPUs; ``None`` if no agent is asked.
    :ivar rates: that are spent for servers, by UUID.
    :ivar at: seconds of the epoch.
    """

    snapshot: cluster.ClusterSnapshot
    waiting: Mapping[str, cluster.Waiting]
    tenants: tenants_model.Tenants | None = None
    rates: Mapping[str, float] = dataclasses.field(default_factory=dict)
    at: float = 0.0


_Drafts = Callable[[GoalInput, GoalOptions], Iterable[Draft]]


def drafts(seen: GoalInput, rules: GoalOptions) -> Iterator[Draft]:
    """Moves that are worth it, those for the first goal first."""
    for goal in rules.goals:
        for each in _WAYS[goal](seen, rules):
            if each.moves:
                yield each


def emptied(
    snapshot: cluster.ClusterSnapshot,
    known: candidates.ServerFacts,
    host: str,
    rules: GoalOptions,
) -> Draft:
    """Moves that empty a host as far as can be, and who stays there and why.

    :param snapshot: of the cloud.
    :param known: of its servers.
    :param host: its name, of one that is in the snapshot.
    """
    seen = candidates.seen(snapshot, known)
    found = empty.empty(seen, host, rules.planner)
    moved = {each.server for each in found.moves if each.target != host}
    stays = tuple(
        _stay(each, snapshot, known)
        for each in sorted(seen.running, key=lambda each: each.uuid)
        if each.host == host and each.uuid not in moved
    )
    draft = _draft(model.Goal.EMPTY, host, seen, found)
    return dataclasses.replace(draft, stays=stays)


def _stay(
    running: cluster.Running,
    snapshot: cluster.ClusterSnapshot,
    known: candidates.ServerFacts,
) -> model.Stay:
    """A server that stays, and why."""
    server = known.servers.get(running.uuid)
    cause, text = candidates.why_stays(running, snapshot, known) or (
        model.PlanCause.NOWHERE,
        '',
    )
    if cause is model.PlanCause.NOWHERE and _is_together(running):
        cause = model.PlanCause.TOGETHER
    return model.Stay(running.uuid, server.name if server else '', cause, text)


def _is_together(running: cluster.Running) -> bool:
    together = request_model.Rule.TOGETHER
    return running.bound is not None and running.bound.rule is together


def _consolidating(seen: GoalInput, rules: GoalOptions) -> Iterator[Draft]:
    found = planner.consolidate(seen.snapshot, rules.planner)
    draft = _draft(model.Goal.CONSOLIDATE, '', seen.snapshot, found)
    if draft.promised.emptied >= rules.least_emptied:
        yield draft


def _balancing(seen: GoalInput, rules: GoalOptions) -> Iterator[Draft]:
    tolerance = balance.BalanceTolerance(rules.spread)
    found = balance.balance(seen.snapshot, rules.planner, tolerance)
    draft = _draft(model.Goal.BALANCE, '', seen.snapshot, found)
    won = draft.promised.spread_before - draft.promised.spread_after
    if won >= rules.margin:
        yield draft


def _rescuing(seen: GoalInput, rules: GoalOptions) -> Iterator[Draft]:
    snapshot = seen.snapshot
    for request in _lacking(snapshot.requests, seen.waiting):
        found = planner.rescue(snapshot, request, rules.planner)
        if found is not None and found.moves:
            draft = _draft(model.Goal.RESCUE, request.uuid, snapshot, found)
            promised = dataclasses.replace(draft.promised, served=1)
            yield dataclasses.replace(draft, promised=promised)


def _helping(seen: GoalInput, rules: GoalOptions) -> Iterator[Draft]:
    if seen.tenants is None:
        return
    found = tenants_planner.plan(seen.tenants, seen.at, rules.help)
    if found.helped:
        first = found.helped[0]
        draft = _draft(
            model.Goal.HELP, first.owner, seen.tenants.cloud, found.plan
        )
        told = [
            f'{each.owner} gets {each.level[1]:.2f} in place of'
            f' {each.level[0]:.2f} of what is due'
            for each in found.helped
        ]
        text = model.listed(told)
        yield dataclasses.replace(draft, text=text)


def _repacking(seen: GoalInput, rules: GoalOptions) -> Iterator[Draft]:
    found = repack.repack(seen.snapshot, rules.planner)
    draft = _draft(model.Goal.REPACK, '', seen.snapshot, found)
    if draft.promised.emptied >= rules.least_emptied:
        yield draft


def _trading(seen: GoalInput, rules: GoalOptions) -> Iterator[Draft]:
    if not seen.rates or prices.SOLD not in seen.snapshot.classes:
        return
    found = market_planner.plan(
        _market(seen), seen.at, market_planner.MarketRules(rules.margin)
    )
    moves = tuple(
        waves.WaveMove(
            each.server, each.source, each.target, each.wave, round(each.cost)
        )
        for each in found.moves
    )
    plan = rules_module.ConsolidationPlan(moves, (0, 0))
    draft = _draft(model.Goal.MARKET, '', seen.snapshot, plan)
    before, after = found.level
    text = (
        f'the mean price at which owners buy falls from {before:.2f} to'
        f' {after:.2f}; it is 1 where all hosts are as dear for their size'
    )
    yield dataclasses.replace(draft, text=text)


def _market(seen: GoalInput) -> market.MarketState:
    """The cloud with rates; members of server groups with a rule stay."""
    bids = {
        each.uuid: market.Bid(
            seen.rates[each.uuid],
            demand=None if each.bound else each.demand,
            cost=max(dict(each.amounts).get(_MEMORY, 0) * each.sends, 1.0),
        )
        for each in seen.snapshot.running
        if each.uuid in seen.rates
    }
    lowest = min(seen.rates.values())
    return market.MarketState(
        seen.snapshot, bids, (prices.SOLD,), lowest=lowest
    )


_WAYS: Mapping[model.Goal, _Drafts] = types.MappingProxyType(
    {
        model.Goal.CONSOLIDATE: _consolidating,
        model.Goal.BALANCE: _balancing,
        model.Goal.RESCUE: _rescuing,
        model.Goal.HELP: _helping,
        model.Goal.MARKET: _trading,
        model.Goal.REPACK: _repacking,
    }
)


def _lacking(
    requests: Iterable[request_model.Request],
    waiting: Mapping[str, cluster.Waiting],
) -> list[request_model.Request]:
    """The next requests that only lack room.

    Preemptible ones use what is left: no server moves for them.
    """
    by_uuid = {each.uuid: each for each in requests}
    found = [
        by_uuid[uuid]
        for uuid, place in waiting.items()
        if place.why.reason in reason.LACKS_ROOM
        and uuid in by_uuid
        and not by_uuid[uuid].is_preemptible
    ]
    return found[:_LOOKED_AT]


def _draft(
    goal: model.Goal,
    subject: str,
    snapshot: cluster.ClusterSnapshot,
    plan: rules_module.ConsolidationPlan,
) -> Draft:
    before = utilisation.figures(snapshot)
    after = utilisation.figures(utilisation.after(snapshot, plan.moves))
    empties = tuple(sorted(before.busy - after.busy))
    promised = model.PlanOutcome(
        hosts_before=len(before.busy),
        hosts_after=len(after.busy),
        spread_before=before.spread,
        spread_after=after.spread,
        emptied=len(empties),
        moves=len(plan.moves),
        memory_mb=plan.cost_mb,
    )
    moves = tuple(
        model.Move(each.server, each.source, each.target, each.wave, each.cost)
        for each in plan.moves
    )
    return Draft(goal, subject, moves, empties, promised)
