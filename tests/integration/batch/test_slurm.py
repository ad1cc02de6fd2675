# SPDX-License-Identifier: Apache-2.0

"""Slurm's plugin on a real slurmctld with four slurmd."""

import contextlib
import pathlib
import subprocess
import tempfile
import time

import pytest

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.model import partition
from nova_fairness.planners.partition import demand
from nova_fairness.planners.partition import planner
from nova_fairness.testing import batch_contract
from tests.fixtures import border
from tests.fixtures import patience
from tests.fixtures import slurm_cluster

HOSTS = slurm_cluster.NODES


@pytest.fixture(scope='module')
def running():
    # Sockets of munge lie below /tmp: paths of pytest are too long for them.
    with tempfile.TemporaryDirectory(prefix='slurm-') as place:
        pathlib.Path(place).chmod(0o755)
        cluster = slurm_cluster.SlurmCluster(pathlib.Path(place))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


@pytest.fixture
def slurm(running, monkeypatch):
    """A Slurm whose nodes are open and empty, before and after a test."""
    monkeypatch.setenv('SLURM_CONF', str(running.conf))
    running.settle()
    yield running
    running.settle()


@pytest.fixture
def batch(slurm):
    return plugins.load_batch('slurm')


class TestSlurm(batch_contract.BatchContract):
    @pytest.fixture(autouse=True)
    def _slurm(self, slurm):
        self.slurm = slurm

    def make(self):
        return plugins.load_batch('slurm')

    def submit(self, host, minutes):
        return self.slurm.submit('-n1', '-w', host, f'--time={minutes}')

    def end(self, job):
        self.slurm.run('scancel', job)

    def close_by_hand(self, host, reason):
        self.slurm.drain(host, reason)


def used(batch, host):
    return batch.look().places[host].work


def test_a_job_on_several_nodes_is_told_on_each(slurm, batch):
    job = slurm.submit('-N2', '-n3', '--time=60')
    found = patience.eventually(
        lambda: {
            host: place.work
            for host, place in batch.look().places.items()
            if place.work
        }
    )
    assert len(found) == 2
    assert {work.name for works in found.values() for work in works} == {job}
    assert sum(works[0].cores for works in found.values()) == 3


def test_when_a_job_is_gone_at_the_latest_is_its_limit(slurm, batch):
    slurm.submit('-n1', '-w', 'node1', '--time=7')
    slurm.submit('-n1', '-w', 'node2')
    patience.eventually(lambda: used(batch, 'node1') and used(batch, 'node2'))
    text = slurm.run('squeue', '-hw', 'node1', '-o', '%S')
    began = slurm.seconds(text.strip())
    assert used(batch, 'node1')[0].gone_at == began + 7 * 60
    assert used(batch, 'node2')[0].gone_at is None


@pytest.mark.parametrize(
    ('options', 'cores'),
    [
        (['-n3'], [3]),
        (['-N2', '--exclusive'], [4]),
        (['-n1', '--array=1-9:2%3'], [1, 1, 1]),
        (['-n1', '--array=1,3-4'], [1, 1, 1]),
        (['-n1', '--hold'], []),
        (['-n1', '--begin=now+60minutes'], []),
    ],
)
def test_what_waits_for_room_is_told_whole(slurm, batch, options, cores):
    for host in HOSTS:
        batch.close(host, 'a test')
    slurm.submit('--time=60', *options)
    slurm.submit('-n2', '--job-name=last')
    patience.eventually(lambda: 'None' not in slurm.reasons())
    seen = batch.look()
    told = sorted(
        want.cores for want in seen.wants if want.since <= time.time()
    )
    assert told == sorted([*cores, 2])


def test_a_job_of_which_a_limit_is_in_the_way_is_no_want(slurm, batch):
    first = slurm.submit('-n1', '--time=5')
    slurm.submit('-n1', f'--dependency=afterok:{first}')
    patience.eventually(lambda: 'Dependency' in slurm.reasons())
    assert batch.look().wants == ()


def test_a_node_whose_daemon_is_away_is_down(slurm, batch):
    slurm.run('scontrol', 'update', 'nodename=node4', 'state=down', 'reason=x')
    place = batch.look().places['node4']
    assert (place.takes, place.up, place.ours) == (False, False, False)


def test_while_the_controller_is_away_nothing_is_said_of_it(slurm, batch):
    slurm.end('slurmctld')
    slow = plugins.load_batch('slurm', {'timeout_s': 1.0})
    try:
        for call in (slow.look, lambda: slow.open('node1')):
            with pytest.raises(exception.BatchAway, match='sinfo --json'):
                call()
    finally:
        slurm.start_controller()
    assert patience.eventually(lambda: _places(batch)) == set(HOSTS)


def _places(batch):
    with contextlib.suppress(exception.BatchAway):
        return set(batch.look().places)
    return None


def test_who_may_not_change_nodes_is_told_so(slurm, batch):
    with pytest.raises(exception.BatchRefused, match='scontrol update'):
        batch.drain('nowhere', 'nova-fairness: x')
    refused = subprocess.run(
        ['scontrol', 'update', 'nodename=node1', 'state=drain', 'reason=x'],
        env=slurm.environment,
        user='nobody',
        capture_output=True,
        text=True,
        check=False,
    )
    assert 'nvalid' in refused.stderr or 'denied' in refused.stderr


def test_a_host_goes_to_the_cloud_when_its_job_has_ended(slurm, batch):
    """The planner's own actions on a real Slurm; the cloud is a fake."""
    job = slurm.submit('-n1', '-w', 'node1', '--time=60')
    patience.eventually(lambda: used(batch, 'node1'))
    host = partition.Host('m1', 'node1', 'c1', slurm_cluster.CPUS)
    node = partition.Node(host, partition.State.BATCH)
    asked = node.stepped(partition.Event.ASK, 0.0, partition.Cause.OPERATOR)
    cloud = {'c1': border.CLOSED}
    states = []

    def cycle(node):
        seen = partition.Seen(cloud)
        snapshot = partition.Snapshot((node,), batch.look(), seen)
        for action in planner.plan(snapshot, 1.0, demand.Rules()).actions:
            if action.step:
                node = node.stepped(
                    action.step, 1.0, action.cause, until=action.until
                )
                states.append(node.state.value)
            elif action.side is partition.Side.BATCH:
                batch.close('node1', action.text)
            else:
                cloud['c1'] = border.OPEN
        return node

    for _ in range(4):
        asked = cycle(asked)
    assert states == ['leaving_batch']
    assert slurm.states()['node1'] == 'draining'
    slurm.run('scancel', job)
    patience.eventually(lambda: not used(batch, 'node1'))
    for _ in range(2):
        asked = cycle(asked)
    assert asked.state is partition.State.CLOUD
    assert cloud['c1'].takes
    assert slurm.states()['node1'] == 'drained'
