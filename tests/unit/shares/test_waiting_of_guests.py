# SPDX-License-Identifier: Apache-2.0

"""Who waits is judged right on what was read of real guests.

Recorded by the laboratory, in intervals of 2 s: CPUs used and part of the time
waited, of each VM of ``closed-loops`` (without and with agents) and of
``kinds-of-load`` (without).
"""

import csv
import pathlib

import numpy as np
import pytest

from nova_fairness.shares import waiting

RECORDED = pathlib.Path(__file__).parents[2] / 'data/recordings/intervals'


def judged(run, node):
    """Who was found to wait in each interval, and whether the node was
    found to be short: by VM, (intervals,), and (intervals,).
    """
    with (RECORDED / 'cpu.csv').open() as stream:
        rows = [
            row
            for row in csv.DictReader(stream)
            if (row['run'], row['node']) == (run, node)
        ]
    vms = sorted({row['vm'] for row in rows})
    past = waiting.WaitHistory.unknown(len(vms))
    waits, short = [], []
    for number in range(max(int(row['interval']) for row in rows) + 1):
        here = {
            row['vm']: row for row in rows if int(row['interval']) == number
        }
        found, past = waiting.judge_waits(interval(here, vms), past)
        waits.append(found.vms)
        short.append(found.nodes[0])
    return dict(zip(vms, np.transpose(waits), strict=True)), np.array(short)


def interval(here, vms):
    used = np.array([float(here[vm]['used']) for vm in vms])
    return waiting.Interval(
        node=np.zeros(len(vms), dtype=np.intp),
        used=used,
        stall=np.array([float(here[vm]['waited']) for vm in vms]),
        most=np.ones(len(vms)),
        ready=np.ones(len(vms), dtype=np.bool_),
        cpus=np.ones(1),
        busy=np.minimum([used.sum()], 1.0),
    )


@pytest.mark.parametrize('run', ['closed-loops', 'closed-loops-without'])
def test_ten_closed_loops_that_lack_something_wait(run):
    waits, short = judged(run, 'node1')
    assert len(waits) == 10
    assert short[1:].all()
    for vm, found in waits.items():
        assert found[1:].all(), vm


def test_a_guest_that_lacks_something_waits_under_any_load():
    waits, short = judged('kinds-of-load-without', 'scarce')
    assert short.all()
    for vm in ('busy-1', 'busy-2', 'closed', 'open', 'pool'):
        assert waits[vm][1:].all(), vm
    assert not waits['idle'].any()


def test_a_guest_that_gets_its_wants_does_not_wait():
    waits, _ = judged('kinds-of-load-without', 'plenty')
    for vm in ('calm-closed', 'calm-open', 'calm-pool', 'calm-idle'):
        assert not waits[vm].any(), vm


def test_a_node_with_plenty_is_short_while_a_job_of_cron_runs_only():
    waits, short = judged('kinds-of-load-without', 'plenty')
    assert not short[~waits['calm-cron']].any()
    assert short.mean() < 0.25
