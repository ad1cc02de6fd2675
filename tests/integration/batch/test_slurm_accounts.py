# SPDX-License-Identifier: Apache-2.0

"""Accounts of Slurm on a real slurmdbd and MariaDB."""

import os
import pathlib
import socket
import subprocess
import tempfile

import pytest

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.testing import batch_contract
from tests.fixtures import database_server
from tests.fixtures import patience
from tests.fixtures import slurm_cluster

_DBD = """\
AuthType=auth/munge
AuthInfo=socket={top}/munge/socket
DbdHost=localhost
DbdPort={port}
SlurmUser=root
LogFile={top}/slurmdbd.log
PidFile={top}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={storage}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm
"""
_MORE = """
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort={port}
AccountingStoragePass={top}/munge/socket
JobAcctGatherType=jobacct_gather/none
"""


def free_port():
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return one.getsockname()[1]


class Accounted(slurm_cluster.SlurmCluster):
    """A cluster whose jobs are accounted for."""

    def __init__(self, top, storage):
        self._port, self._storage = free_port(), storage
        super().__init__(top, more=_MORE.format(port=self._port, top=top))

    def start_controller(self):
        """Its accounts first: else it would keep what it cannot tell."""
        conf = self.top / 'slurmdbd.conf'
        conf.write_text(
            _DBD.format(top=self.top, port=self._port, storage=self._storage)
        )
        conf.chmod(0o600)
        self._start('slurmdbd', 'slurmdbd', '-D')
        patience.eventually(self._answers)
        self.run('sacctmgr', '-i', 'add', 'cluster', 'tests')
        for name in ('physics', 'biology'):
            self.run('sacctmgr', '-i', 'add', 'account', name, 'fairshare=500')
        self.run(
            *('sacctmgr', '-i', 'add', 'user', 'root'),
            *('account=physics', 'defaultaccount=physics'),
        )
        super().start_controller()

    def _answers(self):
        try:
            return self.run('sacctmgr', '-n', 'show', 'cluster') is not None
        except subprocess.SubprocessError:
            return False


@pytest.fixture(scope='module')
def slurm():
    if os.geteuid():
        pytest.skip('needs root')
    with (
        database_server.running(database_server.MARIADB) as database,
        tempfile.TemporaryDirectory(prefix='slurm-') as place,
    ):
        url = database.new_database()
        statements = (
            'CREATE DATABASE slurm; CREATE USER slurm@127.0.0.1 IDENTIFIED BY'
            " 'slurm'; GRANT ALL ON slurm.* TO slurm@127.0.0.1"
        )
        port = url.rpartition(':')[2].partition('/')[0]
        subprocess.run(
            [
                'mariadb',
                '-h127.0.0.1',
                f'-P{port}',
                '-uroot',
                '-e',
                statements,
            ],
            check=True,
        )
        pathlib.Path(place).chmod(0o755)
        cluster = Accounted(pathlib.Path(place), port)
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
        return 'physics', 'biology'

    def test_accounts_are_told_with_their_parents(self):
        found = self.make().shares()
        assert found['physics'].parent == found['biology'].parent == 'root'
        assert found['physics'].share == 500

    def test_while_slurmdbd_is_away_it_is_said(self):
        self.slurm.kill('slurmdbd')
        batch = self.make()
        with pytest.raises(exception.BatchAway):
            batch.shares()
        with pytest.raises(exception.BatchAway):
            batch.spent(0.0, 1.0)
        # Hosts are told as before.
        assert len(batch.look().places) == len(slurm_cluster.NODES)
        self.slurm._start('slurmdbd', 'slurmdbd', '-D')
        patience.eventually(self.slurm._answers)
