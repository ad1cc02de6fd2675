# SPDX-License-Identifier: Apache-2.0

"""A real guest on a qcow2 disk makes room, and comes back with what it wrote.

The host is full of such guests of two projects.
"""

import subprocess
import time

import pytest

from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.eviction import notice_channels
from tests.fixtures.nova_cloud import guest_image
from tests.fixtures.nova_cloud import settings
from tests.integration.nova import filling
from tests.integration.nova import rooms
from tests.integration.nova import watching

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.timeout(watching.TIMEOUT_S),
]
pytest_plugins = ('tests.fixtures.nova_cloud.fixtures',)

HERE, AWAY = 'cmp2', 'cmp1'
COW = 'qcow2'
"""Name of the image, and its format."""

MARK = '-P 90 64k 4k'
"""What the guest is made to write onto its disk, in words of ``qemu-io``."""

DISK = '/machine/peripheral/virtio-disk0/virtio-backend'
"""As QEMU knows it."""

OWNERS = [rooms.POOR, *(rooms.RICH,) * (settings.VCPUS - 1)]


@pytest.fixture(scope='module')
def servers():
    """None but those of the test."""
    return {}


def begin_anew(cloud, node):
    """Start nova-compute anew; it gives up what was sent to the one before."""
    node.stop_compute()
    watching.eventually(
        lambda: cloud.services('nova-compute')[node.name] == 'down'
    )
    node.resume_compute()
    cloud.await_up()


@pytest.fixture(scope='module')
def node(cloud, queue):
    """A node whose disks are of qcow2; the other one takes nobody."""
    made = cloud.nodes[HERE]
    usual = made.compute_conf.read_text()
    path = f'/os-services?binary=nova-compute&host={AWAY}'
    [other] = cloud.admin.get('compute', path)['services']
    path = f'/os-services/{other["id"]}'
    cloud.admin.put('compute', path, {'status': 'disabled'})
    made.compute_conf.write_text(
        usual.replace('[libvirt]\n', '[libvirt]\nimages_type = qcow2\n')
    )
    begin_anew(cloud, made)
    try:
        yield made
    finally:
        cloud.admin.put('compute', path, {'status': 'enabled'})
        made.compute_conf.write_text(usual)
        begin_anew(cloud, made)


@pytest.fixture(scope='module')
def image(cloud, tmp_path_factory):
    """An image of a disk in qcow2, with the kernel of the others."""
    path = tmp_path_factory.mktemp('disk') / 'disk.qcow2'
    subprocess.run(
        ['qemu-img', 'create', '-q', '-f', COW, str(path), '64M'], check=True
    )
    cloud.images[COW] = made = guest_image.upload_disk(
        cloud.admin, COW, path, cloud.images[guest_image.IDLE]
    )
    yield made
    del cloud.images[COW]
    cloud.admin.delete('image', f'/v2/images/{made}')


@pytest.fixture
def guests(cloud, queue, node, image):
    """Preemptible ones that fill the node, with their owners."""
    queue.restart(**rooms.OPTIONS, room_actions='shelve')
    cloud.capacity()
    made = {}
    try:
        for number, user in enumerate(OWNERS):
            name, metadata = f'{user}-cow-{number}', rooms.PREEMPTIBLE
            uuid = cloud.boot(user, name, HERE, COW, metadata=metadata)
            made[uuid] = user
        for each in made:
            cloud.await_status(each)
        yield made
    finally:
        cloud.delete([each for each in made if cloud.exists(each)])
        queue.restart(lease='1')
        cloud.capacity()
        queue.set()


def write(node, server):
    """Have QEMU write onto a guest's disk, as the guest would."""
    [name] = [n for n, uuid in node.domains().items() if uuid == server]
    # What is not flushed is in no file yet.
    for order in (f'write {MARK}', 'flush'):
        order = f'qemu-io -d {DISK} "{order}"'
        asked = ['virsh', 'qemu-monitor-command', name, '--hmp', order]
        done = node.node.run(asked)
        assert done.returncode == 0, done
        assert 'Error' not in done.stdout, done


def has_it(node, path):
    """Whether it is in a file of the node, which may be in use."""
    asked = ['qemu-io', '-U', '-r', '-f', COW, '-c', f'read {MARK}', str(path)]
    done = node.node.run(asked)
    return done.returncode == 0 and 'failed' not in done.stdout


def test_a_victim_is_shelved_and_returns_with_its_disk(cloud, node, guests):
    for each in guests:
        write(node, each)
    disks = {
        each: settings.STATE / f'instances/{each}/disk' for each in guests
    }
    assert all(has_it(node, path) for path in disks.values())
    asked = filling.boot(cloud, rooms.OWNER, 'needs', HERE)
    try:
        filling.await_told(cloud, [asked], 'reason', ['room_is_made'])
        watching.eventually(lambda: told(cloud, guests))
        [(left, at)] = told(cloud, guests).items()
        assert guests[left] == rooms.RICH
        assert at - time.time() > evictor.LEAST_NOTICE_S - 30
        cloud.await_status(asked)
        assert time.time() >= at
        # It asks to be unshelved at once, and waits for that in the queue.
        watching.eventually(
            lambda: cloud.show(left)['status'] == 'SHELVED_OFFLOADED',
            lambda: cloud.show(left),
        )
        assert left not in node.domains().values()
        kept = f'/v2/images?name={cloud.show(left)["name"]}-shelved'
        [kept] = cloud.admin.get('image', kept)['images']
        assert (kept['disk_format'], kept['status']) == (COW, 'active')
        stay = guests.keys() - {left}
        assert {cloud.show(each)['status'] for each in stay} == {'ACTIVE'}
    finally:
        cloud.delete([asked])
    cloud.await_status(left)
    watching.eventually(lambda: not told(cloud, guests))
    assert left in node.domains().values()
    assert has_it(node, disks[left])
    assert type_of_disk(node, left) == COW


def told(cloud, guests):
    """When guests leave by their metadata, seconds of the epoch."""
    said = {
        each: cloud.show(each)['metadata'].get(notice_channels.LEAVES_AT)
        for each in guests
    }
    return {each: rooms.seconds(at) for each, at in said.items() if at}


def type_of_disk(node, server):
    """Format of a guest's disk, as libvirt has it."""
    xml = node.xml_of(server)
    _, _, after = xml.partition("<driver name='qemu' type='")
    return after.partition("'")[0]
