# SPDX-License-Identifier: Apache-2.0

"""HTCondor's plugin on a real pool with four hosts.

Debian 13, which has HTCondor 23.9, is downloaded into a directory.
``NOVA_FAIRNESS_CONDOR_ROOT`` names another one, in which there is another
HTCondor.
"""

import os
import pathlib
import tempfile

import pytest

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.model import border
from nova_fairness.testing import batch_contract
from tests.fixtures import condor_pool
from tests.fixtures import debian_root
from tests.fixtures import patience
from tests.integration.batch import test_slurm

pytestmark = [
    pytest.mark.slow,
    pytest.mark.beside,
    pytest.mark.timeout(1200),
]

HOST, OTHER, *_ = condor_pool.NODES
HELD = 5
UNTIL = 'while [ ! -e {} ]; do sleep 0.2; done; exit 7'

jobs_on_host = test_slurm.jobs_on_host


def on_host(host):
    """Line of a job that runs on one host alone."""
    return f'requirements = Machine == "{host}"'


@pytest.fixture(scope='module')
def running():
    with (
        debian_root.made(['condor'], 'NOVA_FAIRNESS_CONDOR_ROOT') as root,
        tempfile.TemporaryDirectory(prefix='condor-') as place,
    ):
        top = pathlib.Path(place)
        top.chmod(0o755)
        pool = condor_pool.CondorPool(root, top)
        try:
            pool.start()
            yield pool
        finally:
            pool.stop()


@pytest.fixture(scope='module')
def programs(running, tmp_path_factory):
    """Directory of this HTCondor's commands."""
    place = tmp_path_factory.mktemp('programs')
    debian_root.write_programs(place, running.enter(), condor_pool.PROGRAMS)
    return place


@pytest.fixture
def pool(running, programs, monkeypatch):
    """A pool whose hosts are open and empty, before and after a test."""
    monkeypatch.setenv('PATH', f'{programs}:{os.environ["PATH"]}')
    for name, value in running.environment_of().items():
        monkeypatch.setenv(name, value)
    running.settle()
    yield running
    running.settle()


@pytest.fixture
def batch(pool):
    return plugins.load_batch('condor')


@pytest.fixture
def go(pool):
    """A file that lets jobs end once it is there."""
    path = pool.top / 'go'
    yield path
    path.unlink(missing_ok=True)


def close_with_job(batch):
    """Close a host, as the service does: again if it is refused.

    HTCondor may refuse it in the first moments of a job.
    """

    def is_closed():
        try:
            batch.close(HOST, 'it goes to the cloud')
        except exception.BatchRefused:
            return False
        return True

    patience.wait_for_value(is_closed)


class TestCondor(batch_contract.BatchContract):
    @pytest.fixture(autouse=True)
    def _pool(self, pool):
        self.pool = pool

    def make(self):
        return plugins.load_batch('condor')

    def submit(self, host, minutes):
        limit = f'allowed_job_duration = {60 * minutes}'
        return self.pool.submit(on_host(host), limit)

    def end(self, job):
        self.pool.run('condor_rm', job)

    def close_by_hand(self, host, reason):
        self.pool.drain(host, reason)


def test_a_job_ends_by_itself_on_a_host_that_is_drained(pool, batch, go):
    job = pool.submit(on_host(HOST), command=UNTIL.format(go))
    patience.wait_for_value(lambda: jobs_on_host(batch, HOST))
    close_with_job(batch)
    assert [work.name for work in jobs_on_host(batch, HOST)] == [job]
    assert pool.ended(job) is None
    go.touch()
    patience.wait_for_value(lambda: not jobs_on_host(batch, HOST))
    ended = patience.wait_for_value(lambda: pool.ended(job))
    assert ended == condor_pool.Ended(7, 1, HOST)


def test_a_host_goes_to_the_cloud_when_its_job_has_ended(pool, batch, go):
    """The planner's own actions on a real HTCondor; the cloud is a fake."""
    job = pool.submit(on_host(HOST), command=UNTIL.format(go))
    patience.wait_for_value(lambda: jobs_on_host(batch, HOST))
    mover = test_slurm.Mover(batch, HOST)
    for _ in range(4):
        mover.cycle()
    assert mover.states == ['leaving_batch']
    assert batch.read_hosts().places[HOST].ours
    go.touch()
    patience.wait_for_value(lambda: not jobs_on_host(batch, HOST))
    for _ in range(2):
        mover.cycle()
    assert mover.node.state is border.HostState.CLOUD
    assert mover.cloud['c1'].takes
    assert patience.wait_for_value(lambda: pool.ended(job)).code == 7


def test_a_drained_host_that_is_empty_goes_to_the_cloud(batch):
    mover = test_slurm.Mover(batch, HOST)

    def is_given():
        mover.cycle()
        return mover.node.state is border.HostState.CLOUD

    patience.wait_for_value(is_given)
    assert batch.read_hosts().places[HOST].ours


def test_a_waiting_job_starts_on_a_host_that_comes_back(pool, batch):
    batch.close(HOST, 'it goes to the cloud')
    job = pool.submit(on_host(HOST))
    patience.wait_for_value(lambda: batch.read_hosts().wants)
    assert not [work for work in jobs_on_host(batch, HOST) if work.name == job]
    batch.open(HOST)
    patience.wait_for_value(
        lambda: [work.name for work in jobs_on_host(batch, HOST)] == [job]
    )
    patience.wait_for_value(lambda: not batch.read_hosts().wants)


def test_a_job_goes_on_where_a_drain_is_taken_back(pool, batch, go):
    job = pool.submit(on_host(HOST), command=UNTIL.format(go))
    patience.wait_for_value(lambda: jobs_on_host(batch, HOST))
    close_with_job(batch)
    batch.open(HOST)
    patience.wait_for_value(lambda: batch.read_hosts().places[HOST].takes)
    assert [work.name for work in jobs_on_host(batch, HOST)] == [job]
    go.touch()
    ended = patience.wait_for_value(lambda: pool.ended(job))
    assert ended == condor_pool.Ended(7, 1, HOST)


def test_jobs_that_wait_for_slots_are_demand(pool, batch):
    """A job on hold is none."""
    for host in condor_pool.NODES:
        batch.close(host, 'a test')
    held = pool.submit('hold = True')
    pool.submit(cpus=2)
    pool.submit(count=3)
    patience.wait_for_value(lambda: len(batch.read_hosts().wants) == 4)
    assert pool.of_job(held, 'JobStatus') == HELD
    wants = batch.read_hosts().wants
    assert sorted(want.cores for want in wants) == [1, 1, 1, 2]
    assert held not in {want.name for want in wants}
    pool.run('condor_release', held)
    patience.wait_for_value(lambda: len(batch.read_hosts().wants) == 5)


def test_the_allowed_duration_of_a_job_is_its_latest_end(pool, batch):
    limited = pool.submit(on_host(HOST), 'allowed_job_duration = 420')
    pool.submit(on_host(OTHER))
    patience.wait_for_value(
        lambda: jobs_on_host(batch, HOST) and jobs_on_host(batch, OTHER)
    )
    (work,) = jobs_on_host(batch, HOST)
    assert work.gone_at == pool.of_job(limited, 'ShadowBday') + 420
    assert jobs_on_host(batch, OTHER)[0].gone_at is None


def test_a_job_with_less_retirement_time_prevents_a_drain(pool, batch):
    job = pool.submit(on_host(HOST), 'max_job_retirement_time = 3600')
    patience.wait_for_value(lambda: jobs_on_host(batch, HOST))
    with pytest.raises(exception.BatchRefused, match='check expression'):
        batch.close(HOST, 'it goes to the cloud')
    place = batch.read_hosts().places[HOST]
    assert place.takes
    assert [work.name for work in place.work] == [job]
    short = plugins.load_batch('condor', {'retirement_s': 1800.0})
    short.close(HOST, 'it goes to the cloud')
    assert batch.read_hosts().places[HOST].ours


def test_jobs_on_one_host_are_listed_with_their_cores(pool, batch):
    """A partitionable slot has a part for each job."""
    first = pool.submit(on_host(HOST))
    second = pool.submit(on_host(HOST))
    found = patience.wait_for_value(
        lambda: (
            len(jobs_on_host(batch, HOST)) == 2 and jobs_on_host(batch, HOST)
        )
    )
    assert {(work.name, work.cores) for work in found} == {
        (first, 1.0),
        (second, 1.0),
    }
    assert batch.read_hosts().places[HOST].takes


def test_htcondor_refuses_hosts_and_drains_that_are_wrong(pool, batch):
    with pytest.raises(exception.BatchRefused, match='condor_drain'):
        batch.drain('nowhere', f'{border.MARK}: it goes')
    batch.close(HOST, 'it goes to the cloud')
    with pytest.raises(exception.BatchRefused, match='already in progress'):
        batch.drain(HOST, f'{border.MARK}: it goes')
    assert batch.read_hosts().places[HOST].ours


def test_htcondor_is_unavailable_while_its_collector_is_away(
    batch, monkeypatch
):
    monkeypatch.setenv('_CONDOR_COLLECTOR_HOST', '127.0.0.1:1')
    for call in (batch.read_hosts, lambda: batch.open(HOST)):
        with pytest.raises(exception.BatchAway, match='condor_status'):
            call()
