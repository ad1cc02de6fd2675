# SPDX-License-Identifier: Apache-2.0

"""The planner in random clouds, judged by who shares no code with it."""

import os
import secrets

import pytest

from nova_fairness.planners.fairqueue import order as order_module
from nova_fairness.planners.fairqueue import planner
from tests.fixtures import effort
from tests.unit.planners.fairqueue import cloud_oracle

CLOUDS = 1000
FIRST = effort.count_to_try(600, 16)
"""The same in every run of the tests."""

SEED = 'FAIRNESS_CLOUDS_SEED'
"""Variable of the environment with the first seed."""


class Ranked(order_module.Order):
    """The order of a case."""

    description = 'As the case says.'

    def __init__(self, case):
        self._case = case

    def arrange(self, waiting, snapshot, now):
        return sorted(waiting, key=self._case.order)


def plan_with(case):
    backfill = planner.Backfill(case.depth, case.patience_s)
    order = Ranked(case)
    return lambda snapshot, now: planner.plan(snapshot, now, order, backfill)


def judged(seeds):
    """Faults by seed, starts, and reservations that were kept."""
    faults, starts, kept = {}, 0, 0
    for seed in seeds:
        found, course = cloud_oracle.judged(seed, plan_with)
        if found:
            faults[seed] = found[:3]
        starts += len(course.began)
        kept += course.kept
    return faults, starts, kept


def test_requests_that_fit_an_empty_cloud_start_and_reservations_are_kept():
    faults, starts, kept = judged(range(FIRST))
    assert faults == {}
    # It is judged: servers start, and moments that were promised come.
    assert starts > 3 * FIRST
    assert kept > FIRST // 2


@pytest.mark.slow
def test_a_thousand_fresh_clouds_have_no_fault():
    begin = int(os.environ.get(SEED, secrets.randbelow(10**9)))
    print(f'{SEED}={begin}')
    faults, starts, kept = judged(range(begin, begin + CLOUDS))
    assert faults == {}, f'{SEED}={begin}'
    assert starts > 3 * CLOUDS
    assert kept > CLOUDS // 2


def forgetful(case):
    """A planner that loses the first of its starts."""
    real = plan_with(case)

    def plan(snapshot, now):
        found = real(snapshot, now)
        return type(found)(found.actions[1:], found.waiting)

    return plan


def test_the_judge_finds_a_planner_that_forgets_a_start():
    found = [cloud_oracle.judged(seed, forgetful)[0] for seed in range(20)]
    assert sum(map(bool, found)) > 15


def test_the_judge_finds_a_planner_that_gives_away_reserved_room(monkeypatch):
    monkeypatch.setattr(planner._Rounds, '_binding_bits', lambda *_: 0)
    faults = judged(range(60))[0]
    texts = ' '.join(text for each in faults.values() for text in each)
    assert 'was promised' in texts


def test_the_judge_finds_a_planner_that_counts_no_members(monkeypatch):
    monkeypatch.setattr(
        planner.capacity.FreeRoom,
        '_limit',
        lambda self, unit, present=None: self._free[0] * 0 + unit.count,
    )
    faults = judged(range(60))[0]
    texts = ' '.join(text for each in faults.values() for text in each)
    assert 'is not apart' in texts
