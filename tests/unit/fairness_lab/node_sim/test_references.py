# SPDX-License-Identifier: Apache-2.0


"""The allocators of earlier work."""

import numpy as np
import pytest

from fairness_lab.node_sim import model
from fairness_lab.node_sim import pace_levels
from fairness_lab.node_sim import references
from tests.unit.fairness_lab.node_sim import build


def request(capacity, demand, endowment):
    """VMs of different users on one node."""
    demand = np.array(demand, dtype=float)
    return model.RoundDemand(
        node=np.zeros(len(demand), dtype=np.intp),
        user=np.arange(len(demand)),
        demand=demand,
        coupled=np.zeros(demand.shape, dtype=bool),
        endowment=np.array(endowment, dtype=float),
        capacity=np.array([capacity], dtype=float),
        users=len(demand),
    )


def cpus(name, capacity, demand, endowment):
    asked = request(
        build.wants(cpu_time=capacity),
        [build.wants(cpu_time=amount) for amount in demand],
        [build.wants(cpu_time=amount) for amount in endowment],
    )
    return references.ALLOCATORS[name](asked)[:, build.CPU].tolist()


SINGLE = {
    'there is enough': (10, [1, 2], [5, 5], [1, 2]),
    'equal endowments': (10, [9, 9], [5, 5], [5, 5]),
    'each is as far below its endowment': (8, [9, 9], [6, 4], [5, 3]),
    'each is as far above its endowment': (12, [9, 9], [6, 4], [7, 5]),
    # One leaves 3 of its 5, which the other two share evenly beyond theirs.
    'amounts that one leaves go to the others': (
        15,
        [2, 9, 9],
        [5, 5, 5],
        [2, 6.5, 6.5],
    ),
}


@pytest.mark.parametrize('name', ['LEON', 'TARG', 'REAL', 'SIMP'])
@pytest.mark.parametrize(
    ('capacity', 'demand', 'endowment', 'expected'),
    SINGLE.values(),
    ids=SINGLE,
)
def test_references_divide_a_single_resource_as_by_hand(
    name, capacity, demand, endowment, expected
):
    got = cpus(name, capacity, demand, endowment)
    assert got == pytest.approx(expected, rel=1e-6)


@pytest.fixture
def many():
    """VMs on several nodes that want all resources."""
    rng = np.random.default_rng(3)
    node = np.repeat(np.arange(6), 7)
    capacity = rng.uniform(5, 15, (6, build.WIDTH))
    demand = rng.uniform(0, 5, (len(node), build.WIDTH))
    demand[rng.uniform(size=demand.shape) < 0.2] = 0.0
    return model.RoundDemand(
        node=node,
        user=node % 5,
        demand=demand,
        coupled=np.zeros(demand.shape, dtype=bool),
        endowment=capacity[node] / 7,
        capacity=capacity,
        users=5,
    )


@pytest.mark.parametrize('name', references.ALLOCATORS)
def test_no_vm_gets_more_than_it_wants_and_no_node_gives_too_much(name, many):
    got = references.ALLOCATORS[name](many)
    assert (got >= 0).all()
    assert (got <= many.demand * (1 + 1e-9)).all()
    used = np.zeros(many.capacity.shape)
    np.add.at(used, many.node, got)
    assert (used <= many.capacity * (1 + 1e-9)).all()


@pytest.mark.parametrize('name', ['TARG', 'SIMP'])
def test_resources_divided_for_themselves_are_not_left_idle(name, many):
    got = references.ALLOCATORS[name](many)
    used, wanted = np.zeros((2, *many.capacity.shape))
    np.add.at(used, many.node, got)
    np.add.at(wanted, many.node, many.demand)
    most = np.minimum(wanted, many.capacity)
    np.testing.assert_allclose(used, most, rtol=1e-5)


@pytest.mark.parametrize('name', ['LEON', 'LEON-Asset', 'LEON-DomRe'])
def test_the_proportional_reference_uses_one_pace_for_all_resources(
    name, many
):
    got = references.ALLOCATORS[name](many)
    for row, wanted in zip(got, many.demand, strict=True):
        paces = row[wanted > 0] / wanted[wanted > 0]
        assert np.ptp(paces) < 1e-9
    assert (got < many.demand * 0.99).any()


def test_vms_that_still_rise_together_are_equally_greedy():
    asked = request(
        build.wants(cpu_time=10, disk_read=10),
        [
            build.wants(cpu_time=9, disk_read=1),
            build.wants(cpu_time=9, disk_read=3),
        ],
        [build.wants(cpu_time=5, disk_read=5)] * 2,
    )
    consumers = pace_levels.Consumers(
        asked.node, asked.demand, asked.endowment, asked.capacity, np.zeros(2)
    )
    pace = pace_levels.paces_at_equal_level(consumers)
    first, second = pace_levels.greediness(consumers, pace)
    assert first == pytest.approx(second, abs=1e-9)
    assert (pace < 1).all()
    assert asked.demand[:, build.CPU] @ pace == pytest.approx(10)
