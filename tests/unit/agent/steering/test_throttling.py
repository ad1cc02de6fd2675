# SPDX-License-Identifier: Apache-2.0

"""Limits come while VMs compete for a device without weights, and go."""

import dataclasses

import numpy as np
import pytest

from nova_fairness.agent.steering import throttling
from nova_fairness.model import instance
from nova_fairness.model import pressure
from nova_fairness.model import resources
from nova_fairness.model import usage

MIB = 1 << 20
BUSY = pressure.DeviceLoad('sda', 1.0, 20.0)
IDLE = pressure.DeviceLoad('sda', 0.3, 0.5)


class FakeThrottle:
    """Remembers the limits in force."""

    def __init__(self):
        self.limits = {('left/1/1', '8:0'): (1, 1)}

    def apply(self, limits):
        self.limits = dict(limits)
        return ()

    def lift(self):
        return self.apply({})


VMS = tuple(
    instance.Incarnation(
        instance.Instance(f'uuid-{n}', f'vm-{n}', 1, 1 << 30), n, 1
    )
    for n in (1, 2)
)
DISKS = ((pressure.DiskPath('vda', ('253:0', '8:0')),),) * 2


def pressed(load):
    nothing = np.full(2, np.nan)
    return pressure.Pressure(
        1.0, VMS, nothing, nothing, nothing, DISKS, 0.0, {'8:0': load}
    )


def sample(scheduler):
    nothing = np.full(2, np.nan)
    return pressure.PressureSample(
        0.0,
        VMS,
        nothing,
        nothing,
        nothing,
        DISKS,
        0.0,
        {'8:0': pressure.DeviceTotals('sda', scheduler)},
    )


def used():
    amounts = np.zeros((2, len(resources.RESOURCES)))
    amounts[:, resources.RESOURCES.index('disk_read')] = 50 * MIB
    return usage.Usage(
        1.0, VMS, amounts, np.ones(2, dtype=bool), np.full(2, np.nan)
    )


@pytest.fixture
def throttle():
    return FakeThrottle()


def play(made, load=BUSY, scheduler='mq-deadline', **options):
    return made.apply(
        pressed(load),
        sample(scheduler),
        used(),
        np.array([1.0, 3.0]),
        **options,
    )


def test_limits_of_another_agent_are_lifted_at_once(throttle):
    throttling.Throttling(throttle, is_on=False)
    assert throttle.limits == {}


def test_the_vm_with_less_weight_gets_an_io_limit(throttle):
    play(throttling.Throttling(throttle, is_on=True))
    assert throttle.limits == {(VMS[0].key, '253:0'): (27_525_120, MIB)}


CASES = {
    'the device has time left': {'load': IDLE},
    'the device keeps weights': {'scheduler': 'bfq'},
    'the VM is exempt': {'exempt': {VMS[0].key}},
}


@pytest.mark.parametrize('options', CASES.values(), ids=CASES)
def test_no_io_limit_is_set_in_this_situation(throttle, options):
    made = throttling.Throttling(throttle, is_on=True)
    play(made)
    assert throttle.limits
    play(made, **options)
    assert throttle.limits == {}


def test_no_io_limit_is_set_unless_configured(throttle):
    play(throttling.Throttling(throttle, is_on=False))
    assert throttle.limits == {}


def test_io_limits_are_lifted_without_measurements(throttle):
    made = throttling.Throttling(throttle, is_on=True)
    play(made)
    made.apply(None, None, used(), np.ones(2))
    assert throttle.limits == {}


def test_io_limits_are_lifted_when_rows_do_not_match(throttle):
    made = throttling.Throttling(throttle, is_on=True)
    play(made)
    other = dataclasses.replace(used(), incarnations=VMS[:1])
    made.apply(pressed(BUSY), sample('none'), other, np.ones(1))
    assert throttle.limits == {}


def test_io_limits_are_lifted_when_the_agent_ends(throttle):
    made = throttling.Throttling(throttle, is_on=True)
    play(made)
    assert made.stop() == ()
    assert throttle.limits == {}
