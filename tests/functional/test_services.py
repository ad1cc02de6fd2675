# SPDX-License-Identifier: Apache-2.0

"""The packages' services under a real systemd, from install to purge.

Tests go through the life of one machine in their order: a package of a lower
version is there first. The VM that the agent steers is a real one.
"""

import pathlib
import re
import shutil
import signal

import pytest

from fairness_lab.testbed.nodes import processes
from tests.fixtures import booted
from tests.fixtures import debian_package
from tests.fixtures import devstack_host

pytestmark = [
    pytest.mark.real,
    pytest.mark.beside,
    pytest.mark.timeout(2400),
]

AGENT = 'nova-fairness'
QUEUE = ('nova-fairness-relay', 'nova-fairness-cluster')
CONF = '/etc/nova-fairness/nova-fairness.conf'
QUEUE_CONF = '/etc/nova-fairness/nova-fairness-cluster.conf'
OLDER = '0.0.0~older'
SECRET = '/etc/nova-fairness/keys/ctl.secret'
STACK = 'stack'
GUIDE = devstack_host.TOP.joinpath('doc/source/install/index.rst').read_text()


class Life(booted.SteeredNode):
    """The life of a machine, through which the tests go."""

    def configure(self, enforce):
        text = booted.STEERING.format(str(enforce).lower())
        (self.machine.root / CONF.lstrip('/')).write_text(text)

    def started(self):
        """Start the agent if it does not run; its process."""
        self.configure(enforce=True)
        self.machine.check('systemctl', 'start', AGENT)
        self.await_steered()
        return int(self.machine.show(AGENT, 'MainPID'))


@pytest.fixture(scope='module')
def life(packages):
    with booted.running() as machine:
        first = machine.exchange / 'older.deb'
        debian_package.write_with_version(
            next(packages.glob('nova-fairness_*.deb')),
            first,
            OLDER,
            # Earlier versions let everybody read it.
            {CONF: 0o644},
        )
        machine.check('dpkg', '--install', str(first))
        first.unlink()
        with booted.vm_of(machine) as vm:
            yield Life(machine, vm)


def test_installed_services_wait_for_their_operator(life):
    for verb, answer in (
        ('is-active', 'inactive'),
        ('is-enabled', 'disabled'),
    ):
        assert (
            life.machine.run('systemctl', verb, AGENT).stdout == f'{answer}\n'
        )


def test_the_agent_steers_with_the_rights_of_its_unit(life):
    life.machine.check('systemctl', 'enable', AGENT)
    pid = life.started()
    assert life.machine.show(AGENT, 'Type') == 'notify'
    assert life.machine.show(AGENT, 'StatusText').startswith('steers 1 VM')
    assert life.machine.show(AGENT, 'WatchdogUSec') == '3min'
    status = life.machine.check('cat', f'/proc/{pid}/status')
    fields = dict(re.findall(r'^(\w+):\t(.*)$', status, re.MULTILINE))
    bits = int(fields['CapBnd'], 16)
    held = {number for number in range(64) if bits >> number & 1}
    # DAC_READ_SEARCH, KILL, SETGID, SETUID, SETPCAP, NET_ADMIN, SYS_PTRACE
    assert held == {2, 5, 6, 7, 8, 12, 19}
    assert fields['NoNewPrivs'] == '1'
    assert fields['Seccomp'] == '2'
    assert fields['Uid'].split() == ['0'] * 4
    for path, is_writable in (
        ('/var/lib/nova-fairness', True),
        ('/sys/fs/cgroup/cpu', True),
        ('/etc', False),
        ('/usr', False),
    ):
        seen = f'/proc/{pid}/root{path}'
        done = life.machine.run('test', '-w', seen)
        assert (done.returncode == 0) == is_writable, path


def test_a_reload_applies_options_in_the_same_process(life):
    pid = life.started()
    life.configure(enforce=False)
    life.machine.check('systemctl', 'reload', AGENT)
    life.await_steered(False)
    assert int(life.machine.show(AGENT, 'MainPID')) == pid
    assert 'enforce False' in life.machine.journal(AGENT)
    life.configure(enforce=True)
    life.machine.check('systemctl', 'reload', AGENT)
    life.await_steered()


def test_a_restart_restores_values_and_steers_again(life):
    pid = life.started()
    life.machine.check('systemctl', 'restart', AGENT)
    life.await_steered()
    assert int(life.machine.show(AGENT, 'MainPID')) != pid
    said = life.machine.journal(AGENT)
    assert 'Stopped; 1 control has the values they were found with' in said


def test_systemd_restores_values_of_a_killed_agent_and_restarts_it(life):
    pid = life.started()
    life.machine.check('systemctl', 'kill', '--signal=KILL', AGENT)
    life.await_steered(False)
    assert f'status={signal.SIGKILL}/KILL' in life.machine.journal(AGENT)
    life.await_steered()
    assert life.machine.show(AGENT, 'NRestarts') == '1'
    assert int(life.machine.show(AGENT, 'MainPID')) != pid


def test_an_upgrade_restarts_running_services_and_keeps_made_files(
    life, packages
):
    pid = life.started()
    conf = life.machine.root / CONF.lstrip('/')
    conf.chmod(0o644)
    life.machine.check(
        *(
            'nova-fairness-keys',
            '--directory',
            str(pathlib.Path(SECRET).parent),
        ),
        *('make', 'ctl', '--role', 'controller'),
    )
    built = next(packages.glob('nova-fairness_*.deb'))
    kept = life.machine.exchange / built.name
    kept.write_bytes(built.read_bytes())
    version = ('dpkg-query', '--show', '--showformat=${Version}', AGENT)
    assert life.machine.check(*version) == OLDER
    # What is configured was changed, and is not asked about.
    life.machine.check('dpkg', '--install', '--force-confold', str(kept))
    assert life.machine.check(*version) != OLDER
    life.await_steered()
    assert int(life.machine.show(AGENT, 'MainPID')) != pid
    assert conf.read_text() == booted.STEERING.format('true')
    assert conf.stat().st_mode & 0o777 == 0o640
    life.machine.check('test', '-e', SECRET)


def test_a_stopped_service_restores_values(life):
    life.started()
    life.machine.check('systemctl', 'stop', AGENT)
    assert life.shares == booted.FOUND
    done = life.machine.check(
        'nova-fairness', 'restore', '--config-file', CONF
    )
    assert '0 controls restored, 0 failed' in done


@pytest.fixture
def of_nova(life):
    """The agent's unit for who is not root, as the guide says."""
    machine = life.machine
    unit = f'/etc/systemd/system/{AGENT}.service.d/not-root.conf'
    permit = '/etc/sudoers.d/nova-fairness'
    shared = '/usr/share/nova-fairness/not-root.conf'
    machine.check('systemctl', 'stop', AGENT)
    machine.check('useradd', '--system', 'nova')
    machine.check('install', '-D', '--mode=644', shared, unit)
    (line,) = re.findall(r'^ +(nova ALL = .*)$', GUIDE, re.MULTILINE)
    (machine.root / permit.lstrip('/')).write_text(
        line.replace('/opt/nova-fairness/', '/opt/venvs/nova-fairness/') + '\n'
    )
    machine.check('chgrp', 'nova', CONF)
    machine.check('systemctl', 'daemon-reload')
    yield
    machine.check('systemctl', 'stop', AGENT)
    machine.check('rm', unit, permit)
    machine.check('systemctl', 'daemon-reload')
    machine.check('chgrp', 'root', CONF)
    machine.check('userdel', 'nova')


def test_an_agent_that_is_not_root_steers_by_sudo(life, of_nova):
    pid = life.started()
    status = life.machine.check('cat', f'/proc/{pid}/status')
    assert not re.search(r'^Uid:.*\t0\b', status, re.MULTILINE), status
    life.machine.check('systemctl', 'kill', '--signal=KILL', AGENT)
    life.await_steered(False)
    life.await_steered()
    life.machine.check('systemctl', 'stop', AGENT)
    assert life.shares == booted.FOUND


class Stacked(devstack_host.DevstackHost):
    """The machine as who stacks it leaves it; they become root by sudo."""

    SERVICES = ('fairness-redis', 'fairness-agent')

    def __init__(self, machine):
        self._machine = machine
        top = machine.exchange / 'clone'
        for name in ('devstack', 'rootwrap.d', 'tests/fixtures'):
            shutil.copytree(devstack_host.TOP / name, top / name)
        machine.check('useradd', '--create-home', STACK)
        (machine.root / 'etc/sudoers.d/stack').write_text(
            f'{STACK} ALL = (root) NOPASSWD: ALL\n'
        )
        super().__init__(
            machine.exchange / 'stacked',
            pathlib.Path('/opt/venvs/nova-fairness'),
            {
                'STACK_USER': STACK,
                'FAIRNESS_AGENT_USER': STACK,
                'HOST_IP': '127.0.0.1',
                'SERVICE_HOST': '127.0.0.1',
                'ENABLED_SERVICES': 'n-api,n-cpu',
                'FAIRNESS_INTERVAL': '0.5',
                'FAIRNESS_NOVA_SERVICE': 'off',
            },
            {'fairness': {'policy': 'thesis', 'controls': 'cpu'}},
            self._as_stack,
            top=top,
            functions=devstack_host.UNITS,
        )
        given = devstack_host.TOP / 'tests' / 'data' / 'devstack'
        for path in given.iterdir():
            text = path.read_text().replace('/etc/nova/', f'{self.nova}/')
            (self.nova / path.name).write_text(text)
        machine.check('chown', '--recursive', STACK, str(self.place))

    def _as_stack(self, words):
        inside = ['nsenter', f'--target={self._machine.pid}', '--all']
        become = ['env', '--chdir=/', 'runuser', f'--user={STACK}']
        return [*inside, '--root', *become, '--', *words]

    def pids(self):
        return {
            name: int(self._machine.show(f'devstack@{name}', 'MainPID'))
            for name in self.SERVICES
        }


@pytest.mark.slow
def test_devstack_makes_units_for_a_user_other_than_root(life):
    host = Stacked(life.machine)
    host.stack()
    life.await_steered()
    first = host.pids()
    status = life.machine.check(
        'cat', f'/proc/{first["fairness-agent"]}/status'
    )
    assert not re.search(r'^Uid:.*\t0\b', status, re.MULTILINE), status
    host.stack()
    life.await_steered()
    assert not set(first.values()) & set(host.pids().values())
    host.destroy()
    assert set(host.pids().values()) == {0}
    assert life.shares == booted.FOUND
    assert not host.conf.exists()


@pytest.fixture(scope='module')
def queue(life, packages):
    """The machine with the services of the queue, which has a key."""
    machine = life.machine
    # Both together, since the services need the programs of their version.
    kept = []
    for pattern in ('nova-fairness_*.deb', 'nova-fairness-cluster_*.deb'):
        built = next(packages.glob(pattern))
        kept.append(machine.exchange / built.name)
        kept[-1].write_bytes(built.read_bytes())
    machine.check('dpkg', '--install', '--force-confold', *map(str, kept))
    for command in ('new-key', 'upgrade'):
        machine.check(
            *('runuser', '--user', 'nova-fairness', '--'),
            *('nova-fairness-cluster', '--config-file', QUEUE_CONF, command),
        )
    return machine


def test_files_of_the_queue_belong_to_its_user_alone(queue):
    paths = (
        QUEUE_CONF,
        *map(
            '/var/lib/nova-fairness-cluster/{}'.format,
            (
                '',
                'requests.keys',
                'requests.sqlite',
            ),
        ),
    )
    said = queue.check('stat', '--format=%a %U:%G', *paths).splitlines()
    assert said[0] == '640 root:nova-fairness'
    assert said[1] == '700 nova-fairness:nova-fairness'
    assert said[2] == '600 nova-fairness:nova-fairness'
    assert said[3].endswith('nova-fairness:nova-fairness')


@pytest.mark.parametrize('service', QUEUE)
def test_a_service_without_a_broker_says_so_once(queue, service):
    for verb, answer in (
        ('is-active', 'inactive'),
        ('is-enabled', 'disabled'),
    ):
        assert queue.run('systemctl', verb, service).stdout == f'{answer}\n'
    # It ends before it is ready, so the start fails.
    assert queue.run('systemctl', 'start', service).returncode != 0
    assert processes.wait_until(
        lambda: queue.show(service, 'ActiveState') == 'failed', 60, 0.1
    ), queue.journal(service)
    assert 'broker: empty; set the URL of the broker' in queue.journal(service)
    assert queue.show(service, 'NRestarts') == '0'


def test_the_relay_waits_for_its_broker_as_its_own_user(queue):
    conf = queue.root / QUEUE_CONF.lstrip('/')
    text = conf.read_text()
    conf.write_text(f'{text}\nbroker = amqp://guest:guest@127.0.0.1:9//\n')
    queue.run('systemctl', 'reset-failed', QUEUE[0])
    queue.check('systemctl', 'start', QUEUE[0])
    assert processes.wait_until(
        lambda: 'connection lost: ' in queue.journal(QUEUE[0]), 60, 0.2
    ), queue.journal(QUEUE[0])
    pid = queue.show(QUEUE[0], 'MainPID')
    status = queue.check('cat', f'/proc/{pid}/status')
    fields = dict(re.findall(r'^(\w+):\t(.*)$', status, re.MULTILINE))
    assert int(fields['CapBnd'], 16) == 0
    assert '0' not in fields['Uid'].split()
    queue.check('systemctl', 'stop', QUEUE[0])
    assert queue.show(QUEUE[0], 'Result') == 'success'
    conf.write_text(text)


def test_a_purge_leaves_nothing_and_vms_run_on(queue, life):
    for services in (QUEUE, (AGENT,)):
        life.started()
        queue.check('systemctl', 'disable', '--now', *services)
    assert life.shares == booted.FOUND
    life.started()
    for package in ('nova-fairness-cluster', AGENT):
        queue.check('dpkg', '--purge', package)
    assert life.shares == booted.FOUND
    assert life.vm.isActive()
    for path in (
        *('/etc/nova-fairness', '/var/lib/nova-fairness'),
        *('/var/log/nova-fairness', '/var/lib/nova-fairness-cluster'),
        *('/opt/venvs/nova-fairness', f'/lib/systemd/system/{AGENT}.service'),
    ):
        assert not (queue.root / path.lstrip('/')).exists(), path
