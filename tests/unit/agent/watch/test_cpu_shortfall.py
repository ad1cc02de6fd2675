# SPDX-License-Identifier: Apache-2.0

"""What VMs wanted and got over a history."""

import numpy as np
import pytest

from nova_fairness.agent.watch import cpu_shortfall
from nova_fairness.model import instance
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

CPU = resources.RESOURCES.index('cpu_time')
SPEED = 100.0


def vm(name):
    return instance.Incarnation(instance.Instance(name, name, 1, 2**20), 7, 9)


def interval(cpus, known=None, interval_s=10.0):
    """An interval in which VMs, by name, used so many CPUs."""
    amounts = np.zeros((len(cpus), len(resources.RESOURCES)))
    amounts[:, CPU] = np.array([*cpus.values()]) * SPEED * interval_s
    return usage_model.Usage(
        interval_s,
        tuple(map(vm, cpus)),
        amounts,
        np.ones(len(cpus), bool) if known is None else np.array(known),
        np.zeros(len(cpus)),
    )


def wanted(cpus, interval_s=10.0):
    amounts = np.zeros((len(cpus), len(resources.RESOURCES)))
    amounts[:, CPU] = np.array(cpus) * SPEED * interval_s
    return amounts


def test_means_weigh_the_newest_interval_most():
    watched = cpu_shortfall.CpuShortfall(SPEED)
    for _ in range(90):
        watched.add(interval({'a': 1.0}), wanted([2.0]))
    [told] = watched.add(interval({'a': 1.0}), wanted([2.0])).values()
    assert told.wanted == pytest.approx(2.0)
    assert told.got == pytest.approx(1.0)
    assert told.seen_s == 910.0
    # One burst in a quarter of an hour is not a history.
    [told] = watched.add(interval({'a': 4.0}), wanted([8.0])).values()
    assert told.wanted == pytest.approx(2.0, rel=0.06)
    for _ in range(90):
        [told] = watched.add(interval({'a': 0.0}), wanted([0.0])).values()
    # Half of what weighs is older than a half-life, of as much before it.
    assert told.wanted == pytest.approx(2.0 / 3.0, rel=0.1)


def test_means_omit_new_vms_and_drop_ended_vms():
    watched = cpu_shortfall.CpuShortfall(SPEED)
    told = watched.add(interval({'a': 1.0, 'b': 1.0}, [True, False]), None)
    assert {key.partition('/')[0] for key in told} == {'a'}
    watched.add(interval({'b': 1.0}), None)
    [told] = watched.add(interval({'a': 1.0}), None).values()
    assert told.seen_s == 10.0


def test_use_of_an_unjudged_vm_counts_as_its_wants():
    watched = cpu_shortfall.CpuShortfall(SPEED)
    [told] = watched.add(interval({'a': 1.5}), None).values()
    assert (told.wanted, told.got) == (1.5, 1.5)


@pytest.mark.parametrize(('gone', 'got'), [(0.5, 1.0), (0.01, 0.55)])
def test_means_start_anew_after_much_load_has_ended(gone, got):
    watched = cpu_shortfall.CpuShortfall(SPEED)
    for _ in range(90):
        watched.add(interval({'a': 0.5, 'b': gone}), wanted([1.0, 1.0]))
    for _ in range(9):
        [told] = watched.add(interval({'a': 1.0}), wanted([1.0])).values()
    assert told.got == pytest.approx(got, abs=0.02)
    assert told.wanted == pytest.approx(1.0)
    assert told.seen_s == 990.0
