# SPDX-License-Identifier: Apache-2.0

"""The contract of victims, on all that are installed, and on bad ones."""

import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.planners.preemption import candidates
from nova_fairness.planners.preemption import ilp
from nova_fairness.planners.preemption import least_cost
from nova_fairness.testing import victims_contract


class TestLeast(victims_contract.VictimsContract):
    victims = plugins.load_victims('least')


class TestLeastWithoutTheProgram(victims_contract.VictimsContract):
    victims = plugins.load_victims('least', {'exact': 0.0})


class TestChance(victims_contract.VictimsContract):
    victims = plugins.load_victims('chance', {'seed': 3.0})


class TestStrict(victims_contract.VictimsContract):
    victims = plugins.load_victims('strict')


class TestStrictTime(victims_contract.VictimsContract):
    victims = plugins.load_victims('strict_time')


class TestOpie(victims_contract.VictimsContract):
    victims = plugins.load_victims('opie')


class TestYoungest(victims_contract.VictimsContract):
    victims = plugins.load_victims('youngest')


class TestKueue(victims_contract.VictimsContract):
    victims = plugins.load_victims('kueue')


def test_all_installed_victim_policies_are_described():
    told = plugins.describe_victims()
    assert {'least', 'youngest'} <= set(told)
    assert not any(text.startswith('unusable') for text in told.values())


class _Greedy(least_cost.Least):
    def choose(self, needs, field):
        every = tuple(range(len(field.servers)))
        return [
            candidates.VictimChoice(((0,) * each.pieces[0].count,), every)
            for each in needs
        ]


@pytest.mark.parametrize('name', ['victims_may_leave_and_make_room'])
def test_the_contract_finds_a_plugin_that_breaks_it(name):
    suite = victims_contract.VictimsContract()
    suite.victims = _Greedy()
    with pytest.raises(AssertionError):
        getattr(suite, f'test_{name}')()


@pytest.mark.parametrize('exact', [-1.0, 1e9])
def test_a_number_out_of_its_range_is_refused(exact):
    with pytest.raises(exception.PluginError, match='exact'):
        plugins.load_victims('least', {'exact': exact})


def test_sequential_choice_costs_hardly_more_than_the_optimum():
    gaps = []
    for seed in range(80):
        needs, field = victims_contract.make_case(seed, needs=2)
        best = ilp.cheapest_choices(needs, field)
        greedy = least_cost.Least(exact=0.0).choose(needs, field)
        assert best is not None
        bound = candidates.price(field, best)
        gaps.append(candidates.price(field, greedy) / bound - 1)
    assert min(gaps) >= -1e-4
    assert max(gaps) <= 0.05
    assert np.mean(gaps) < 0.001


@pytest.mark.parametrize('seed', range(10))
def test_bounds_and_program_agree_for_one_server(seed):
    (need, *_), field = victims_contract.make_case(seed, needs=1)
    piece = candidates.Piece(need.pieces[0].amounts, need.pieces[0].rows)
    need = candidates.Need((piece,), np.ones_like(need.limit), need.may)
    best = ilp.cheapest_choices([need], field)
    found = least_cost.Least(exact=0.0).choose([need], field)
    assert candidates.price(field, found) == pytest.approx(
        candidates.price(field, best), rel=1e-4
    )
