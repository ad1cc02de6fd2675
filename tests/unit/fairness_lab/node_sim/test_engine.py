# SPDX-License-Identifier: Apache-2.0


"""Rounds of a simulated cloud."""

import dataclasses

import numpy as np
import pytest

from fairness_lab.node_sim import engine
from fairness_lab.scenario import cloud as cloud_module
from fairness_lab.scenario import values as scenario_module
from nova_fairness.decide import policy as policy_base
from nova_fairness.model import resources
from tests.unit.fairness_lab.node_sim import build

CONTROL = resources.CONTROLS.index(resources.ResourceControl.CPU)


def rounds(cloud, setup):
    """Every round, copied."""
    found = []
    for moment in engine.simulate(cloud, setup):
        copies = {
            field.name: np.array(getattr(moment, field.name))
            for field in dataclasses.fields(moment)
            if isinstance(getattr(moment, field.name), np.ndarray)
        }
        found.append(dataclasses.replace(moment, **copies))
    return found


def last_parts(cloud, setup):
    used = build.by_user(cloud, rounds(cloud, setup)[-1])
    return (used / used.sum()).tolist()


def test_without_agents_all_vms_get_equal_cpu_time():
    cloud = build.cloud(build.ONE_NODE)
    assert last_parts(cloud, build.setup(policy='none')) == pytest.approx(
        [2 / 3, 1 / 3]
    )


def test_with_agents_every_user_gets_the_same():
    cloud = build.cloud(build.ONE_NODE)
    assert last_parts(cloud, build.setup()) == pytest.approx([0.5, 0.5], 0.05)


def test_quota_weights_count():
    cloud = build.cloud(
        build.ONE_NODE, user_weight={'user1': 1.0, 'user2': 2.0}
    )
    assert last_parts(cloud, build.setup()) == pytest.approx(
        [1 / 3, 2 / 3], 0.05
    )


def test_use_on_one_node_counts_on_another():
    cloud = build.cloud(build.TWO_NODES, nodes=('n0', 'n1'))
    moment = rounds(cloud, build.setup())[-1]
    used = build.by_user(cloud, moment) / scenario_module.SPEED
    assert used == pytest.approx([0.7, 0.7, 0.4], 0.05)


def test_a_repeated_simulation_is_bitwise_equal():
    cloud = build.cloud(build.TWO_NODES, nodes=('n0', 'n1'))
    first, second = (rounds(cloud, build.setup()) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.received, other.received)
        np.testing.assert_array_equal(one.weights, other.weights)


def nowhere(nodes):
    shape = (nodes, nodes)
    return cloud_module.Links(np.zeros(shape, dtype=np.int64), np.zeros(shape))


def test_links_without_delay_equal_no_links():
    cloud = build.cloud(build.TWO_NODES, nodes=('n0', 'n1'))
    shared = rounds(cloud, build.setup())
    linked = rounds(cloud, build.setup(links=nowhere(2)))
    for one, other in zip(shared, linked, strict=True):
        np.testing.assert_allclose(one.weights, other.weights, rtol=1e-12)
        np.testing.assert_allclose(one.heaviness, other.heaviness, rtol=1e-12)


def test_agents_without_reports_know_only_their_own_node():
    cloud = build.cloud(build.TWO_NODES, nodes=('n0', 'n1'))
    links = dataclasses.replace(nowhere(2), loss=np.ones((2, 2)))
    moment = rounds(cloud, build.setup(links=links))[-1]
    used = build.by_user(cloud, moment) / scenario_module.SPEED
    assert used == pytest.approx([0.5, 0.9, 0.4], 0.05)


def test_late_reports_are_used_when_they_come():
    cloud = build.cloud(build.TWO_NODES, nodes=('n0', 'n1'), rounds=40)
    links = dataclasses.replace(nowhere(2), delay=np.full((2, 2), 3))
    setup = build.setup(links=links, view_max_age=6.0)
    alone = dataclasses.replace(links, loss=np.ones((2, 2)))
    late = rounds(cloud, setup)
    deaf = rounds(cloud, dataclasses.replace(setup, links=alone))
    for before, other in zip(late[:3], deaf[:3], strict=True):
        np.testing.assert_array_equal(before.weights, other.weights)
    assert (late[3].weights != deaf[3].weights).any()
    used = build.by_user(cloud, late[-1]) / scenario_module.SPEED
    assert used == pytest.approx([0.7, 0.7, 0.4], 0.08)


def test_a_node_that_falls_silent_is_forgotten():
    silent = np.zeros((20, 2), dtype=bool)
    silent[10:, 1] = True
    cloud = build.cloud(build.TWO_NODES, nodes=('n0', 'n1'), silent=silent)
    found = rounds(cloud, build.setup(view_max_age=2.0))
    known = build.by_user(cloud, found[9]) / scenario_module.SPEED
    assert known == pytest.approx([0.7, 0.7, 0.4], 0.05)
    forgotten = build.by_user(cloud, found[-1]) / scenario_module.SPEED
    assert forgotten == pytest.approx([0.5, 0.9, 0.4], 0.05)


def test_a_node_that_is_cut_off_knows_itself_only():
    cut = np.zeros((20, 2), dtype=bool)
    cut[10:, 0] = True
    cloud = build.cloud(build.TWO_NODES, nodes=('n0', 'n1'), cut=cut)
    found = rounds(cloud, build.setup(view_max_age=2.0))
    assert build.by_user(cloud, found[9])[0] == pytest.approx(700, 0.05)
    assert build.by_user(cloud, found[-1])[0] == pytest.approx(500, 0.05)


def test_agents_with_shifted_rounds_reach_the_same_result():
    cloud = build.cloud(build.TWO_NODES, nodes=('n0', 'n1'))
    setup = build.setup(ticks=4, phase=np.array([1, 3]))
    moment = rounds(cloud, setup)[-1]
    used = build.by_user(cloud, moment) / scenario_module.SPEED
    assert used == pytest.approx([0.7, 0.7, 0.4], 0.05)


def busy(when, vm, node):
    return cloud_module.VmChange(when, vm, node, build.wants(cpu_time=np.inf))


def changing(*changes):
    story = build.story(build.ONE_NODE, nodes=('n0', 'n1'))
    return dataclasses.replace(
        story, changes=(*story.changes, *changes)
    ).cloud()


def test_a_vm_that_ends_leaves_its_part_to_the_others():
    cloud = changing(cloud_module.VmChange(5, 'light', '', build.wants()))
    found = rounds(cloud, build.setup(policy='none'))
    assert found[4].received[:, build.CPU].tolist() == pytest.approx(
        [1000 / 3] * 3
    )
    assert found[5].changed
    assert not found[6].changed
    assert found[5].node.tolist() == [0, 0, cloud_module.ABSENT]
    assert found[5].received[:, build.CPU].tolist() == [500, 500, 0]
    assert found[5].demand[2].tolist() == [0.0] * build.WIDTH


def test_a_vm_that_moves_begins_again():
    cloud = changing(busy(8, 'light', 'n1'))
    found = rounds(cloud, build.setup())
    assert found[7].weights[2, CONTROL] > 1.2
    assert found[8].weights[2, CONTROL] == 1.0
    assert found[8].received[:, build.CPU].tolist() == pytest.approx(
        [500, 500, 1000]
    )


def test_fast_cpus_do_more_work():
    story = build.story((('vm', 'user', 'n0', 1.0),))
    fast = dataclasses.replace(
        story, nodes=(scenario_module.NodeSpec('n0', cpus=2.0, speed=1.5),)
    ).cloud()
    moment = rounds(fast, build.setup(policy='none'))[-1]
    assert moment.received[0, build.CPU] == 1500
    assert moment.capacity[0, build.CPU] == 3000


def test_only_controls_that_are_steered_have_an_effect():
    cloud = build.cloud(build.ONE_NODE)
    setup = build.setup(controls=(resources.ResourceControl.DISK,))
    assert last_parts(cloud, setup) == pytest.approx([2 / 3, 1 / 3])


def test_weights_stay_within_the_ratio():
    crowd = [(f'many-{n:02d}', 'crowd', 'n0', np.inf) for n in range(30)]
    cloud = build.cloud([*crowd, ('one', 'loner', 'n0', np.inf)])
    found = rounds(cloud, build.setup(max_weight_ratio=5.0))
    weights = found[-1].weights[:, CONTROL]
    assert weights.max() / weights.min() == pytest.approx(5.0)


def test_the_arrays_of_a_simulated_moment_are_read_only():
    cloud = build.cloud(build.ONE_NODE)
    moment = next(engine.simulate(cloud, build.setup()))
    with pytest.raises(ValueError, match='read-only'):
        moment.received[0] = 1.0


def test_a_policy_asked_at_once_and_node_by_node_says_the_same():
    # The plain contract of the same policy is what an agent calls.
    cloud = build.cloud(build.TWO_NODES, nodes=('n0', 'n1'))
    setup = build.setup()

    class Plain(policy_base.Policy):
        description = 'asks the other'

        def __call__(self, *arguments):
            return setup.policy_plugin(*arguments)

    plain = dataclasses.replace(setup, policy_plugin=Plain())
    for one, other in zip(
        rounds(cloud, setup), rounds(cloud, plain), strict=True
    ):
        np.testing.assert_allclose(one.weights, other.weights, rtol=1e-9)


def test_a_vm_too_large_for_the_range_gets_the_part_of_its_user():
    vms = [('large', 'user1', 'n0', 240.0)]
    vms += [(f'small-{n}', 'user2', 'n0', 1.0) for n in range(128)]
    plain = build.cloud(vms)
    vcpus = np.array([240] + [1] * 128)
    cpus = np.full(1, 192.0)
    large = dataclasses.replace(
        plain,
        vcpus=vcpus,
        cpus=cpus,
        capacity=plain.capacity * np.where(np.arange(6) == build.CPU, 192, 1),
    )
    parts = last_parts(large, build.setup(policy='foresight'))
    assert parts == pytest.approx([0.5, 0.5], 0.01)
