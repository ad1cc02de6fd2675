# SPDX-License-Identifier: Apache-2.0


"""Dividing all resources: coupled, independent, and memory."""

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from fairness_lab.node_sim import sharing
from tests.unit.fairness_lab.node_sim import build


def divide(capacity, demand, *, coupled=None, shares=None, protected=True):
    """Divide one node."""
    demand = np.array(demand, dtype=float)
    return sharing.divide(
        np.array([capacity], dtype=float),
        np.zeros(len(demand), dtype=np.intp),
        demand,
        np.zeros(demand.shape, dtype=bool) if coupled is None else coupled,
        np.ones(demand.shape) if shares is None else shares,
        protected,
    )


def cpu_and_disk(cpu, disk):
    return build.wants(cpu_time=cpu, disk_read=disk)


BOTH = cpu_and_disk(1, 1) > 0
NEITHER = np.zeros(build.WIDTH, dtype=bool)


def test_an_independent_vm_takes_its_part_of_each_resource():
    divided = divide(
        cpu_and_disk(2, 8), [cpu_and_disk(4, 4), cpu_and_disk(4, 4)]
    )
    assert divided.received[:, build.CPU].tolist() == [1, 1]
    assert divided.received[:, build.READ].tolist() == [4, 4]


def test_a_coupled_vm_is_as_fast_as_its_scarcest_resource():
    divided = divide(
        cpu_and_disk(2, 8),
        [cpu_and_disk(4, 4), cpu_and_disk(4, 4)],
        coupled=np.array([BOTH, NEITHER]),
    )
    assert divided.received[0, build.CPU] == pytest.approx(1)
    assert divided.received[0, build.READ] == pytest.approx(1)
    assert divided.received[1, build.READ] == pytest.approx(4)


def test_resources_that_a_coupled_vm_cannot_use_go_to_the_others():
    divided = divide(
        cpu_and_disk(2, 6),
        [cpu_and_disk(4, 4), cpu_and_disk(4, 8)],
        coupled=np.array([BOTH, NEITHER]),
    )
    assert divided.received[0, build.READ] == pytest.approx(1)
    assert divided.received[1, build.READ] == pytest.approx(5)


def test_a_coupled_vm_waits_only_for_its_bottleneck():
    divided = divide(
        cpu_and_disk(2, 8),
        [cpu_and_disk(4, 4), cpu_and_disk(4, 4)],
        coupled=np.array([BOTH, BOTH]),
    )
    assert divided.wished[:, build.CPU].tolist() == [4, 4]
    assert divided.received[:, build.CPU].tolist() == [1, 1]
    assert divided.wished[:, build.READ] == pytest.approx([1, 1])
    assert divided.received[:, build.READ] == pytest.approx([1, 1])


def test_a_coupled_vm_without_its_memory_is_slower():
    full = build.wants(cpu_time=1, memory=100)
    divided = divide(
        build.wants(cpu_time=4, memory=100),
        [full, full],
        coupled=np.array([full > 0, full > 0]),
    )
    assert divided.received[:, build.MEMORY].tolist() == [50, 50]
    assert divided.received[:, build.CPU] == pytest.approx([0.5, 0.5])


MEMORY = {
    'there is enough': (100, [30, 40], [1, 1], True, [30, 40]),
    'protected in proportion to shares': (
        90,
        [80, 80],
        [1, 2],
        True,
        [30, 60],
    ),
    'the small one keeps what it has': (90, [20, 100], [1, 1], True, [20, 70]),
    'unprotected all lose alike': (60, [20, 100], [5, 1], False, [10, 50]),
}


@pytest.mark.parametrize(
    ('capacity', 'wanted', 'shares', 'protected', 'expected'),
    MEMORY.values(),
    ids=MEMORY,
)
def test_memory(capacity, wanted, shares, protected, expected):
    weights = np.ones((2, build.WIDTH))
    weights[:, build.MEMORY] = shares
    divided = divide(
        build.wants(memory=capacity),
        [build.wants(memory=amount) for amount in wanted],
        shares=weights,
        protected=protected,
    )
    assert divided.received[:, build.MEMORY] == pytest.approx(expected)


@strategies.composite
def nodes(draw):
    """Draw a node of coupled and independent VMs."""
    count = draw(strategies.integers(1, 8))
    amounts = strategies.floats(0.0, 10.0).map(
        lambda amount: 0.0 if amount < 0.01 else amount
    )
    size = (count, build.WIDTH)
    demand = np.array(
        draw(
            strategies.lists(
                amounts,
                min_size=count * build.WIDTH,
                max_size=count * build.WIDTH,
            )
        )
    ).reshape(size)
    coupled = np.array(
        draw(
            strategies.lists(
                strategies.booleans(), min_size=count, max_size=count
            )
        )
    )
    shares = np.array(
        draw(
            strategies.lists(
                strategies.floats(0.05, 20), min_size=count, max_size=count
            )
        )
    )
    capacity = np.array(
        draw(
            strategies.lists(
                strategies.floats(0.5, 20.0),
                min_size=build.WIDTH,
                max_size=build.WIDTH,
            )
        )
    )
    return (
        capacity,
        demand,
        np.repeat(coupled[:, np.newaxis], build.WIDTH, 1),
        np.repeat(shares[:, np.newaxis], build.WIDTH, 1),
    )


@hypothesis.settings(deadline=None)
@hypothesis.given(nodes())
def test_coupled_use_stays_in_proportion_and_within_capacity(given):
    capacity, demand, coupled, shares = given
    divided = divide(capacity, demand, coupled=coupled, shares=shares)
    assert (divided.received <= demand * (1 + 1e-9)).all()
    assert (divided.received.sum(axis=0) <= capacity * (1 + 1e-9)).all()
    for row in np.flatnonzero(coupled[:, 0]):
        used = [
            got / wanted
            for got, wanted in zip(
                divided.received[row], demand[row], strict=True
            )
            if wanted > 0
        ]
        timed = used[:-1] if demand[row, build.MEMORY] > 0 else used
        if timed:
            assert max(timed) - min(timed) < 1e-9


@hypothesis.settings(deadline=None)
@hypothesis.given(nodes())
def test_a_vm_that_wants_more_is_held_up_by_a_resource_used_in_full(given):
    capacity, demand, coupled, shares = given
    demand = demand.copy()
    demand[:, build.MEMORY] = 0.0
    divided = divide(capacity, demand, coupled=coupled, shares=shares)
    left = capacity - divided.received.sum(axis=0)
    for row, column in np.argwhere(divided.received < demand * (1 - 1e-4)):
        if coupled[row, column]:
            mine = demand[row] > 0
            assert left[mine].min() <= 1e-3 * capacity.max()
        else:
            assert left[column] <= 1e-3 * capacity[column]
