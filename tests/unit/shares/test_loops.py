# SPDX-License-Identifier: Apache-2.0

"""Whether VMs that wait get less done, or the same later."""

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from nova_fairness.shares import loops

STALLS = [0.1, 0.5, 0.3, 0.6, 0.2, 0.55, 0.25, 0.5, 0.1, 0.4]


def after(rows, ready=True):
    """What is known of one VM after intervals of (used, stall)."""
    known = loops.LoopMemory.unknown(1)
    for used, stall in rows:
        known = known.after(
            np.array([used]), np.array([stall]), np.array([ready])
        )
    return known


def lacking(rows):
    used, stall = rows[-1]
    return float(after(rows).lacking(np.array([used]), np.array([stall]))[0])


@pytest.mark.parametrize('slope', [0.0, 0.5, 1.0])
def test_use_that_follows_the_time_without_waits_shows_its_slope(slope):
    rows = [(0.2 * (1 - stall) ** slope, stall) for stall in STALLS * 2]
    assert after(rows).slope()[0] == pytest.approx(slope, abs=0.2)


def test_an_open_loop_lacks_next_to_nothing():
    rows = [(0.2, stall) for stall in STALLS * 2]
    assert rows[-1][1] == 0.4
    assert lacking(rows) < 0.1


def test_an_unknown_vm_is_a_closed_loop():
    assert lacking([(0.2, 0.5)]) == 0.5
    assert lacking([(0.2, 0.1), (0.2, 0.5)]) == 0.5
    assert lacking([(0.2, 0.1), (0.2, 0.5), (0.2, 0.1), (0.2, 0.5)]) < 0.5


def test_noise_does_not_count_as_changed_use():
    rows = [(0.2, 0.3 + 0.01 * (-1) ** n) for n in range(50)]
    assert lacking(rows) == rows[-1][1]


def test_a_vm_with_ever_changing_wants_shows_no_slope():
    generator = np.random.default_rng(3)
    wanted = np.exp(generator.normal(-2, 1, 200))
    rows = [
        (wish * (1 - stall), stall)
        for wish, stall in zip(wanted, generator.random(200), strict=True)
    ]
    assert after(rows).slope()[0] > 0.8


def test_a_vm_with_work_all_the_time_lacks_its_wait():
    rows = [(0.5, stall) for stall in STALLS * 2]
    assert lacking([*rows, (0.5, 0.5)]) == 0.5


@pytest.mark.parametrize('row', [(0.0, 0.5), (0.2, float('nan')), (0.2, 1.0)])
def test_an_interval_that_tells_nothing_is_left_out(row):
    known = after([(0.2, 0.1), row, (0.2, 0.5)])
    assert known.moved[0] == 0
    assert after([(0.2, 0.1), (0.2, 0.5)], ready=False).moved[0] == 0


@hypothesis.given(
    strategies.lists(
        strategies.tuples(strategies.floats(0, 2), strategies.floats(0, 1)),
        min_size=1,
        max_size=30,
    )
)
def test_no_vm_lacks_more_than_it_waits(rows):
    assert 0 <= lacking(rows) <= rows[-1][1]
    assert 0 <= after(rows).slope()[0] <= 1
