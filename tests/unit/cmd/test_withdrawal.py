# SPDX-License-Identifier: Apache-2.0

"""The command that removes what the cluster service wrote elsewhere."""

import time

import pytest

from nova_fairness.cluster.openstack import clients
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.store import sealing
from nova_fairness.cluster.store import store as store_module
from nova_fairness.cmd import cluster
from tests.fixtures import fake_cloud
from tests.fixtures import slurm_written
from tests.unit.batch import test_slurm

commands = test_slurm.commands
LEADS = 'ctl1:17'


class Left:
    """A disabled host, and the command line of the service."""

    def __init__(self, place, monkeypatch):
        keys, path = place / 'keys', place / 'service.conf'
        url = f'sqlite:///{place}/store.sqlite'
        sealing.add_key(keys)
        path.write_text(
            f'[fairness_cluster]\ndatabase = {url}\nkey_file = {keys}\n'
        )
        self.path, self.arguments = path, ['--config-file', str(path)]
        cluster.main([*self.arguments, 'upgrade'])
        self.store = store_module.open_store(url, keys)
        cloud = fake_cloud.FakeCloud()
        cloud.add_host('c1')
        monkeypatch.setattr(clients, 'connect', lambda *_: cloud.apis)
        self.nova = nova_module.Nova(cloud.apis.nova)
        self.nova.disable(self.service, 'nova-fairness: it goes to batch')

    @property
    def service(self):
        return self.nova.services()['c1']

    def configure(self, text):
        self.path.write_text(f'{self.path.read_text()}{text}\n')

    def withdraw(self):
        return cluster.main([*self.arguments, 'withdraw'])


@pytest.fixture
def service_leftovers(tmp_path, monkeypatch):
    return Left(tmp_path, monkeypatch)


def test_hosts_are_opened_and_named(service_leftovers, capsys):
    assert service_leftovers.withdraw() == 0
    assert service_leftovers.service.enabled
    assert 'host c1: enabled, was: nova-fairness' in capsys.readouterr().out


def test_a_service_that_leads_is_named_and_nothing_is_removed(
    service_leftovers, capsys
):
    service_leftovers.store.take_over(0, LEADS, time.time())
    assert service_leftovers.withdraw() == 1
    assert not service_leftovers.service.enabled
    assert f'service {LEADS}: still the leader' in capsys.readouterr().err


def test_a_service_that_died_long_ago_does_not_count(service_leftovers):
    service_leftovers.store.take_over(0, LEADS, time.time() - 3600)
    assert service_leftovers.withdraw() == 0


def test_nodes_that_slurm_drained_for_the_service_are_given_back(
    service_leftovers, commands, capsys
):
    drained = ('DRAIN',)
    nodes = (
        slurm_written.Node('n1', flags=drained, reason='nova-fairness: lent'),
        slurm_written.Node('n2', flags=drained, reason='broken fan'),
        slurm_written.Node('n3'),
    )
    commands.lists(42, nodes=nodes)
    service_leftovers.configure('[fairness_partition]\nbatch = slurm')
    assert service_leftovers.withdraw() == 0
    asked = [each for each in commands.lines() if ' update ' in each]
    assert asked == ['scontrol update nodename=n1 state=undrain']
    said = capsys.readouterr().out
    assert 'node n1: undrained, was: nova-fairness: lent' in said
    assert 'all changes in Nova and in the batch system are removed' in said


def test_a_slurm_that_is_away_is_named_and_hosts_are_opened(
    service_leftovers, commands, capsys
):
    commands.lists(42, away=True)
    service_leftovers.configure('[fairness_partition]\nbatch = slurm')
    assert service_leftovers.withdraw() == 1
    assert service_leftovers.service.enabled
    said = capsys.readouterr()
    assert 'nodes of the batch system: not looked for' in said.err
    assert 'are removed' not in said.out


def test_without_a_batch_system_no_node_is_told_to_be_looked_for(
    service_leftovers, capsys
):
    assert service_leftovers.withdraw() == 0
    said = capsys.readouterr().out
    assert (
        'all changes in Nova are removed; the batch system was not checked'
        in said
    )
    assert 'in the batch system' not in said
