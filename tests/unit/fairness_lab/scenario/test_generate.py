# SPDX-License-Identifier: Apache-2.0


"""Clouds that are drawn."""

import dataclasses

import numpy as np
import pytest

from fairness_lab.scenario import cloud as cloud_module
from fairness_lab.scenario import demand as demand_module
from fairness_lab.scenario import generate
from fairness_lab.scenario import recipes
from tests.unit.fairness_lab.node_sim import build


def draw(rounds=50, **recipe):
    return generate.generate(
        recipes.CloudRecipe(**recipe), 'drawn', 'a test', 10.0, rounds
    )


def levels(cloud, rounds):
    """Where each VM is and what part of its CPUs it wants, by round."""
    node = np.full(len(cloud.vms), cloud_module.ABSENT)
    level = np.zeros(len(cloud.vms))
    every = cloud.changes
    found = []
    for number in range(rounds):
        now = every.round == number
        node[every.vm[now]] = every.node[now]
        level[every.vm[now]] = (
            every.demand[now, build.CPU] / cloud.vcpus[every.vm[now]]
        )
        found.append((node.copy(), np.where(node >= 0, level, 0.0)))
    return [np.array(part) for part in zip(*found, strict=True)]


def same(first, second):
    for field in dataclasses.fields(first):
        one, other = getattr(first, field.name), getattr(second, field.name)
        if dataclasses.is_dataclass(one):
            same(one, other)
        elif isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other)
        else:
            assert one == other


def test_the_same_seed_draws_the_same_cloud():
    recipe = {
        'demand': recipes.DemandPattern.MIXED,
        'churn': 0.05,
        'moves': 0.05,
        'resources': ('cpu_time', 'disk_read'),
        'coupled': 0.5,
    }
    same(draw(seed=3, **recipe), draw(seed=3, **recipe))
    with pytest.raises(AssertionError):
        same(draw(seed=3, **recipe), draw(seed=4, **recipe))


def test_a_chain_links_every_node_with_the_next():
    members = generate.users_of_nodes(
        recipes.CloudRecipe(graph=recipes.Graph.CHAIN, nodes=4)
    )
    assert [users.tolist() for users in members] == [
        [0, 1],
        [1, 2],
        [2, 3],
        [3, 4],
    ]


def test_a_star_has_one_user_everywhere():
    members = generate.users_of_nodes(
        recipes.CloudRecipe(graph=recipes.Graph.STAR, nodes=3)
    )
    assert [users.tolist() for users in members] == [[0, 1], [0, 2], [0, 3]]


def test_a_random_user_is_on_as_many_nodes_as_said():
    recipe = recipes.CloudRecipe(nodes=40, users=100, degree=5, seed=1)
    members = generate.users_of_nodes(recipe)
    of_users = generate.nodes_of_users(members, 100)
    assert all(len(nodes) >= 5 for nodes in of_users)
    assert sum(map(len, of_users)) <= 505
    # 100 x 5 / 40 nodes; binomial with a standard deviation of 3.3.
    counts = [len(users) for users in members]
    assert np.mean(counts) == pytest.approx(12.5, abs=0.2)
    assert 2.0 < np.std(counts) < 4.6


def test_nodes_are_as_full_as_said():
    cloud = draw(nodes=7, vms_per_node=9, users=5, churn=0.1)
    node, _ = levels(cloud, 50)
    for number in range(50):
        there = node[number][node[number] >= 0]
        assert np.bincount(there, minlength=7).tolist() == [9] * 7


def test_lifetimes_are_geometrically_distributed():
    cloud = draw(rounds=400, nodes=20, vms_per_node=20, churn=0.05)
    node, _ = levels(cloud, 400)
    lives = (node >= 0).sum(axis=0)
    ended = node[-1] < 0
    # Every twentieth round; those that are cut off at the end are shorter.
    assert lives[ended].mean() == pytest.approx(20, rel=0.1)
    assert len(cloud.vms) == pytest.approx(400 * (1 + 400 * 0.05), rel=0.1)


def test_vms_move_among_the_nodes_of_their_users():
    recipe = recipes.CloudRecipe(
        nodes=10, users=6, degree=3, moves=0.1, seed=2
    )
    cloud = generate.generate(recipe, 'drawn', 'a test', 10.0, 60)
    allowed = generate.nodes_of_users(generate.users_of_nodes(recipe), 6)
    node, _ = levels(cloud, 60)
    for row, user in enumerate(cloud.user_of_vm):
        assert set(node[:, row]) <= set(allowed[user])
    moved = (node[1:] != node[:-1]).mean()
    # One of three or a little more is the node where it is.
    assert 0.05 < moved < 0.08


def test_bursts_and_pauses_last_as_long_as_said():
    cloud = draw(
        rounds=2000,
        nodes=5,
        vms_per_node=40,
        demand=recipes.DemandPattern.BURSTY,
        on=10.0,
        off=30.0,
    )
    _, level = levels(cloud, 2000)
    assert set(np.unique(level)) == {0.02, 1.0}
    # Whole rounds make both half a round longer.
    assert (level == 1.0).mean() == pytest.approx(10.5 / 41, rel=0.05)
    begins = ((level[1:] == 1.0) & (level[:-1] != 1.0)).sum()
    lasting = (level[1:] == 1.0).sum() / begins
    assert lasting == pytest.approx(10.5, rel=0.06)


def test_jobs_of_cron_come_once_in_a_period_each_at_its_own_time():
    cloud = draw(
        60, demand=recipes.DemandPattern.CRON, period=12, length=3, churn=0.02
    )
    node, level = levels(cloud, 60)
    there = node >= 0
    busy = (level == 1.0) & there
    assert (np.isin(level, [1.0, 0.02]) | ~there).all()
    always = there.all(axis=0)
    assert always.any()
    assert (busy[:, always].sum(axis=0) == 15).all()
    shifted = busy[12:, always] == busy[:-12, always]
    assert shifted.all()
    assert len(np.unique(busy[:12, always].argmax(axis=0))) > 5


def test_loops_are_as_likely_as_each_other_and_coupled_vms_are_closed():
    every = tuple(demand_module.CpuLoad)
    cloud = draw(
        nodes=30, vcpus=(1.0, 8.0), loop=every, coupled=0.25, threads=4
    )
    found, together = cloud.loops, cloud.coupled.any(axis=1)
    assert not (found.open & together).any()
    assert (found.threads[together] == 1).all()
    assert found.open[~together].mean() == pytest.approx(1 / 3, abs=0.1)
    pools = found.threads[cloud.vcpus == 8] == 4
    assert pools.mean() == pytest.approx(0.25, abs=0.1)


def test_a_part_of_the_vms_is_idle():
    cloud = draw(
        nodes=50, vms_per_node=40, demand=recipes.DemandPattern.IDLE, idle=0.7
    )
    _, level = levels(cloud, 1)
    assert (level == 0.02).mean() == pytest.approx(0.7, abs=0.03)
    assert ((level == 0.02) | (level == 1.0)).all()


def test_sizes_have_a_heavy_tail():
    recipe = {'demand': recipes.DemandPattern.HEAVY_TAILED, 'tail': 1.0}
    cloud = draw(nodes=50, vms_per_node=100, **recipe)
    _, level = levels(cloud, 1)
    # Pareto of shape 1: P(more than x times the least) is 1 / x.
    for times in (2, 5, 10):
        part = (level > 0.05 * times).mean()
        assert part == pytest.approx(1 / times, rel=0.12)
    assert level.max() == 1.0


def test_owners_follow_the_zipf_distribution():
    cloud = draw(
        graph=recipes.Graph.CHAIN, nodes=200, vms_per_node=60, skew=1.0
    )
    home = cloud.changes.node[np.argsort(cloud.changes.vm)]
    first = (cloud.user_of_vm == home).mean()
    assert first == pytest.approx(2 / 3, abs=0.02)


def test_pressure_says_how_much_too_much_is_wanted():
    cloud = draw(
        nodes=30,
        vms_per_node=40,
        resources=('disk_read',),
        pressure=3.0,
    )
    wanted = cloud.changes.demand[:, build.READ].sum()
    assert wanted / cloud.capacity[:, build.READ].sum() == pytest.approx(
        3.0, rel=0.03
    )
    assert (cloud.changes.demand[:, build.CPU] == 0).all()


def test_coupled_vms_couple_wants_of_time_shared_resources():
    cloud = draw(
        nodes=30,
        vms_per_node=40,
        resources=('cpu_time', 'disk_read', 'memory'),
        coupled=0.4,
    )
    assert cloud.coupled[:, build.CPU].mean() == pytest.approx(0.4, abs=0.05)
    np.testing.assert_array_equal(
        cloud.coupled[:, build.CPU], cloud.coupled[:, build.READ]
    )
    assert not cloud.coupled[:, build.MEMORY].any()
    assert not cloud.coupled[:, build.WRITTEN].any()


def test_a_track_gives_the_last_value():
    track = generate.Track.of(
        np.array([1, 0, 0]), np.array([0, 4, 0]), np.array([7.0, 9.0, 8.0])
    )
    found = track.at(np.array([0, 0, 0, 1]), np.array([0, 3, 4, 9]))
    assert found.tolist() == [8.0, 8.0, 9.0, 7.0]
