# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness.measure import metric
from nova_fairness.measure import stages
from nova_fairness.measure.metrics import greediness
from nova_fairness.measure.metrics import uniform
from nova_fairness.model import resources
from nova_fairness.testing import metric_contract

WIDTH = len(resources.RESOURCES)
CASE = metric_contract.make_case('usual', instances=4)
TOTALS = metric_contract.totals_of(CASE, np.zeros(4))


class Odd(uniform.UniformMetric):
    """Returns what it was given, or raises it, in every stage."""

    def __init__(self, answer):
        self._answer = answer

    def instances(self, demands):
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def users(self, totals):
        return self.instances(totals)

    def combine(self, user_heaviness, instance_heaviness):
        return self.instances(user_heaviness)


STAGES = [
    pytest.param(
        lambda odd: stages.instance_stage(odd, CASE.demands),
        4,
        'instances',
        id='instances',
    ),
    pytest.param(
        lambda odd: stages.user_stage(odd, TOTALS), 3, 'users', id='users'
    ),
    pytest.param(
        lambda odd: stages.combine_stage(odd, np.zeros(4), np.zeros(4)),
        4,
        'combine',
        id='combine',
    ),
]


@pytest.mark.parametrize(('run', 'rows', 'stage'), STAGES)
@pytest.mark.parametrize(
    ('answer', 'message'),
    [
        (lambda rows: None, r'returned NoneType.* \d real numbers'),
        (lambda rows: 'heavy', 'returned str'),
        (lambda rows: ['x'] * rows, 'returned list of <U1'),
        (lambda rows: [[1], [1, 2]], 'returned list'),
        (lambda rows: [1j] * rows, 'returned list of complex128'),
        (lambda rows: np.zeros(rows + 1), 'returned shape'),
        (lambda rows: np.zeros((rows, 1)), r'returned .* expected \(\d,\)'),
        (lambda rows: 1.0, r'returned shape \(\)'),
        (lambda rows: [0.0] * (rows - 1) + [np.nan], 'returned nan in row'),
        (lambda rows: [np.inf] + [0.0] * (rows - 1), 'returned inf in row 0'),
        (lambda rows: KeyError('cpu'), "raised KeyError: 'cpu'"),
    ],
)
def test_unusable_answer_names_metric_stage_and_fault(
    run, rows, stage, answer, message
):
    with pytest.raises(
        exception.PluginMisbehaved, match=rf'Odd\.{stage} {message}'
    ):
        run(Odd(answer(rows)))


@pytest.mark.parametrize(('run', 'rows', 'stage'), STAGES)
@pytest.mark.parametrize('kind', [list, np.float32, int])
def test_anything_that_becomes_floats_is_accepted(run, rows, stage, kind):
    answer = [1] * rows if kind is list else np.ones(rows, dtype=kind)
    got = run(Odd(answer))
    assert got.dtype == np.float64
    assert got.tolist() == [1] * rows


def test_raised_exception_stays_visible_as_the_cause():
    cause = KeyError('cpu')
    with pytest.raises(exception.PluginMisbehaved) as caught:
        stages.instance_stage(Odd(cause), CASE.demands)
    assert caught.value.__cause__ is cause


class Writing(uniform.UniformMetric):
    """Changes one of its arguments."""

    def __init__(self, name):
        self._name = name

    def instances(self, demands):
        getattr(demands, self._name)[...] = 0
        return super().instances(demands)

    def users(self, totals):
        getattr(totals, self._name)[...] = 0
        return super().users(totals)

    def combine(self, user_heaviness, instance_heaviness):
        instance_heaviness += 1
        return instance_heaviness


@pytest.mark.parametrize('name', ['usage', 'endowment', 'supply', 'node'])
def test_demands_cannot_be_changed_by_a_metric(name):
    before = getattr(CASE.demands, name).copy()
    with pytest.raises(exception.PluginMisbehaved, match='read-only'):
        stages.instance_stage(Writing(name), CASE.demands)
    np.testing.assert_array_equal(getattr(CASE.demands, name), before)


@pytest.mark.parametrize(
    'name', ['instance_heaviness', 'usage', 'endowment', 'quota', 'supply']
)
def test_totals_cannot_be_changed_by_a_metric(name):
    with pytest.raises(exception.PluginMisbehaved, match='read-only'):
        stages.user_stage(Writing(name), TOTALS)


def test_heaviness_cannot_be_changed_by_a_metric():
    with pytest.raises(exception.PluginMisbehaved, match='read-only'):
        stages.combine_stage(Writing(''), np.zeros(2), np.zeros(2))


def test_arrays_of_the_caller_stay_writable():
    stages.instance_stage(uniform.UniformMetric(), CASE.demands)
    assert CASE.demands.usage.flags.writeable


def test_answer_is_not_an_array_that_the_metric_keeps():
    kept = np.zeros(4)
    got = stages.instance_stage(Odd(kept), CASE.demands)
    kept += 1
    assert not got.any()


def test_metric_is_not_asked_about_no_users():
    nobody = metric.Totals(
        instance_heaviness=np.zeros(0),
        usage=np.zeros((0, WIDTH)),
        endowment=np.zeros((0, WIDTH)),
        quota=np.zeros((0, WIDTH)),
        supply=np.zeros(WIDTH),
    )
    got = stages.user_stage(Odd(RuntimeError('asked')), nobody)
    assert got.shape == (0,)


def test_default_combination_adds_the_own_heaviness():
    got = stages.combine_stage(
        greediness.GreedinessMetric(), np.array([0.5, 0.5]), np.array([0, 1])
    )
    assert got.tolist() == [0.5, 1.5]
