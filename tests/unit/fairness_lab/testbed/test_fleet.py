# SPDX-License-Identifier: Apache-2.0

import math

import pytest

from fairness_lab.scenario import demand
from fairness_lab.testbed.guests import fleet


@pytest.mark.parametrize(
    ('step', 'expected'),
    [
        (demand.DemandStep(0), []),
        (demand.DemandStep(0, 0.4), ['cpu 0.400000']),
        (demand.DemandStep(0, math.inf), ['cpu max']),
        (demand.DemandStep(0, 0.0), ['cpu 0.000000']),
        (
            demand.DemandStep(
                0,
                0.25,
                cycle=demand.DemandCycle(demand.CpuLoad.CLOSED, 1, 0.15),
            ),
            ['closed 0.250000 1 0.150000'],
        ),
        (
            demand.DemandStep(
                0, 1.5, cycle=demand.DemandCycle(demand.CpuLoad.POOL, 6, 0.1)
            ),
            ['closed 1.500000 6 0.100000'],
        ),
        (
            demand.DemandStep(
                0, 0.2, cycle=demand.DemandCycle(demand.CpuLoad.CRON, 1, 10)
            ),
            ['cron 0.200000 10.000000'],
        ),
        (demand.DemandStep(0, memory_mib=2), ['memory 2097152']),
        (
            demand.DemandStep(0, disk_read_mib_s=math.inf, disk_write_mib_s=1),
            ['disk max 1048576.000000 65536 1'],
        ),
        (
            demand.DemandStep(
                0, disk_read_mib_s=math.inf, disk_depth=16, disk_block_kib=4
            ),
            ['disk max 0.000000 4096 16'],
        ),
        (demand.DemandStep(0, wake_hz=100), ['wake 100.000000']),
        (
            demand.DemandStep(0, net_send_mbit_s=8),
            ['net 10.78.8.1 9 1000000.000000'],
        ),
        (
            demand.DemandStep(0, 1.0, memory_mib=0),
            ['cpu 1.000000', 'memory 0'],
        ),
    ],
)
def test_a_guest_is_told_only_changes(step, expected):
    assert fleet.load_commands(1, step) == expected
