# SPDX-License-Identifier: Apache-2.0

"""The node cycle, everything real but the host."""

import dataclasses
import time

import numpy as np
import pytest

from nova_fairness import plugins
from nova_fairness.measure import metric as metric_base
from nova_fairness.model import allocation
from nova_fairness.model import resources
from tests.unit.agent import fake_host

CPU = resources.CONTROLS.index(resources.ResourceControl.CPU)


@pytest.fixture
def two_against_one(tmp_path):
    """One user with two busy VMs, one with one (paper, section 6.4.1)."""
    return fake_host.FakeHost(
        tmp_path,
        fake_host.vm('a-1', 'ann'),
        fake_host.vm('a-2', 'ann'),
        fake_host.vm('b-3', 'bob'),
    )


def test_users_reach_equal_shares_within_six_rounds(two_against_one):
    done = two_against_one.rounds(7)  # the first only reads
    first, second, third = two_against_one.shares('a-1', 'a-2', 'b-3')
    assert first == pytest.approx(second, rel=0.02)
    part = third / (first + second + third)
    assert part == pytest.approx(0.5, abs=0.03)
    assert done.errors == ()


def test_the_thesis_policy_doubles_the_light_users_vm(tmp_path):
    host = fake_host.FakeHost(
        tmp_path,
        fake_host.vm('a-1', 'ann'),
        fake_host.vm('a-2', 'ann'),
        fake_host.vm('b-3', 'bob'),
        metric='GreedinessMetric',
        policy='thesis',
    )
    host.rounds(12)
    first, _, third = host.shares('a-1', 'a-2', 'b-3')
    assert 1.8 <= third / first <= 2.2
    assert max(first, third) <= 100


def test_the_first_round_of_an_agent_changes_nothing(two_against_one):
    done = two_against_one.rounds(1)
    assert done.measured is None
    assert two_against_one.control.writes == 0


def test_a_settled_node_needs_few_writes(two_against_one):
    two_against_one.rounds(40)
    before = two_against_one.control.writes
    held = two_against_one.shares('a-1', 'a-2', 'b-3')
    two_against_one.rounds(20)
    # What the tolerance leaves unwritten makes itself felt now and then.
    assert two_against_one.control.writes - before <= 0.3 * 20 * len(held)
    now = two_against_one.shares('a-1', 'a-2', 'b-3')
    assert now == pytest.approx(held, rel=0.05)


def test_a_cpu_that_no_vm_waits_for_changes_no_weight(two_against_one):
    two_against_one.cpu.wants = {'a-1': 0.2, 'a-2': 0.2, 'b-3': 0.2}
    done = two_against_one.rounds(10)
    assert not done.decided.contended[CPU]
    assert two_against_one.shares('a-1', 'a-2', 'b-3') == [1024] * 3


def test_observation_writes_nothing_and_reports_wanted_values(
    tmp_path,
):
    host = fake_host.FakeHost(
        tmp_path,
        fake_host.vm('a-1', 'ann'),
        fake_host.vm('a-2', 'ann'),
        fake_host.vm('b-3', 'bob'),
        enforce=False,
    )
    done = host.rounds(5)
    assert host.control.writes == 0
    wanted = done.decided.wanted
    key = host.inventory.vms[2].key
    assert wanted[allocation.Knob(key, resources.ResourceControl.CPU)] > 1024


def test_turning_enforcement_off_restores_found_values(two_against_one):
    two_against_one.rounds(6)
    assert two_against_one.shares('b-3') != [1024]
    two_against_one.change(enforce=False)
    done = two_against_one.rounds(1)
    assert two_against_one.shares('a-1', 'a-2', 'b-3') == [1024] * 3
    assert done.tally.restored == 3


def test_a_vm_that_becomes_exempt_gets_back_its_found_values(two_against_one):
    two_against_one.rounds(6)
    two_against_one.change(exempt=frozenset({'bob'}))
    two_against_one.rounds(3)
    assert two_against_one.shares('b-3') == [1024]
    assert two_against_one.shares('a-1') != [1024]


def test_an_exempt_vm_still_counts_for_its_owner(tmp_path):
    host = fake_host.FakeHost(
        tmp_path,
        fake_host.vm('a-1', 'ann'),
        fake_host.vm('b-2', 'bob'),
        exempt=frozenset({'a-1'}),
    )
    done = host.rounds(4)
    assert done.measured.ownership.users == ('ann', 'bob')
    assert done.measured.user_heaviness[0] > 0.5


def test_reports_include_the_wants_of_exempt_vms(two_against_one):
    def told():
        view = two_against_one.rounds(3).measured.view
        (own,) = view.reports.values()
        return own.users['ann'], own.users['bob']

    assert told()[0].exempt is None
    two_against_one.change(exempt=frozenset({'a-1'}))
    ann, bob = told()
    vcpus = ann.exempt[: len(ann.exempt) // 2].sum()
    assert 0 < vcpus == ann.grades[: len(ann.grades) // 2].sum() / 2
    assert not bob.exempt.any()


def test_weights_compensate_for_an_exempt_vm(two_against_one):
    two_against_one.change(exempt=frozenset({'a-1'}))
    two_against_one.rounds(30)
    exempt, other, bob = two_against_one.shares('a-1', 'a-2', 'b-3')
    assert exempt == 1024
    assert bob == pytest.approx(exempt + other, rel=0.05)


def test_changes_by_other_programs_are_repaired_and_counted(two_against_one):
    two_against_one.rounds(20)
    key = two_against_one.inventory.vms[2].key
    held = two_against_one.control.held[key]
    two_against_one.control.held[key] = 77
    done = two_against_one.rounds(1)
    assert done.tally.drifted == 1
    assert two_against_one.control.held[key] >= held
    done = two_against_one.rounds(15)
    assert done.tally.drifted == 0
    assert two_against_one.control.held[key] == pytest.approx(held, rel=0.1)


def test_one_refused_write_keeps_no_other_from_being_written(
    two_against_one,
):
    key = two_against_one.inventory.vms[0].key
    two_against_one.control.refuses.add(key)
    done = two_against_one.rounds(3)
    assert done.tally.failed == 1
    assert 'refused by the test' in done.errors[0]
    assert two_against_one.shares('a-1') == [1024]
    assert two_against_one.shares('b-3') != [1024]


def test_a_restored_node_has_its_found_values(two_against_one):
    two_against_one.rounds(6)
    two_against_one.cycle.restore()
    assert two_against_one.shares('a-1', 'a-2', 'b-3') == [1024] * 3


class _Metric(metric_base.Metric):
    description = 'misbehaves'

    def instances(self, demands):
        raise RuntimeError('broken on purpose')


class _Once(metric_base.Metric):
    """Raises at its first call, and is another one afterwards."""

    description = 'Fails once.'

    def __init__(self, real):
        self._real, self._failed = real, False

    def instances(self, demands):
        if not self._failed:
            self._failed = True
            raise RuntimeError('broken once')
        return self._real.instances(demands)


class _NotANumber(_Metric):
    def instances(self, demands):
        return np.full(len(demands.usage), np.nan)


class _WrongShape(_Metric):
    def instances(self, demands):
        return np.zeros(len(demands.usage) + 1)


class _Greedy(_Metric):
    def instances(self, demands):
        demands.usage[:] = 0.0
        return np.zeros(len(demands.usage))


@pytest.mark.parametrize(
    ('broken', 'said'),
    [
        (_Metric, 'broken on purpose'),
        (_NotANumber, 'finite'),
        (_WrongShape, 'shape'),
        (_Greedy, 'read-only'),
    ],
)
def test_a_misbehaving_metric_keeps_the_weights_until_it_is_set_again(
    two_against_one, monkeypatch, broken, said
):
    two_against_one.rounds(6)
    kept = two_against_one.shares('a-1', 'a-2', 'b-3')
    real = plugins.load_metric
    monkeypatch.setattr(plugins, 'load_metric', lambda name: broken())
    two_against_one.change(metric='DominantShareMetric')
    done = two_against_one.rounds(3)
    assert two_against_one.shares('a-1', 'a-2', 'b-3') == kept
    assert said in done.quarantined['DominantShareMetric']
    assert any('DominantShareMetric' in error for error in done.errors)

    monkeypatch.setattr(plugins, 'load_metric', real)
    two_against_one.change(metric='DominantShareMetric')
    done = two_against_one.rounds(1)
    assert done.quarantined == {}
    assert done.measured is not None


def test_a_metric_that_failed_once_steers_again_after_a_pause(
    two_against_one, monkeypatch
):
    real = plugins.load_metric
    monkeypatch.setattr(plugins, 'load_metric', lambda name: _Once(real(name)))
    two_against_one.change(metric='DominantShareMetric')
    assert two_against_one.rounds(3).quarantined
    guard = two_against_one.cycle._parts.guard
    monkeypatch.setattr(guard, '_monotonic', lambda: time.monotonic() + 61)
    done = two_against_one.rounds(3)
    assert done.quarantined == {}
    assert done.measured is not None
    assert not done.errors


def test_weights_that_are_kept_are_still_defended(
    two_against_one, monkeypatch
):
    two_against_one.rounds(6)
    key = two_against_one.inventory.vms[2].key
    held = two_against_one.control.held[key]
    monkeypatch.setattr(plugins, 'load_metric', lambda name: _Metric())
    two_against_one.change(metric='DominantShareMetric')
    two_against_one.rounds(1)
    two_against_one.control.held[key] = 77
    two_against_one.rounds(1)
    assert two_against_one.control.held[key] == held


def test_the_record_of_a_vanished_vm_is_removed(two_against_one):
    two_against_one.rounds(4)
    gone = two_against_one.inventory.vms[2]
    two_against_one.inventory.vms = two_against_one.inventory.vms[:2]
    two_against_one.gone.add(gone.key)
    two_against_one.rounds(2)
    newcomer = fake_host.vm('c-9', 'cid')
    two_against_one.inventory.vms += (newcomer,)
    done = two_against_one.rounds(6)
    assert done.errors == ()
    recorded = {knob.incarnation for knob in two_against_one.found.values}
    assert gone.key not in recorded
    assert newcomer.key in recorded


def test_a_restarted_vm_is_another_incarnation(two_against_one):
    two_against_one.rounds(4)
    old = two_against_one.inventory.vms[2]
    again = fake_host.vm('b-3', 'bob')
    again = type(again)(again.instance, pid=33, start_ticks=777)
    two_against_one.inventory.vms = (*two_against_one.inventory.vms[:2], again)
    two_against_one.gone.add(old.key)
    done = two_against_one.rounds(1)
    row = [item.key for item in done.incarnations].index(again.key)
    assert not done.measured.usage.known[row]
    assert (done.measured.usage.amounts >= 0).all()


def test_a_node_without_vms_has_empty_rounds(tmp_path):
    host = fake_host.FakeHost(tmp_path)
    done = host.rounds(3)
    assert done.errors == ()
    assert len(done.incarnations) == 0


def test_a_round_reports_problems_of_the_inventory(two_against_one):
    two_against_one.inventory.problem = 'libvirt is away'
    done = two_against_one.rounds(2)
    assert 'libvirt is away' in done.errors


def test_the_ratio_of_weights_is_bounded(tmp_path):
    many = [fake_host.vm(f'b-{number}', 'bob') for number in range(2, 32)]
    host = fake_host.FakeHost(tmp_path, fake_host.vm('a-1', 'ann'), *many)
    host.rounds(40)
    held = list(host.control.held.values())
    assert max(held) / min(held) == pytest.approx(20.0, rel=0.02)
    part = max(held) / sum(held)
    assert part == pytest.approx(20 / 50, abs=0.03)


def large_host(tmp_path):
    """A host of VMs that are found at the end of the range."""
    vms = [
        fake_host.vm(name, user)
        for name, user in (('a-1', 'ann'), ('a-2', 'ann'), ('b-3', 'bob'))
    ]
    vms = [
        dataclasses.replace(
            vm, instance=dataclasses.replace(vm.instance, vcpus=400)
        )
        for vm in vms
    ]
    host = fake_host.FakeHost(tmp_path, *vms)
    host.control.found = 262144
    return host


def test_large_vms_without_waiting_vms_are_not_written(tmp_path):
    host = large_host(tmp_path)
    host.cpu.wants = {'a-1': 0.1, 'a-2': 0.1, 'b-3': 0.1}
    assert host.rounds(4).tally.changed == 0
    assert host.control.writes == 0


def test_large_vms_are_steered_and_get_back_their_found_values(tmp_path):
    host = large_host(tmp_path)
    done = host.rounds(8)
    first, second, other = host.shares('a-1', 'a-2', 'b-3')
    assert first + second == pytest.approx(other, 0.1)
    weights = done.decided.weights[:, CPU]
    assert other / first == pytest.approx(weights[2] / weights[0], 0.02)
    host.cycle.restore()
    assert host.shares('a-1', 'a-2', 'b-3') == [262144] * 3
