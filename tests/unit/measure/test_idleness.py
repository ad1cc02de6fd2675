# SPDX-License-Identifier: Apache-2.0

"""Since when a VM has done next to nothing."""

import hypothesis
from hypothesis import strategies as st
import pytest

from nova_fairness.measure import idleness

HOUR_S = idleness.WINDOW_S
LIMITS = idleness.QuietLimits(cpus=0.02, rate=1000.0)


def watched(*steps, every=60.0, begin=1000.0):
    """A VM after some steps of CPU seconds and bytes."""
    found, now = idleness.Quiet.fresh(begin), begin
    for cpu_s, moved in steps:
        now += every
        found = found.updated(idleness.VmWork(cpu_s, moved), now, LIMITS)
    return found, now


IDLE, BUSY = (0.5, 100.0), (30.0, 0.0)


def test_a_vm_that_does_little_for_days_is_idle_since_the_begin():
    found, now = watched(*[IDLE] * (3 * 24 * 60))
    assert now - found.since == 3 * 86400


@pytest.mark.parametrize('work', [(72.0, 0.0), (0.0, 3.6e6)])
def test_an_hours_worth_of_work_makes_busy_at_once(work):
    found, now = watched(*[IDLE] * 100, work)
    assert found.since == now


@pytest.mark.parametrize('work', [(71.0, 0.0), (0.0, 3.5e6)])
def test_a_short_burst_is_not_yet_work(work):
    found, _ = watched(*[(0.0, 0.0)] * 70, work, *[(0.0, 0.0)] * 200)
    assert found.since == 1000.0


def test_a_vm_that_always_works_a_little_is_busy_at_the_end_of_the_hour():
    found, now = watched(*[(1.21, 0.0)] * 60)
    assert found.since == now


def test_an_hour_out_of_sight_begins_the_count_again():
    found, now = watched(*[IDLE] * 100)
    near = found.updated(idleness.VmWork(), now + HOUR_S, LIMITS)
    assert near.since == 1000.0
    far = found.updated(idleness.VmWork(), now + HOUR_S + 1, LIMITS)
    assert far.since == now + HOUR_S + 1


def test_a_clock_that_goes_back_begins_the_count_again():
    found, now = watched(*[IDLE] * 100)
    assert found.updated(idleness.VmWork(), now - 1, LIMITS).since == now - 1


@hypothesis.given(
    st.lists(
        st.tuples(st.floats(0, 100), st.floats(0, 1e7), st.floats(0, 5000)),
        max_size=50,
    )
)
def test_no_vm_is_idle_for_longer_than_it_was_watched(steps):
    now = begin = 1000.0
    found = idleness.Quiet.fresh(begin)
    for cpu_s, moved, elapsed_s in steps:
        now += elapsed_s
        found = found.updated(idleness.VmWork(cpu_s, moved), now, LIMITS)
        assert begin <= found.since <= found.seen == now
