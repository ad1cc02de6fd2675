# SPDX-License-Identifier: Apache-2.0

"""Debian 13 with its own OpenStack: our packages beside Nova's.

Debian is made by mmdebstrap, with the packages of its archive, and our
packages are built there as the guide says. Then a real systemd runs it, in
namespaces of its own, and Debian's units run a small cloud. Tests go through
the life of this machine in their order.
"""

import re
import shutil

import pytest

from fairness_lab.testbed.nodes import processes
from tests.fixtures import booted
from tests.fixtures import devstack_host
from tests.fixtures import minimal_debian

# Debian, its OpenStack and what our packages need are downloaded.
pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.beside,
    pytest.mark.timeout(5400),
]

AGENT = 'nova-fairness'
CLOUD = devstack_host.TOP / 'tests/fixtures/debian_13.sh'
GUIDE = minimal_debian.guide('index')
UNINSTALL = minimal_debian.guide('uninstall')
OPENSTACK = (
    *('mariadb-server', 'rabbitmq-server', 'keystone', 'placement-api'),
    *('nova-api', 'nova-conductor', 'nova-scheduler', 'nova-compute-qemu'),
    *('libvirt-daemon-system', 'qemu-system-x86', 'qemu-utils'),
    *('python3-openstackclient', 'python3-pymysql'),
    *('systemd-sysv', 'dbus', 'ca-certificates', 'iproute2', 'procps'),
)
ADMIN = (
    *('env', 'OS_AUTH_URL=http://127.0.0.1:5000/v3', 'OS_USERNAME=admin'),
    *('OS_PASSWORD=secret', 'OS_PROJECT_NAME=admin', 'HOME=/tmp'),
    *('OS_USER_DOMAIN_ID=default', 'OS_PROJECT_DOMAIN_ID=default'),
)
FILES = """\
find / -xdev -ignore_readdir_race \
    \\( -path /proc -o -path /sys -o -path /run -o -path /tmp \
    -o -path /var/lib/mysql -o -path /var/lib/rabbitmq -o -path /var/log \
    -o -path /var/lib/dpkg -o -path /var/cache -o -path /root/.cache \\) \
    -prune -o -print | sort
"""
"""What a package could leave; what programs of Debian write is left out."""


@pytest.fixture(scope='module')
def debian(tmp_path_factory):
    """With its OpenStack, and our packages built."""
    place = tmp_path_factory.mktemp('debian-13')
    with minimal_debian.running_debian(place, 'trixie') as made:
        made.typed(
            f'apt-get install -y --no-install-recommends {" ".join(OPENSTACK)}'
        )
        (build,), _ = minimal_debian.blocks(GUIDE, 'As a Debian package')
        made.typed('apt-get install -y --no-install-recommends git', build)
        yield made


PURE = ('decide', 'measure', 'model', 'planners', 'shares')
"""Rooms whose unit tests need no program of the system."""

EXTRAS = 'api,client,cluster,lab,parquet,sim'
BESIDE = (
    *('croniter', 'eventlet', 'fixtures', 'hypothesis', 'oslotest'),
    *('packaging', 'pytest', 'pytest-timeout', 'pytest-xdist'),
    *('python-dateutil', 'requests-mock', 'testtools', 'waitress'),
)
"""What unit tests import beside the libraries."""


@pytest.fixture(scope='module')
def unit(debian):
    """With an environment of Debian's Python for unit tests."""
    debian.typed(
        'python3 -m venv /opt/unit',
        f'/opt/unit/bin/pip install -q ".[{EXTRAS}]" {" ".join(BESIDE)}',
    )
    return debian


# Before the machine boots, whose files these are.
@pytest.mark.parametrize('room', PURE)
def test_unit_tests_of_a_pure_room_pass_on_python_of_debian_13(unit, room):
    said = unit.typed(
        '/opt/unit/bin/python --version',
        'PYTHONHASHSEED=0 PYTHONPATH=/clone /opt/unit/bin/python -m pytest '
        '-q -n0 -p no:cacheprovider -W ignore -m "not slow" '
        f'tests/unit/{room}',
    )
    assert said.startswith('Python 3.13.')
    assert re.search(r'^\d+ passed', said, re.MULTILINE)


@pytest.fixture(scope='module')
def machine(debian):
    """A booted one, on which Debian's units run a cloud."""
    with booted.running(debian.root) as made:
        script = made.exchange / CLOUD.name
        shutil.copy(CLOUD, script)
        made.check('bash', str(script))
        yield made


@pytest.fixture(scope='module')
def before(machine):
    """All files before anything of ours comes."""
    return machine.check('bash', '-c', FILES).splitlines()


@pytest.fixture(scope='module')
def installed(machine, before):
    """Our packages, as the guide installs them."""
    install, *_ = minimal_debian.commands(GUIDE, 'As a Debian package')
    queue = '-cluster_*.deb ./build/packages/nova-fairness-client_*.deb'
    machine.check(
        *('bash', '-euc'),
        f'cd /clone && {install} ./build/packages/nova-fairness{queue}',
    )
    return machine


def services(machine):
    """Host, state and zone of each service, by its program."""
    words = ('compute', 'service', 'list', '-f', 'value')
    columns = ('-c', 'Binary', '-c', 'Host', '-c', 'Zone', '-c', 'State')
    said = machine.check(*ADMIN, 'openstack', *words, *columns)
    lines = [line.split() for line in said.splitlines()]
    return {binary: tuple(more) for binary, *more in lines}


def test_debian_has_the_nova_and_the_python_that_the_page_names(machine):
    nova = machine.check('dpkg-query', '-Wf', '${Version}', 'nova-compute')
    assert nova.startswith('2:31.')
    assert machine.check('python3', '--version').startswith('Python 3.13.')
    assert machine.check('cat', '/proc/1/comm') == 'systemd\n'


def test_the_package_holds_the_nova_of_this_debian(installed):
    said = installed.check(
        *('/opt/venvs/nova-fairness/bin/pip', 'list', '--format=freeze')
    )
    assert re.search(r'^nova==31\.', said, re.MULTILINE), said


def test_the_check_says_that_this_release_is_supported(installed):
    done = installed.run('nova-fairness-status', 'upgrade', 'check')
    # The queue is installed and not configured.
    assert done.returncode in {1, 2}, done.stdout + done.stderr
    assert re.search(r'Details: Nova 31\.\S+ is supported', done.stdout)
    assert 'the agent is a service of Nova, by /etc/nova/nova.conf' in (
        done.stdout
    )


def test_the_agent_is_up_beside_the_services_of_debian(installed):
    installed.check('systemctl', 'start', AGENT)
    host = installed.check('hostname').strip()
    assert processes.wait_until(
        lambda: AGENT in services(installed), booted.PATIENCE_S, 1.0
    ), installed.journal(AGENT)
    found = services(installed)
    assert found[AGENT] == (host, 'internal', 'up')
    assert found['nova-compute'] == (host, 'nova', 'up')
    assert f'Nova has the record of this agent: {AGENT} on {host}' in (
        installed.journal(AGENT)
    )


def test_the_agent_keeps_the_rights_of_its_unit(installed):
    pid = installed.show(AGENT, 'MainPID')
    status = installed.check('cat', f'/proc/{pid}/status')
    assert re.search(r'^NoNewPrivs:\t1$', status, re.MULTILINE)
    # Debian gives Nova's configuration, with its passwords, to Nova alone.
    assert installed.check('stat', '-c', '%a %U', '/etc/nova') == '750 nova\n'


def test_the_client_of_debian_has_the_commands(installed):
    done = installed.run(*ADMIN, 'openstack', 'fairness', 'host', 'list')
    # Nova's answer: the filter is not in its nova-api.
    assert 'api-paste.ini' in done.stdout + done.stderr
    assert 'Failed to import plugin' not in done.stderr


def test_nothing_is_left_after_removal(installed, before):
    stop, restore, *_ = minimal_debian.commands(UNINSTALL, 'A compute node')
    (withdraw,) = minimal_debian.commands(UNINSTALL, 'The row in Nova')
    said = installed.check(
        *('bash', '-euxc'),
        f'{stop}; {withdraw}; {restore}; apt-get purge -y {AGENT} '
        f'{AGENT}-cluster {AGENT}-client',
    )
    assert 'is no longer a service of Nova' in said
    assert '0 controls restored, 0 failed' in said
    assert AGENT not in services(installed)
    assert services(installed)['nova-compute'][2] == 'up'
    after = installed.check('bash', '-c', FILES).splitlines()
    assert sorted({*after} - {*before}) == []
