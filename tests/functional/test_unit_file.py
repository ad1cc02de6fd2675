# SPDX-License-Identifier: Apache-2.0


"""The unit of systemd leaves the agent little, and that is enough."""

import configparser
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

from fairness_lab.scenario import values as scenario_module
from tests.fixtures import lab
from tests.functional import agent_process

pytestmark = [pytest.mark.real, pytest.mark.beside]

TREE = pathlib.Path(__file__).resolve().parents[2]
UNIT = TREE / 'etc/systemd/nova-fairness.service'
READ_ONLY = """\
set -e
mount --make-rprivate /
mount --bind "$0" "$0"
mkdir -p "$0/tree"
mount --bind "$1" "$0/tree"
mount -t tmpfs none /tmp
mkdir -p "$1"
mount --bind "$0/tree" "$1"
shift
mount -o remount,bind,ro /
mount -o remount,bind,ro /sys
test ! -w /etc
test ! -w /sys/kernel
test -w /sys/fs/cgroup
exec "$@"
"""
"""What the unit's Protect options make of the file systems; $0 stays.

So does $1, the tree of the tests, which may lie below /tmp.
"""


def service():
    """The section of the service, by option."""
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str
    unit.read(UNIT)
    return unit['Service']


def test_it_restores_after_every_end():
    program, _, given = service()['ExecStart'].partition(' ')
    assert service()['ExecStopPost'] == f'{program} restore {given}'


def test_systemd_accepts_the_unit_without_warnings(tmp_path):
    # The programs that it names come with the package.
    path = tmp_path / UNIT.name
    text = UNIT.read_text().replace('/usr/bin/nova-fairness', '/bin/true')
    path.write_text(text)
    done = subprocess.run(
        ['systemd-analyze', 'verify', '--man=no', str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    ours = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert (done.returncode, ours) == (0, []), done.stderr


def test_the_unit_has_a_low_exposure_for_systemd():
    done = subprocess.run(
        ['systemd-analyze', 'security', '--offline=true', '--no-pager', UNIT],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r'exposure level for \S+: ([0-9.]+)', done.stdout)
    assert found, done.stdout + done.stderr
    # 9.6 is a service without any of this; root with few capabilities stays.
    assert float(found[1]) < 4.0, done.stdout


@pytest.fixture(scope='module')
def node():
    with lab.own_node('unit') as made:
        yield made


@pytest.fixture(scope='module')
def guest(node):
    spec = scenario_module.Vm('ann-1', 'ann', cputune={'shares': '2000'})
    with lab.started_guest(node, spec) as made:
        yield made


@pytest.fixture
def directory():
    path = pathlib.Path(tempfile.mkdtemp(dir='/var/tmp', prefix='unit-'))
    yield path
    shutil.rmtree(path)


def restricted(directory, *words):
    """A command line that has what the unit leaves, and one directory."""
    options = service()
    assert options['ProtectSystem'] == 'strict'
    assert options['ProtectKernelTunables'] == options['PrivateTmp'] == 'yes'
    assert options['ProtectControlGroups'] == 'no'
    left = ','.join(
        f'+{name.removeprefix("CAP_").lower()}'
        for name in options['CapabilityBoundingSet'].split()
    )
    given = (f'--bounding-set=-all,{left}', '--no-new-privs')
    inside = ('unshare', '--mount', 'sh', '-c', READ_ONLY)
    kept = (str(directory), str(TREE))
    return (*inside, *kept, 'setpriv', *given, '--', *words)


def test_status_finds_all_needs_of_the_agent_under_the_unit(
    node, guest, directory
):
    config = directory / 'agent.conf'
    config.write_text(f'[fairness]\nstate_path = {directory}\n')
    done = node.run(
        restricted(
            directory,
            *(f'{agent_process.PROGRAM}-status', f'--config-file={config}'),
            *('upgrade', 'check'),
        )
    )
    # No other node can be reached. The kernel is that of the host.
    assert done.returncode == 1, done.stdout + done.stderr
    warned = re.findall(r'Check: (.*?) *\|\n\| Result: Warning', done.stdout)
    assert [name for name in warned if name != 'Kernel'] == [
        'Message transport'
    ]
    assert 'qemu:///system answers; 1 domain runs' in done.stdout
    assert 'all owners of 1 domain are known' in done.stdout
    assert 'the privileged helper starts' in done.stdout


def test_the_agent_steers_and_restores_with_the_rights_of_its_unit(
    node, guest, directory
):
    agent = agent_process.Agent(node, directory, policy='thesis')
    try:
        agent.start(restricted(directory))
        agent.await_round(lambda done: done['changes'] > 0)
        assert guest.cpu_shares() <= 100
        assert agent.stop() == 0
        assert guest.cpu_shares() == 2000
    finally:
        agent.close()
