# SPDX-License-Identifier: Apache-2.0

"""What holds for every plan, whatever comes late, is lost or fails."""

import dataclasses
import random

import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st

from nova_fairness.model import border as border_module
from nova_fairness.planners.border import demand
from nova_fairness.planners.border import planner
from tests.fixtures import border
from tests.fixtures import fake_border

E, C = border_module.HostEvent, border_module.HostCause
RULES = demand.BorderRules(
    patience_s=60, stay_s=120, most_moving=2, most_per_day=3, ttl_s=600
)
STABLE = ('batch', 'cloud')

sides = st.sampled_from(border_module.BorderSide)
hosts = st.integers(0, 3).map(lambda n: f'h{n}')


class Border(stateful.RuleBasedStateMachine):
    """Everything that can happen, in any order."""

    def __init__(self):
        super().__init__()
        self.border = fake_border.FakeBorder(
            ['batch', 'batch', 'cloud', 'cloud']
        )
        self.late = []

    @stateful.rule(
        source=st.randoms(use_true_random=False), end_vms=st.booleans()
    )
    def go_on(self, source, end_vms):
        """A cycle: some actions are done, some twice, some late or never."""
        world = self.border
        moving = self._moving()
        rules = dataclasses.replace(RULES, end_vms=end_vms)
        plan = planner.plan(world.snapshot(), world.now, rules)
        asked = [each for each in plan.actions if each.step is E.ASK]
        if asked:
            assert moving + len(asked) <= RULES.most_moving
        for action in asked:
            node = world.nodes[action.host]
            before = demand.moves_within(node, world.now, demand.DAY_S)
            assert before < RULES.most_per_day
            assert world.now - node.since >= RULES.stay_s
        names = [each.host for each in plan.actions]
        assert len(names) == len(set(names))
        for action in plan.actions:
            for _ in range(source.choice([0, 1, 1, 1, 1, 2])):
                world.do(action)
            if source.random() < 0.3:
                self.late.append(action)

    def _moving(self):
        return sum(
            node.state in border_module.MOVING
            for node in self.border.nodes.values()
        )

    @stateful.precondition(lambda self: self.late)
    @stateful.rule()
    def do_late(self):
        self.border.do(self.late.pop(0))

    @stateful.rule(
        side=sides,
        host=hosts,
        cores=st.integers(1, 8),
        lasts_s=st.sampled_from([None, 60.0, 6000.0]),
        way=st.sampled_from(['ends', 'moves', 'yields']),
    )
    def start(self, side, host, cores, lasts_s, way):
        now = self.border.now
        gone_at = None if lasts_s is None else now + lasts_s
        way = way if side is border_module.BorderSide.CLOUD else 'ends'
        self.border.start(side, host, cores=cores, gone_at=gone_at, way=way)

    @stateful.rule(side=sides, host=hosts)
    def end(self, side, host):
        self.border.end(side, host)

    @stateful.rule(side=sides, cores=st.integers(1, 16))
    def want(self, side, cores):
        self.border.wants[side].append(
            border.wanting_job(cores, self.border.now)
        )

    @stateful.rule(side=sides)
    def want_no_more(self, side):
        self.border.wants[side].clear()

    @stateful.rule(host=hosts, event=st.sampled_from([E.ASK, E.CANCEL]))
    def operate(self, host, event):
        self.border.step(host, event, C.OPERATOR)

    @stateful.rule(side=sides, host=hosts, up=st.booleans())
    def fail(self, side, host, up):
        self.border.change(side, host, up=up)

    @stateful.rule(seconds=st.sampled_from([1, 60, 600, 90_000]))
    def wait(self, seconds):
        self.border.now += seconds

    @stateful.invariant()
    def no_host_is_in_both(self):
        assert self.border.in_both() == []

    @stateful.invariant()
    def nothing_is_unclear_that_nobody_touched(self):
        states = [node.state for node in self.border.nodes.values()]
        assert border_module.HostState.UNCLEAR not in states


TestBorder = Border.TestCase
TestBorder.settings = hypothesis.settings(
    max_examples=60, stateful_step_count=60, deadline=None
)


def settle(world, rules, most=200):
    """Plan and do until nothing is to be done; what drains is gone at once."""
    for cycle in range(most):
        plan = planner.plan(world.snapshot(), world.now, rules)
        if not plan.actions:
            return cycle
        for action in plan.actions:
            world.do(action)
        for host, node in world.nodes.items():
            if node.state in border_module.LEAVING:
                world.change(
                    border_module.only_user(node.state), host, work=()
                )
    raise AssertionError(f'still at work after {most} plans')


@st.composite
def worlds(draw):
    states = draw(st.lists(st.sampled_from(STABLE), min_size=1, max_size=6))
    world = fake_border.FakeBorder(states)
    world.now = 1000.0
    for host, node in world.nodes.items():
        for _ in range(draw(st.integers(0, 3))):
            world.start(
                border_module.only_user(node.state),
                host,
                cores=draw(st.integers(1, 4)),
                gone_at=draw(st.sampled_from([None, 1100.0, 2000.0])),
            )
    for side in border_module.BorderSide:
        cores = draw(st.lists(st.integers(1, 20), max_size=3))
        world.wants[side] = [
            border.wanting_job(
                each,
                draw(st.sampled_from([0.0, 999.0])),
                part=draw(st.sampled_from([None, each, each / 2])),
            )
            for each in cores
        ]
    return world


@hypothesis.given(worlds(), st.sampled_from([None, 0, 2, 4]))
def test_host_moves_end_in_a_stable_state(world, contended):
    rules = dataclasses.replace(
        RULES, stay_s=0.0, most_per_day=9, contended=contended
    )
    settle(world, rules)
    assert world.in_both() == []
    assert planner.plan(world.snapshot(), world.now, rules).actions == ()


@hypothesis.given(worlds(), st.sets(st.integers(0, 5)))
def test_fixed_hosts_never_move(world, fixed):
    for n in fixed & set(range(len(world.nodes))):
        node = world.nodes[f'h{n}']
        host = dataclasses.replace(node.host, fixed=True)
        world.nodes[f'h{n}'] = dataclasses.replace(node, host=host)
    rules = dataclasses.replace(RULES, stay_s=0.0, contended=1)
    settle(world, rules)
    for target in (0, len(world.nodes)):
        plan = planner.plan(
            world.snapshot(border_module.CloudTarget(target)), world.now, rules
        )
        for action in plan.actions:
            assert not world.nodes[action.host].host.fixed
    for node in world.nodes.values():
        assert not (node.host.fixed and node.history)


@hypothesis.given(worlds())
def test_no_host_goes_back_for_earlier_waiters(world):
    rules = dataclasses.replace(RULES, stay_s=0.0, most_per_day=9)
    settle(world, rules)
    for node in world.nodes.values():
        assert demand.moves_within(node, world.now, demand.DAY_S) <= 1


@hypothesis.given(worlds(), st.integers(0, 3), st.integers(0, 2))
def test_limits_of_simultaneous_and_daily_moves_hold(world, moving, per_day):
    rules = dataclasses.replace(
        RULES, stay_s=0.0, most_moving=moving, most_per_day=per_day
    )
    for _ in range(4):
        plan = planner.plan(world.snapshot(), world.now, rules)
        on_the_way = sum(
            node.state in border_module.MOVING for node in world.nodes.values()
        )
        asked = [each for each in plan.actions if each.step is E.ASK]
        assert not asked or on_the_way + len(asked) <= moving
        assert all(
            demand.moves_within(
                world.nodes[each.host], world.now, demand.DAY_S
            )
            < per_day
            for each in asked
        )
        for action in plan.actions:
            world.do(action)
        for wants in world.wants.values():
            wants.reverse()


@hypothesis.given(worlds())
def test_no_host_moves_without_demand(world):
    for side in border_module.BorderSide:
        world.wants[side] = []
    rules = dataclasses.replace(RULES, stay_s=0.0)
    assert planner.plan(world.snapshot(), world.now, rules).actions == ()


@hypothesis.given(worlds())
def test_no_side_gives_hosts_it_wants_itself(world):
    rules = dataclasses.replace(RULES, stay_s=0.0)
    snapshot = world.snapshot()
    plan = planner.plan(snapshot, world.now, rules)
    for action in plan.actions:
        node = world.nodes[action.host]
        giver = border_module.only_user(node.state)
        left = demand.side_balance(snapshot, giver, world.now, 0.0)
        asked = len([one for one in plan.actions if one.step is E.ASK])
        assert left.spare(0.0) >= asked * node.host.cores


@hypothesis.given(worlds(), st.randoms(use_true_random=False))
def test_the_sequence_of_listed_hosts_does_not_matter(world, source):
    snapshot = world.snapshot()
    rules = dataclasses.replace(RULES, stay_s=0.0, contended=1)
    plan = planner.plan(snapshot, world.now, rules)
    assert plan == planner.plan(snapshot, world.now, rules)
    shuffled = dataclasses.replace(
        snapshot,
        nodes=tuple(source.sample(snapshot.nodes, len(snapshot.nodes))),
        **{
            side.value: _shuffled(snapshot.side(side), source)
            for side in border_module.BorderSide
        },
    )
    assert plan == planner.plan(shuffled, world.now, rules)


def _shuffled(
    seen: border_module.SideSnapshot, source: random.Random
) -> border_module.SideSnapshot:
    names = source.sample(sorted(seen.places), len(seen.places))
    return border_module.SideSnapshot(
        {name: seen.places[name] for name in names},
        tuple(source.sample(seen.wants, len(seen.wants))),
    )
