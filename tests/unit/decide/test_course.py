# SPDX-License-Identifier: Apache-2.0

"""A search that follows what is known, round by round."""

import numpy as np
import pytest

from nova_fairness.decide import foresight as decide_foresight
from nova_fairness.measure.metrics import dominant_share
from nova_fairness.model import foresight as foresight_model
from tests.unit.decide import test_foresight as build

PAIRS = {(0, 0): 4, (0, 1): 4, (1, 1): 4, (1, 2): 1}
SHARP, BLUNT = decide_foresight.SHARP, 2 * decide_foresight.SHARP


def known(**changes):
    """Pairs by node and user, as ``n0u0=2``."""
    pairs = dict(PAIRS)
    for name, wanted in changes.items():
        pairs[int(name[1]), int(name[3])] = wanted
    metric = dominant_share.DominantShareMetric()
    return build.make(metric, {k: v for k, v in pairs.items() if v}, [2, 2])


class Maker:
    """Makes steps of a set length; the search is then as sharp as is said."""

    def __init__(self, step_s=0.0, sharpness=SHARP, is_over=True):
        self.step_s, self.sharpness, self.is_over = step_s, sharpness, is_over
        self.steps = []
        self.begins = []

    def __call__(self, knowledge, before, steps):
        self.steps.append(steps)
        self.begins.append(before)
        end = foresight_model.CpuTarget(
            *np.zeros((2, len(knowledge.node))),
            np.ones(2, bool),
            self.sharpness,
        )
        found = decide_foresight.ForesightSearch(
            knowledge, end, None, self.is_over
        )
        return found, self.step_s


def follow(course, knowledge, make):
    return course.continue_for_round(knowledge, make, 1.0)


@pytest.mark.parametrize(
    ('part', 'expected'), [(0.25, [1, 3]), (0.6, [1]), (2.0, [1])]
)
def test_a_round_has_as_many_steps_as_fit_into_it(part, expected):
    make = Maker(part * decide_foresight.PER_ROUND_S, is_over=False)
    found = follow(decide_foresight.AgentSearch(), known(), make)
    assert make.steps == expected
    assert found.last is found.work


def test_a_round_has_no_more_steps_than_a_search():
    make = Maker(1e-12, is_over=False)
    follow(decide_foresight.AgentSearch(), known(), make)
    assert sum(make.steps) == decide_foresight.STEPS


def test_a_search_that_is_over_stays_while_next_to_nothing_changes():
    make = Maker()
    first = follow(decide_foresight.AgentSearch(), known(), make)
    assert follow(first, known(n0u0=4.001), make) is first
    assert make.steps == [1]


def test_a_search_goes_on_from_its_result_while_the_input_is_alike():
    make = Maker(is_over=False)
    first = follow(decide_foresight.AgentSearch(), known(), make)
    make.steps.clear()
    second = follow(first, known(n0u0=4.001), make)
    assert second.work.knowledge is first.work.knowledge
    assert make.begins[2] is first.work


def test_a_step_that_takes_too_long_leaves_nothing():
    first = follow(decide_foresight.AgentSearch(), known(), Maker())
    slow = Maker(1.1, is_over=False)
    found = follow(first, known(n0u0=1), slow)
    assert (found.work, found.last) == (None, None)
    assert slow.steps == [1]


@pytest.mark.parametrize(
    ('changes', 'sharpness', 'stays'),
    [
        ({'n0u0': 1}, BLUNT, True),
        ({'n0u0': 1}, SHARP, False),
        ({'n0u0': 0}, BLUNT, False),
        ({'n1u0': 1}, SHARP, False),
    ],
    ids=['wants', 'wants, useful', 'goes', 'comes'],
)
def test_a_useful_search_counts_until_its_successor_is_useful(
    changes, sharpness, stays
):
    first = follow(decide_foresight.AgentSearch(), known(), Maker())
    after = follow(first, known(**changes), Maker(sharpness=sharpness))
    assert (after.last is first.last) is stays
    assert after.last is (first.last if stays else after.work)
    assert after.work is not first.work
