# SPDX-License-Identifier: Apache-2.0

"""Hosts move between a real Slurm and the real Nova.

What came of the kills is in ``build/kills-border.json`` afterwards.
"""

import contextlib
import datetime as dt
import functools
import json
import os
import pathlib
import subprocess
import time

import pytest

from nova_fairness.model import border as border_module
from tests.fixtures import panels
from tests.fixtures import slurm_cluster
from tests.fixtures.nova_cloud import environment
from tests.fixtures.nova_cloud import scraping
from tests.fixtures.nova_cloud import waiting
from tests.integration.nova import crossing as crossing_module
from tests.integration.nova import watching

pytestmark = [pytest.mark.real, pytest.mark.timeout(watching.TIMEOUT_S)]
pytest_plugins = ('tests.fixtures.nova_cloud.fixtures',)

BATCH, CLOUD = border_module.BorderSide
CORES = slurm_cluster.CPUS
SERVICE, SLURM, COMPUTE = waiting.SERVICE, 'slurmctld', 'nova-compute'
TOLD = environment.TOP / 'build/kills-border.json'
TEST = str(pathlib.Path(__file__).relative_to(environment.TOP))
MOST_TRIES = 10
OF_GROUPS = 'Part that a group was pledged', 'Part that a group used'
"""Panels of ``test_border_pledges.py``; there are no groups here."""

BY_HAND = {'most_moving': '0'}
"""Demand moves no host."""

SAVED_S = 6.0
"""After which Slurm has written down what it began: what it did not, it does
not know any more when it was killed."""


@pytest.fixture(scope='module')
def queue(cloud):
    """The queue, also where no busy servers are beside these hosts."""
    was_in = cloud.queue.is_in
    if not was_in:
        cloud.put_queue_in()
    try:
        yield cloud.queue
    finally:
        if not was_in:
            cloud.queue.take_out()


@pytest.fixture(scope='module')
def shared(cloud, queue):
    with crossing_module.slurm_beside_cloud(cloud, queue) as made:
        yield made


@pytest.fixture
def border(shared, tmp_path):
    """Hosts where they were in the beginning, and nothing on them."""
    shared.until = tmp_path / 'go'
    shared.servers = []
    try:
        yield shared
    finally:
        shared.until.touch()
        left = [each for each in shared.servers if shared.cloud.exists(each)]
        shared.cloud.delete(left)
        shared.slurm.run('scancel', '--user=root')


def boot(border, name, host=None):
    made = border.boot(name, host)
    border.servers.append(made)
    return made


def delete(border, servers):
    """Delete servers; nothing else was ever done to them."""
    border.cloud.delete(servers)
    for each in servers:
        assert set(border.actions(each)) == {'create', 'delete'}


def await_job(border, job, state):
    watching.eventually(
        lambda: job_state(border, job) == state,
        lambda: (job_state(border, job), border.states(), border.faults()),
    )


def job_state(border, job):
    """Empty while Slurm does not answer."""
    with contextlib.suppress(subprocess.SubprocessError):
        return border.job_state(job)
    return ''


def end(border, *jobs):
    """Let jobs end by themselves, which they do if nobody killed them."""
    border.until.touch()
    for each in jobs:
        await_job(border, each, 'COMPLETED')


def assert_nothing_was_shared(border, sampler):
    assert sampler.looks > 10
    assert sampler.both == []
    assert border.overlaps() == []


@pytest.mark.slow
def test_load_moves_from_batch_to_the_cloud_and_back(border, queue):
    """The host goes whose job has the shortest limit, after its end."""
    crossing_module.begin(border, queue)
    with crossing_module.Sampler(border) as sampler:
        short, *others = [
            border.job(until, host, f'-n{cores}', f'--time={minutes}')
            for until, host, cores, minutes in (
                (border.until.with_name('first'), 'm1', 1, 10),
                (border.until, 'm2', 1, 60),
                (border.until, 'm3', 2, 60),
            )
        ]
        for each in (short, *others):
            await_job(border, each, 'RUNNING')
        servers = [boot(border, f'load-{n}') for n in range(CORES + 1)]
        border.await_state('m1', 'leaving_batch')
        assert border.states()['m2'] == 'batch'
        watching.eventually(lambda: not border.is_open('m1', BATCH))
        assert border.job_state(short) == 'RUNNING'
        ended_at = time.time()
        border.until.with_name('first').touch()
        for each in servers:
            border.cloud.await_status(each)
        to_cloud_s = arrived(border, 'm1') - ended_at
        await_job(border, short, 'COMPLETED')
        last = [each for each in servers if border.host_of(each) == 'm1']
        assert len(last) == 1

        delete(border, last)
        ended_at = time.time()
        more = border.job(border.until, None, '-N1', '--exclusive')
        await_job(border, more, 'RUNNING')
        to_batch_s = arrived(border, 'm1') - ended_at
        assert border.states() == crossing_module.USUAL
        end(border, more, *others)
        delete(border, [each for each in servers if each not in last])
    record(
        'load there and back',
        sampler,
        border,
        seconds_from_the_last_end_to_the_cloud=round(to_cloud_s),
        seconds_from_the_last_end_to_batch=round(to_batch_s),
        load_of_the_machine=os.getloadavg()[0],
    )
    assert_nothing_was_shared(border, sampler)
    with scraping.running(border.cloud) as prometheus:
        panels.await_values('border', prometheus.query, without=OF_GROUPS)


class Killer:
    """Kills one program at what is seen, and starts it anew.

    :ivar at: what was seen when it died.
    """

    def __init__(self, border, queue, victim):
        self.at, self._border = [], border
        queue_kill = functools.partial(queue.kill, waiting.SERVICE)
        self._kill, self._start = {
            SERVICE: (
                queue_kill,
                functools.partial(queue.start, waiting.SERVICE),
            ),
            SLURM: (
                functools.partial(border.slurm.kill, SLURM),
                border.slurm.start_controller,
            ),
            COMPUTE: (border.fakes.kill, border.start_computes),
        }[victim]

    def at_state(self, host, state):
        self._border.await_state(host, state)
        self._strike(f'{host} {state}')

    def at_asking(self, host, asked, leaving, stays):
        """When a host is asked to move; it does not stay so for long."""
        for _ in range(MOST_TRIES):
            self._border.act(host, 'move')
            if self._border.await_state(host, asked, leaving) == asked:
                self._strike(f'{host} {asked}')
                if self._border.await_state(host, leaving, stays) == stays:
                    # What was away then was seen to be: it was refused.
                    self._border.act(host, 'move')
                return
            self._border.act(host, 'cancel')
            self._border.await_state(host, stays)
        raise AssertionError(f'{host} was never seen as {asked}')

    def at_door(self, host, side, is_open):
        """When a side has opened or closed a host."""
        watching.eventually(
            lambda: door(self._border, host, side) is is_open,
            lambda: (self._border.states(), self._border.faults()),
        )
        word = 'open' if is_open else 'closed'
        self._strike(f'{host} {word} in {side.value}')

    def _strike(self, at):
        self._kill()
        self._start()
        self.at.append(at)


def door(border, host, side):
    """``None`` while it is not known."""
    with contextlib.suppress(subprocess.SubprocessError):
        return border.is_open(host, side)
    return None


def arrived(border, host):
    """When a host came to the side where it is, seconds of the epoch."""
    told = border.cloud.admin.get(
        'compute', f'/fairness/partition/hosts/{host}'
    )['host']['history'][-1]
    assert told['event'] == 'arrive'
    return dt.datetime.fromisoformat(told['at']).timestamp()


def record(title, sampler, border, **found):
    """Add what came of a test to what was told before."""
    told = json.loads(TOLD.read_text()) if TOLD.exists() else {}
    told['test'] = TEST
    told[title] = {
        **found,
        'looks': sampler.looks,
        'hosts_seen_on_both_sides': [host for _, host in sampler.both],
        'hosts_on_both_sides_by_records': len(border.overlaps()),
        'jobs_and_servers': [len(each) for each in border.uses()],
    }
    TOLD.parent.mkdir(exist_ok=True)
    TOLD.write_text(json.dumps(told, indent=1) + '\n')


@pytest.mark.slow
@pytest.mark.parametrize('victim', [SERVICE, SLURM, COMPUTE])
def test_a_host_goes_on_when_any_process_is_killed_at_any_step(
    border, queue, victim
):
    """There with a job, back with a server; others are left alone."""
    crossing_module.begin(border, queue, **BY_HAND)
    killer = Killer(border, queue, victim)
    stays = boot(border, 'stays', 'm4')
    border.cloud.await_status(stays)
    job = border.job(border.until.with_name('first'), 'm1', '--time=10')
    other = border.job(border.until, 'm2', '--time=60')
    for each in (job, other):
        await_job(border, each, 'RUNNING')
    time.sleep(SAVED_S)
    with crossing_module.Sampler(border) as sampler:
        killer.at_asking('m1', 'cloud_asked', 'leaving_batch', 'batch')
        killer.at_state('m1', 'leaving_batch')
        killer.at_door('m1', BATCH, False)
        await_job(border, job, 'RUNNING')
        border.until.with_name('first').touch()
        killer.at_state('m1', 'cloud')
        killer.at_door('m1', CLOUD, True)
        await_job(border, job, 'COMPLETED')
        border.fakes.await_up()
        moved = boot(border, 'moved', 'm1')
        border.cloud.await_status(moved)

        killer.at_asking('m1', 'batch_asked', 'leaving_cloud', 'cloud')
        killer.at_state('m1', 'leaving_cloud')
        killer.at_door('m1', CLOUD, False)
        border.fakes.await_up()
        assert border.cloud.show(moved)['status'] == 'ACTIVE'
        delete(border, [moved])
        killer.at_state('m1', 'batch')
        killer.at_door('m1', BATCH, True)
        last = border.job(border.until, 'm1', '--time=10')
        await_job(border, last, 'RUNNING')
        assert border.states() == crossing_module.USUAL
        end(border, other, last)
        assert border.cloud.show(stays)['status'] == 'ACTIVE'
        delete(border, [stays])
    record(f'{victim} is killed', sampler, border, killed_at=killer.at)
    assert len(killer.at) == len(set(killer.at)) == 10
    assert_nothing_was_shared(border, sampler)


@pytest.mark.slow
def test_an_empty_host_leaves_slurm_although_slurm_was_killed(border, queue):
    """What Slurm did not write down it does not know any more."""
    crossing_module.begin(border, queue, **BY_HAND)
    killer = Killer(border, queue, SLURM)
    with crossing_module.Sampler(border) as sampler:
        border.act('m3', 'move')
        # One that has much to write down writes it later.
        while door(border, 'm3', BATCH) is not False:
            border.slurm.submit('-n1', '-w', 'node2', command='true')
        killer.at_door('m3', BATCH, False)
        killer.at_door('m3', CLOUD, True)
        server = boot(border, 'there', 'm3')
        border.cloud.await_status(server)
        watching.eventually(lambda: door(border, 'm3', BATCH) is False)
        delete(border, [server])
        border.act('m3', 'move')
        killer.at_door('m3', CLOUD, False)
        killer.at_door('m3', BATCH, True)
        job = border.job(border.until, 'm3')
        await_job(border, job, 'RUNNING')
        end(border, job)
    title = 'slurmctld is killed while it has much to write'
    record(title, sampler, border, killed_at=killer.at)
    assert_nothing_was_shared(border, sampler)


@pytest.mark.slow
def test_a_host_move_can_be_cancelled_in_every_state(border, queue):
    crossing_module.begin(border, queue, **BY_HAND)
    server = boot(border, 'stays', 'm4')
    border.cloud.await_status(server)
    job = border.job(border.until, 'm1', '--time=60')
    await_job(border, job, 'RUNNING')
    with crossing_module.Sampler(border) as sampler:
        for host, side in (('m1', BATCH), ('m4', CLOUD)):
            asked, leaving = (
                f'{side.other.value}_asked',
                f'leaving_{side.value}',
            )
            found = set()
            for _ in range(MOST_TRIES):
                found.add(called_back(border, host, side, asked))
                if asked in found:
                    break
            found.add(called_back(border, host, side, leaving))
            found.add(called_back(border, host, side, 'closed'))
            assert found == {asked, leaving}
        shown = watching.openstack(
            border.cloud, 'fairness', 'partition', 'show', 'm4'
        )
        events = [each['event'] for each in shown['history']]
        assert events.count('cancel') >= 3
        assert border.states() == crossing_module.USUAL
        assert border.cloud.show(server)['status'] == 'ACTIVE'
        delete(border, [server])
        end(border, job)
    record('called back', sampler, border)
    assert_nothing_was_shared(border, sampler)


def called_back(border, host, side, when):
    """The state from which a host is called back, when that is seen."""
    border.act(host, 'move')
    if when == 'closed':
        watching.eventually(lambda: door(border, host, side) is False)
    else:
        border.await_state(host, when, f'leaving_{side.value}')
    border.act(host, 'cancel')
    path = f'/fairness/partition/hosts/{host}'
    told = border.cloud.admin.get('compute', path)['host']
    assert told['history'][-1]['event'] == 'cancel'
    watching.eventually(lambda: door(border, host, side) is True)
    assert border.states()[host] == side.value
    return told['history'][-2]['state']
