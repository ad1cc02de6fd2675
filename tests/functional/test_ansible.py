# SPDX-License-Identifier: Apache-2.0

"""The Ansible role, run on a machine that a real systemd runs.

Tests go through the life of one compute node in their order.
"""

import json
import re
import shutil
import subprocess

import pytest
import yaml

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
ROLES = devstack_host.TOP / 'deploy/ansible'
STEERS = {
    'fairness': {
        'enforce': True,
        'interval': 0.5,
        'controls': 'cpu',
        'policy': 'thesis',
    }
}
LEFT = (
    *('/etc/nova-fairness', '/var/lib/nova-fairness'),
    *('/var/lib/nova-fairness-cluster', '/var/cache/nova-fairness'),
    *('/opt/venvs/nova-fairness', f'/lib/systemd/system/{AGENT}.service'),
)


class Node(booted.SteeredNode):
    """A compute node that Ansible configures from inside."""

    def __init__(self, machine, vm, packages):
        super().__init__(machine, vm)
        self.place = machine.exchange / 'ansible'
        shutil.copytree(ROLES, self.place)
        self.packages = self.place / 'packages'
        self.packages.mkdir()
        for path in packages.glob('*.deb'):
            shutil.copy(path, self.packages)

    def play(self, **given):
        """Run the role; its exit code, the number of changes, the output."""
        variables = {f'nova_fairness_{name}': v for name, v in given.items()}
        play = {
            'hosts': 'localhost',
            'connection': 'local',
            'gather_facts': False,
            'roles': [{'role': 'nova_fairness', **variables}],
        }
        path = self.place / 'play.yml'
        path.write_text(yaml.safe_dump([play]))
        done = self.machine.run(
            *('env', 'HOME=/tmp', f'ANSIBLE_ROLES_PATH={self.place}/roles'),
            *(
                'ANSIBLE_LOCALHOST_WARNING=False',
                'ansible-playbook',
                str(path),
            ),
        )
        said = done.stdout + done.stderr
        changed = re.search(r'changed=(\d+)', said)
        return done.returncode, int(changed[1]) if changed else None, said

    def applied(self, **given):
        """Run the role, which must not fail; the number of changes."""
        code, changed, said = self.play(**given)
        assert code == 0, said[-6000:]
        return changed


@pytest.fixture(scope='module')
def node(packages):
    with booted.running() as machine, booted.vm_of(machine) as vm:
        yield Node(machine, vm, packages)


def test_the_example_playbook_is_valid():
    inventory = 'compute,controllers,'
    subprocess.run(
        ['ansible-playbook', '--syntax-check', '-i', inventory, 'site.yml'],
        cwd=ROLES,
        check=True,
    )


def test_a_service_of_another_name_is_refused_before_any_change(node):
    code, changed, said = node.play(services=['agnet'])
    assert code != 0
    assert changed == 0
    assert 'agnet' in said
    assert 'agent, relay, queue' in said


def test_a_missing_package_is_named(node):
    code, _, said = node.play(packages='/nowhere')
    assert code != 0
    assert re.search(
        r'Package nova-fairness: 0\s+files\s+nova-fairness_\*\.deb in'
        r'\s+/nowhere, expected one',
        said,
    )


def test_the_role_installs_an_agent_that_steers(node):
    assert node.applied(agent_options=STEERS) > 0
    node.await_steered()
    assert node.machine.check('systemctl', 'is-enabled', AGENT) == 'enabled\n'
    mode = node.machine.check('stat', '--format=%a', CONF)
    assert mode == '640\n'


def test_a_second_run_of_the_role_changes_nothing(node):
    pid = node.machine.show(AGENT, 'MainPID')
    assert node.applied(agent_options=STEERS) == 0
    assert node.machine.show(AGENT, 'MainPID') == pid


def test_a_changed_option_is_reloaded_by_the_same_process(node):
    pid = node.machine.show(AGENT, 'MainPID')
    watches = json.loads(json.dumps(STEERS))
    watches['fairness']['enforce'] = False
    assert node.applied(agent_options=watches) == 2
    node.await_steered(False)
    assert node.machine.show(AGENT, 'MainPID') == pid
    node.applied(agent_options=STEERS)
    node.await_steered()


def test_another_version_replaces_the_installed_one(node):
    (built,) = node.packages.glob('nova-fairness_*.deb')
    newer = node.packages / 'nova-fairness_99_amd64.deb'
    debian_package.write_with_version(built, newer, '99')
    built.rename(node.place / built.name)
    pid = node.machine.show(AGENT, 'MainPID')
    assert node.applied(agent_options=STEERS) > 0
    show = ('dpkg-query', '--show', '--showformat=${Version}', AGENT)
    assert node.machine.check(*show) == '99'
    assert node.machine.show(AGENT, 'MainPID') != pid
    node.await_steered()
    assert node.applied(agent_options=STEERS) == 0
    newer.unlink()
    (node.place / built.name).rename(built)
    # Back to the version that the other packages need.
    node.applied(agent_options=STEERS)
    assert node.machine.check(*show) != '99'


def test_the_role_makes_key_and_tables_of_the_queue_without_starting_it(node):
    queue = {
        'services': ['queue'],
        'clients': [],
        'started': False,
        'queue_options': {'fairness_cluster': {'cloud': 'admin'}},
    }
    assert node.applied(**queue) > 0
    home = '/var/lib/nova-fairness-cluster'
    paths = [f'{home}/requests.keys', f'{home}/requests.sqlite', QUEUE_CONF]
    said = node.machine.check('stat', '--format=%a %U:%G', *paths)
    assert said.splitlines() == [
        '600 nova-fairness:nova-fairness',
        '600 nova-fairness:nova-fairness',
        '640 root:nova-fairness',
    ]
    assert node.applied(**queue) == 0


def test_the_role_keeps_the_queue_while_messages_may_pass_the_relay(node):
    code, changed, said = node.play(state='absent', services=['queue'])
    assert code != 0
    assert changed == 0
    assert 'set nova_fairness_queue_taken_out' in ' '.join(said.split())
    node.machine.check('dpkg-query', '--show', QUEUE[1])


def test_removal_leaves_nothing_and_restores_the_vm(node):
    node.await_steered()
    everything = {
        'state': 'absent',
        'services': ['agent', 'queue'],
        'queue_taken_out': True,
    }
    assert node.applied(**everything) > 0
    assert node.shares == booted.FOUND
    assert node.vm.isActive()
    for path in LEFT:
        assert not (node.machine.root / path.lstrip('/')).exists(), path
    assert node.applied(**everything) == 0
