# SPDX-License-Identifier: Apache-2.0

"""Accounts of Slurm on a real slurmdbd and MariaDB."""

import pathlib
import subprocess
import tempfile
import time

import pytest

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.testing import batch_contract
from tests.fixtures import accounted_slurm
from tests.fixtures import database_server
from tests.fixtures import patience
from tests.fixtures import slurm_cluster

ACCOUNTS = 'physics', 'biology'


@pytest.fixture(scope='module')
def slurm():
    with (
        database_server.running(database_server.MARIADB) as database,
        tempfile.TemporaryDirectory(prefix='slurm-') as place,
    ):
        url = database.new_database()
        port = int(url.rpartition(':')[2].partition('/')[0])
        orders = accounted_slurm.statements('127.0.0.1')
        subprocess.run(
            ['mariadb', '-h127.0.0.1', f'-P{port}', '-uroot', '-e', orders],
            check=True,
        )
        pathlib.Path(place).chmod(0o755)
        cluster = accounted_slurm.AccountedSlurm(
            pathlib.Path(place),
            accounts=ACCOUNTS,
            storage=('127.0.0.1', port),
        )
        try:
            cluster.start()
            cluster.database = url
            yield cluster
        finally:
            cluster.stop()


@pytest.fixture
def forget(slurm):
    """Lets accounting forget the end of a job, and have it again."""
    port = slurm.database.rpartition(':')[2].partition('/')[0]
    kept = {}

    def sql(orders):
        command = 'mariadb', '-h127.0.0.1', f'-P{port}', '-uroot', '-Ne'
        done = subprocess.run(
            [*command, orders, accounted_slurm.USER],
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def change(job):
        end = sql(f'SELECT time_end FROM tests_job_table WHERE id_job={job}')
        kept.setdefault(job, end)
        set_end(job, 0, 1)

    def set_end(job, end, state):
        sql(
            f'UPDATE tests_job_table SET time_end={end}, state={state}'
            f' WHERE id_job={job}'
        )

    yield change
    for job, end in kept.items():
        set_end(job, end, 3)


class TestSlurm(batch_contract.BatchContract):
    @pytest.fixture(autouse=True)
    def _slurm(self, slurm, monkeypatch):
        monkeypatch.setenv('SLURM_CONF', str(slurm.conf))
        slurm.settle()
        self.slurm = slurm
        yield
        slurm.settle()

    def make(self):
        return plugins.load_batch('slurm')

    def submit(self, host, minutes):
        return self.slurm.submit('-n1', '-w', host, f'--time={minutes}')

    def end(self, job):
        self.slurm.run('scancel', job)

    def close_by_hand(self, host, reason):
        self.slurm.drain(host, reason)

    def accounts(self):
        return ACCOUNTS

    def test_accounts_of_slurm_are_listed_with_their_parents(self):
        found = self.make().shares()
        assert found['physics'].parent == found['biology'].parent == 'root'
        assert found['physics'].share == accounted_slurm.SHARE

    def test_an_unavailable_slurmdbd_is_reported(self):
        self.slurm.kill('slurmdbd')
        batch = self.make()
        with pytest.raises(exception.BatchAway):
            batch.shares()
        with pytest.raises(exception.BatchAway):
            batch.accounting(0.0, 1.0)
        # Hosts are told as before.
        assert len(batch.read_hosts().places) == len(slurm_cluster.NODES)
        self.slurm.start_accounts()

    def test_a_job_whose_end_accounting_never_saw_is_not_charged(self, forget):
        """As when the message of its end was lost."""
        batch, begun = self.make(), time.time()

        def told():
            return batch.accounting(begun - 1, time.time())

        def ends():
            return [x.end for x in told().jobs if x.begin >= begun - 1]

        job = self.submit('node1', 5)
        patience.wait_for_value(lambda: ends() == [None])
        self.end(job)
        patience.wait_for_value(lambda: None not in ends())
        forget(job)
        # slurmctld still knows when it ended.
        assert len(ends()) == 1
        assert None not in ends()
        assert not told().faults
        self.slurm.forget_jobs()
        forget(job)
        assert ends() == []
        assert f'job {job} of account physics' in told().faults[0]
