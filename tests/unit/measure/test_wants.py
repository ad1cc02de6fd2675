# SPDX-License-Identifier: Apache-2.0

"""What VMs would use if there were plenty."""

import dataclasses

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from nova_fairness.measure import wants
from nova_fairness.model import node
from nova_fairness.model import usage as usage_model
from tests.unit.measure import build

R = build.RESOURCES
NAN = float('nan')


def wants_of_one_vm(used, stall, cpus=1.0):
    """One CPU does 10."""
    found = of_two_cpus([used], [stall], [cpus])
    return found[0]


@pytest.mark.parametrize(
    ('used', 'stall', 'wanted'),
    [
        (4.0, 0.0, 4.0),
        (4.0, 0.5, 8.0),
        (5.0, 0.5, 10.0),
        (0.0, 0.9, 0.0),
        # What does not fit into the vCPUs was used by QEMU's own threads.
        (9.0, 0.5, 10.0),
        (12.0, 0.1, 12.0),
        # Idle time left, and yet slowed down by half.
        (0.5, 0.5, 1.0),
        (4.0, 0.2, 5.0),
        # Who always waits may want anything.
        (0.0, 1.0, 10.0),
    ],
)
def test_a_waiting_vm_wants_as_much_as_it_would_use_of_plenty(
    used, stall, wanted
):
    assert wants_of_one_vm(used, stall) == pytest.approx(wanted)


@hypothesis.given(
    strategies.floats(0, 1e6),
    strategies.floats(0, 1) | strategies.just(NAN),
    strategies.integers(1, 2),
)
def test_no_vm_wants_less_than_it_uses_or_more_than_it_can(used, stall, cpus):
    wanted = wants_of_one_vm(used, stall, cpus)
    assert used <= wanted <= max(used, 10 * cpus)


def of_two_cpus(newest, stall, vcpus):
    """Judge VMs of a node of two CPUs, each of which does 10."""
    vms = tuple(
        build.vm(f'vm{row}', vcpus=count) for row, count in enumerate(vcpus)
    )
    usage = usage_model.Usage(
        interval_s=10.0,
        incarnations=vms,
        amounts=np.array([R.vector(cpu_time=1.0, disk_read=9.0)] * len(vms)),
        known=np.ones(len(vms), dtype=bool),
        cpu_stall=np.array(stall),
        unsmoothed=np.array(
            [R.vector(cpu_time=used, disk_read=5.0) for used in newest]
        ),
    )
    now = wants.cpu_interval(usage, NODE)
    assert (usage.amounts[:, R.index('cpu_time')] == 1).all()
    wanted = wants.estimate_wants(now, now.stall, usage.newest, 10.0)
    assert (wanted[:, R.index('disk_read')] == 5).all()
    return wanted[:, R.index('cpu_time')].tolist()


NODE = node.NodeResources(
    host='n1',
    cpus=(0, 1),
    speed_factor=1.0,
    capacity=R.vector(cpu_time=2.0),
)


def test_of_a_node_the_newest_interval_counts_not_the_smoothed_one():
    # The node has two CPUs, however many vCPUs a VM has.
    wanted = of_two_cpus([6.0, 6.0], [0.75, 0.75], [8, 1])
    assert wanted == pytest.approx([20.0, 10.0])


def test_where_kernels_do_not_tell_a_full_node_leaves_wishes():
    wanted = of_two_cpus([9.0, 9.6, 0.05], [NAN] * 3, [8, 1, 1])
    assert wanted == [20.0, 9.6, 0.05]


def test_an_interval_tells_threads_with_parts_of_a_cpu():
    vms = (
        build.vm('a'),
        dataclasses.replace(build.vm('b'), paused=True),
    )
    now = wants.cpu_interval(
        usage_model.Usage(
            interval_s=10.0,
            incarnations=vms,
            amounts=np.array([R.vector(cpu_time=5.0)] * 2),
            known=np.ones(2, dtype=bool),
            cpu_stall=np.array([0.1, NAN]),
            cpu_busy=np.array([0.5, 0.75, 0.1]),
        ),
        NODE,
    )
    assert now.used.tolist() == [0.5, 0.5]
    assert now.ready.tolist() == [True, False]
    assert now.busy.tolist() == [0.625]
    assert now.cpus.tolist() == [2.0]


def test_a_want_of_one_interval_only_does_not_last():
    used = np.array([[4.0], [4.0], [4.0], [9.0]])
    wanted = np.array([[8.0], [8.0], [8.0], [9.0]])
    before = np.array([[4.0], [9.0], [NAN], [1.0]])
    found = wants.lasting_wants(wanted, used, before)
    assert found[:, 0].tolist() == [4.0, 8.0, 8.0, 9.0]
