# SPDX-License-Identifier: Apache-2.0

"""What rates buy, with the policy that follows them."""

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from nova_fairness.decide.policies import proportional
from nova_fairness.measure import metric
from nova_fairness.measure.metrics import spending_rate
from nova_fairness.model import resources
from nova_fairness.testing import policy_contract

METRIC = spending_rate.SpendingRate()
CPU = resources.RESOURCES.index('cpu_time')


def demands(vcpus, rates, node=None):
    """VMs of nodes that all are endowed with, by their VCPUs."""
    count = len(vcpus)
    endowment = np.zeros((count, len(resources.RESOURCES)))
    endowment[:, CPU] = vcpus
    return metric.Demands(
        usage=endowment.copy(),
        endowment=endowment,
        supply=endowment.sum(axis=0),
        node=np.zeros(count, np.intp) if node is None else np.array(node),
        user_count=1,
        rates=None if rates is None else np.array(rates, float),
    )


def test_a_vm_that_spends_the_worth_of_its_size_has_a_heaviness_of_0():
    found = METRIC.instances(demands([1, 2, 4], [10, 20, 40]))
    np.testing.assert_allclose(found, 0.0, atol=1e-12)


def test_a_vm_that_buys_e_times_its_endowment_has_minus_1():
    half = np.e / (np.e + 1)
    found = METRIC.instances(demands([1, 1], [np.e, 1.0]))
    np.testing.assert_allclose(found, np.log([0.5 / half, 0.5 / (1 - half)]))
    assert found[0] - found[1] == pytest.approx(-1.0)


def test_prices_are_those_of_a_node():
    found = METRIC.instances(demands([1, 1, 1, 1], [1, 3, 7, 7], [0, 0, 1, 1]))
    np.testing.assert_allclose(found[2:], 0.0, atol=1e-12)
    assert found[0] > 0 > found[1]


def test_without_rates_all_vms_of_a_node_spend_as_much():
    small, large = METRIC.instances(demands([1, 3], None))
    assert large - small == pytest.approx(np.log(3))


def test_each_vm_is_treated_by_its_own_rate():
    own = np.array([0.3, -0.2])
    np.testing.assert_array_equal(METRIC.combine(own + 7, own), own)


@given(
    st.lists(
        st.tuples(st.integers(1, 64), st.floats(1e-3, 1e6)),
        min_size=1,
        max_size=9,
    )
)
def test_units_are_as_rates(vms):
    vcpus, rates = (np.array(each, float) for each in zip(*vms, strict=True))
    heavy = METRIC.instances(demands(vcpus, rates))
    weights, memory = proportional.ProportionalPolicy()(
        policy_contract.situation_of(heavy),
        policy_contract.neutral(len(vms)),
        {},
        10.0,
    )
    assert memory == {}
    assert (weights == weights[:, :1]).all()
    units = weights[:, 0] * vcpus
    np.testing.assert_allclose(
        units / units.sum(), rates / rates.sum(), rtol=1e-9
    )


class TestProportionalPolicy(policy_contract.PolicyContract):
    def make_policy(self):
        return proportional.ProportionalPolicy()


def test_the_middle_of_a_node_is_neutral():
    weights, _ = proportional.ProportionalPolicy()(
        policy_contract.situation_of([0.0, 1.0, 4.0], contended=False),
        policy_contract.neutral(3),
        {},
        10.0,
    )
    np.testing.assert_allclose(weights[:, 0], np.exp([2.0, 1.0, -2.0]))
