# SPDX-License-Identifier: Apache-2.0


"""What a real kernel tells of VMs, and for whom the simulator tells it too."""

import json
import pathlib

import pytest

from fairness_lab.measures import truth_loads

TOP = pathlib.Path(__file__).resolve().parents[4]
RESULTS = TOP / 'benchmarks' / 'results'
BEHIND = 0.95
"""Part of the time in which one who is behind runs or waits, at least."""


@pytest.fixture(scope='module')
def told():
    rows = truth_loads.compare(RESULTS / 'scenarios')
    return {row.vm: row for row in rows}


def test_a_closed_loop_tells_its_wants(told):
    assert told['closed'].judged == pytest.approx(0.25, abs=0.05)
    assert told['closed'].used + told['closed'].waited < BEHIND


@pytest.mark.parametrize('vm', ['open', 'pool', 'busy-1'])
def test_a_vm_with_a_backlog_appears_to_want_all_cpu_time(told, vm):
    assert told[vm].used + told[vm].waited > BEHIND
    assert told[vm].judged > 0.8


@pytest.mark.parametrize('vm', ['calm-closed', 'calm-open', 'calm-pool'])
def test_a_vm_that_lacks_nothing_waits_where_others_run(told, vm):
    assert told[vm].used > told[vm].wanted
    assert 0.1 < told[vm].waited < 0.2


@pytest.mark.parametrize('vm', ['idle', 'calm-idle'])
def test_an_idle_vm_hardly_waits(told, vm):
    assert told[vm].waited < 0.01


def test_the_simulator_gives_a_closed_loop_more_than_a_kernel_does(told):
    row = told['closed']
    assert row.used < row.simulated_used
    assert row.waited > row.simulated_waited


@pytest.mark.parametrize('vm', ['busy-1', 'open', 'cron', 'calm-open', 'idle'])
def test_the_simulator_waits_as_real_guests_do(told, vm):
    row = told[vm]
    assert row.simulated_used == pytest.approx(row.used, abs=0.03)
    assert row.simulated_waited == pytest.approx(row.waited, abs=0.08)


def test_table_and_documents_show_the_records(told):
    rows = list(told.values())
    kept = json.loads((RESULTS / 'simulator-and-laboratory.json').read_text())
    assert kept['loads'] == truth_loads.table(rows)
    page = TOP / 'doc' / 'source' / 'user' / 'simulator-truth-loads.inc'
    assert page.read_text('utf-8') == truth_loads.page(rows)
