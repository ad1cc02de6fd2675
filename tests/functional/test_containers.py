# SPDX-License-Identifier: Apache-2.0

"""Images of the Containerfile: built and run as the page says, with podman.

A real systemd runs the machine, with libvirt, a VM and RabbitMQ. Tests go
through its life in their order.
"""

import shutil
import subprocess

import pytest

from fairness_lab.testbed.nodes import processes
from tests.fixtures import booted
from tests.fixtures import minimal_debian

# Debian and all that the images hold are downloaded.
pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.beside,
    pytest.mark.timeout(5400),
]

GUIDE = minimal_debian.guide('containers')
BASE = 'localhost/debian-of-test'
NAMES = ('agent', 'relay', 'queue')
USER = '42499'
CONF = '/etc/nova-fairness'
DIRECTORIES = (CONF, '/var/lib/nova-fairness', '/etc/openstack')
QUEUE_CONF = """\
[fairness_cluster]
database = sqlite:////var/lib/nova-fairness-cluster/requests.sqlite
key_file = /var/lib/nova-fairness-cluster/requests.keys
broker = amqp://guest:guest@127.0.0.1:5672//
cloud = away
"""
CLOUDS = """\
clouds: {away: {auth_type: none, auth: {endpoint: "http://127.0.0.1:9"}}}
"""
PODMAN_CONF = """\
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
"""
"""What a machine needs that is a container itself."""

BASE_FILE = """\
FROM {name}-bare
COPY certificates /usr/local/share/ca-certificates
RUN apt-get update && apt-get install -y ca-certificates && \\
    update-ca-certificates
ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt
"""
"""Debian, which believes what this machine believes."""


def typed(title):
    """Commands of a section of the page."""
    return [
        line for block in minimal_debian.blocks(GUIDE, title) for line in block
    ]


def run(*argv, **options):
    """Run a program of this machine that must not fail."""
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@pytest.fixture(scope='module')
def images(tmp_path_factory):
    """Archives of the images, by name; built as the page says."""
    place = tmp_path_factory.mktemp('images')
    archive = place / 'debian.tar'
    run('mmdebstrap', '--variant=minbase', 'bookworm', str(archive))
    run('podman', 'import', str(archive), f'{BASE}-bare')
    archive.unlink()
    (place / 'certificates').mkdir()
    if minimal_debian.AUTHORITIES.is_dir():
        shutil.copytree(
            minimal_debian.AUTHORITIES,
            place / 'certificates',
            dirs_exist_ok=True,
        )
    (place / 'Containerfile').write_text(BASE_FILE.format(name=BASE))
    chroot = ('--isolation', 'chroot', '--pull=never')
    run('podman', 'build', *chroot, '-t', BASE, str(place))
    clone = place / 'clone'
    run('git', 'clone', '-q', str(minimal_debian.TOP), str(clone))
    made = {}
    for name, line in zip(NAMES, typed('Images'), strict=True):
        assert f'--target {name} ' in line
        words = line.split()
        words[2:2] = [*chroot, '--build-arg', f'BASE={BASE}']
        run(*words, cwd=clone)
        made[name] = place / f'{name}.tar'
        image = f'localhost/nova-fairness-{name}'
        run('podman', 'save', '-q', '-o', str(made[name]), image)
    yield made
    names = [f'localhost/nova-fairness-{name}' for name in NAMES]
    run('podman', 'rmi', '--force', *names, BASE, f'{BASE}-bare')


class Host(booted.SteeredNode):
    """A machine with the images, a VM and the configuration."""

    def __init__(self, machine, vm, images):
        super().__init__(machine, vm)
        storage = '/var/lib/containers'
        machine.check('mkdir', '-p', storage, *DIRECTORIES)
        machine.check('mount', '-t', 'tmpfs', 'none', storage)
        self.write('/etc/containers/containers.conf', PODMAN_CONF)
        self.write(
            f'{CONF}/nova-fairness.conf', booted.STEERING.format('true')
        )
        self.write(f'{CONF}/nova-fairness-cluster.conf', QUEUE_CONF)
        self.write('/etc/openstack/clouds.yaml', CLOUDS)
        for path in images.values():
            kept = machine.exchange / path.name
            shutil.copy(path, kept)
            machine.check('podman', 'load', '-q', '-i', str(kept))
            kept.unlink()

    def write(self, path, text):
        """Write a file of the machine."""
        (self.machine.root / path.lstrip('/')).write_text(text)

    def logs(self, name):
        """All that a container printed."""
        done = self.machine.run('podman', 'logs', name)
        return done.stdout + done.stderr

    def agent_log(self):
        return self.logs('nova-fairness-agent')


@pytest.fixture(scope='module')
def host(images):
    with booted.running() as machine, booted.vm_of(machine) as vm:
        yield Host(machine, vm, images)


START, STOP, RESTORE = typed('The agent')


def test_the_agent_steers_from_its_container(host):
    host.machine.check(*START.split())
    host.await_steered()


def test_a_stopped_service_restores_values(host):
    host.machine.check(*STOP.split())
    assert host.shares == booted.FOUND


def test_values_of_a_killed_agent_are_restored_by_command(host):
    host.machine.check('podman', 'start', 'nova-fairness-agent')
    host.await_steered()
    host.machine.check('podman', 'kill', 'nova-fairness-agent')
    said = host.machine.check(*RESTORE.split())
    assert '1 control restored, 0 failed' in said
    assert host.shares == booted.FOUND


def test_the_containers_of_relay_and_queue_run_unprivileged(host):
    host.write('/etc/hosts', '127.0.0.1 localhost booted\n')
    host.machine.check('systemctl', 'start', 'rabbitmq-server')
    for line in typed('Relay and queue'):
        host.machine.check(*line.split())
    list_queues = ('rabbitmqctl', '-q', 'list_queues', 'name', 'consumers')
    assert processes.wait_until(
        lambda: 'nova_front.conductor\t1' in host.machine.check(*list_queues),
        booted.PATIENCE_S,
        1.0,
    ), host.logs('nova-fairness-relay')
    assert processes.wait_until(
        lambda: '127.0.0.1:9' in host.logs('nova-fairness-queue'),
        booted.PATIENCE_S,
        1.0,
    ), host.logs('nova-fairness-queue')
    for name in ('nova-fairness-relay', 'nova-fairness-queue'):
        show = ('podman', 'inspect', '--format')
        pid = host.machine.check(*show, '{{.State.Pid}}', name).strip()
        status = host.machine.check('cat', f'/proc/{pid}/status')
        assert f'\nUid:\t{USER}\t' in status
        host.machine.check('podman', 'stop', '-t', '60', name)
        code = host.machine.check(*show, '{{.State.ExitCode}}', name)
        assert code == '0\n', host.logs(name)
