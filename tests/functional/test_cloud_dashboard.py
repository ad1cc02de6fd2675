# SPDX-License-Identifier: Apache-2.0

"""``tools/nova.sh --dashboard`` prints addresses; users find pages there."""

import json
import os
import pathlib
import re
import signal
import subprocess
from urllib import parse
from urllib import request

import pytest

from fairness_lab.testbed import qemu
from fairness_lab.testbed.nodes import processes
from tests.fixtures import patience
from tests.fixtures.nova_cloud import boards
from tests.fixtures.nova_cloud import environment
from tests.fixtures.nova_cloud import places

# Their pages, with a fake cloud: tests/integration/dashboard/test_pages.py.
pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.timeout(3600),
]

CHECKS = 'tests/integration/dashboard/check_cloud.py'
COMES_UP_S = 1800
ENDS_S = 60
RULES = environment.TOP / 'etc/prometheus'
TARGETS = 4
"""Agents of two nodes, relay and cluster service."""


def run(*words):
    """Output of a command inside the cloud."""
    done = subprocess.run(
        ['tools/nova.sh', 'run', *words],
        cwd=environment.TOP,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def servers():
    """Name and UUID of each server."""
    listed = run('openstack', 'server', 'list', '--all-projects', '-fjson')
    return {each['Name']: each['ID'] for each in json.loads(listed)}


@pytest.fixture(scope='module')
def said(tmp_path_factory):
    """What a cloud with dashboards printed; it leaves nothing afterwards."""
    before = {*qemu.living_runs()}
    log = tmp_path_factory.mktemp('cloud') / 'log'
    with log.open('w') as out:
        running = subprocess.Popen(
            ['tools/nova.sh', '--dashboard'],
            cwd=environment.TOP,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        processes.wait_until(
            lambda: 'ssh -N' in log.read_text() or running.poll() is not None,
            COMES_UP_S,
            1,
        )
        assert running.poll() is None, log.read_text()
        yield log.read_text()
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(ENDS_S)
    assert 'nothing is left of the cloud' in log.read_text()
    assert {*qemu.living_runs()} == before
    for name in ('Horizon', 'Prometheus'):
        with pytest.raises(OSError, match='refused'):
            request.urlopen(url_of(log.read_text(), name), timeout=10)


def url_of(said, name):
    """URL of one of the two, as it was printed."""
    [found] = re.findall(rf'^ +{name} +(http\S+)$', said, re.MULTILINE)
    return found


def test_users_see_only_their_servers_in_a_browser(said):
    [password] = re.findall(r'^ +password +(\S+)$', said, re.MULTILINE)
    [users] = re.findall(r'^ +users +(.+)$', said, re.MULTILINE)
    assert users.split(', ') == ['admin', *places.USERS]
    before = servers()
    cloud = {
        'site': url_of(said, 'Horizon').rstrip('/'),
        'password': password,
        'servers': {
            name: uuid
            for name, uuid in before.items()
            if name.startswith('alice-')
        },
    }
    shown = subprocess.run(
        [
            boards.PYTHON,
            '-m',
            'pytest',
            '-q',
            '-p',
            'no:cacheprovider',
            CHECKS,
        ],
        cwd=environment.TOP,
        env={**os.environ, 'FAIRNESS_CLOUD': json.dumps(cloud)},
        capture_output=True,
        check=False,
        text=True,
    )
    assert shown.returncode == 0, shown.stdout
    assert re.search(r'^3 passed', shown.stdout, re.MULTILINE), shown.stdout
    # The server that alice cancelled in her browser is gone, and no other.
    patience.eventually(
        lambda: before.keys() - servers().keys() == {'alice-waits'}
    )
    fields = ('-c', 'state', '-f', 'value')
    uuid = before['alice-waits']
    told = run('openstack', 'fairness', 'request', 'show', uuid, *fields)
    assert told == 'cancelled\n'


def asked(said, path, **query):
    """What the HTTP interface of Prometheus tells."""
    words = f'{url_of(said, "Prometheus")}api/v1/{path}?'
    with request.urlopen(words + parse.urlencode(query), timeout=60) as told:
        return json.load(told)['data']


def test_prometheus_scrapes_all_and_follows_the_rules(said):
    def targets():
        found = asked(said, 'targets')['activeTargets']
        return [each['health'] for each in found]

    patience.eventually(lambda: targets() == ['up'] * TARGETS)
    groups = asked(said, 'rules')['groups']
    files = {pathlib.Path(each['file']) for each in groups}
    assert files == {*RULES.glob('*.rules.yml')}
    assert {rule['health'] for each in groups for rule in each['rules']} <= {
        'ok',
        'unknown',
    }
    query = 'user:nova_fairness_instance_heaviness_quotas:count'
    patience.eventually(lambda: asked(said, 'query', query=query)['result'])
