# SPDX-License-Identifier: Apache-2.0

"""How simulated VMs go on working."""

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from fairness_lab.measures import running
from fairness_lab.node_sim import engine
from fairness_lab.node_sim import loops
from fairness_lab.scenario import cloud as cloud_module
from fairness_lab.scenario import demand as demand_module
from fairness_lab.scenario import values as scenario_module
from nova_fairness.model import resources
from tests.unit.fairness_lab.node_sim import build

CPU = resources.CONTROLS.index(resources.ResourceControl.CPU)


def stalls(received, wanted, kind, cpus=1.0, vcpus=1.0, threads=1, share=1.0):
    """What VMs of one node wait."""
    count = len(received)
    tick = loops.Tick(
        node=np.zeros(count, dtype=np.intp),
        wanted=np.array(wanted, dtype=float),
        received=np.array(received, dtype=float),
        vcpus=np.full(count, vcpus),
        share=np.broadcast_to(np.array(share, dtype=float), count),
        cpus=np.array([cpus]),
    )
    found = cloud_module.loops(
        [demand_module.CpuLoad.OPEN, *[kind] * count],
        np.full(count + 1, threads),
        np.full(count + 1, vcpus).astype(int),
    )
    return tick.stall(found.of_rows(np.arange(1, count + 1))).tolist()


def test_closed_loops_need_no_arrays():
    kinds = [demand_module.CpuLoad.CLOSED] * 3
    assert cloud_module.loops(kinds, np.ones(3), np.ones(3)) is None


def test_a_queue_with_processor_sharing_is_not_empty_of_one_class_so_long():
    # Classes of 0.2, 0.3 and 0.3: one of 0.2 has something for 0.2 / 0.4 of
    # the time, and runs in 0.2 of it.
    load = [0.2, 0.3, 0.3]
    assert stalls(load, load, demand_module.CpuLoad.OPEN) == pytest.approx(
        [0.2 / 0.4 - 0.2, 0.3 / 0.5 - 0.3, 0.3 / 0.5 - 0.3]
    )


def test_an_open_loop_alone_does_not_wait():
    assert stalls([0.4], [0.4], demand_module.CpuLoad.OPEN) == [0.0]
    assert stalls([0.0], [0.0], demand_module.CpuLoad.OPEN) == [0.0]


def test_an_open_loop_that_lacks_something_has_work_all_the_time():
    assert stalls([0.6, 0.4], [0.9, 0.4], demand_module.CpuLoad.OPEN)[0] == (
        pytest.approx(0.4)
    )
    assert stalls([0.0, 1.0], [0.5, 1.0], demand_module.CpuLoad.OPEN)[0] == 1.0


def test_an_open_loop_that_has_all_it_wants_of_a_full_node_waits_its_turn():
    # The level is 0.6: with work all the time it would get as much.
    found = stalls([0.6, 0.4], [0.9, 0.4], demand_module.CpuLoad.OPEN)
    assert found[1] == pytest.approx(0.4 / 0.6 * 0.4)


@pytest.mark.parametrize(
    ('threads', 'vcpus', 'expected'),
    [(1, 2, 0.5), (2, 2, 0.75), (8, 2, 0.75), (4, 4, 0.9375)],
)
def test_waiting_of_any_thread_of_a_pool_counts(threads, vcpus, expected):
    found = stalls(
        [0.5], [1.0], demand_module.CpuLoad.POOL, 4.0, vcpus, threads
    )
    assert found == [expected]


parts = strategies.lists(
    strategies.tuples(
        strategies.floats(0, 1),
        strategies.floats(0, 1),
        strategies.sampled_from(demand_module.CpuLoad),
    ),
    min_size=1,
    max_size=6,
)


@hypothesis.given(parts, strategies.floats(0.5, 4))
def test_no_vm_runs_and_waits_for_more_than_all_of_the_time(rows, cpus):
    wanted = np.array([wish for wish, _, _ in rows])
    received = wanted * [part for _, part, _ in rows]
    received *= min(1.0, cpus / max(received.sum(), 1e-9))
    for kind in demand_module.CpuLoad:
        found = np.array(stalls(received, wanted, kind, cpus))
        assert (found >= 0).all()
        assert (found + received <= 1 + 1e-9).all()


def one_node_cloud(*vms, kind=demand_module.CpuLoad.OPEN, steps=(), **more):
    """A node of one CPU; steps: (round, VM, CPUs that it wants from then)."""
    made = build.story(
        [(name, name, 'n0', cpus) for name, cpus in vms], **more
    )
    later = tuple(
        cloud_module.VmChange(
            number, name, 'n0', build.wants(cpu_time=cpus, memory=1e6)
        )
        for number, name, cpus in steps
    )
    kinds = tuple(
        scenario_module.Vm(spec.name, spec.user, loop=kind)
        for spec in made.vms
    )
    return cloud_module.ScenarioDraft(
        **{**vars(made), 'vms': kinds, 'changes': (*made.changes, *later)}
    ).cloud()


def simulate_shares(cloud, policy='none'):
    agents = scenario_module.AgentSpec(
        metric='DominantShareMetric', policy=policy
    )
    made = cloud_module.Experiment(cloud, agents)
    setup = running.setup(made, running.RunOptions())
    return [
        moment.received[:, build.CPU].copy() / scenario_module.SPEED
        for moment in engine.simulate(cloud, setup)
    ]


def test_work_that_an_open_loop_could_not_do_is_done_later():
    cloud = one_node_cloud(
        ('a', 0.8), ('b', 0.6), steps=[(3, 'a', 0.2)], rounds=12
    )
    found = np.array(simulate_shares(cloud))
    # For three rounds 0.4 are too much; from the fourth on 0.2 are left.
    np.testing.assert_allclose(found[:3].sum(axis=1), 1.0)
    done = found.sum(axis=0)
    np.testing.assert_allclose(done, [3 * 0.8 + 9 * 0.2, 12 * 0.6])
    np.testing.assert_allclose(found[-1], [0.2, 0.6])


def test_a_closed_loop_does_not_catch_up():
    cloud = one_node_cloud(
        ('a', 0.8),
        ('b', 0.6),
        kind=demand_module.CpuLoad.POOL,
        steps=[(3, 'a', 0.2)],
        rounds=8,
    )
    np.testing.assert_allclose(simulate_shares(cloud)[3], [0.2, 0.6])


def test_a_vm_that_starts_again_has_nothing_left_to_do():
    backlog = loops.Backlog(cloud_module.Loops(np.array([True]), np.ones(1)))
    rows, demand = np.array([0]), build.wants(cpu_time=0.5)[np.newaxis]
    backlog.advance(rows, demand, demand * 0, 10.0)
    most = np.ones(1)
    assert backlog.add_backlog(rows, demand, most, 10.0)[0, build.CPU] == 1.0
    backlog.clear(rows)
    assert backlog.add_backlog(rows, demand, most, 10.0)[0, build.CPU] == 0.5


def test_references_divide_remaining_work_as_well():
    cloud = one_node_cloud(
        ('a', 0.8), ('b', 0.6), steps=[(3, 'a', 0.2)], rounds=12
    )
    found = np.array(simulate_shares(cloud, 'LEON'))
    np.testing.assert_allclose(found.sum(axis=0), [4.2, 7.2], rtol=1e-6)
