# SPDX-License-Identifier: Apache-2.0

"""Accounts of Slurm on a real slurmdbd and MariaDB."""

import pathlib
import subprocess
import tempfile

import pytest

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.testing import batch_contract
from tests.fixtures import accounted_slurm
from tests.fixtures import database_server
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
            yield cluster
        finally:
            cluster.stop()


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

    def test_accounts_are_told_with_their_parents(self):
        found = self.make().shares()
        assert found['physics'].parent == found['biology'].parent == 'root'
        assert found['physics'].share == accounted_slurm.SHARE

    def test_while_slurmdbd_is_away_it_is_said(self):
        self.slurm.kill('slurmdbd')
        batch = self.make()
        with pytest.raises(exception.BatchAway):
            batch.shares()
        with pytest.raises(exception.BatchAway):
            batch.spent(0.0, 1.0)
        # Hosts are told as before.
        assert len(batch.look().places) == len(slurm_cluster.NODES)
        self.slurm.start_accounts()
