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
from tests.fixtures import panels
from tests.fixtures import patience
from tests.fixtures.nova_cloud import boards
from tests.fixtures.nova_cloud import environment
from tests.fixtures.nova_cloud import places
from tests.unit.api_ext import fake_cloud
from tests.unit.api_ext import test_tokens

# Their pages, with a fake cloud: tests/integration/dashboard/test_pages.py.
pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.timeout(3600),
]

CHECKS = 'tests/integration/dashboard/check_cloud.py'
ORDERS = 'tests/integration/dashboard/check_orders.py'
MEMBERS = 'alice', 'bob'
"""Of other projects than carol."""
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
def printed_log(tmp_path_factory):
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


def url_of(printed_log, name):
    """URL of one of the two, as it was printed."""
    [found] = re.findall(rf'^ +{name} +(http\S+)$', printed_log, re.MULTILINE)
    return found


def check_in_browser(cloud, path, count):
    """Have a browser check something in the environment of Horizon."""
    shown = subprocess.run(
        [
            *(boards.PYTHON, '-m', 'pytest', '-q'),
            *('-p', 'no:cacheprovider', path),
        ],
        cwd=environment.TOP,
        env={**os.environ, 'FAIRNESS_CLOUD': json.dumps(cloud)},
        capture_output=True,
        check=False,
        text=True,
    )
    assert shown.returncode == 0, shown.stdout
    passed = re.search(r'^(\d+) passed', shown.stdout, re.MULTILINE)
    assert int(passed[1]) == count, shown.stdout


def password_of(printed_log):
    [password] = re.findall(r'^ +password +(\S+)$', printed_log, re.MULTILINE)
    return password


def test_users_see_only_their_servers_in_a_browser(printed_log):
    [users] = re.findall(r'^ +users +(.+)$', printed_log, re.MULTILINE)
    assert users.split(', ') == ['admin', *places.USERS]
    before = servers()
    cloud = {
        'site': url_of(printed_log, 'Horizon').rstrip('/'),
        'password': password_of(printed_log),
        'servers': {
            name: uuid
            for name, uuid in before.items()
            if name.startswith('alice-')
        },
    }
    check_in_browser(cloud, CHECKS, 3)
    # The server that alice cancelled in her browser is gone, and no other.
    patience.wait_for_value(
        lambda: before.keys() - servers().keys() == {'alice-waits'}
    )
    fields = ('-c', 'state', '-f', 'value')
    uuid = before['alice-waits']
    told = run('openstack', 'fairness', 'request', 'show', uuid, *fields)
    assert told == 'cancelled\n'


def openstack(*words):
    """What a command of the administrator shows."""
    return json.loads(run('openstack', *words, '-f', 'json'))


def id_of(kind, name):
    """ID of a thing of Keystone."""
    return openstack(kind, 'show', name, '-c', 'id')['id']


def shares():
    listed = openstack('fairness', 'share', 'list', '--all-projects')
    return {each['Account']: each['Share'] for each in listed}


@pytest.fixture(scope='module')
def orders(printed_log):
    """What checks of orders need; mary manages the project of alice."""
    project = places.USERS['alice']
    run(
        'openstack',
        'user',
        'create',
        'mary',
        '--password',
        password_of(printed_log),
    )
    for role in ('member', 'manager'):
        words = ('--user', 'mary', '--project', project, role)
        run('openstack', 'role', 'add', *words)
    return {
        'site': url_of(printed_log, 'Horizon').rstrip('/'),
        'password': password_of(printed_log),
        'account': f'{id_of("project", project)}/{id_of("user", "alice")}',
        'plan': '',
    }


def test_managers_and_operators_give_orders_in_a_browser(printed_log, orders):
    cloud = {**orders, 'servers': servers()}
    check = 'a_manager_previews_and_divides_the_share'
    check_in_browser(cloud, f'{ORDERS}::test_{check}', 1)
    assert shares()[orders['account']] == 3.0
    check_in_browser(
        cloud, f'{ORDERS}::test_an_operator_puts_a_request_first', 1
    )
    uuid = cloud['servers']['bob-waits']
    told = openstack('fairness', 'request', 'show', uuid)
    assert told['position'] == 1
    assert told['first']
    check = 'an_operator_previews_and_sets_a_metric'
    check_in_browser(cloud, f'{ORDERS}::test_{check}', 1)

    def in_force():
        found = openstack('fairness', 'metric', 'list')
        return [each['Name'] for each in found if each['In Force']]

    patience.wait_for_value(lambda: in_force() == ['GreedinessMetric'])
    check = 'users_read_in_the_dialog_which_flavors_start'
    check_in_browser(cloud, f'{ORDERS}::test_{check}', 1)


def query_prometheus(printed_log, path, **query):
    """What the HTTP interface of Prometheus tells."""
    words = f'{url_of(printed_log, "Prometheus")}api/v1/{path}?'
    with request.urlopen(words + parse.urlencode(query), timeout=60) as told:
        return json.load(told)['data']


@pytest.mark.parametrize('page', ['node', 'queue', 'users'])
def test_panels_of_grafana_have_values_while_requests_wait(printed_log, page):
    def ask(query):
        return query_prometheus(printed_log, 'query', query=query)['result']

    without = [panels.ESTIMATES] if page == 'queue' else []
    panels.await_values(page, ask, without)


def test_an_operator_approves_a_plan_that_others_do_not_see(
    printed_log, orders
):
    for name in sorted(servers()):
        # There is room for those that wait, and for what is to move.
        if name.startswith('alice-fills'):
            run('openstack', 'server', 'delete', '--all-projects', name)
    waits = ('fairness', 'request', 'list', '--all-projects')
    patience.wait_for_value(lambda: openstack(*waits) == [])
    plan = openstack('fairness', 'plan', 'create', '--empty', 'cmp2')['uuid']
    about = ('fairness', 'plan', 'show', plan)
    assert openstack(*about)['state'] == 'proposed'
    listed = {
        name: uuid
        for name, uuid in servers().items()
        if name.startswith(MEMBERS)
    }
    cloud = {**orders, 'servers': listed, 'plan': plan}
    check = 'others_see_nothing_of_plans_and_shares'
    check_in_browser(cloud, f'{ORDERS}::test_{check}', 1)
    check_in_browser(cloud, f'{ORDERS}::test_an_operator_approves_a_plan', 1)
    assert openstack(*about)['state'] != 'proposed'


def test_no_answer_in_json_shows_names_or_ids_of_others(printed_log, orders):
    listed = servers()
    names = [name for name in listed if name.startswith(MEMBERS)]
    project, _, user = orders['account'].partition('/')
    server = listed['alice-1']
    ours = {
        fake_cloud.ALICES: server,
        fake_cloud.ALICE: user,
        fake_cloud.RED: project,
        test_tokens.RED_REQUEST: server,
    }
    paths = []
    for path, body, _ in test_tokens.ROUTES.values():
        for old, new in ours.items():
            path = path.replace(old, new)
        paths += [] if body else [path, f'{path}?all_projects=true']
    script = '\n'.join(
        'curl -s -w "\\n%{http_code}\\n" -H "X-Auth-Token: $TOKEN" '
        f'"$NOVA/fairness{path}" | tr "\\n" " "; echo'
        for path in paths
    )
    told = {}
    for who in ('admin', 'carol'):
        done = subprocess.run(
            ['tools/nova.sh', 'shell', who],
            input=script,
            cwd=environment.TOP,
            capture_output=True,
            check=True,
            text=True,
        )
        answers = done.stdout.splitlines()
        assert len(answers) == len(paths), done.stderr
        told[who] = dict(zip(paths, answers, strict=True))
    secrets = {*names, *(listed[name] for name in names), project, user}
    seen = {
        secret
        for answer in told['admin'].values()
        for secret in secrets
        if secret in answer
    }
    # Else what follows would show nothing.
    assert {server, project, user} <= seen
    for path, answer in told['carol'].items():
        hidden = answer.replace(path.partition('?')[0].split('/')[-1], '')
        assert [each for each in secrets if each in hidden] == [], path


def test_prometheus_scrapes_all_and_follows_the_rules(printed_log):
    def targets():
        found = query_prometheus(printed_log, 'targets')['activeTargets']
        return [each['health'] for each in found]

    patience.wait_for_value(lambda: targets() == ['up'] * TARGETS)
    groups = query_prometheus(printed_log, 'rules')['groups']
    files = {pathlib.Path(each['file']) for each in groups}
    assert files == {*RULES.glob('*.rules.yml')}
    assert {rule['health'] for each in groups for rule in each['rules']} <= {
        'ok',
        'unknown',
    }
    query = 'user:nova_fairness_instance_heaviness_quotas:count'
    patience.wait_for_value(
        lambda: query_prometheus(printed_log, 'query', query=query)['result']
    )
