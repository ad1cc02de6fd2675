# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

from fairness_lab.border_sim import batch as batch_module
from fairness_lab.queue_sim import workload
from nova_fairness.model import border
from tests.unit.fairness_lab.border_sim import small_worlds

ONE, TWO, WHOLE = small_worlds.ONE, small_worlds.TWO, small_worlds.WHOLE
BROAD = small_worlds.BROAD


def run(jobs, until=1000, hosts=1, closed=None, **more):
    """Starts of jobs; ``closed`` says which host is closed and when."""
    world = small_worlds.world(jobs, hosts=hosts, **more)
    batch = batch_module.BatchSide(world)
    for row in range(hosts):
        batch.set_open(row, True)
    for now in range(0, until, 10):
        if closed == now:
            batch.set_open(0, False)
        batch.advance(float(now))
        batch.schedule(float(now))
    batch.advance(float(until))
    return batch, batch.started_s.tolist()


def test_a_job_starts_at_the_next_pass_and_ends_by_itself():
    batch, started = run([(5, 0, WHOLE, 35), (6, 0, WHOLE, 100)])
    assert started == [10, 50]
    assert batch.area.sum() == 4 * 35 + 4 * 100


def test_a_group_that_used_less_of_its_share_is_next():
    jobs = [(0, 0, WHOLE, 100), (1, 0, WHOLE, 50), (2, 1, WHOLE, 50)]
    _, started = run(jobs)
    assert started[2] < started[1]


def test_a_larger_share_is_ahead_for_longer():
    jobs = [(0, n % 2, WHOLE, 100) for n in range(20)]
    starts = {}
    for shares in ((1.0, 1.0), (4.0, 1.0)):
        batch, _ = run(jobs, shares=shares, half_life_s=1e4)
        starts[shares] = batch.area
    assert starts[1.0, 1.0][0] == pytest.approx(starts[1.0, 1.0][1], abs=400)
    assert starts[4.0, 1.0][0] > 3 * starts[4.0, 1.0][1]


def test_backfill_does_not_delay_the_first_job_that_does_not_fit():
    """EASY: a short one goes before it, a long one does not."""
    first = (0, 0, TWO, 100)
    broad = (10, 0, BROAD, 50)
    short, long = (20, 0, ONE, 40), (20, 0, ONE, 200)
    limits = [100, 50, 40, 200]
    _, started = run([first, broad, short, long], hosts=2, limits=limits)
    assert started == [0, 100, 20, 150]


def test_a_long_job_may_start_beside_the_reserved_room():
    """Two of four cores are promised; the other two may be had for ever."""
    jobs = [(0, 0, WHOLE, 100), (10, 0, WHOLE, 50), (20, 0, ONE, 300)]
    _, started = run(jobs, hosts=2, limits=[100, 50, 300])
    # Two whole hosts: the second starts at once, the third waits for none.
    assert started == [0, 10, 60]
    jobs = [(0, 0, TWO, 100), (0, 0, WHOLE, 90), (10, 0, WHOLE, 50)]
    jobs.append((20, 0, ONE, 300))
    _, started = run(jobs, hosts=2, limits=[100, 90, 50, 300])
    # The promise is on the host that is free at 90; the other has two left.
    assert started == [0, 0, 90, 20]


def test_jobs_end_before_their_limits_and_make_room_earlier():
    jobs = [(0, 0, WHOLE, 30), (5, 0, WHOLE, 30)]
    _, started = run(jobs, limits=[900, 900])
    assert started == [0, 30]


def test_nothing_starts_on_a_closed_host_and_running_jobs_go_on():
    jobs = [(0, 0, WHOLE, 200), (10, 0, WHOLE, 10)]
    batch, started = run(jobs, closed=100)
    assert started[0] == 0
    assert np.isnan(started[1])
    assert batch.area.sum() == 800
    assert batch.pending_work() == (border.PendingWork('1', 4.0, 10.0, 4.0),)
    assert not batch.work(0)


def test_running_jobs_are_listed_with_their_time_limit():
    batch, _ = run([(0, 0, BROAD, 50)], until=20, hosts=2, limits=[80])
    for row in range(2):
        assert batch.work(row) == (border.RunningWork('0', 4.0, 80.0),)
    assert batch.used_cores == 8


def test_recorded_use_decays():
    batch, _ = run([(0, 0, WHOLE, 100)], until=200, half_life_s=100.0)
    # Half of what is left of a half.
    assert batch.use.tolist() == pytest.approx([0.25, 0.0])
    owners = workload.Owners(('p', 'q'), (1, 1), ('a', 'b', 'c'), (0, 0, 1))
    assert batch_module.by_group(owners, np.array([1.0, 2, 4])) == {
        'p': 3.0,
        'q': 4.0,
    }
