# SPDX-License-Identifier: Apache-2.0

"""What runs with disks and with latencies show."""

import dataclasses
import pathlib

import jsonschema
import pytest

from fairness_lab.figures import report
from fairness_lab.results import recording
from fairness_lab.results import result
from fairness_lab.results import schema
from fairness_lab.testbed.guests import fleet
from tests.unit.fairness_lab.results import expected
from tests.unit.fairness_lab.results import fake_run

MIB = 1 << 20
BIG = {'a1': 5, 'a2': 5, 'b1': 10}


def run(name, rates, *, fio_rates=None, agents=True, more=None, **changes):
    """A run in which VMs move so many MiB/s."""
    made = fake_run.one_node_cpu(name=name, agents=agents, **changes)
    readings = tuple(
        dataclasses.replace(
            row,
            more={
                'read_bytes': row.t_s * rates.get(row.vm, 0) * MIB,
                'io_weight': 100.0,
                **{
                    column: row.t_s * per_s
                    for column, per_s in (more or {}).get(row.vm, {}).items()
                },
            },
        )
        for row in made.readings
    )
    moved = {
        vm: {'weight': 100.0, 'bytes_per_s': rate * MIB}
        for vm, rate in (fio_rates or {}).items()
    }
    return dataclasses.replace(made, readings=readings, fio=moved)


def evaluated(made):
    built = result.build(made)
    jsonschema.validate({**built, 'checks': []}, schema.schema())
    made = expected.evaluate(
        built, light=('b1',), **{'heavy-1': ('a1',), 'heavy-2': ('a2',)}
    )
    return {item.name: item for item in made}


def test_bytes_that_a_vm_moved_are_its_part_of_the_node():
    built = result.build(run('one-node-disk', BIG, fio_rates=BIG))
    light = built['disk']['b1']
    assert light['share'] == pytest.approx(0.5)
    assert light['bytes_per_s'] == pytest.approx(10 * MIB)
    assert light['fio_share'] == pytest.approx(0.5)
    assert light['kernel_weight'] == 100
    assert light['device_part'] is None


def test_a_run_without_disks_has_no_such_section():
    built = result.build(fake_run.one_node_cpu())
    assert built['disk'] is None
    assert built['latency'] is None


def test_guests_with_the_rate_of_fio_pass():
    found = evaluated(run('one-node-disk', BIG, fio_rates=BIG))
    assert set(found) == {
        'like-fio-a1',
        'like-fio-a2',
        'like-fio-b1',
        'compared-with-fio',
        'more-than-a1',
        'more-than-a2',
    }
    assert all(item.passed for item in found.values())


def test_guests_that_get_something_else_fail():
    other = {'a1': 8, 'a2': 8, 'b1': 4}
    found = evaluated(run('one-node-disk', BIG, fio_rates=other))
    assert not found['like-fio-b1'].passed
    assert found['like-fio-b1'].measured == pytest.approx(2.5)


def test_without_fio_nothing_was_compared():
    found = evaluated(run('one-node-disk', BIG))
    assert not found['compared-with-fio'].passed


def test_without_agents_disks_are_divided_equally():
    even = dict.fromkeys(BIG, 6)
    found = evaluated(run('one-node-disk', even, agents=False))
    assert len(found) == 3
    assert all(item.passed for item in found.values())


LATE = {'b1': {'wakes': 100, 'late_us': 150000, 'late_20ms': 2, 'wait_s': 0.1}}


def test_lateness_is_relative_to_the_wakes():
    built = result.build(run('latency', {}, more=LATE))
    assert built['latency'] == {
        'b1': {
            'wakes_per_s': pytest.approx(100),
            'mean_late_ms': pytest.approx(1.5),
            'late_20ms_part': pytest.approx(0.02),
            'steal_part': pytest.approx(0.1),
        }
    }


def test_a_guest_that_wakes_in_time_passes():
    found = evaluated(run('latency', {}, more=LATE))
    assert set(found) == {'measured', 'awake-in-time-b1'}
    assert all(item.passed for item in found.values())


def test_a_guest_that_wakes_late_fails():
    late = {'b1': {**LATE['b1'], 'late_20ms': 40}}
    found = evaluated(run('latency', {}, more=late))
    assert not found['awake-in-time-b1'].passed


def test_a_run_that_measured_no_lateness_fails():
    found = evaluated(run('latency', {}))
    assert not found['measured'].passed


def two_nodes(cpu, disk, *, agents=True):
    """Part of a result that is judged."""
    vms = {
        'single': ('user1', 'node1', 50.0),
        'first': ('user2', 'node1', 50.0),
        'second': ('user2', 'node2', 20.0),
        'other': ('user3', 'node2', 0.0),
    }
    return {
        'scenario': 'two-nodes-cpu-disk',
        'agents': agents,
        'metric': 'DominantShareMetric',
        'policy': 'feedback',
        'interval_s': 2.0,
        'nodes': {'node1': {}, 'node2': {}},
        'instances': {
            name: {
                'user': user,
                'node': node,
                'cpu_share': cpu.get(name, 0.4),
                'cpu_s': 20.0,
                'demand_cpu_s': demand,
            }
            for name, (user, node, demand) in vms.items()
        },
        'disk': {
            name: {'share': part, 'device_part': part}
            for name, part in disk.items()
        },
    }


DISK = {'single': 0.7, 'first': 0.3, 'second': 0.0, 'other': 1.0}


def judged(*given, **options):
    made = expected.evaluate(two_nodes(*given, **options))
    return {item.name: item.passed for item in made}


def test_a_user_of_one_node_gets_more_of_both():
    assert judged({'single': 0.6, 'first': 0.4}, DISK) == {
        'more-cpu-single': True,
        'more-disk-single': True,
        'satisfied-second': True,
        'as-alone-other': True,
    }


def test_a_user_of_two_nodes_must_not_get_as_much():
    found = judged({'single': 0.5, 'first': 0.5}, {**DISK, 'single': 0.5})
    assert not found['more-cpu-single']
    assert not found['more-disk-single']


def test_the_check_fails_if_the_other_node_loses():
    found = judged({'single': 0.6, 'first': 0.4}, {**DISK, 'other': 0.5})
    assert not found['as-alone-other']


def test_without_agents_both_users_get_equal_amounts():
    even = {**DISK, 'single': 0.5, 'first': 0.5}
    found = judged({'single': 0.5, 'first': 0.5}, even, agents=False)
    assert set(found) == {
        'equal-cpu-single',
        'equal-cpu-first',
        'equal-disk-single',
        'equal-disk-first',
        'satisfied-second',
        'as-alone-other',
    }
    assert all(found.values())


JOBS = {
    'a deep reader': (True, 16, ['--rw=randread', '--iodepth=16']),
    'a deep writer': (False, 32, ['--rw=randwrite', '--iodepth=32']),
    'both': (None, 16, ['--rw=randrw', '--iodepth=16']),
    'one that goes through': (True, 1, ['--rw=read', '--iodepth=1']),
}


@pytest.mark.parametrize(('reads', 'depth', 'words'), JOBS.values(), ids=JOBS)
def test_fio_repeats_accesses_of_the_guest(reads, depth, words):
    path = pathlib.Path('/images/disk.raw')
    job = fleet.VmLoad('light', 300, path, reads, 64, depth)
    command = job.command(30)
    for word in [*words, '--bs=64k', '--direct=1', '--runtime=30']:
        assert word in command
    assert '--filename=/images/disk.raw' in command


def test_a_run_with_disks_leaves_a_picture_of_them(tmp_path):
    recording.write(run('one-node-disk', BIG, fio_rates=BIG), tmp_path)
    report.write(tmp_path, tmp_path)
    picture = (tmp_path / report.DISK_PICTURE).read_bytes()
    assert picture.startswith(b'\x89PNG')
    series = (tmp_path / report.SERIES).read_text()
    assert 'instance,b1,disk_share,0.5' in series


def test_a_run_without_disks_leaves_none(tmp_path):
    recording.write(fake_run.one_node_cpu(duration_s=20.0), tmp_path)
    report.write(tmp_path, tmp_path)
    assert not (tmp_path / report.DISK_PICTURE).exists()
