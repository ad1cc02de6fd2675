# SPDX-License-Identifier: Apache-2.0

"""What holds for every plan of a market."""

import dataclasses
import random

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from nova_fairness.model import cluster
from nova_fairness.planners.market import planner
from tests.fixtures import small_cloud
from tests.unit.planners.market import test_planner

RULES = st.builds(
    planner.MarketRules,
    st.sampled_from([0.0, 0.02, 0.2]),
    st.sampled_from([0.0, 0.3]),
)


@st.composite
def markets(draw):
    """Hosts of different size, and servers that all have room."""
    names = 'abcd'[: draw(st.integers(1, 4))]
    hosts, servers = [], []
    for name in names:
        room = draw(st.integers(0, 300))
        vcpu = draw(st.sampled_from([0, 4, 8]))
        has = 0
        for n in range(draw(st.integers(0, 5))):
            memory = draw(st.sampled_from([50, 100, 200]))
            own = {
                'memory': memory,
                'cost': draw(st.sampled_from([1.0, 2.0, 7.5])),
                'stays': draw(st.sampled_from([False, False, False, True])),
                'group': draw(st.sampled_from(['', '', '', 'g'])),
            }
            zone = draw(st.sampled_from(['', '', 'z']))
            own['needs'] = {'zone': zone} if zone else {}
            rate = draw(st.sampled_from([1.0, 3.0, 10.0, 0.1]))
            servers.append((f's{name}{n}', name, rate, own))
            room += memory
            has += 1
        zone = draw(st.sampled_from(['nova', 'z']))
        takes = draw(st.sampled_from([True, True, True, False]))
        hosts.append(
            small_cloud.host(
                name, vcpu=vcpu + has, memory=room, zone=zone, takes=takes
            )
        )
    sold = draw(st.sampled_from([('VCPU',), ('VCPU', 'MEMORY_MB')]))
    return test_planner.given(hosts, servers, sold=sold)


def after(given, found):
    """The market once moves were made wave by wave; each must have room."""
    cloud = given.cloud
    rows = {each.name: n for n, each in enumerate(cloud.providers)}
    at = {each.uuid: each for each in cloud.running}
    used = cloud.inventory.used.copy()
    for wave in sorted({each.wave for each in found.moves}):
        now = [each for each in found.moves if each.wave == wave]
        for each in now:
            assert at[each.server].host == each.source != each.target
            used[rows[each.target]] += amounts(at[each.server])
            full = used > cloud.inventory.capacity
            assert not full[rows[each.target]].any()
        for each in now:
            used[rows[each.source]] -= amounts(at[each.server])
            moved = dataclasses.replace(at[each.server], host=each.target)
            at[each.server] = moved
    cloud = dataclasses.replace(
        cloud,
        inventory=dataclasses.replace(cloud.inventory, used=used),
        running=tuple(at.values()),
    )
    return dataclasses.replace(given, cloud=cloud)


def amounts(running):
    return cluster.amounts_vector(dict(running.amounts), small_cloud.CLASSES)


@hypothesis.given(markets(), RULES)
def test_no_host_is_ever_over_its_capacity_and_moves_lead_to_the_plan(
    given, rules
):
    found = planner.plan(given, 0.0, rules)
    reached = after(given, found)
    there = {each.uuid: each.host for each in reached.cloud.running}
    assert there == test_planner.where(found)


@hypothesis.given(markets(), RULES)
def test_a_second_plan_is_empty(given, rules):
    found = planner.plan(given, 0.0, rules)
    hypothesis.assume(not found.blocked)
    again = planner.plan(after(given, found), 0.0, rules)
    assert again.moves == ()
    assert again.stands == pytest.approx(found.stands)


@hypothesis.given(markets(), RULES, st.randoms(use_true_random=False))
def test_the_sequence_of_inputs_does_not_change_the_market_plan(
    given, rules, chance: random.Random
):
    order = list(range(len(given.cloud.providers)))
    chance.shuffle(order)
    running = list(given.cloud.running)
    chance.shuffle(running)
    uuids = list(given.bids)
    chance.shuffle(uuids)
    have = given.cloud.inventory
    fields = [each.name for each in dataclasses.fields(have)]
    shuffled = dataclasses.replace(
        given.cloud,
        providers=tuple(given.cloud.providers[n] for n in order),
        inventory=dataclasses.replace(
            have, **{name: getattr(have, name)[order] for name in fields}
        ),
        running=tuple(running),
    )
    other = dataclasses.replace(
        given, cloud=shuffled, bids={uuid: given.bids[uuid] for uuid in uuids}
    )
    assert planner.plan(other, 0.0, rules) == planner.plan(given, 0.0, rules)


@hypothesis.given(markets(), RULES)
def test_moves_lower_the_mean_price_and_allocate_all_sold_capacity(
    given, rules
):
    found = planner.plan(given, 0.0, rules)
    if not found.blocked:
        before, now = found.level
        assert now <= before
        if found.moves:
            assert now < before * (1 - rules.margin)
    for name in given.sold:
        column = given.cloud.classes.index(name)
        for n, each in enumerate(given.cloud.providers):
            shares = [
                stand.share[name]
                for stand in found.stands.values()
                if stand.host == each.name
            ]
            if shares:
                has = given.cloud.inventory.capacity[n, column]
                assert np.isclose(sum(shares), has)
                # Nobody starves.
                assert min(shares) > 0 or not has


@hypothesis.given(markets(), RULES)
def test_a_fixed_server_of_a_market_stays(given, rules):
    found = planner.plan(given, 0.0, rules)
    moved = {each.server for each in found.moves}
    for each in given.cloud.running:
        if given.bids[each.uuid].demand is None or each.group:
            assert each.uuid not in moved
    zone = {each.name: each.zone for each in given.cloud.providers}
    takes = {each.name: each.takes for each in given.cloud.providers}
    for move in found.moves:
        wanted = given.bids[move.server].demand
        assert takes[move.target]
        assert not wanted.zone or zone[move.target] == wanted.zone
