# SPDX-License-Identifier: Apache-2.0

"""What users have and want on every node."""

import dataclasses

from hypothesis import given
from hypothesis import strategies
import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness.measure import foresight as measure_foresight
from nova_fairness.measure import metric as metric_base
from nova_fairness.measure import stages
from nova_fairness.measure import totals
from nova_fairness.measure.metrics import asset
from nova_fairness.measure.metrics import dominant_share
from nova_fairness.measure.metrics import greediness
from nova_fairness.measure.metrics import uniform
from nova_fairness.model import report as report_model
from tests.unit.measure import build

R = build.RESOURCES
CPU = R.index('cpu_time')
METRICS = {
    'AssetFairnessMetric': asset.AssetFairnessMetric(),
    'DominantShareMetric': dominant_share.DominantShareMetric(),
    'GreedinessMetric': greediness.GreedinessMetric(),
    'UniformMetric': uniform.UniformMetric(),
}


def user(used, wanted=None, heaviness=0.0, instances=1):
    made = build.user_totals(
        heaviness,
        {'cpu_time': 5.0},
        {'cpu_time': used, 'memory': 100.0},
        instances,
    )
    if wanted is None:
        return made
    return dataclasses.replace(
        made, wanted=R.vector(cpu_time=wanted, memory=100.0)
    )


def knowledge(*reports, metric='DominantShareMetric', interval_s=10.0):
    view = build.view(*reports)
    of_all = totals.combine_reports(view, interval_s, metric).totals
    return measure_foresight.knowledge(
        view, interval_s, METRICS[metric], metric, of_all
    )


def report(host, users, metric='DominantShareMetric', **more):
    return build.node_report(
        host, users, metric=metric, cpu_time=1.0, memory=1000.0, **more
    )


def test_cells_are_users_on_nodes_in_the_order_of_both():
    made = knowledge(
        report('n1', {'anna': user(2, 3), 'zoe': user(4, 9)}),
        report('n2', {'ben': user(6, 7), 'zoe': user(1, 1)}),
    )
    assert made.node.tolist() == [0, 0, 1, 1]
    assert made.user.tolist() == [0, 2, 1, 2]
    assert made.wanted[:, CPU].tolist() == [3, 9, 7, 1]
    assert made.supply[:, CPU].tolist() == [10, 10]
    assert made.one_cpu.tolist() == [10, 10]
    assert made.cells_of(1, np.array([2, 1])).tolist() == [3, 2]


def test_amounts_are_brought_to_one_interval_but_not_memory():
    made = knowledge(
        report('n1', {'anna': user(2, 3)}),
        report('n2', {'ben': user(12, 18)}, interval_s=30.0),
    )
    assert made.wanted[:, CPU] == pytest.approx([3, 6])
    assert made.wanted[:, R.index('memory')].tolist() == [100, 100]


def test_a_user_whose_wants_are_not_told_wants_as_much_as_is_used():
    made = knowledge(report('n1', {'anna': user(2)}))
    assert made.wanted[0, CPU] == 2


@pytest.mark.parametrize(
    ('told', 'vms', 'wanted'), [(1e9, 1, 10), (1e9, 3, 30), (1, 1, 4)]
)
def test_no_user_gains_by_telling_more_than_the_vms_can_use(told, vms, wanted):
    made = knowledge(report('n1', {'liar': user(4, told, instances=vms)}))
    assert made.wanted[0, CPU] == wanted


def test_reports_of_another_metric_are_left_out():
    made = knowledge(
        report('n1', {'anna': user(2, 3)}),
        report('n2', {'ben': user(6, 7)}, metric='UniformMetric'),
    )
    assert made.node.tolist() == [0]


@pytest.mark.parametrize('name', METRICS)
def test_the_weight_of_cells_equals_the_agents_for_the_same_use(name):
    """One VM for each cell: the same numbers as in a round."""
    metric = METRICS[name]
    used = np.array([R.vector(cpu_time=n, memory=100.0) for n in (8, 2, 9)])
    owned = np.array([R.vector(cpu_time=5.0)] * 3)
    node, owner = np.array([0, 0, 1]), np.array([0, 1, 0])
    supply = R.vector(cpu_time=20.0, memory=2000.0)
    own = stages.instance_stage(
        metric, metric_base.Demands(used, owned, supply, node, 2)
    )
    made = knowledge(
        report('n1', {'anna': user(8, 8), 'zoe': user(2, 2)}, metric=name),
        report('n2', {'anna': user(9, 9)}, metric=name),
        metric=name,
    )
    summed = np.array([used[0] + used[2], used[1]])
    of_users = stages.user_stage(
        metric,
        metric_base.Totals(
            instance_heaviness=np.array([own[0] + own[2], own[1]]),
            usage=summed,
            endowment=np.array([owned[0] * 2, owned[0]]),
            quota=np.array([supply / 2, supply / 2]),
            supply=supply,
        ),
    )
    expected = stages.combine_stage(metric, of_users[owner], own)
    assert made.weigh(used) == pytest.approx(expected)


def test_a_metric_that_fails_is_named():
    class Broken(metric_base.Metric):
        description = 'Raises.'

        def instances(self, demands):
            raise ZeroDivisionError('ahead')

    METRICS['Broken'] = Broken()
    try:
        made = knowledge(
            report('n1', {'a': user(1)}, metric='Broken'), metric='Broken'
        )
        with pytest.raises(exception.PluginMisbehaved, match='ahead'):
            made.weigh(made.wanted)
    finally:
        del METRICS['Broken']


def graded(vcpus, asked):
    """Grades of one cell; the others are empty."""
    row = np.zeros((1, 2 * report_model.GRADES))
    row[0, : len(vcpus)] = vcpus
    row[0, report_model.GRADES :][: len(asked)] = asked
    return row


def test_a_user_with_told_grades_wants_by_them():
    made = measure_foresight.demand(
        np.array([30.0]), np.array([10.0]), graded([4, 2], [1, 2])
    )
    assert made.cell.tolist() == [0, 0]
    assert made.vcpus.tolist() == [4, 2]
    assert made.wanted.tolist() == [10, 20]


def test_the_sum_of_wants_counts_more_than_grades():
    """They are of the newest interval, and what is wanted is bounded."""
    made = measure_foresight.demand(
        np.array([15.0]), np.array([10.0]), graded([4, 2], [1, 2])
    )
    assert made.wanted.tolist() == [5, 10]


def test_a_user_without_grades_has_as_many_vcpus_as_are_wanted():
    made = measure_foresight.demand(
        np.array([25.0]), np.array([10.0]), graded([], [])
    )
    assert made.vcpus.tolist() == [2.5]
    assert made.wanted.tolist() == [25]


def test_a_user_without_wants_has_a_row_too():
    empty = np.zeros((2, 2 * report_model.GRADES))
    empty[0, 0] = 3
    made = measure_foresight.demand(np.zeros(2), np.ones(2), empty)
    assert made.cell.tolist() == [0, 1]
    assert (made.wanted > 0).all()
    assert (made.wanted <= measure_foresight.NOTHING).all()


LIES = {
    'vCPUs of one grade, wants of another': ([1, 0], [0, 1]),
    'wants of no vCPU': ([], [5]),
    'more than a CPU for a vCPU': ([1e-9], [1e9]),
    'as many as there may be': ([1e9] * 8, [1e9] * 8),
    'next to none': ([1e-300], [1e-300]),
}


@pytest.mark.parametrize(('vcpus', 'asked'), LIES.values(), ids=LIES)
def test_grades_never_add_to_the_sum_of_wants(vcpus, asked):
    made = measure_foresight.demand(
        np.array([30.0]), np.array([10.0]), graded(vcpus, asked)
    )
    assert set(made.cell) == {0}
    assert made.wanted.sum() == pytest.approx(30)
    assert (made.wanted > 0).all()
    assert (made.vcpus > 0).all()


amounts = strategies.floats(0, 1e6)


@given(
    strategies.lists(
        strategies.tuples(
            amounts,
            strategies.lists(
                strategies.tuples(amounts, amounts),
                min_size=report_model.GRADES,
                max_size=report_model.GRADES,
            ),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_wants_of_cells_add_up_to_those_of_vms(drawn):
    wanted = np.array([item[0] for item in drawn])
    grades = np.array([np.array(item[1]).T.reshape(-1) for item in drawn])
    made = measure_foresight.demand(wanted, np.ones(len(drawn)), grades)
    assert set(made.cell) == set(range(len(drawn)))
    assert (np.diff(made.cell) >= 0).all()
    total = np.bincount(made.cell, made.wanted)
    assert total == pytest.approx(
        np.maximum(wanted, measure_foresight.NOTHING)
    )


@given(
    strategies.lists(
        strategies.tuples(amounts, amounts, amounts, amounts),
        min_size=report_model.GRADES,
        max_size=report_model.GRADES,
    ),
    amounts,
)
def test_exempt_vms_are_a_part_although_a_node_reports_false_numbers(
    drawn, wanted
):
    grades, exempt = (
        np.array([each[kind : kind + 2] for each in drawn]).T.reshape(1, -1)
        for kind in (0, 2)
    )
    asked, one = np.array([wanted]), np.ones(1)
    whole = measure_foresight.demand(asked, one, grades)
    made = measure_foresight.demand(asked, one, grades, exempt)
    assert made.wanted.sum() == pytest.approx(whole.wanted.sum())
    assert made.vcpus.sum() <= whole.vcpus.sum() * (1 + 1e-9)
    assert (made.vcpus > 0).all()
    size = exempt[0, : report_model.GRADES]
    most = np.minimum(size, grades[0, : len(size)]).sum()
    assert made.vcpus[made.exempt].sum() <= most * (1 + 1e-9)
    if not size.any():
        assert not made.exempt.any()


def test_exempt_vms_of_reports_become_knowledge():
    grades = np.zeros(2 * report_model.GRADES)
    grades[[0, 7, 8, 15]] = [2, 3, 0.5, 3]
    exempt = np.where(np.arange(len(grades)) % 8 == 7, grades, 0)
    exempt[7], exempt[15] = 1, 1
    told = dataclasses.replace(user(2, 3.5), grades=grades, exempt=exempt)
    made = knowledge(report('n1', {'anna': told}))
    assert made.demand.vcpus.tolist() == [2, 2, 1]
    assert made.demand.exempt.tolist() == [False, False, True]
    assert made.demand.wanted == pytest.approx([0.5, 2, 1])
    plain = dataclasses.replace(told, exempt=None)
    other = knowledge(report('n1', {'anna': plain}))
    assert not other.demand.exempt.any()
    assert not made.is_like(other)
    assert made.is_like(made)


def test_grades_of_reports_become_knowledge():
    told = dataclasses.replace(user(2, 9), grades=graded([2], [0.9])[0])
    made = knowledge(report('n1', {'anna': told, 'zoe': user(1, 1)}))
    # Where not all tell, nobody does.
    assert made.demand.vcpus == pytest.approx([0.9, 0.1])
    made = knowledge(report('n1', {'anna': told}))
    assert made.demand.vcpus.tolist() == [2]
    assert made.demand.wanted == pytest.approx([9])


def test_a_node_without_cpu_time_keeps_numbers_finite_and_positive():
    empty = build.node_report(
        'n2', {'anna': user(0)}, metric='DominantShareMetric', memory=1000.0
    )
    made = knowledge(report('n1', {'anna': user(2, 9)}), empty)
    assert np.isfinite(made.demand.wanted).all()
    assert (made.demand.wanted > 0).all()
    assert (made.one_cpu > 0).all()


@pytest.mark.parametrize('name', METRICS)
def test_the_weight_of_users_equals_that_of_their_cells(name):
    """Metrics that look at sums alone are asked for users at once."""
    made = knowledge(
        report('n1', {'anna': user(8, 8), 'zoe': user(2, 2)}, metric=name),
        report('n2', {'anna': user(9, 9)}, metric=name),
        metric=name,
    )
    if name in ('GreedinessMetric', 'UniformMetric'):
        assert made.weigh_users is None
        return
    used = np.array([R.vector(cpu_time=n, memory=100.0) for n in (8, 2, 9)])
    of_users = made.weigh_users(np.array([used[0] + used[2], used[1]]))
    assert made.weigh(used) == pytest.approx(of_users[[0, 1, 0]])


def test_a_vcpu_that_wants_nothing_does_not_look_as_if_it_wanted_all():
    nothing = np.zeros((2, 2 * report_model.GRADES))
    found = measure_foresight.demand(
        np.array([0.0, 5.0]), np.full(2, 10.0), nothing
    )
    # Of whom nobody tells it is assumed that vCPUs want all.
    assert found.wanted / found.vcpus == pytest.approx([1e-5, 10.0])
