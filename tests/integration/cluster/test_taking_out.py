# SPDX-License-Identifier: Apache-2.0

"""The queue is taken out as its page says, and leaves nothing behind."""

import os
import pathlib
import subprocess
import sys

from nova_fairness.model import request
from tests.fixtures import counting_cloud
from tests.fixtures import kill_runs
from tests.integration.relay import test_relay as ends

ROOT = pathlib.Path(__file__).parents[3]
UNSENT = request.UNSENT | {request.State.SENDING}

PAGE = {'store.sqlite', 'keys', 'service.conf'}
"""What the page says to remove: the database, the key, the configuration."""

OURS = {'clouds.yaml', 'orders'}


def as_operators_may(cloud):
    """Take out what the fixture's commands alone may have so small."""
    conf = cloud.directory / 'service.conf'
    short = f'doubt = {counting_cloud.DOUBT_S}\n'
    assert short in conf.read_text()
    conf.write_text(conf.read_text().replace(short, ''))


def typed(cloud, program, command):
    """What a command says that must do what it is told to."""
    text = (
        f'from nova_fairness.cmd import {program}\n'
        f'raise SystemExit({program}.main())'
    )
    conf = str(cloud.directory / 'service.conf')
    done = subprocess.run(
        [sys.executable, '-c', text, '--config-file', conf, command],
        cwd=cloud.directory,
        env={**os.environ, 'PYTHONPATH': str(ROOT)},
        capture_output=True,
        text=True,
        timeout=counting_cloud.PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def is_told(cloud, asked):
    """Whether conductor was told to build all of it."""
    built = cloud.conductor.built
    return all(built[uuid] for each in asked for uuid in each.servers)


def states(cloud, asked):
    found = [cloud.store.request(each.servers[0]) for each in asked]
    return {each and each.request.state for each in found}


def test_removing_the_queue_starts_waiting_requests_and_leaves_nothing():
    with kill_runs.cloud('sqlite', seed=5) as cloud:
        full = [cloud.ask(1, 8), cloud.ask(1, 8)]
        cloud.until(lambda: is_told(cloud, full), 'they do not start')
        waiting = [cloud.ask(1, 2), cloud.ask(3, 1), cloud.ask(1, 99)]
        cloud.until(
            lambda: states(cloud, waiting) == {request.State.WAITING},
            'they do not wait',
        )
        # nova-api is switched back: what is new starts at once, or not.
        cloud.exchange = counting_cloud.PLACES.target
        new = [cloud.ask(1, 1)]
        cloud.until(lambda: is_told(cloud, new), 'it waits')
        cloud.stop(counting_cloud.SERVICES)
        as_operators_may(cloud)
        assert (
            typed(cloud, 'cluster', 'drain')
            == 'queue: empty, all requests have started\n'
        )
        cloud.until(lambda: is_told(cloud, waiting), 'Nova lacks some')
        # Without the queue the fake nova-api's own doubles come through.
        assert set(cloud.conductor.doubles) <= set(new[0].servers)
        assert (
            cloud.store.requests(UNSENT)
            == cloud.store.messages_without_request(9)
            == []
        )
        cloud.stop([counting_cloud.RELAY])
        assert 'queues removed' in typed(cloud, 'relay', 'remove')
        assert ends.names_on(cloud.broker, counting_cloud.PLACES) == []
        assert cloud.cloud.holds() == []
        files = {each.name for each in cloud.directory.iterdir()}
        logs = {each for each in files if each.endswith('.log')}
        kept = {each.partition('-')[0] for each in files - logs}
        assert kept == PAGE | OURS
        # Nova goes on as it was.
        with cloud.cloud.lock:
            cloud.cloud.add_host('new', 8, 10_000)
        last = [cloud.ask(1, 8)]
        cloud.until(lambda: is_told(cloud, last), 'it waits')
        assert last[0].servers[0] not in cloud.conductor.refused
