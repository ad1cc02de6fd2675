# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

from nova_fairness.decide import contention
from nova_fairness.model import resources
from nova_fairness.model import usage
from tests.unit.decide import plant

UNTOLD = float('nan')


def judge_contention(
    used,
    stall,
    *,
    cpus=1,
    vcpus=1,
    paused=frozenset(),
    known=True,
    busy=(),
):
    """(contended, wanting) for parts of a CPU used, and stalls."""
    count = len(used)
    amounts = np.zeros((count, len(resources.RESOURCES)))
    amounts[:, plant.CPU_TIME] = np.array(used, dtype=float) * 10
    situation = contention.situation(
        usage.Usage(
            10.0,
            plant.guests(count, paused, vcpus),
            amounts,
            np.full(count, known),
            np.array(stall, dtype=float),
            np.array(busy, dtype=float),
        ),
        np.zeros(count),
        np.arange(count),
        plant.machine(cpus),
    )
    others = np.arange(len(resources.CONTROLS)) != plant.CPU
    assert not situation.contended[others].any()
    assert not situation.wanting[:, others].any()
    return (
        bool(situation.contended[plant.CPU]),
        situation.wanting[:, plant.CPU].tolist(),
    )


CASES = {
    'no VM runs': ([], [], False, []),
    'a lone busy vm': ([0.97], [0.03], False, [False]),
    'three share a cpu': (
        [0.33, 0.33, 0.32],
        [0.67, 0.67, 0.67],
        True,
        [True, True, True],
    ),
    'one has nearly all': ([0.95, 0.04], [0.05, 0.95], True, [False, True]),
    'a light one has all it wants': (
        [0.1, 0.85],
        [0.01, 0.12],
        True,
        [False, True],
    ),
    'a lone vm that waits for the host has no rival': (
        [0.9, 0.01, 0.02],
        [0.5, 0.02, 0.08],
        False,
        [True, False, False],
    ),
    'one that waits, and many that have what they want': (
        [0.4, *[0.03] * 20],
        [0.6, *[0.0] * 20],
        True,
        [True, *[False] * 20],
    ),
    'starved ones are rivals however little they get': (
        [0.01] * 90,
        [0.99] * 90,
        True,
        [True] * 90,
    ),
    'two that are late and still idle for a third of the time': (
        [0.42, 0.42],
        [0.2, 0.15],
        False,
        [False, False],
    ),
    'one that is late and one that never rests': (
        [0.4, 0.55],
        [0.2, 0.45],
        True,
        [False, True],
    ),
    'one waits on a half idle node': ([0.3, 0.2], [0.4, 0], False, None),
    'no stalls told, full node': (
        [0.5, 0.45],
        [UNTOLD, UNTOLD],
        True,
        [True, True],
    ),
    'no stalls told, almost full node': (
        [0.45, 0.42],
        [UNTOLD] * 2,
        False,
        None,
    ),
    'no stalls told, one alone': ([0.99], [UNTOLD], False, [False]),
    'no stalls told, an idle one': (
        [0.48, 0.48, 0.005],
        [UNTOLD] * 3,
        True,
        [True, True, False],
    ),
    'stalls of one told': ([0.5, 0.48], [UNTOLD, 0.5], True, [True, True]),
}


@pytest.mark.parametrize(
    ('used', 'stall', 'contended', 'wanting'), CASES.values(), ids=CASES
)
def test_waiting_vms_are_told_by_use_and_stall(
    used, stall, contended, wanting
):
    found = judge_contention(used, stall)
    assert found[0] is contended
    if wanting is not None:
        assert found[1] == wanting


@pytest.mark.parametrize(
    ('busy', 'contended'),
    [((1.0,), True), ((0.5,), False), ((float('nan'),), False), ((), False)],
    ids=[
        'VMs that compete with the host compete with each other',
        'a quota makes a VM wait on an idle node',
        'a CPU that is not told counts by what the VMs used',
        'as does a kernel that tells of no CPU',
    ],
)
def test_cpu_time_of_the_host_counts_as_busy(busy, contended):
    told, wanting = judge_contention([0.3, 0.3], [0.6, 0.6], busy=busy)
    assert told is contended
    assert wanting == [True, True]


def test_only_the_cpus_of_the_node_count():
    told, _ = judge_contention([0.3, 0.3], [0.6, 0.6], busy=(0.99, 0.0, 0.0))
    assert told


def test_a_paused_vm_wants_nothing():
    found = judge_contention([0.5, 0.45], [0.5, 0.5], paused={0})
    assert found == (True, [False, True])


def test_a_vm_that_was_not_seen_wants_nothing():
    assert judge_contention([0.5, 0.5], [0.5, 0.5], known=False) == (
        False,
        [False, False],
    )


def test_a_vm_cannot_use_more_cpus_than_the_node_has():
    assert judge_contention([1.98], [UNTOLD], cpus=2, vcpus=4) == (
        False,
        [False],
    )


def test_waits_judged_over_intervals_count():
    found = contention.situation(
        usage.Usage(
            10.0,
            plant.guests(3),
            np.full((3, len(resources.RESOURCES)), 2.0),
            np.array([True, True, False]),
            np.zeros(3),
        ),
        np.zeros(3),
        np.arange(3),
        plant.machine(),
        usage.CpuWaits(np.ones(3, bool), np.ones(1, bool), np.zeros(3)),
    )
    assert found.contended[plant.CPU]
    assert found.wanting[:, plant.CPU].tolist() == [True, True, False]


def test_keys_sizes_and_owners_are_passed_on():
    vms = plant.guests(2, vcpus=3)
    zeros = np.zeros((2, len(resources.RESOURCES)))
    found = contention.situation(
        usage.Usage(1.0, vms, zeros, np.ones(2, bool), np.zeros(2)),
        np.array([0.5, -1.0]),
        np.array([1, 0]),
        plant.machine(),
    )
    assert found.keys == tuple(item.key for item in vms)
    assert found.vcpus.tolist() == [3, 3]
    assert found.heaviness.tolist() == [0.5, -1.0]
    assert found.user.tolist() == [1, 0]
