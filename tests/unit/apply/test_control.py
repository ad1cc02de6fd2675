# SPDX-License-Identifier: Apache-2.0


"""CPU shares are read and written per VM, and failures stay apart."""

import os
import pathlib
import shutil

import pytest

from nova_fairness import exception
from nova_fairness.apply.cgroup import control as group_control
from nova_fairness.model import allocation
from tests.unit.apply import fake_host


def descriptors() -> int:
    return sum(1 for _ in pathlib.Path('/proc/self/fd').iterdir())


@pytest.mark.parametrize(
    ('layout', 'version', 'unit_range', 'default'),
    [
        (fake_host.V1, 1, (2, 262144), 1024),
        (fake_host.HYBRID, 1, (2, 262144), 1024),
        (fake_host.V2, 2, (1, 10000), 100),
    ],
)
def test_the_cgroup_version_follows_from_the_controller(
    tmp_path, monkeypatch, layout, version, unit_range, default
):
    host = fake_host.FakeHost(tmp_path / 'host', layout)
    host.let_helper_see_it(monkeypatch)
    key = host.start(7, value=77)
    control = host.control()
    assert control.version == version
    assert control.unit_range() == unit_range
    assert control.default() == default
    assert control.read([key]) == {key: 77}
    assert control.write([fake_host.change(key, 900)])[0].written
    assert host.value(key) == 900


@pytest.mark.parametrize('controllers', ['', 'io memory', 'cpuset'])
def test_a_host_without_a_cpu_controller_is_named(tmp_path, controllers):
    host = fake_host.FakeHost(tmp_path / 'host', fake_host.V2)
    (host.cpu / 'cgroup.controllers').write_text(controllers)
    with pytest.raises(exception.ControlUnavailable, match='no CPU contr'):
        host.control()


def test_a_v2_tree_that_cannot_be_read_is_named(tmp_path):
    host = fake_host.FakeHost(tmp_path / 'host', fake_host.V2)
    (host.cpu / 'cgroup.controllers').unlink()
    with pytest.raises(exception.ControlUnavailable, match='cannot be read'):
        host.control()


def test_present_values_are_read_again_every_time(host):
    key = host.start(7)
    control = host.control()
    assert control.read([key]) == {key: 1024}
    host.file_of(key).write_text('2048\n')
    assert control.read([key]) == {key: 2048}


def test_vanished_and_replaced_processes_are_absent(host):
    there, gone = host.start(7), host.start(8)
    host.end(gone)
    other_start = 'uuid-7/7/499'
    control = host.control()
    assert control.read([gone, there, other_start]) == {there: 1024}
    assert control.problems() == ()


def test_a_vm_without_a_group_of_its_own_is_named_once(host):
    key = host.start(7, group='/system.slice/libvirtd.service')
    other = host.start(8)
    control = host.control()
    assert control.read([key, other]) == {other: 1024}
    (problem,) = control.problems()
    assert key in problem
    assert 'not that of one VM' in problem
    control.read([key, other])
    assert control.problems() == ()


def test_a_group_without_the_control_is_a_problem_not_a_loss(host):
    key = host.start(7)
    host.file_of(key).unlink()
    control = host.control()
    assert control.read([key]) == {}
    assert 'cannot be read' in control.problems()[0]
    (outcome,) = control.write([fake_host.change(key, 5)])
    assert outcome.error
    assert not outcome.gone
    assert not host.file_of(key).exists()


def test_an_idle_vm_is_distinguished_from_a_vm_with_minimum_shares(host):
    few, idle = host.start(7, value=3), host.start(8, value=3)
    host.file_of(few).with_name('cpu.idle').write_text('0\n')
    host.file_of(idle).with_name('cpu.idle').write_text('1\n')
    control = host.control()
    assert control.read([few, idle]) == {few: 3, idle: allocation.IDLE}
    assert control.can_idle(few)


def test_a_vm_leaves_the_idle_state_before_it_gets_shares(host):
    key = host.start(7)
    file = host.file_of(key).with_name('cpu.idle')
    file.write_text('0\n')
    asked = []

    def note(requests):
        asked.extend(requests)
        return [0] * len(requests)

    control = host.control(writer=note)
    control.write([fake_host.change(key, allocation.IDLE)])
    control.write([fake_host.change(key, 900, allocation.IDLE)])
    control.write([fake_host.change(key, 901, 900)])
    assert [request[:2] for request in asked] == [
        ('cpu.idle', '1'),
        ('cpu.idle', '0'),
        ('cpu.shares', '900'),
        ('cpu.shares', '901'),
    ]


def test_no_vm_is_idle_where_the_kernel_knows_no_idle_groups(host):
    key = host.start(7)
    control = host.control()
    assert not control.can_idle(key)
    (outcome,) = control.write([fake_host.change(key, allocation.IDLE)])
    assert 'cannot be 0' in outcome.error
    assert host.value(key) == 1024


@pytest.mark.parametrize('text', ['0\n', 'max\n', '\n', '262145\n'])
def test_a_value_outside_the_range_is_not_written(host, text):
    key = host.start(7)
    host.file_of(key).write_text(text)
    control = host.control()
    assert control.read([key]) == {}
    assert len(control.problems()) == 1


def test_file_descriptors_are_kept_open_and_closed_later(host):
    keys = [host.start(pid) for pid in range(10, 20)]
    control = host.control()
    before = descriptors()
    control.read(keys)
    control.read(keys)
    assert descriptors() == before + len(keys)
    for _ in range(20):
        control.read(keys[:1])
    assert descriptors() == before + 1
    control.close()
    assert descriptors() == before


def test_the_number_of_file_descriptors_is_bounded(host):
    keys = [host.start(pid) for pid in range(10, 20)]
    control = host.control(max_open=3)
    before = descriptors()
    assert len(control.read(keys)) == len(keys)
    assert descriptors() == before + 3
    outcomes = control.write([fake_host.change(key, 5) for key in keys])
    assert all(outcome.written for outcome in outcomes)
    assert descriptors() == before + 3


def test_exhausted_file_descriptors_make_no_vm_vanish(host, monkeypatch):
    key = host.start(7)
    control = host.control()

    def refuse(*args, **options):
        raise OSError(24, 'Too many open files')

    monkeypatch.setattr(os, 'open', refuse)
    (outcome,) = control.write([fake_host.change(key, 5)])
    assert 'Too many open files' in outcome.error
    assert not outcome.gone


def test_outcomes_have_the_sequence_of_changes(host):
    keys = [host.start(pid) for pid in (10, 11, 12, 13)]
    control = host.control()
    control.read(keys)
    host.end(keys[1])
    changes = [
        fake_host.change(keys[0], 500),
        fake_host.change(keys[1], 501),
        fake_host.change(keys[2], 1),
        fake_host.change(keys[3], 503),
    ]
    outcomes = control.write(changes)
    assert [outcome.change for outcome in outcomes] == changes
    assert [outcome.written for outcome in outcomes] == [
        True,
        False,
        False,
        True,
    ]
    assert outcomes[1].gone
    assert not outcomes[1].error
    assert 'cannot be 1, expected 2..262144' in outcomes[2].error
    values = [host.value(keys[place]) for place in (0, 2, 3)]
    assert values == [500, 1024, 503]


def test_all_changes_are_one_call_of_the_helper(host):
    keys = [host.start(pid) for pid in range(10, 20)]
    calls = []

    def writer(requests):
        calls.append(requests)
        return [0] * len(requests)

    control = host.control(writer=writer)
    control.write([fake_host.change(key, 1024) for key in keys])
    assert control.write([]) == ()
    assert [len(requests) for requests in calls] == [len(keys)]


def test_a_value_that_the_kernel_bounds_is_an_error(host):
    key = host.start(7)
    control = host.control(writer=lambda requests: [0])
    (outcome,) = control.write([fake_host.change(key, 5)])
    assert 'the kernel set 1024 instead' in outcome.error


def test_a_helper_that_does_not_start_is_an_error_of_each(host):
    keys = [host.start(7), host.start(8)]

    def writer(requests):
        raise exception.ControlUnavailable('no helper')

    control = host.control(writer=writer)
    outcomes = control.write([fake_host.change(key, 5) for key in keys])
    assert [outcome.error for outcome in outcomes] == ['no helper'] * 2


def test_a_refusal_repeats_the_error_of_the_system(host):
    key = host.start(7)
    control = host.control(writer=lambda requests: [30])
    (outcome,) = control.write([fake_host.change(key, 5)])
    assert 'Read-only file system' in outcome.error
    assert key in outcome.error


def test_a_group_removed_with_its_process_is_gone(host):
    key = host.start(7)
    control = host.control()
    control.read([key])
    host.end(key)
    shutil.rmtree(host.file_of(key).parent)
    (outcome,) = control.write([fake_host.change(key, 5)])
    assert outcome.gone


def test_the_default_writer_is_the_privileged_helper():
    assert group_control.CpuShares.__init__.__defaults__[2].__module__ == (
        'nova_fairness.apply.privileged'
    )
