# SPDX-License-Identifier: Apache-2.0

import hypothesis
from hypothesis import strategies
from hypothesis.extra import numpy as arrays
import numpy as np

from nova_fairness.measure import endowment
from nova_fairness.model import resources

RESOURCES = resources.RESOURCES
AMOUNTS = strategies.just(0.0) | strategies.floats(1e-3, 1e15)


def endowed(vcpus, memory, node, *supplies):
    return endowment.endowments(
        np.array(vcpus),
        np.array(memory),
        np.array(node, dtype=np.intp),
        np.array([RESOURCES.vector(**supply) for supply in supplies]),
    )


def column(name):
    return RESOURCES.index(name)


def test_cpu_follows_the_vcpus():
    # Section 4.1 of the paper: three of fifteen vCPUs are a fifth.
    got = endowed([3, 12], [1, 1], [0, 0], {'cpu_time': 100})
    assert got[:, column('cpu_time')].tolist() == [20, 80]


def test_disk_and_network_are_split_equally():
    supply = {'disk_read': 8, 'disk_written': 4, 'net_received': 2}
    got = endowed([1, 7], [1, 9], [0, 0], supply | {'net_sent': 6})
    expected = RESOURCES.vector(
        disk_read=4, disk_written=2, net_received=1, net_sent=3
    )
    expected[column('memory')] = 0
    np.testing.assert_array_equal(got, [expected, expected])


def test_memory_is_that_of_the_flavor():
    got = endowed([1, 1], [10, 30], [0, 0], {'memory': 100})
    assert got[:, column('memory')].tolist() == [10, 30]


def test_overcommitted_memory_is_divided_in_proportion():
    got = endowed([1, 1], [50, 150], [0, 0], {'memory': 100})
    assert got[:, column('memory')].tolist() == [25, 75]


def test_each_node_is_divided_by_itself():
    got = endowed(
        [1, 1, 1],
        [1, 1, 1],
        [1, 0, 1],
        {'cpu_time': 10},
        {'cpu_time': 40},
    )
    assert got[:, column('cpu_time')].tolist() == [20, 10, 20]


def test_node_without_vms_and_cloud_without_vms():
    assert endowed([1], [1], [1], {}, {'cpu_time': 5}).shape[0] == 1
    assert endowed([], [], [], {'cpu_time': 5}).shape == (0, len(RESOURCES))


def test_new_resource_is_split_equally_without_a_rule():
    registry = resources.ResourceRegistry(
        (
            *RESOURCES,
            resources.Resource(
                'gpu_time', 'seconds', resources.Sharing.TIME, None
            ),
        )
    )
    got = endowment.endowments(
        np.array([1, 3]),
        np.array([1, 1]),
        np.array([0, 0]),
        np.full((1, len(registry)), 8.0),
        registry,
    )
    assert got[:, registry.index('gpu_time')].tolist() == [4, 4]


@hypothesis.given(strategies.data())
def test_endowments_of_a_node_never_exceed_its_supply(data):
    count = data.draw(strategies.integers(1, 12))
    nodes = data.draw(strategies.integers(1, 4))

    def whole(low, high):
        return data.draw(
            arrays.arrays(
                np.int64, count, elements=strategies.integers(low, high)
            )
        )

    node = whole(0, nodes - 1)
    supplies = data.draw(
        arrays.arrays(
            np.float64,
            (nodes, len(RESOURCES)),
            elements=AMOUNTS,
        )
    )
    got = endowment.endowments(whole(1, 64), whole(1, 2**40), node, supplies)
    assert np.isfinite(got).all()
    assert (got >= 0).all()
    for index in range(nodes):
        total = got[node == index].sum(axis=0)
        assert (total <= supplies[index] * (1 + 1e-12)).all()
