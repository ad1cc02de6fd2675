# SPDX-License-Identifier: Apache-2.0

"""VCPUs get cores by what is spent, and nobody does who is left alone."""

import dataclasses

import pytest

from nova_fairness.agent.steering import pinning
from nova_fairness.model import resources
from tests.unit.agent import fake_host

NAMES = ('a-1', 'b-2', 'c-3', 'd-4')
RATES = dict(zip(NAMES, (30.0, 60.0, 90.0, 120.0), strict=True))


def made(tmp_path, *vms, **options):
    vms = vms or [fake_host.vm(name, name[0]) for name in NAMES]
    host = fake_host.FakeHost(tmp_path, *vms, pin_vcpus=True, **options)
    host.rates = dict(RATES)
    return host


def where(host):
    return {name: host.pins.cores_of(name) for name in NAMES}


NOWHERE = {name: [] for name in NAMES}
BY_RATE = {'d-4': [0], 'c-3': [2], 'b-2': [2], 'a-1': [0]}


def test_cores_are_shared_by_balanced_spending_rates(tmp_path):
    host = made(tmp_path)
    host.rounds(2)
    assert where(host) == BY_RATE


def test_pins_follow_rates_in_the_next_round(tmp_path):
    host = made(tmp_path)
    host.rounds(2)
    host.rates['a-1'] = 1000.0
    host.rounds(1)
    assert where(host) == {'a-1': [0], 'b-2': [2], 'c-3': [2], 'd-4': [2]}


def test_without_rates_vcpus_are_spread_evenly_over_cores(tmp_path):
    host = made(tmp_path)
    host.rates = {}
    host.rounds(2)
    assert sorted(host.pins.pins.values()) == [0, 0, 2, 2]


def test_vcpus_of_one_vm_share_a_core_only_if_necessary(tmp_path):
    wide = fake_host.vm('d-4', 'd')
    wide = dataclasses.replace(
        wide, instance=dataclasses.replace(wide.instance, vcpus=3)
    )
    host = made(tmp_path, wide, fake_host.vm('a-1', 'a'))
    host.rounds(2)
    assert host.pins.cores_of('d-4') == [0, 2, 0]
    assert host.pins.cores_of('a-1') == [2]


OFF = {
    'the option': {'pin_vcpus': False},
    'the whole agent': {'enforce': False},
    'the control of CPUs': {
        'controls': frozenset({resources.ResourceControl.MEMORY})
    },
}


@pytest.mark.parametrize('options', OFF.values(), ids=OFF)
def test_all_pins_are_released_when_pinning_is_disabled(tmp_path, options):
    host = made(tmp_path)
    host.rounds(2)
    assert where(host) == BY_RATE
    host.change(**options)
    host.rounds(1)
    assert where(host) == NOWHERE


def test_no_vm_is_pinned_unless_pinning_is_configured(tmp_path):
    host = fake_host.FakeHost(tmp_path, fake_host.vm('a-1', 'a'))
    host.rounds(3)
    assert where(host) == NOWHERE


def test_all_pins_are_released_when_the_agent_ends(tmp_path):
    host = made(tmp_path)
    host.rounds(2)
    host.cycle.restore()
    assert where(host) == NOWHERE


def test_pins_of_an_earlier_agent_are_released_at_once():
    pins = fake_host.FakePins()
    pins.pins = {('left/1/1', 0): 0}
    pinning.Pinning(pins)
    assert pins.pins == {}


def test_an_exempt_vm_is_not_pinned(tmp_path):
    vms = [
        fake_host.vm('a-1', 'a'),
        fake_host.vm('b-2', 'b', dedicated_cpus=True),
        fake_host.vm('c-3', 'c'),
        fake_host.vm('d-4', 'd'),
    ]
    host = made(tmp_path, *vms, exempt=frozenset({'c'}))
    host.best_effort.add('d-4')
    host.rounds(2)
    assert where(host) == NOWHERE | {'a-1': [0]}
    host.pins.elsewhere = {'a-1'}
    host.rounds(1)
    assert where(host) == NOWHERE
