# SPDX-License-Identifier: Apache-2.0


"""Changes reach the kernel only when they can be taken back."""

import functools

import pytest

from nova_fairness.apply import applier as appliers
from nova_fairness.apply import control
from nova_fairness.apply import found_values
from nova_fairness.apply.cgroup import files
from nova_fairness.model import allocation
from nova_fairness.model import resources
from tests.unit.apply import fake_host

BOOT = 'boot-1'
KEY = 'uuid-a/1/500'


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'state' / 'found.json'


def open_applier(host, path):
    """An applier as an agent makes it when it starts."""
    found = found_values.FoundValues(path, BOOT)
    found.load()
    running = functools.partial(files.is_running, str(host.proc))
    return appliers.Applier([host.control()], found, running), found


def test_present_values_cover_every_control(host, path):
    applier, _ = open_applier(host, path)
    key, gone = host.start(7), host.start(8)
    host.end(gone)
    assert applier.read_values([key, gone]) == {fake_host.knob(key): 1024}


def test_problems_cover_every_control(host, path):
    applier, _ = open_applier(host, path)
    key = host.start(7, group='/')
    applier.read_values([key])
    assert key in applier.problems()[0]


def test_the_value_before_the_first_write_is_restored(host, path):
    applier, found = open_applier(host, path)
    key = host.start(7, value=2000)
    for value in (500, 600, 700):
        (outcome,) = applier.apply([fake_host.change(key, value)])
        assert outcome.written
        assert host.value(key) == value
    assert found.values == {fake_host.knob(key): 2000}
    (outcome,) = applier.restore()
    assert outcome.written
    assert outcome.change == fake_host.change(key, 2000, before=700)
    assert host.value(key) == 2000
    assert found.values == {}
    assert applier.restore() == ()


def test_the_value_is_on_the_disk_before_the_write(host, path, monkeypatch):
    seen = []
    key = host.start(7)

    def writer(requests):
        seen.append(path.read_text())
        return [0]

    found = found_values.FoundValues(path, BOOT)
    found.load()
    running = functools.partial(files.is_running, str(host.proc))
    applier = appliers.Applier([host.control(writer=writer)], found, running)
    applier.apply([fake_host.change(key, 1024)])
    assert '"cpu": 1024' in seen[0]


def test_the_recorded_found_value_is_read_from_the_kernel(host, path):
    applier, found = open_applier(host, path)
    key = host.start(7, value=2000)
    applier.apply([fake_host.change(key, 500, before=3)])
    assert found.values == {fake_host.knob(key): 2000}


def test_a_change_that_cannot_be_recorded_is_not_written(host, path):
    applier, _found = open_applier(host, path)
    known, new = host.start(7), host.start(8)
    applier.apply([fake_host.change(known, 500)])
    path.unlink()
    path.mkdir()
    outcomes = applier.apply(
        [fake_host.change(new, 600), fake_host.change(known, 700)]
    )
    assert 'cannot be written' in outcomes[0].error
    assert outcomes[1].written
    assert (host.value(new), host.value(known)) == (1024, 700)


def test_a_vm_that_cannot_be_read_is_not_written(host, path):
    applier, found = open_applier(host, path)
    key = host.start(7, value=0)
    (outcome,) = applier.apply([fake_host.change(key, 500)])
    assert 'cannot be read and so not restored' in outcome.error
    assert host.value(key) == 0
    assert found.values == {}


def test_a_vm_that_vanished_is_gone_and_not_an_error(host, path):
    applier, found = open_applier(host, path)
    new, known = host.start(7), host.start(8)
    applier.apply([fake_host.change(known, 500)])
    host.end(new)
    host.end(known)
    outcomes = applier.apply(
        [fake_host.change(new, 600), fake_host.change(known, 600)]
    )
    assert [outcome.gone for outcome in outcomes] == [True, True]
    assert [outcome.error for outcome in outcomes] == ['', '']
    assert found.values == {}


def test_a_new_vm_removes_vanished_vms_from_the_record(host, path):
    applier, found = open_applier(host, path)
    old, new = host.start(7), host.start(8)
    applier.apply([fake_host.change(old, 500)])
    host.end(old)
    applier.apply([fake_host.change(new, 500)])
    assert found.values == {fake_host.knob(new): 1024}
    assert old not in path.read_text()


def test_a_control_that_the_node_lacks_is_an_error_in_its_place(host, path):
    applier, _ = open_applier(host, path)
    key = host.start(7)
    memory = allocation.Knob(key, resources.ResourceControl.MEMORY)
    changes = [
        allocation.Change(memory, None, 5),
        fake_host.change(key, 500),
        allocation.Change(memory, None, 6),
    ]
    outcomes = applier.apply(changes)
    assert [item.change for item in outcomes] == changes
    assert [item.written for item in outcomes] == [False, True, False]
    assert 'memory' in outcomes[0].error


def test_only_the_named_vms_are_restored(host, path):
    applier, found = open_applier(host, path)
    exempt, other = host.start(7), host.start(8)
    applier.apply([fake_host.change(key, 500) for key in (exempt, other)])
    (outcome,) = applier.restore([exempt, 'uuid-z/99/1'])
    assert outcome.change.knob == fake_host.knob(exempt)
    assert (host.value(exempt), host.value(other)) == (1024, 500)
    assert found.values == {fake_host.knob(other): 1024}


def test_a_restart_does_not_record_own_values_as_found(host, path):
    applier, found = open_applier(host, path)
    key = host.start(7)
    applier.apply([fake_host.change(key, 500)])
    found.close()
    applier, found = open_applier(host, path)
    applier.apply([fake_host.change(key, 600)])
    applier.restore()
    assert host.value(key) == 1024


def test_a_reused_process_id_is_not_restored(host, path):
    applier, found = open_applier(host, path)
    key = host.start(7)
    applier.apply([fake_host.change(key, 500)])
    host.end(key)
    host.start(7, ticks=501, value=3333)
    (outcome,) = applier.restore()
    assert outcome.gone
    assert host.value(key) == 3333
    assert found.values == {}


def test_a_value_that_could_not_be_restored_stays_recorded(host, path):
    applier, found = open_applier(host, path)
    stuck, fine = host.start(7), host.start(8)
    applier.apply([fake_host.change(key, 500) for key in (stuck, fine)])
    file = host.file_of(stuck)
    file.unlink()
    file.mkdir()
    outcomes = applier.restore()
    assert [bool(outcome.error) for outcome in outcomes] == [True, False]
    assert found.values == {fake_host.knob(stuck): 1024}
    found.close()
    file.rmdir()
    file.write_text('500\n')
    applier, _ = open_applier(host, path)
    assert applier.restore()[0].written
    assert host.value(stuck) == 1024


def test_an_already_restored_value_is_removed_from_the_record(host, path):
    applier, found = open_applier(host, path)
    key = host.start(7)
    applier.apply([fake_host.change(key, 500)])
    host.file_of(key).write_text('1024\n')
    (outcome,) = applier.restore()
    assert outcome.written
    assert found.values == {}


def test_after_a_lost_record_the_default_is_restored(host, path):
    path.parent.mkdir()
    path.write_text('{"version": 1, "fou')
    key = host.start(7, value=500)
    applier, _found = open_applier(host, path)
    applier.apply([fake_host.change(key, 600)])
    applier.restore()
    assert host.value(key) == 1024


def test_with_an_intact_record_the_present_value_counts_as_found(host, path):
    key = host.start(7, value=500)
    applier, _ = open_applier(host, path)
    applier.apply([fake_host.change(key, 600)])
    applier.restore()
    assert host.value(key) == 500


@pytest.mark.parametrize(
    ('expected', 'present', 'drifted'),
    [
        ({}, {}, {}),
        ({KEY: 5}, {KEY: 5}, {}),
        ({KEY: 5}, {KEY: 6}, {KEY: 6}),
        ({KEY: 5}, {}, {}),
        ({}, {KEY: 6}, {}),
    ],
)
def test_drift_counts_changes_of_others(expected, present, drifted):
    def by_knob(values):
        return {fake_host.knob(key): value for key, value in values.items()}

    result = control.drift(by_knob(expected), by_knob(present))
    assert result == by_knob(drifted)
