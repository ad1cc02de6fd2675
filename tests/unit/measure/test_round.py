# SPDX-License-Identifier: Apache-2.0

"""Rows of what is remembered of VMs."""

import numpy as np
import pytest

from nova_fairness.measure import round as measure_round


@pytest.fixture
def past():
    made = measure_round.VmHistory.unknown(3, 10.0)
    made.wanted[:] = np.arange(made.wanted.size).reshape(made.wanted.shape)
    made.paused[:] = [True, False, True]
    return made


def test_rows_are_picked_alike_with_and_without_one_never_seen(past):
    all_seen = past.select(np.array([2, 0]))
    one_not = past.select(np.array([2, 0, -1]))
    assert (one_not.wanted[:, :2] == all_seen.wanted).all()
    assert all_seen.paused.tolist() == [True, True]
    assert one_not.paused.tolist() == [True, True, False]
    assert np.isnan(one_not.wanted[:, 2]).all()
    assert one_not.interval_s == all_seen.interval_s == 10.0


def test_a_change_of_picked_rows_changes_no_row_of_the_whole(past):
    picked = past.select(np.array([0, 1]))
    picked.wanted[:], picked.paused[:] = -1.0, False
    assert (past.wanted >= 0).all()
    assert past.paused.tolist() == [True, False, True]
