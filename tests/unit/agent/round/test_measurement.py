# SPDX-License-Identifier: Apache-2.0

"""What VMs want for longer than a moment."""

import dataclasses

import numpy as np
import pytest

from nova_fairness.agent.round import measurement
from nova_fairness.model import node
from nova_fairness.model import usage as usage_model
from tests.unit.measure import build

R = build.RESOURCES
CPU = R.index('cpu_time')


@pytest.fixture
def made():
    return measurement.WantsHistory(
        node.NodeResources(
            host='n1',
            cpus=(0, 1),
            speed_factor=1.0,
            capacity=R.vector(cpu_time=2.0),
        )
    )


def interval(*vms, seconds=10.0, known=True, busy=1.0, paused=()):
    """vms: (name, CPUs used, part of the interval that it waited)."""
    return usage_model.Usage(
        interval_s=seconds,
        incarnations=tuple(
            dataclasses.replace(build.vm(name), paused=name in paused)
            for name, _, _ in vms
        ),
        amounts=np.array(
            [R.vector(cpu_time=used * seconds) for _, used, _ in vms]
        ),
        known=np.full(len(vms), known),
        cpu_stall=np.array([stall for _, _, stall in vms]),
        cpu_busy=np.full(2, busy),
    )


def cpus(made, *vms, seconds=10.0, **changes):
    found = made.judge(interval(*vms, seconds=seconds, **changes))
    return (found.wanted[:, CPU] / seconds).tolist()


OTHER = ('b', 0.5, 0.5)


def test_waiting_in_one_interval_adds_no_want(made):
    assert cpus(made, ('a', 0.4, 0.0)) == [0.4]
    assert cpus(made, ('a', 0.4, 0.5)) == [0.4]
    assert cpus(made, ('a', 0.4, 0.0)) == [0.4]


def test_a_vm_that_waits_for_two_intervals_of_any_length_wants_more(made):
    made.judge(interval(('a', 0.4, 0.0), seconds=10.0))
    made.judge(interval(('a', 0.4, 0.5), seconds=10.0))
    found = cpus(made, ('a', 0.4, 0.5), seconds=5.0)
    assert found == pytest.approx([0.8])


def test_a_vm_that_was_not_there_before_is_believed(made):
    assert cpus(made, ('a', 0.4, 0.5)) == [0.8]
    # Of the interval in which it came nothing is known.
    made.judge(interval(('a', 0.0, 0.0), ('b', 0.0, 0.0), known=False))
    found = cpus(made, ('b', 0.4, 0.5), ('a', 0.4, 0.5))
    assert found == pytest.approx([0.8, 0.8])


def test_wants_of_all_users_are_met_where_cpus_are_idle(made):
    for _ in range(3):
        found = cpus(made, ('a', 0.4, 0.5), busy=0.5)
    assert found == [0.4]


def test_many_small_waiting_vms_want_more_from_the_second_interval(made):
    vms = [(f'vm{number}', 0.05, 0.5) for number in range(40)]
    assert cpus(made, *vms) == [0.05] * 40
    assert cpus(made, *vms) == pytest.approx([0.1] * 40)


def test_a_wait_is_remembered_of_the_same_vm_alone(made):
    made.judge(interval(('a', 0.1, 0.5), OTHER))
    found = made.judge(interval(OTHER, ('c', 0.1, 0.5), ('a', 0.1, 0.5)))
    assert found.waiting.vms.tolist() == [True, False, True]
    assert found.waiting.nodes.tolist() == [True]


def test_wants_of_a_node_without_vms_are_empty(made):
    nobody = usage_model.Usage(
        10.0, (), np.zeros((0, len(R))), np.zeros(0, bool), np.zeros(0)
    )
    found = made.judge(nobody)
    assert found.wanted.shape == (0, len(R))
    assert found.waiting.nodes.tolist() == [False]


def test_a_vm_idle_for_one_interval_keeps_its_earlier_want(made):
    for stall in (0.5, 0.5, 0.0):
        made.judge(interval(('a', 0.5, stall), OTHER))
    assert cpus(made, ('a', 0.5, 0.5), OTHER) == pytest.approx([1, 1])
    # Longer ago it does not count.
    for stall in (0.0, 0.0):
        made.judge(interval(('a', 0.5, stall), OTHER))
    assert cpus(made, ('a', 0.5, 0.5), OTHER) == pytest.approx([0.5, 1])


def test_a_live_migrated_vm_wants_all_from_the_first_interval(made):
    # While its memory is copied QEMU works a little, and the VM is paused.
    for _ in range(3):
        cpus(made, ('a', 0.05, 0.0), ('b', 0.9, 0.1), paused=('a',))
    # Then it runs for a part of an interval, and from then on always.
    assert cpus(made, ('a', 0.3, 0.2), ('b', 0.6, 0.4))[0] == 1.0
    for _ in range(2):
        assert cpus(made, ('a', 0.5, 0.5), OTHER)[0] == 1.0


def test_wants_ignore_the_time_of_a_paused_vm(made):
    for _ in range(2):
        cpus(made, ('a', 0.5, 0.5), OTHER)
    for _ in range(2):
        found = cpus(made, ('a', 0.0, 0.0), ('b', 1.0, 0.0), paused=('a',))
        assert found[0] == 0.0
    assert cpus(made, ('a', 0.3, 0.2), ('b', 0.6, 0.4))[0] == 1.0
