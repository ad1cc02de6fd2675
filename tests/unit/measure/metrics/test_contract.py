# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

from nova_fairness.measure import metric
from nova_fairness.measure.metrics import asset
from nova_fairness.measure.metrics import dominant_share
from nova_fairness.measure.metrics import greediness
from nova_fairness.measure.metrics import spending_rate
from nova_fairness.measure.metrics import uniform
from nova_fairness.testing import metric_contract


class TestGreediness(metric_contract.MetricContract):
    metric = greediness.GreedinessMetric()


class TestDominantShare(metric_contract.MetricContract):
    metric = dominant_share.DominantShareMetric()


class TestAsset(metric_contract.MetricContract):
    metric = asset.AssetFairnessMetric()


class TestSpendingRate(metric_contract.MetricContract):
    metric = spending_rate.SpendingRate()


class TestUniform(metric_contract.MetricContract):
    metric = uniform.UniformMetric()


class Bad(metric.Metric):
    """Breaks one promise; which one is said by the subclass."""

    description = 'Bad.'

    def instances(self, demands):
        return np.zeros(len(demands.usage))


class BadDescription(Bad):
    description = 'two\nlines'


class BadKinds(Bad):
    suits = 'thesis'


class BadForZeroSupply(Bad):
    def instances(self, demands):
        return (demands.usage / demands.supply).sum(axis=1)


class BadForNoVm(Bad):
    def instances(self, demands):
        return np.full(len(demands.usage), demands.usage.max())


class BadMutation(Bad):
    def instances(self, demands):
        demands.usage[:, 0] = 0
        return np.zeros(len(demands.usage))


class BadState(Bad):
    calls = 0

    def instances(self, demands):
        self.calls += 1
        return np.full(len(demands.usage), self.calls)


class BadOrder(Bad):
    def instances(self, demands):
        return np.arange(len(demands.usage))


class BadUserOrder(Bad):
    def users(self, totals):
        return np.arange(totals.user_count)


class BadNodes(Bad):
    def instances(self, demands):
        return demands.node


class BadUnits(Bad):
    def instances(self, demands):
        return demands.usage.sum(axis=1)


@pytest.mark.parametrize(
    ('bad', 'test'),
    [
        (BadDescription, 'description_is_one_line'),
        (BadKinds, 'it_names_kinds_of_policies_that_there_are'),
        (
            BadForZeroSupply,
            'every_cloud_gets_finite_numbers_of_the_right_shape',
        ),
        (BadForNoVm, 'every_cloud_gets_finite_numbers_of_the_right_shape'),
        (BadMutation, 'arguments_are_not_changed'),
        (BadState, 'same_cloud_gets_the_same_numbers'),
        (BadOrder, 'order_of_vms_does_not_matter'),
        (BadUserOrder, 'order_of_users_does_not_matter'),
        (BadNodes, 'numbering_of_nodes_does_not_matter'),
        (BadUnits, 'unit_of_a_resource_does_not_matter'),
    ],
)
def test_contract_finds_the_metric_that_breaks_it(bad, test):
    suite = metric_contract.MetricContract()
    suite.metric = bad()
    with pytest.raises(AssertionError):
        getattr(suite, f'test_{test}')()
