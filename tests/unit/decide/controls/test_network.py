# SPDX-License-Identifier: Apache-2.0

"""The link is divided by weight, and those who fill it want more."""

import numpy as np
import pytest

from nova_fairness.decide.controls import network
from nova_fairness.model import resources

LINK = 1e6


@pytest.mark.parametrize(
    ('weights', 'unsteered', 'tolerance', 'expected'),
    [
        ([1], 0, 0.0, [1_000_000]),
        ([1, 3], 0, 0.0, [250_000, 750_000]),
        ([1, 3], 0, 0.1, [225_000, 675_000]),
        ([1, 1], 2, 0.0, [250_000, 250_000]),
        ([20, 1, 1], 0, 0.0, [909_090, 45_454, 45_454]),
        ([1, 1e-9], 0, 0.0, [999_999, 1000]),
        ([], 0, 0.0, []),
        ([], 3, 0.0, []),
    ],
)
def test_rates_are_in_proportion_to_weights(
    weights, unsteered, tolerance, expected
):
    found = network.divide_link(
        np.array(weights, dtype=float), unsteered, LINK, tolerance
    )
    assert found.tolist() == expected


def test_the_sum_in_the_kernel_stays_within_the_link_with_any_skips():
    random = np.random.default_rng(7)
    tolerance = 0.05
    held = np.zeros(12, dtype=np.int64)
    for _ in range(200):
        weights = random.uniform(0.05, 1.0, size=12)
        wanted = network.divide_link(weights, 1, LINK, tolerance)
        written = np.abs(wanted - held) > tolerance * held
        held = np.where(written, wanted, held)
        assert held.sum() <= LINK


def test_weights_of_rates_are_the_weights_up_to_a_factor():
    weights = np.array([0.5, 1.0, 2.0, 4.0])
    rates = network.divide_link(weights, 0, LINK, 0.01)
    found = network.weights_of_rates(rates)
    assert found.mean() == pytest.approx(1.0)
    assert found / found[1] == pytest.approx(weights, rel=1e-4)


@pytest.mark.parametrize(
    ('held', 'expected'),
    [([0, 0], [1, 1]), ([0, 500, 1500], [1, 0.5, 1.5]), ([], [])],
)
def test_a_vm_without_a_class_has_a_neutral_weight(held, expected):
    found = network.weights_of_rates(np.array(held, dtype=np.int64))
    assert found.tolist() == expected


FULL, HALF = 1e6, 5e5


@pytest.mark.parametrize(
    ('carried', 'held', 'contended', 'wanting'),
    [
        # two that fill their classes
        ([[0, HALF], [0, HALF]], [5e5, 5e5], True, [True, True]),
        # the same in the other direction
        ([[HALF, 0], [HALF, 0]], [5e5, 5e5], True, [True, True]),
        # one in each direction: nobody is in anybody's way
        ([[FULL, 0], [0, FULL]], [5e5, 5e5], False, [True, True]),
        # a lone one borrows all
        ([[0, FULL], [0, 0]], [5e5, 5e5], False, [True, False]),
        # a quiet link
        ([[0, 3e5], [0, 3e5]], [5e5, 5e5], False, [False, False]),
        # one does not use up its class, the other borrows the rest
        ([[0, 2e5], [0, 8e5]], [5e5, 5e5], True, [False, True]),
        # twenty that each leave some of their class unused have as much
        (
            [[0, 3e4]] * 20 + [[0, 4e5]],
            [4.7e4] * 21,
            True,
            [False] * 20 + [True],
        ),
        # nobody has a class yet
        ([[0, 2e5], [0, 8e5]], [0, 0], True, [True, True]),
        ([[0, 1e4], [0, 9.9e5]], [0, 0], False, [False, True]),
        # what is less than nothing is no rival
        ([[0, 1e4], [0, 9.5e5]], [5e5, 5e5], False, [False, True]),
    ],
)
def test_a_vm_that_fills_a_class_of_a_busy_link_wants_more(
    carried, held, contended, wanting
):
    found = network.judge(
        np.array(carried, dtype=float) * 10,
        np.array(held, dtype=np.int64),
        LINK,
        10.0,
    )
    assert found[0] is contended
    assert found[1].tolist() == wanting


def test_a_link_without_vms_is_not_contended():
    found = network.judge(
        np.zeros((0, 2)), np.zeros(0, dtype=np.int64), LINK, 10.0
    )
    assert found[0] is False
    assert found[1].shape == (0,)


def test_moved_bytes_have_a_column_per_direction():
    amounts = resources.RESOURCES.vector(
        cpu_time=9, net_received=1, net_sent=2, memory=9
    )
    found = network.link_traffic(np.stack([amounts, 2 * amounts]))
    assert found.tolist() == [[1, 2], [2, 4]]
