# SPDX-License-Identifier: Apache-2.0

"""Promised starts, and what became of them."""

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from nova_fairness.model import cluster
from nova_fairness.planners.fairqueue import calibration

NOW = 1000.0
HOUR_S = 3600.0


def estimate(p50_s, p90_s, now=NOW):
    return cluster.Estimate(now + p50_s, now + p90_s)


def gone_by(waits_s, p50_s=600.0, p90_s=1200.0):
    """Requests that were promised the same, and took so long."""
    found = calibration.Calibration()
    for n, took_s in enumerate(waits_s):
        found = found.promised({f'r{n}': estimate(p50_s, p90_s)}, NOW)
        found = found.settled({f'r{n}': NOW + took_s}, {})
    return found


def test_the_first_estimate_of_a_start_is_judged():
    first = calibration.Calibration().promised({'r': estimate(600, 900)}, NOW)
    assert first.promised({'r': estimate(9000, 9000)}, NOW + 60) is first
    judged = first.settled({'r': NOW + 700}, {}).judged()
    assert judged == cluster.EstimateQuality(1, 0.0, 1.0, 100.0, -200.0)


@pytest.mark.parametrize(('at', 'count'), [(NOW + 800, 0), (NOW + 1000, 1)])
def test_a_withdrawn_request_is_judged_only_after_its_estimate(at, count):
    found = calibration.Calibration().promised({'r': estimate(600, 900)}, NOW)
    found = found.settled({}, {'r': at, 'nobody': at})
    assert (len(found.promises), len(found.past)) == (0, count)


def test_calibration_without_requests_has_no_result():
    assert calibration.Calibration().judged() is None
    nothing = calibration.Calibration()
    assert nothing.settled({'r': NOW}, {}) is nothing
    assert nothing.promised({}, NOW) is nothing


def test_estimates_are_corrected_by_past_errors():
    few = gone_by([1800.0] * (calibration.LEAST - 1))
    made = {'r': estimate(HOUR_S, 2 * HOUR_S)}
    assert few.told(made, NOW) == made
    enough = gone_by([1800.0] * calibration.LEAST)
    # Three times as long as p50 said, and half as long again as p90 did.
    assert enough.told(made, NOW) == {'r': estimate(3 * HOUR_S, 3 * HOUR_S)}


def test_errors_of_short_waits_are_known_to_long_ones():
    # Each took 30 seconds longer than was said: half of the minute that
    # cycles and builds may take.
    past = gone_by([50.0] * calibration.LEAST, p50_s=20.0, p90_s=20.0)
    made = {'r': estimate(10, 10), 's': estimate(HOUR_S, HOUR_S)}
    assert past.told(made, NOW) == {
        'r': estimate(40, 40),
        's': estimate(1.5 * HOUR_S, 1.5 * HOUR_S),
    }


def test_no_estimated_start_is_in_the_past():
    past = gone_by([0.0] * calibration.LEAST)
    assert past.told({'r': estimate(1, 2)}, NOW) == {'r': estimate(0, 0)}


def test_a_late_p50_moves_p90_never_before_it():
    past = gone_by([0.0] * 5 + [2400.0] * calibration.LEAST)
    [told] = past.told({'r': estimate(HOUR_S, HOUR_S)}, NOW).values()
    assert told.p50 <= told.p90


def test_old_estimates_are_removed():
    many = gone_by([HOUR_S] * 30 + [60.0] * calibration.REMEMBERED)
    assert len(many.past) == calibration.REMEMBERED
    assert many.corrections()[1] == pytest.approx(60 / 1200 - 1)


@hypothesis.settings(max_examples=20)
@hypothesis.given(
    st.integers(0, 2**32 - 1),
    st.floats(0.05, 20),
    st.sampled_from(['exponential', 'lognormal', 'fixed']),
)
def test_nine_of_ten_start_in_time_at_any_error_of_estimates(
    seed, wrong, spread
):
    chance = np.random.default_rng(seed)
    found = calibration.Calibration()
    for n in range(400):
        p90_s = float(chance.uniform(1, 20000))
        off = {
            'exponential': chance.exponential,
            'lognormal': lambda: chance.lognormal(0.0, 1.0),
            'fixed': lambda: 1.0,
        }[spread]()
        # Without the stretch up to all or none would be in time.
        took_s = p90_s * wrong * off
        found = found.promised({f'{n}': estimate(p90_s / 2, p90_s)}, NOW)
        found = found.settled({f'{n}': NOW + took_s}, {})
    # Nothing is corrected before that many outcomes are known.
    past = found.past[calibration.LEAST :]
    late = [each for each in past if each.took_s > each.p90_s + 1e-6]
    assert len(late) <= 0.1 * len(past) + 4 * (0.09 * len(past)) ** 0.5
