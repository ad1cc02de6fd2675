# SPDX-License-Identifier: Apache-2.0

"""VMs of a trace on few hosts."""

import csv

import pytest

from fairness_lab.cmd import sim
from fairness_lab.queue_sim import packing_traces
from nova_fairness import exception
from tests.unit.fairness_lab.queue_sim import test_traces

KINDS = tuple(
    (n, n, 1, part, part, 0, 0, 0) for n, part in enumerate((0.25, 0.5, 1.0))
)
# vmId, tenantId, vmTypeId, priority, starttime, endtime
VMS = (
    (0, 0, 1, 0, -1.0, 4.0),
    (1, 0, 0, 0, 1.0, 6.0),
    (2, 1, 0, 0, 1.0, None),
    (3, 1, 2, 1, 2.0, 3.0),
    # Ends when the next one starts.
    (4, 1, 2, 0, 3.0, 5.0),
)


@pytest.fixture
def trace(tmp_path):
    return test_traces.packing(tmp_path / 'packing.sqlite', VMS, KINDS)


def test_every_strategy_plays_all_starts_and_ends(trace):
    rows = packing_traces.table(trace, 3, 1)
    assert [row['strategy'] for row in rows] == list(packing_traces.STRATEGIES)
    [fullest] = [row for row in rows if row['strategy'] == 'fullest']
    # In use after each of ten: 1 1 1 2 | 1 2 1 | 1 1 0.
    assert fullest['most'] == 2
    assert fullest['refused'] == fullest['moves'] == 0
    assert all(row['bound'] <= row['hosts'] for row in rows)
    [emptiest] = [row for row in rows if row['strategy'] == 'emptiest']
    assert emptiest['hosts'] >= fullest['hosts']


def test_a_vm_that_finds_no_host_is_refused(trace):
    for row in packing_traces.table(trace, 1, 1):
        assert row['refused'] == 2
        assert row['most'] == 1


def test_the_command_packs_a_trace(trace, tmp_path, capsys):
    out = tmp_path / 'out'
    command = ['cluster', 'pack', '--trace', str(trace), '--out', str(out)]
    assert sim.main([*command, '--hosts', '3']) == 0
    assert 'fullest, moved' in capsys.readouterr().out
    with (out / 'trace.csv').open(encoding='utf-8') as file:
        assert len(list(csv.DictReader(file))) == len(
            packing_traces.STRATEGIES
        )
    assert sim.main([*command[:2], 'powers', *command[2:]]) == 2
    assert 'name no other' in capsys.readouterr().err


def test_a_trace_that_is_none_is_named(tmp_path):
    with pytest.raises(exception.BadTrace):
        packing_traces.table(tmp_path / 'none.sqlite', 3, 1)
