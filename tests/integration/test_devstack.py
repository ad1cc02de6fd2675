# SPDX-License-Identifier: Apache-2.0


"""The devstack plugin: all of its phases, on one machine, twice, and back.

With a real Nova they run in ``nova/test_devstack.py``.
"""

import configparser
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time

import amqp
from oslo_rootwrap import wrapper
import pytest

from fairness_lab.testbed.nodes import processes
from nova_fairness.apply import privileged_client
from nova_fairness.cmd import status_cloud
from oslo_messaging_zmq.keys import keyring
from tests.fixtures import devstack_host
from tests.fixtures import ports
from tests.fixtures import rabbitmq_server

PREFIX = pathlib.Path(sys.executable).parent
GIVEN = devstack_host.TOP / 'tests' / 'data' / 'devstack'
NOVA_FILES = (
    'api-paste.ini',
    'nova-api-uwsgi.ini',
    'nova.conf',
    'rootwrap.conf',
)
PATIENCE_S = 120.0
"""For broken code only."""

CLOUDS = """
clouds:
  devstack-admin:
    auth:
      auth_url: http://127.0.0.1:9/v3
      username: admin
      password: secret
      project_name: admin
      user_domain_id: default
      project_domain_id: default
    region_name: RegionOne
"""


class Host(devstack_host.DevstackHost):
    """A host with Nova's files as devstack would leave them.

    :param place: the directory.
    :param name: of the host.
    :param redis_port: where the cloud's Redis is to be.
    :param services: of Nova that are enabled before the plugin comes.
    :param settings: more lines of localrc.
    """

    def __init__(
        self, place, name, redis_port, services='n-api,n-cpu', settings=None
    ):
        localrc = {
            'HOST_IP': ports.HOST,
            'SERVICE_HOST': ports.HOST,
            'ENABLED_SERVICES': services,
            'FAIRNESS_HOST': name,
            'FAIRNESS_REDIS_PORT': redis_port,
            'FAIRNESS_ENFORCE': 'False',
            'FAIRNESS_INTERVAL': '0.5',
            'FAIRNESS_METRICS_PORT': 0,
            # There is no conductor here that could be asked.
            'FAIRNESS_NOVA_SERVICE': 'off',
            'FAIRNESS_CONNECTION_URI': 'test:///default',
            **(settings or {}),
        }
        super().__init__(place, PREFIX.parent, localrc)
        for file in NOVA_FILES:
            shutil.copy(GIVEN / file, self.nova / file)

    def status(self):
        """Ask all agents as an operator does; hosts that answered."""
        done = subprocess.run(
            [
                str(PREFIX / 'nova-fairness-ctl'),
                f'--config-file={self.conf / "controller.conf"}',
                *('--all', '--json', '--timeout', '5', 'status'),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if not done.stdout.startswith('{'):
            return {}, done.stderr
        return json.loads(done.stdout)['by_host'], done.stderr

    def wait_for(self, *names):
        """Wait until these agents, and no others, answer."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            answers, said = self.status()
            if set(answers) == set(names):
                return answers
            time.sleep(0.2)
        log = self.said('fairness-agent')
        raise AssertionError(
            f'{sorted(answers)} answer; {said}\n{log[-4000:]}'
        )


@pytest.fixture
def hosts(tmp_path):
    """Makes hosts of one cloud; all are taken down afterwards."""
    port = ports.free()
    made = []

    def make(name, **given):
        made.append(Host(tmp_path / name, name, port, **given))
        return made[-1]

    yield make
    for host in made:
        host.run('unstack')
        assert host.pids() == {}
        assert are_gone(host)


def are_gone(host):
    """Whether nothing that was started runs, once helpers have seen it."""
    return processes.wait_until(lambda: not host.processes(), PATIENCE_S)


def original(name):
    return (GIVEN / name).read_text()


@pytest.mark.slow
def test_a_host_can_be_stacked_twice_and_unstacked_without_traces(hosts):
    host = hosts('stacked')
    host.stack()
    assert set(host.pids()) == {'fairness-agent', 'fairness-redis'}
    status = host.wait_for('stacked')['stacked']
    assert status['host'] == 'stacked'
    before, first = host.files(), host.pids()
    host.stack()
    assert host.files() == before
    assert not set(host.pids().values()) & set(first.values())
    host.wait_for('stacked')
    last = host.pids()
    assert last['fairness-agent'] in host.processes()
    links = {path.name: path.resolve() for path in host.links.iterdir()}
    assert links['nova-fairness-ctl'] == PREFIX / 'nova-fairness-ctl'
    host.destroy()
    assert host.pids() == {}
    assert are_gone(host)
    assert [processes.identify(pid) for pid in last.values()] == [None, None]
    assert not host.conf.exists()
    assert not host.state.exists()
    assert not list(host.links.iterdir())
    assert not list((host.nova / 'rootwrap.d').iterdir())
    for name in NOVA_FILES:
        assert (host.nova / name).read_text() == original(name), name


def test_devstack_sets_up_the_queue_if_enabled(hosts):
    with rabbitmq_server.running() as broker:
        host = hosts(
            'controller',
            services='n-api',
            settings={
                'FAIRNESS_QUEUE': 'True',
                'HARNESS_BROKER': f'guest:guest@127.0.0.1:{broker.port}',
            },
        )
        clouds = host.place / '.config/openstack/clouds.yaml'
        clouds.parent.mkdir(parents=True)
        clouds.write_text(CLOUDS)
        host.stack()
        services = {'fairness-redis', 'fairness-relay', 'fairness-cluster'}
        assert set(host.pids()) == services
        ring = keyring.Keyring(host.conf / 'cluster-keys')
        assert ring.signing_fault() == ''
        assert ring.serves(ring.public, socket.gethostname())
        before = host.files()
        host.stack()
        assert host.files() == before
        [line] = re.findall(
            '^env = OS_NOVA_CONFIG_FILES=(.*)$',
            (host.nova / 'nova-api-uwsgi.ini').read_text(),
            re.MULTILINE,
        )
        paste, *files = line.split(';')
        assert paste == str(host.nova / 'api-paste.ini')
        read = configparser.RawConfigParser()
        assert read.read(files) == files
        assert read['DEFAULT']['control_exchange'] == 'nova_front'
        assert read['quota']['recheck_quota'] == 'False'
        # The loop runs: nobody answers for the cloud of this test.
        assert processes.wait_until(
            lambda: 'does not answer' in host.said('fairness-cluster'),
            PATIENCE_S,
        )
        with amqp.Connection(f'127.0.0.1:{broker.port}') as direct:
            channel = direct.channel()
            assert processes.wait_until(
                lambda: (
                    channel.queue_declare(
                        'nova_front.conductor', passive=True
                    ).consumer_count
                    == 1
                ),
                PATIENCE_S,
            )
        host.destroy()
        assert are_gone(host)
    for name in NOVA_FILES:
        assert (host.nova / name).read_text() == original(name), name


def test_redis_has_the_password_for_which_the_user_is_asked(hosts):
    host = hosts('controller', services='n-api')
    done = host.run('stack post-config')
    assert done.returncode == 0, done.stderr
    redis = (host.conf / 'redis.conf').read_text()
    assert f'requirepass "{host.password}"\n' in redis
    host.password = ''
    done = host.run('stack post-config')
    assert done.returncode != 0
    assert 'nor SERVICE_PASSWORD is set' in done.stderr


def test_the_page_shows_each_command_as_a_user_that_may_read_the_key(hosts):
    # The controller's belongs to STACK_USER, the agent's to root.
    page = devstack_host.TOP / 'doc' / 'source' / 'install' / 'devstack.rst'
    found = re.findall(r'^   ([#$]) (\S+)', page.read_text(), re.MULTILINE)
    assert found == [
        ('$', 'nova-fairness-ctl'),
        ('#', 'nova-fairness-status'),
        ('$', 'nova-fairness-status'),
    ]


def test_each_line_for_localrc_names_a_branch_that_the_repository_has():
    top = devstack_host.TOP
    page = (top / 'doc/source/install/devstack.rst').read_text()
    sample = (top / 'devstack/local.conf.sample').read_text()
    lines = re.findall('enable_plugin nova-fairness (.*)', page + sample)
    assert len(lines) == 3
    branches = {line.split()[1] for line in lines}
    command = ['git', '-C', str(top), 'for-each-ref', '--format=%(refname)']
    refs = subprocess.run(command, capture_output=True, text=True, check=False)
    known = {ref.rpartition('/')[2] for ref in refs.stdout.splitlines()}
    assert branches <= (known or {'main'})


def test_a_service_that_ends_at_once_fails_the_run(hosts):
    settings = {'FAIRNESS_INSECURE': 'True', 'FAIRNESS_SETTLES': 10}
    host = hosts('broken', services='n-cpu', settings=settings)
    host.stack('pre-install', 'install', 'post-config')
    conf = host.conf / 'nova-fairness.conf'
    conf.write_text(conf.read_text().replace('interval = 0.5', 'interval = x'))
    done = host.run('stack extra')
    assert done.returncode != 0
    assert 'fairness-agent does not run: journalctl' in done.stderr


def test_files_pass_to_a_changed_user_of_the_agent(hosts):
    settings = {'FAIRNESS_INSECURE': 'True', 'FAIRNESS_AGENT_USER': 'nobody'}
    host = hosts('node', services='n-cpu', settings=settings)
    found = host.state / 'agent/found.json'
    found.parent.mkdir(parents=True)
    found.touch()
    host.stack('post-config')
    assert found.owner() == 'nobody'


def test_a_second_host_joins_with_a_key_of_the_controller(hosts):
    controller = hosts('controller', settings={'FAIRNESS_NODES': 'far'})
    controller.stack()
    far = hosts(
        'far',
        services='n-cpu',
        settings={
            'FAIRNESS_KEYS_FROM': str(controller.conf / 'all-keys'),
            # A libvirt has one agent, and both hosts are this machine.
            'FAIRNESS_CONNECTION_URI': 'qemu+unix:///system?socket=/run/far',
        },
    )
    far.stack()
    assert set(far.pids()) == {'fairness-agent'}
    assert not (far.conf / 'controller-keys').exists()
    assert (far.nova / 'api-paste.ini').read_text() == original(
        'api-paste.ini'
    )
    controller.wait_for('controller', 'far')


def test_a_second_host_without_a_key_says_where_keys_are(hosts):
    host = hosts('far', services='n-cpu')
    done = host.run('stack post-config')
    assert done.returncode != 0
    assert 'FAIRNESS_KEYS_FROM is not set' in done.stderr


def test_devstack_puts_the_filter_at_the_right_place_of_the_pipeline(hosts):
    host = hosts('controller', services='n-api')
    done = host.run('stack post-config', 'stack post-config')
    assert done.returncode == 0, done.stderr
    path = host.nova / 'api-paste.ini'
    assert status_cloud.has_filter(path)
    assert status_cloud.paste_fault(path) == ''
    assert path.read_text().count('fairness osapi_compute_app_v21') == 1
    assert not (host.nova / 'rootwrap.d').exists()


def test_rootwrap_permits_the_helper_of_an_agent_that_is_not_root(hosts):
    host = hosts(
        'node',
        services='n-cpu',
        settings={
            'FAIRNESS_AGENT_USER': 'nobody',
            'FAIRNESS_INSECURE': 'True',
        },
    )
    done = host.run('stack post-config', 'stack post-config')
    assert done.returncode == 0, done.stderr
    agent = configparser.RawConfigParser()
    agent.read(host.conf / 'nova-fairness.conf')
    helper = agent['nova_fairness_privileged']['helper_command'].split()
    assert helper == [
        'sudo',
        f'{PREFIX}/nova-rootwrap',
        str(host.nova / 'rootwrap.conf'),
        privileged_client.PROGRAM,
    ]
    assert (host.nova / 'rootwrap.conf').read_text() == original(
        'rootwrap.conf'
    )
    (context, *_) = privileged_client.KEPT
    command = [
        *(helper[3], '--privsep_context', context),
        *('--privsep_sock_path', '/tmp/tmpa1_b2c3d/privsep.sock'),
    ]
    places = ['/usr/bin', str(PREFIX)]
    found = wrapper.load_filters([str(host.nova / 'rootwrap.d')])
    permitted = wrapper.match_filter(found, command, places)
    assert permitted.get_command(command, places)[0].startswith(str(PREFIX))


def test_our_rootwrap_filter_directory_is_appended_to_the_list(hosts):
    host = hosts(
        'node', services='n-cpu', settings={'FAIRNESS_INSECURE': 'True'}
    )
    path = host.nova / 'rootwrap.conf'
    listed = path.read_text().replace('#exec_dirs', 'exec_dirs')
    path.write_text(listed)
    done = host.run('stack post-config', 'stack post-config')
    assert done.returncode == 0, done.stderr
    rootwrap = configparser.RawConfigParser()
    rootwrap.read(path)
    places = rootwrap['DEFAULT']['exec_dirs'].split(',')
    assert places == ['/sbin', '/usr/sbin', '/bin', '/usr/bin', str(PREFIX)]
    host.destroy()
    assert path.read_text() == listed


@pytest.mark.parametrize('more', ['', '\n', '\n\n', '\n[late]\nx = y\n\n'])
def test_sections_are_taken_out_of_a_file_as_they_were_put_in(hosts, more):
    host = hosts('controller', services='n-api')
    paths = [host.nova / name for name in ('nova.conf', 'api-paste.ini')]
    for path in paths:
        with path.open('a') as stream:
            stream.write(more)
    given = [path.read_bytes() for path in paths]
    done = host.run('stack post-config')
    assert done.returncode == 0, done.stderr
    assert all(
        path.read_bytes() != old
        for path, old in zip(paths, given, strict=True)
    )
    for path in paths:
        with path.open('a') as stream:
            stream.write('\n[later]\nz = 1\n')
    host.destroy()
    for path, old in zip(paths, given, strict=True):
        assert path.read_bytes() == old + b'\n[later]\nz = 1\n'


def test_devstack_does_not_start_a_disabled_service(hosts):
    host = hosts(
        'controller',
        services='n-api,n-cpu',
        settings={'DISABLED_SERVICES': 'fairness-redis,fairness-agent'},
    )
    done = host.run('stack post-config', 'stack extra')
    assert done.returncode == 0, done.stderr
    assert host.pids() == {}
    assert not (host.conf / 'nova-fairness.conf').exists()
    assert not (host.conf / 'redis.conf').exists()


def test_horizon_has_the_pages_until_it_is_cleaned(hosts, tmp_path):
    enabled = tmp_path / 'horizon/openstack_dashboard/local/enabled'
    enabled.mkdir(parents=True)
    other = enabled / '_3199_of_another_plugin.py'
    other.touch()
    (enabled / '_3175_admin_fairness_gone_panel.py').touch()
    settings = {'HORIZON_DIR': tmp_path / 'horizon'}
    host = hosts('controller', services='horizon', settings=settings)
    pages = devstack_host.TOP / 'fairness_dashboard/enabled'
    for _ in range(2):
        host.stack('pre-install', 'post-config', 'extra')
        assert host.pids() == {}
        found = {path.name: path.read_bytes() for path in enabled.iterdir()}
        assert found.pop(other.name) == b''
        assert found == {
            path.name: path.read_bytes() for path in pages.glob('_31*.py')
        }
    host.destroy()
    assert [*enabled.iterdir()] == [other]


def test_horizon_has_no_pages_if_they_are_disabled(hosts, tmp_path):
    enabled = tmp_path / 'horizon/openstack_dashboard/local/enabled'
    enabled.mkdir(parents=True)
    settings = {
        'HORIZON_DIR': tmp_path / 'horizon',
        'DISABLED_SERVICES': 'fairness-dashboard',
    }
    host = hosts('controller', services='horizon', settings=settings)
    done = host.run('stack post-config', 'stack extra')
    assert done.returncode == 0, done.stderr
    assert [*enabled.iterdir()] == []
