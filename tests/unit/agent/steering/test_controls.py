# SPDX-License-Identifier: Apache-2.0

"""Several controls in one cycle: each for itself, whatever the others do."""

import pytest

from nova_fairness.model import allocation
from nova_fairness.model import resources
from tests.unit.agent import fake_host

CPU = resources.ResourceControl.CPU
DISK = resources.ResourceControl.DISK
NETWORK = resources.ResourceControl.NETWORK
VMS = ('a-1', 'a-2', 'b-3')


def column(kind):
    return resources.CONTROLS.index(kind)


class Node:
    """Two users on a node with three controls."""

    def __init__(self, tmp_path, **options):
        self.disk = fake_host.FakeControl(DISK, 100)
        self.network = fake_host.FakeControl(NETWORK, 0)
        self.disk_scale = fake_host.FakeScale(DISK, VMS)
        self.network_scale = fake_host.FakeScale(NETWORK)
        self.host = fake_host.FakeHost(
            tmp_path,
            fake_host.vm('a-1', 'ann'),
            fake_host.vm('a-2', 'ann'),
            fake_host.vm('b-3', 'bob'),
            others={
                self.disk: self.disk_scale,
                self.network: self.network_scale,
            },
            **options,
        )

    @property
    def keys(self):
        return [item.key for item in self.host.inventory.vms]

    def units(self, control):
        return [control.held[key] for key in self.keys]


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def test_every_control_is_steered_by_its_own_contention(node):
    done = node.host.rounds(8)
    assert done.errors == ()
    assert done.decided.contended[column(CPU)]
    assert done.decided.contended[column(DISK)]
    assert not done.decided.contended[column(NETWORK)]
    assert node.units(node.disk)[2] > 110 > node.units(node.disk)[0]
    assert node.host.shares('b-3')[0] > 1100
    weights = done.decided.weights
    assert (weights[:, column(NETWORK)] == 1).all()


def test_a_resource_is_not_contended_if_only_one_vm_wants_more(node):
    node.disk_scale.wants = {'b-3'}
    node.host.rounds(8)
    assert node.units(node.disk) == [100, 100, 100]


@pytest.mark.parametrize('broken', ['control', 'scale'])
def test_a_failing_control_does_not_stop_others(node, broken, caplog):
    (node.disk if broken == 'control' else node.disk_scale).fails = True
    done = node.host.rounds(6)
    assert node.host.shares('b-3')[0] > 1100
    assert all(units == 100 for units in node.disk.held.values())
    if broken == 'control':
        assert any('blkio: ' in text for text in done.errors)
        assert not done.controls[DISK].works
        assert 'Input/output error' in done.controls[DISK].why
    assert done.controls[CPU].works


def test_a_failing_control_logs_a_few_errors_per_round(node):
    node.disk.fails = True
    done = node.host.rounds(3)
    assert 0 < len(done.errors) <= 5


def test_a_recovered_control_is_steered_again(node):
    node.disk.fails = True
    node.host.rounds(3)
    node.disk.fails = False
    node.host.rounds(5)
    assert node.units(node.disk)[2] > 100 > node.units(node.disk)[0]


def test_an_unsteered_control_gets_back_the_values_it_had(node):
    node.host.rounds(8)
    assert node.units(node.disk) != [100] * 3
    node.host.change(controls=frozenset({CPU, NETWORK}))
    done = node.host.rounds(1)
    assert node.units(node.disk) == [100] * 3
    assert done.tally.restored == 3
    assert 'release' in node.disk.calls
    assert not done.controls[DISK].works
    assert done.controls[DISK].why == 'not in [fairness] controls'
    shares = node.host.shares('b-3')[0]
    done = node.host.rounds(3)
    assert node.units(node.disk) == [100] * 3
    assert shares > 1100
    assert done.tally.drifted == 0


def test_changes_of_unsteered_controls_by_others_are_kept(node):
    node.host.change(controls=frozenset({CPU}))
    node.host.rounds(3)
    node.disk.held[node.keys[0]] = 777
    done = node.host.rounds(3)
    assert done.tally.drifted == 0
    assert node.disk.held[node.keys[0]] == 777


def test_an_unsteered_control_is_not_even_read(tmp_path):
    node = Node(tmp_path, controls=frozenset({CPU}))
    node.host.rounds(1)
    assert node.disk.calls == ['settle', 'release', 'settle']
    node.disk.calls.clear()
    node.disk.fails = True
    node.disk.settle = tuple
    done = node.host.rounds(3)
    assert done.errors == ()
    assert node.disk.calls == []
    assert node.disk.held == {}


def test_drift_of_each_control_is_repaired(node):
    node.host.rounds(15)
    node.disk.held[node.keys[2]] = 3
    done = node.host.rounds(1)
    assert done.tally.drifted == 1
    assert node.disk.held[node.keys[2]] > 100


def test_a_stop_restores_all_controls_and_releases_shared_groups(node):
    node.host.rounds(8)
    node.disk.calls.clear()
    outcomes = node.host.cycle.restore()
    assert all(item.written for item in outcomes)
    assert node.units(node.disk) == [100] * 3
    assert node.host.shares(*VMS) == [1024] * 3
    assert node.disk.calls == ['settle', 'release']
    assert node.host.found.values == {}


def test_a_pause_restores_all_controls(node):
    node.host.rounds(8)
    node.host.cycle.paused = True
    done = node.host.rounds(1)
    assert done.tally.restored == 9
    assert node.units(node.network) == [0] * 3
    assert node.units(node.disk) == [100] * 3


def test_an_exempt_vm_is_exempt_from_all_controls(node):
    node.host.rounds(8)
    node.host.change(exempt=frozenset({'bob'}))
    node.host.rounds(3)
    assert node.disk.held[node.keys[2]] == 100
    assert node.host.shares('b-3') == [1024]
    assert node.disk.held[node.keys[0]] != 100


def test_a_vm_that_a_control_cannot_steer_gets_no_wanted_value(node):
    node.host.rounds(3)
    read = node.disk.read
    node.disk.read = lambda keys: {
        key: value for key, value in read(keys).items() if key[0] == 'a'
    }
    done = node.host.rounds(3)
    assert done.errors == ()
    wanted = {
        knob.incarnation[0]
        for knob in done.decided.wanted
        if knob.control is DISK
    }
    assert wanted == {'a'}


def test_the_next_agent_restores_the_values_of_a_killed_one(tmp_path, node):
    node.host.rounds(8)
    node.host.found.close()
    held = node.units(node.disk)
    again = Node(tmp_path)
    again.disk.held.update(node.disk.held)
    again.host.control.held.update(node.host.control.held)
    again.host.rounds(2)
    assert again.units(again.disk) == pytest.approx(held, rel=0.6)
    again.host.cycle.restore()
    assert again.units(again.disk) == [100] * 3
    assert again.host.shares(*VMS) == [1024] * 3


def test_each_control_has_its_own_ratio_and_step(tmp_path):
    node = Node(
        tmp_path,
        max_weight_ratios={DISK: 1.44},
        largest_steps={DISK: 1.05},
    )
    first = node.host.rounds(2).decided.weights[:, column(DISK)]
    assert 0.95 <= first.min() <= first.max() <= 1.0501
    last = node.host.rounds(12).decided.weights[:, column(DISK)]
    assert 1.1 < last.max() <= 1.2 + 1e-9
    assert last.max() / last.min() <= 1.44 + 1e-9


def test_preferences_divide_the_share_of_their_owner(tmp_path):
    node = Node(tmp_path)
    node.host.preferences = {'a-1': 3.0}
    done = node.host.rounds(12)
    first, second, third = node.host.shares(*VMS)
    assert first / second == pytest.approx(3.0, rel=0.01)
    assert third / (first + second + third) == pytest.approx(0.5, abs=0.04)
    disk = node.units(node.disk)
    assert disk[0] / disk[1] == pytest.approx(3.0, rel=0.05)
    assert done.decided.preference.tolist() == [3.0, 1.0, 1.0]


def test_vms_get_equal_shares_after_a_preference_ends(tmp_path):
    node = Node(tmp_path)
    node.host.preferences = {'a-1': 3.0}
    node.host.rounds(10)
    node.host.preferences = {}
    node.host.rounds(15)
    first, second, third = node.host.shares(*VMS)
    assert first == pytest.approx(second, rel=0.03)
    assert third / (first + second + third) == pytest.approx(0.5, abs=0.04)


def test_vms_of_other_users_are_not_touched_by_preferences_of_an_owner(
    tmp_path,
):
    plain, with_wish = Node(tmp_path / 'p'), Node(tmp_path / 'w')
    with_wish.host.preferences = {'a-1': 50.0, 'a-2': 0.02}
    for node in (plain, with_wish):
        node.host.rounds(15)
    one, other = plain.host.shares('b-3'), with_wish.host.shares('b-3')
    assert one == pytest.approx(other, rel=0.05)


def test_the_record_gives_the_found_value_of_a_knob(node):
    node.host.rounds(4)
    knob = allocation.Knob(node.keys[2], DISK)
    assert node.host.found.values[knob] == 100
