# SPDX-License-Identifier: Apache-2.0

"""Disks of laboratory nodes: real queues, really slow, and gone afterwards."""

import pathlib

import pytest

from fairness_lab.results import reading
from fairness_lab.scenario import values as scenario_module
from fairness_lab.testbed.guests import fleet
from fairness_lab.testbed.nodes import disk
from nova_fairness import exception

pytest_plugins = ('tests.fixtures.lab',)
pytestmark = pytest.mark.real

MIB = 1 << 20
RATE_MIB_S = 32
SECONDS = 6


@pytest.fixture
def slow(lab_node):
    """A disk of the shared node, for one test."""
    made = disk.NodeDisk(lab_node, 160, RATE_MIB_S, 'bfq')
    made.open()
    lab_node.has_disk = True
    yield made
    lab_node.has_disk = False
    made.close()


def traces(node):
    """Remains of the disks of a node."""
    mounts = pathlib.Path('/proc/self/mountinfo').read_text()
    backing = [
        path.read_text()
        for path in pathlib.Path('/sys/block').glob('loop*/loop/backing_file')
    ]
    place = str(node.directory / 'disk')
    return [text for text in (*mounts.splitlines(), *backing) if place in text]


def test_a_disk_has_a_queue_with_the_wanted_scheduler(slow):
    queue = pathlib.Path('/sys/block', pathlib.Path(slow.device).name, 'queue')
    assert '[bfq]' in (queue / 'scheduler').read_text()


def test_a_node_sees_its_disk_where_images_are(lab_node, slow):
    done = lab_node.run(['findmnt', '-no', 'SOURCE', disk.IMAGES])
    assert done.stdout.strip() == slow.device


def test_nothing_of_a_disk_is_left(lab_node):
    made = disk.NodeDisk(lab_node, 32, RATE_MIB_S, 'none')
    made.open()
    assert traces(lab_node)
    made.close()
    assert traces(lab_node) == []
    done = lab_node.run(['findmnt', '-no', 'SOURCE', disk.IMAGES])
    assert done.stdout.strip() == ''


def test_the_disk_of_a_dead_run_is_removed(lab_node):
    made = disk.NodeDisk(lab_node, 32, RATE_MIB_S, 'none')
    made.open()
    lab_node.run(['umount', '--lazy', disk.IMAGES])
    made._daemon.kill()
    made._daemon.wait()
    disk.remove(lab_node.directory / 'disk')
    assert traces(lab_node) == []


def test_an_unknown_disk_scheduler_is_named_and_leaves_nothing(lab_node):
    made = disk.NodeDisk(lab_node, 32, RATE_MIB_S, 'no-such')
    with pytest.raises(exception.LabError, match='does not come up'):
        made.open()
    assert traces(lab_node) == []


def test_fio_divides_the_rate_of_a_disk_by_weights(lab_node, lab_guest, slow):
    image = scenario_module.GuestDisk(64, 'none', 'native')
    guests = {
        name: lab_guest(name, 'alice', disks=(image,)) for name in ('a', 'b')
    }
    weights = {'a': 100, 'b': 300}
    jobs = [
        fleet.VmLoad(name, weights[name], made.images[0], True, 64, 16)
        for name, made in guests.items()
    ]
    got = fleet.run_fio(jobs, reading.parent_groups(guests['a'].pid), SECONDS)
    rates = {name: values['bytes_per_s'] for name, values in got.items()}
    assert got['b']['weight'] == 300
    assert sum(rates.values()) < 1.3 * RATE_MIB_S * MIB
    assert 2.4 < rates['b'] / rates['a'] < 3.6


def reported(made):
    made.command('report')
    return made.line.report


def test_a_guest_with_deep_queue_reads_at_the_rate_of_its_disk(
    lab_guest, slow
):
    image = scenario_module.GuestDisk(64, 'none', 'native')
    made = lab_guest('deep', 'alice', disks=(image,))
    made.command('disk max 0 65536 16')
    before = reported(made)
    made.command(f'cpu-burn-seconds {SECONDS}')
    after = reported(made)
    moved = after['read'] - before['read']
    assert moved > 0.5 * RATE_MIB_S * MIB * SECONDS
    made.command('disk 0 0')


def test_a_guest_reports_its_wake_up_latency(lab_guest):
    made = lab_guest('sleeper', 'alice')
    made.command('wake 100')
    made.command('cpu-burn-seconds 2')
    report = reported(made)
    assert report['wakes'] >= 50
    assert report['late_us'] > 0
