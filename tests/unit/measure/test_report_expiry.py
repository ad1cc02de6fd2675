# SPDX-License-Identifier: Apache-2.0

"""For how long what a silent node said still counts."""

import numpy as np
import pytest

from nova_fairness.measure import report_expiry


def after(gaps, part=0.0):
    for gap in gaps:
        part = float(
            report_expiry.updated_missing_part(np.array(part), np.array(gap))
        )
    return part


def waits(part):
    return float(report_expiry.allowed_silence(np.array(part)))


def test_where_nothing_is_missing_no_silence_is_chance():
    assert after([1.0] * 50) == 0.0
    assert waits(0.0) < 1.0


@pytest.mark.parametrize('part', [0.1, 1 / 3])
def test_lost_reports_are_learnt_and_waited_for(part):
    rng = np.random.default_rng(1)
    found = np.zeros(400)
    gaps = rng.geometric(1 - part, size=(300, 400)).astype(float)
    for each in gaps:
        found = report_expiry.updated_missing_part(found, each)
    assert np.median(found) == pytest.approx(part, abs=0.06)
    # Hardly any gap is longer.
    longer = gaps[-1] > report_expiry.allowed_silence(found)
    assert longer.mean() < 0.02


def test_no_node_is_waited_for_forever():
    assert waits(0.9) == waits(1.0) == report_expiry.MAX_INTERVALS


def test_an_outage_does_not_count_as_a_lost_report():
    assert after([1.0, 1.0, 50.0]) == 0.0
    assert after([1.0, 2.0]) > 0.04
