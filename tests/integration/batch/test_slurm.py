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
from nova_fairness.batch import slurm_forms
from nova_fairness.batch import slurm_json
from nova_fairness.batch import slurmrestd
from nova_fairness.model import border as border_module
from nova_fairness.planners.border import demand
from nova_fairness.planners.border import planner
from nova_fairness.testing import batch_contract
from tests.fixtures import border
from tests.fixtures import patience
from tests.fixtures import slurm_cluster

HOSTS = slurm_cluster.NODES
FEATURES = (
    pathlib.Path(__file__).parents[3]
    / 'etc/nova-fairness/slurm-job-features.sh'
)


@pytest.fixture(scope='module')
def running():
    # Sockets of munge lie below /tmp: paths of pytest are too long for them.
    with tempfile.TemporaryDirectory(prefix='slurm-') as place:
        pathlib.Path(place).chmod(0o755)
        more = f'TaskProlog={FEATURES}\nEpilog={FEATURES}\n'
        cluster = slurm_cluster.SlurmCluster(pathlib.Path(place), more=more)
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


@pytest.fixture(scope='module')
def rest(running):
    """URL of a slurmrestd."""
    url = running.start_rest()
    yield url
    running.end('slurmrestd')


class TestSlurmRest(TestSlurm):
    """The same, looked at by slurmrestd."""

    @pytest.fixture(autouse=True)
    def _rest(self, rest, monkeypatch):
        monkeypatch.setenv(slurmrestd.URL, rest)

    def make(self):
        return plugins.load_batch('slurmrestd')


def test_slurmrestd_agrees_with_the_commands(slurm, batch, rest, monkeypatch):
    monkeypatch.setenv(slurmrestd.URL, rest)
    slurm.submit('-N2', '-n3', '--time=60')
    patience.wait_for_value(
        lambda: any(each.work for each in batch.read_hosts().places.values())
    )
    slurm.drain('node4', 'bad disk')
    slurm.submit('-N4', '--exclusive', '--time=60')
    patience.wait_for_value(lambda: 'None' not in slurm.reasons())
    assert plugins.load_batch('slurmrestd').read_hosts() == batch.read_hosts()


def test_a_slurmrestd_that_is_away_or_of_another_version_is_named(
    slurm, rest, monkeypatch
):
    monkeypatch.setenv(slurmrestd.URL, rest)
    batch = plugins.load_batch('slurmrestd')
    monkeypatch.setattr(slurm_forms, 'BEST_FIRST', (99,))
    with pytest.raises(
        exception.BatchUnreadable, match=r'it offers v0.*, and known are'
    ):
        batch.close('node1', 'it goes')
    assert slurm.states()['node1'] == 'idle'
    monkeypatch.undo()
    monkeypatch.setenv(slurmrestd.URL, 'unix:/nowhere')
    with pytest.raises(exception.BatchAway, match='unix:/nowhere does not'):
        batch.read_hosts()


def used(batch, host):
    return batch.read_hosts().places[host].work


def test_a_job_on_several_nodes_is_listed_on_each_node(slurm, batch):
    job = slurm.submit('-N2', '-n3', '--time=60')
    found = patience.wait_for_value(
        lambda: {
            host: place.work
            for host, place in batch.read_hosts().places.items()
            if place.work
        }
    )
    assert len(found) == 2
    assert {work.name for works in found.values() for work in works} == {job}
    assert sum(works[0].cores for works in found.values()) == 3


def test_the_latest_end_of_a_job_follows_from_its_time_limit(slurm, batch):
    slurm.submit('-n1', '-w', 'node1', '--time=7')
    slurm.submit('-n1', '-w', 'node2')
    patience.wait_for_value(
        lambda: used(batch, 'node1') and used(batch, 'node2')
    )
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
def test_every_job_that_waits_for_room_is_listed(slurm, batch, options, cores):
    for host in HOSTS:
        batch.close(host, 'a test')
    slurm.submit('--time=60', *options)
    slurm.submit('-n2', '--job-name=last')
    patience.wait_for_value(lambda: 'None' not in slurm.reasons())
    seen = batch.read_hosts()
    told = sorted(
        want.cores for want in seen.wants if want.since <= time.time()
    )
    assert told == sorted([*cores, 2])


def test_a_job_that_waits_for_a_limit_is_no_demand(slurm, batch):
    first = slurm.submit('-n1', '--time=5')
    slurm.submit('-n1', f'--dependency=afterok:{first}')
    patience.wait_for_value(lambda: 'Dependency' in slurm.reasons())
    assert batch.read_hosts().wants == ()


def test_a_node_whose_daemon_is_away_is_down(slurm, batch):
    slurm.run('scontrol', 'update', 'nodename=node4', 'state=down', 'reason=x')
    place = batch.read_hosts().places['node4']
    assert (place.takes, place.up, place.ours) == (False, False, False)


def test_slurm_is_unavailable_while_its_controller_is_away(slurm, batch):
    slurm.end('slurmctld')
    slow = plugins.load_batch('slurm', {'timeout_s': 1.0})
    try:
        for call in (slow.read_hosts, lambda: slow.open('node1')):
            with pytest.raises(exception.BatchAway, match='sinfo --json'):
                call()
    finally:
        slurm.start_controller()
    assert patience.wait_for_value(lambda: _places(batch)) == set(HOSTS)


def _places(batch):
    with contextlib.suppress(exception.BatchAway):
        return set(batch.read_hosts().places)
    return None


def test_a_user_without_the_right_to_change_nodes_gets_an_error(slurm, batch):
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


class Mover:
    """A host on its way to a cloud that is a fake; its plans are real ones."""

    def __init__(self, batch, name):
        host = border_module.SharedHost('m', name, 'c1', slurm_cluster.CPUS)
        stays = border_module.BorderHost(host, border_module.HostState.BATCH)
        cause = border_module.HostCause.OPERATOR
        self.node = stays.stepped(border_module.HostEvent.ASK, 0.0, cause)
        self.cloud = {'c1': border.CLOSED}
        self.states = []
        self._batch, self._name = batch, name

    def cycle(self):
        seen = border_module.SideSnapshot(self.cloud)
        snapshot = border_module.Snapshot(
            (self.node,), self._batch.read_hosts(), seen
        )
        for action in planner.plan(
            snapshot, 1.0, demand.BorderRules()
        ).actions:
            if action.step:
                self.node = self.node.stepped(
                    action.step, 1.0, action.cause, until=action.until
                )
                self.states.append(self.node.state.value)
            elif action.side is border_module.BorderSide.BATCH:
                self._batch.close(self._name, action.text)
            else:
                self.cloud['c1'] = border.OPEN


def test_a_host_goes_to_the_cloud_when_its_job_has_ended(slurm, batch):
    """The planner's own actions on a real Slurm; the cloud is a fake."""
    job = slurm.submit('-n1', '-w', 'node1', '--time=60')
    patience.wait_for_value(lambda: used(batch, 'node1'))
    mover = Mover(batch, 'node1')
    for _ in range(4):
        mover.cycle()
    assert mover.states == ['leaving_batch']
    assert slurm.states()['node1'] == 'draining'
    slurm.run('scancel', job)
    patience.wait_for_value(lambda: not used(batch, 'node1'))
    for _ in range(2):
        mover.cycle()
    assert mover.node.state is border_module.HostState.CLOUD
    assert mover.cloud['c1'].takes
    assert slurm.states()['node1'] == 'drained'


LOOKS = """
for each in $MACHINEFEATURES/* $JOBFEATURES/*; do
  echo ${each##*/} $(cat $each)
done > %s.new
mv %s.new %s
while [ ! -e %s ]; do sleep 0.2; done
"""


def test_a_job_reads_until_when_its_host_stays(slurm, monkeypatch):
    """By machine/job features; nothing is left of them when it is over."""
    directory = slurm.top / 'features'
    (directory / 'node3').mkdir(parents=True)
    (directory / 'node3/total_cpu').write_text('2')
    (directory / 'node3/shutdowntime').write_text('7000000000')
    monkeypatch.setitem(
        slurm.environment, 'NOVA_FAIRNESS_FEATURES', str(directory)
    )
    told, go = slurm.top / 'told', slurm.top / 'go'
    where = '-w', 'node3'
    command = LOOKS % (told, told, told, go)
    job = slurm.submit('-n1', *where, '--time=90', command=command)
    patience.wait_for_value(told.exists)
    found = dict(line.split() for line in told.read_text().splitlines())
    began = int(found.pop('jobstart_secs'))
    assert found == {
        'total_cpu': '2',
        'shutdowntime': '7000000000',
        'job_id': job,
        'allocated_cpu': '1',
        'wall_limit_secs': '5400',
        'shutdowntime_job': str(began + 5400),
    }
    assert abs(began - time.time()) < patience.PATIENCE_S
    own = pathlib.Path(f'/tmp/nova-fairness-job-{job}')
    assert own.is_dir()
    go.touch()
    patience.wait_for_value(lambda: not own.exists())


def test_a_job_on_a_host_that_stays_reads_no_time(slurm):
    told, go = slurm.top / 'told', slurm.top / 'go'
    for path in (told, go):
        path.unlink(missing_ok=True)
    slurm.submit('-n1', command=LOOKS % (told, told, told, go))
    patience.wait_for_value(told.exists)
    names = [line.split()[0] for line in told.read_text().splitlines()]
    assert 'jobstart_secs' in names
    assert not {'wall_limit_secs', 'shutdowntime_job'} & {*names}
    go.touch()


def kill(slurm):
    """What slurmctld did not write down is lost."""
    slurm.kill('slurmctld')
    slurm.start_controller()
    return patience.wait_for_value(lambda: _states(slurm))


def _states(slurm):
    """None until all nodes have answered a slurmctld that is back."""
    with contextlib.suppress(subprocess.SubprocessError):
        found = slurm.states()
        return None if 'unknown' in ' '.join(found.values()) else found
    return None


def test_a_node_leaves_slurm_only_after_its_drain_is_saved(slurm, batch):
    """A slurmctld that has much to write is killed at the worst moment."""
    mover = Mover(batch, 'node3')
    mover.cycle()
    slurm.drain('node2', 'it keeps slurmctld busy')
    slurm.submit('-n1', '-w', 'node1', command='true')
    time.sleep(0.5)
    mover.cycle()
    assert slurm.states()['node3'] == 'drained'

    def is_given():
        mover.cycle()
        return mover.node.state is border_module.HostState.CLOUD

    patience.wait_for_value(is_given)
    assert kill(slurm)['node3'].startswith('drain')


def test_a_node_leaves_slurm_only_after_its_job_end_is_saved(slurm, batch):
    """A slurmctld that is killed then says of no job that it runs there."""
    go = slurm.top / 'end of it'
    command = f'while [ ! -e "{go}" ]; do sleep 0.1; done'
    slurm.submit('-n1', '-w', 'node3', command=command)
    patience.wait_for_value(lambda: used(batch, 'node3'))
    mover = Mover(batch, 'node3')
    for _ in range(2):
        mover.cycle()
    # That it is closed is known for good then.
    time.sleep(slurm_json.SAVED_S)
    slurm.drain('node2', 'it keeps slurmctld busy')
    time.sleep(0.5)
    go.touch()

    def is_given():
        mover.cycle()
        return mover.node.state is border_module.HostState.CLOUD

    patience.wait_for_value(is_given)
    kill(slurm)
    assert not slurm.run('squeue', '-hw', 'node3', '-t', 'R,CG').strip()
