# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

from nova_fairness.measure import totals
from nova_fairness.model import resources
from nova_fairness.model import usage
from tests.unit.measure import build

RESOURCES = resources.RESOURCES
CPU = RESOURCES.index('cpu_time')
MEMORY = RESOURCES.index('memory')
NAME = 'GreedinessMetric'


def amounts(*cpu_time):
    return np.array([RESOURCES.vector(cpu_time=item) for item in cpu_time])


OWNERS = usage.Ownership(
    users=('anna', 'elsewhere', 'zoe'),
    user_index=np.array([2, 0, 2]),
    node_index=np.array([0, 0, 0]),
)


def test_report_sums_the_vms_of_each_user():
    got = totals.sum_by_user(
        OWNERS, np.array([0.5, 0.25, 1.0]), amounts(1, 2, 4), amounts(8, 0, 1)
    )
    assert list(got) == ['anna', 'zoe']
    zoe = got['zoe']
    assert (zoe.instance_heaviness, zoe.instances) == (1.5, 2)
    assert (zoe.endowment[CPU], zoe.usage[CPU]) == (5, 9)


def test_rows_of_many_nodes_are_summed_without_reports():
    got = totals.sum_rows(
        OWNERS.user_index,
        np.array([0.5, 0.25, 1.0]),
        amounts(1, 2, 4),
        amounts(8, 0, 1),
        np.ones((3, len(RESOURCES))),
        np.ones(len(RESOURCES)),
    )
    assert got.instance_heaviness.tolist() == [0.25, 0, 1.5]
    assert got.endowment[:, CPU].tolist() == [2, 0, 5]
    assert got.usage[:, CPU].tolist() == [0, 0, 9]


def two_nodes():
    return build.view(
        build.node_report(
            'n1',
            {
                'anna': build.user_totals(
                    0.1, {'cpu_time': 6}, {'cpu_time': 4, 'memory': 100}
                ),
                'zoe': build.user_totals(0.2, {'cpu_time': 4}),
            },
            cpu_time=1,
            memory=1000,
        ),
        build.node_report(
            'n2',
            {
                'anna': build.user_totals(
                    0.4, {'cpu_time': 1}, {'cpu_time': 1, 'memory': 30}
                )
            },
            interval_s=1.0,
            cpu_time=3,
            memory=500,
        ),
    )


def test_reports_of_different_intervals_are_added_up_as_rates():
    users, got, supply = totals.combine_reports(two_nodes(), 10.0, NAME)
    assert users == ('anna', 'zoe')
    np.testing.assert_allclose(got.instance_heaviness, [0.5, 0.2])
    assert got.usage[:, CPU].tolist() == [4 + 10 * 1, 0]
    assert got.endowment[:, CPU].tolist() == [6 + 10 * 1, 4]
    assert (supply[CPU], supply[MEMORY]) == (10 + 30, 1500)


def test_memory_does_not_depend_on_the_interval():
    got = totals.combine_reports(two_nodes(), 10.0, NAME).totals
    assert got.usage[:, MEMORY].tolist() == [130, 0]


def test_quota_follows_the_weights_and_is_one_without():
    got = totals.combine_reports(two_nodes(), 10.0, NAME, {'zoe': 3.0}).totals
    assert got.quota[:, CPU].tolist() == [10, 30]


def test_overcommit_counts_for_the_norm_and_not_for_the_quota():
    factors = np.ones(len(RESOURCES))
    factors[CPU] = 16
    got = totals.combine_reports(two_nodes(), 10.0, NAME, overcommit=factors)
    assert got.totals.supply[CPU] == 16 * 40
    assert got.supply[CPU] == 40
    assert got.totals.quota[:, CPU].tolist() == [20, 20]


def test_node_with_another_metric_is_left_out():
    other = build.node_report(
        'n3', {'bob': build.user_totals()}, metric='Other', cpu_time=100
    )
    view = build.view(*two_nodes().reports.values(), other)
    users, _totals, supply = totals.combine_reports(view, 10.0, NAME)
    assert users == totals.known_users(view, NAME) == ('anna', 'zoe')
    assert supply[CPU] == totals.supply_of_nodes(view, 10.0, NAME)[CPU] == 40


def test_view_without_usable_report_has_no_users():
    users, got, supply = totals.combine_reports(build.view(), 10.0, NAME)
    assert users == ()
    assert got.usage.shape == (0, len(RESOURCES))
    assert not supply.any()


def test_node_without_vms_still_counts_with_its_supply():
    empty = build.node_report('n1', {}, cpu_time=2)
    users, _totals, supply = totals.combine_reports(
        build.view(empty), 10.0, NAME
    )
    assert users == ()
    assert supply[CPU] == 20


def test_useless_quota_weight_is_an_error():
    with pytest.raises(ValueError, match='quota weight of user 1'):
        totals.combine_reports(two_nodes(), 10.0, NAME, {'zoe': 0.0})
