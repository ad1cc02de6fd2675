# SPDX-License-Identifier: Apache-2.0

import dataclasses

import numpy as np
import pytest

from fairness_lab.border_sim import border_policies
from fairness_lab.border_sim import engine
from fairness_lab.border_sim import world as world_module
from fairness_lab.queue_sim import engine as queue_engine
from nova_fairness import plugins
from nova_fairness.model import border as border_module
from nova_fairness.planners.border import demand
from tests.unit.fairness_lab.border_sim import small_worlds

ONE, TWO, WHOLE = small_worlds.ONE, small_worlds.TWO, small_worlds.WHOLE
S = border_module.BorderSide
FIFO = plugins.load_order('fifo')


def run(world, mover='demand'):
    """The run at its end, and its moments."""
    if mover == 'demand':
        mover = border_policies.DemandMover(world.rules)
    border = engine.BorderRun(world, mover, FIFO)
    moments = list(border.moments())
    assert border.hosts_on_both_sides == 0
    return border, moments


def hosts_of_cloud(moments):
    return {each.at_s: each.hosts[S.CLOUD] for each in moments}


def test_a_host_moves_to_the_side_with_demand():
    world = small_worlds.world(
        jobs=[(0, 0, WHOLE, 95)],
        requests=[(50, 0, WHOLE, 100)],
        limits=[95],
    )
    border, moments = run(world)
    seen = hosts_of_cloud(moments)
    # Asked, accepted, closed, empty: it arrives after the job's end.
    assert seen[100.0] == 0
    assert seen[150.0] == 1
    assert border.cloud.killed == 0
    assert border.cloud.fate.tolist() == [queue_engine.Fate.ENDED]


def test_a_host_takes_nothing_until_it_has_booted():
    requests = [(0, 0, WHOLE, 100)]
    starts = []
    for boot_s in (0.0, 200.0):
        world = small_worlds.world(requests=requests, boot_s=boot_s)
        border, _ = run(world)
        starts.append(border.cloud.started_s[0])
    assert starts[1] - starts[0] == 200


def test_no_host_moves_without_demand():
    world = small_worlds.world(
        jobs=[(0, 0, ONE, 50), (300, 0, TWO, 50)],
        requests=[(5, 0, ONE, 900), (400, 1, ONE, 100)],
        hosts=4,
        cloud_hosts_at_start=2,
    )
    border, moments = run(world)
    assert border.arrived == []
    assert {each.moving for each in moments} == {0}


def full(wants_jobs):
    """A cloud of two hosts, one server on each; jobs come for one host."""
    return small_worlds.world(
        jobs=[(100, 0, WHOLE, 50)] if wants_jobs else [],
        requests=[(0, 0, TWO, 800), (0, 0, TWO, 35), (20, 0, TWO, 800)],
        hosts=2,
        cloud_hosts_at_start=2,
        rules=demand.BorderRules(patience_s=0, stay_s=0, ttl_s=500),
    )


def test_servers_move_while_they_run_and_their_host_goes():
    border, moments = run(full(wants_jobs=True))
    assert border.cloud.moved == 1
    assert border.cloud.killed == 0
    # Nothing of their work was lost, and they end when they would have.
    assert border.cloud.core_seconds == 2 * 800 * 2 + 2 * 35
    assert not border.cloud.lost_core_seconds.any()
    assert border.batch.started_s[0] < 200
    assert min(hosts_of_cloud(moments).values()) == 1


def test_preemptible_servers_get_notice_and_wait_again():
    world = dataclasses.replace(
        small_worlds.world(
            jobs=[(100, 0, WHOLE, 50)],
            requests=[(0, 1, TWO, 400)],
            preemptible=(1,),
            cloud_hosts_at_start=1,
            notice_s=30.0,
        )
    )
    border, moments = run(world)
    assert border.cloud.killed == 0
    assert border.cloud.lost_core_seconds.sum() > 0
    assert border.batch.started_s[0] >= 130
    # Nothing moves back for it: it has what nobody else wants.
    assert hosts_of_cloud(moments)[1000.0] == 0


def test_remaining_servers_are_ended_after_the_time_to_live():
    office = world_module.OperatorSettings((0.05,), 60.0)
    world = small_worlds.world(
        jobs=[(100, 0, WHOLE, 50), (101, 0, WHOLE, 50)],
        requests=[(0, 0, TWO, 900)],
        cloud_hosts_at_start=1,
        operator=office,
    )
    border, _ = run(
        world, border_policies.Operator(office, world.cloud_hosts_at_start)
    )
    # It looked at 180 s, when two hosts' worth waits; a half of it is one.
    assert border.cloud.killed == 1
    assert border.cloud.lost_core_seconds.sum() == pytest.approx(
        2 * 240, abs=2 * 40
    )
    assert border.batch.started_s[0] > 240


def both_ask():
    """More than can be had, of lives that end one after the other."""
    return [(0, n % 2, ONE, 25 + 10 * (n % 4)) for n in range(500)]


def part_of_first(world, order='fifo'):
    """Of all use in the mean, from two half-lives on."""
    border = engine.BorderRun(world, None, plugins.load_order(order))
    parts = [
        moment.use_by_group.sum(axis=1)
        for moment in border.moments()
        if moment.at_s >= 2 * world.cloud.half_life_s
    ]
    return np.mean([each[0] / each.sum() for each in parts])


@pytest.mark.parametrize(('adjust_s', 'part'), [(None, 2 / 3), (10.0, 1 / 2)])
def test_shares_of_batch_count_use_of_the_cloud(adjust_s, part):
    """The first has the cloud to itself, and asks for half of batch."""
    world = small_worlds.world(
        jobs=both_ask(),
        requests=[(0, 0, WHOLE, 1000)],
        hosts=3,
        cloud_hosts_at_start=1,
        adjust_s=adjust_s,
        half_life_s=200.0,
    )
    assert part_of_first(world) == pytest.approx(part, abs=0.03)


@pytest.mark.parametrize(('adjust_s', 'part'), [(None, 2 / 3), (10.0, 1 / 2)])
def test_the_queue_counts_use_of_batch(adjust_s, part):
    """The same the other way round."""
    world = small_worlds.world(
        jobs=[(0, 0, ONE, 40) for n in range(150)],
        requests=both_ask(),
        hosts=3,
        cloud_hosts_at_start=2,
        adjust_s=adjust_s,
        half_life_s=200.0,
    )
    found = part_of_first(world, 'fair_tree')
    assert found == pytest.approx(part, abs=0.03)
