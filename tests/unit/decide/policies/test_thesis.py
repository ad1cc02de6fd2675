# SPDX-License-Identifier: Apache-2.0

"""The original's golden values, and every place of every range."""

import numpy as np
import pytest

from nova_fairness.decide import legacy_priority
from nova_fairness.decide.policies import thesis
from nova_fairness.testing import policy_contract

CPU, BLKIO, NETWORK = (1, 100), (100, 1000), (1, 98)
MEMORY = (10 * 2**20, 64 * 2**20)


@pytest.mark.parametrize(
    ('heaviness', 'rank', 'cpu', 'blkio', 'network'),
    [
        (-1.0, -50, 100, 1000, 98),
        (-0.2, -25, 75, 775, 73),
        (0.0, 0, 50, 550, 49),
        (0.3, 15, 35, 415, 34),
        (1.0, 50, 1, 100, 1),
    ],
)
def test_golden_values_of_the_original(heaviness, rank, cpu, blkio, network):
    assert thesis.priority(heaviness) == rank
    place = thesis.WORST - rank
    assert legacy_priority.units(place, *CPU) == cpu
    assert legacy_priority.units(place, *BLKIO) == blkio
    assert legacy_priority.units(place, *NETWORK) == network


@pytest.mark.parametrize(
    ('heaviness', 'rank'),
    [(0.019, 0), (-0.007, 0), (0.999, 49), (-0.399, -49), (1e9, 50)],
)
def test_fractions_of_a_priority_are_cut_towards_zero(heaviness, rank):
    assert thesis.priority(heaviness) == rank


@pytest.mark.parametrize('ends', [CPU, BLKIO, NETWORK, MEMORY])
def test_a_weight_gives_back_every_priority_exactly(ends):
    smallest, largest = ends
    for rank in range(-50, 51):
        weight = legacy_priority.weight_of(50 - rank)
        expected = ((-rank + 50) * (largest - smallest)) // 100 + smallest
        assert 0 < weight <= 1
        assert (
            legacy_priority.units(legacy_priority.place_of(weight), *ends)
            == expected
        )


def test_every_control_of_a_vm_gets_the_same_place():
    weights, memory = thesis.ThesisPolicy()(
        policy_contract.situation_of([0.3, -1.0]),
        policy_contract.neutral(2),
        {},
        10.0,
    )
    assert memory == {}
    assert (weights == weights[:, :1]).all()
    assert [legacy_priority.place_of(w) for w in weights[:, 0]] == [35, 100]


def test_the_thesis_policy_ignores_history_and_contention():
    policy = thesis.ThesisPolicy()
    calm = policy_contract.situation_of([0.5, 0.1], contended=False)
    busy = policy_contract.situation_of([0.5, 0.1])
    neutral = policy_contract.neutral(2)
    np.testing.assert_array_equal(
        policy(calm, neutral * 0.2, {'x': 1}, 1.0)[0],
        policy(busy, neutral, {}, 10.0)[0],
    )


class TestThesisPolicy(policy_contract.PolicyContract):
    def make_policy(self):
        return thesis.ThesisPolicy()
