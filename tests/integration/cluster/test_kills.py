# SPDX-License-Identifier: Apache-2.0

"""Nothing is lost and nothing starts twice, whatever dies or stops."""

import os
import pathlib
import signal
import time

import pytest

from tests.fixtures import counting_cloud
from tests.fixtures import kill_runs
from tests.fixtures import write_signals

_LONG = [
    pytest.param('mariadb', 100, id='mariadb'),
    pytest.param('sqlite', 100, id='sqlite'),
]


def test_a_kill_at_any_write_loses_and_duplicates_no_request():
    with kill_runs.cloud('mariadb', seed=1) as cloud:
        counts = kill_runs.runs(cloud, 6)
    assert counts.is_clean, counts
    assert counts.requests == 6 * kill_runs.REQUESTS


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(('database', 'count'), _LONG)
def test_many_kills_lose_and_duplicate_no_request(database, count):
    with kill_runs.cloud(database, seed=2) as cloud:
        counts = kill_runs.runs(cloud, count)
    assert counts.is_clean, counts
    assert counts.struck > count / 2, counts


def _until(seen):
    end_s = time.monotonic() + counting_cloud.PATIENCE_S
    while not seen():
        assert time.monotonic() < end_s
        time.sleep(0.05)


def _is_stopped(pid):
    told = pathlib.Path(f'/proc/{pid}/stat').read_text()
    return told.rpartition(')')[2].split()[0] == 'T'


def _stopped_and_woken(cloud, when):
    """Stop the leader at a write, and let another one do its work."""
    _until(lambda: cloud.store.leader().epoch)
    slot = cloud.leader()
    pid = cloud.pids[slot]
    writes = cloud.random.randint(1, 40)
    blow = write_signals.WriteSignal(writes, 0, when, signal.SIGSTOP)
    cloud.nursery.arm(slot, blow)
    asked = [cloud.ask(1, 1) for _ in range(kill_runs.REQUESTS)]
    _until(lambda: _is_stopped(pid))
    assert cloud.wait(asked) == []
    _until(lambda: cloud.leader() != slot)
    os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize(
    'database', ['sqlite', pytest.param('mariadb', marks=pytest.mark.slow)]
)
def test_a_suspended_leader_duplicates_no_request_after_it_resumes(database):
    with kill_runs.cloud(database, seed=3) as cloud:
        for when in write_signals.WHEN:
            _stopped_and_woken(cloud, when)
        assert cloud.settle() == cloud.lost() == []
        assert cloud.conductor.doubles == cloud.conductor.refused == []
        # Nobody ended: it noticed by itself that another one leads.
        assert not cloud.restarts
