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
def rows_by_vm():
    rows = truth_loads.compare(RESULTS / 'scenarios')
    return {row.vm: row for row in rows}


def test_a_closed_loop_tells_its_wants(rows_by_vm):
    assert rows_by_vm['closed'].judged == pytest.approx(0.25, abs=0.05)
    assert rows_by_vm['closed'].used + rows_by_vm['closed'].waited < BEHIND


@pytest.mark.parametrize('vm', ['open', 'pool', 'busy-1'])
def test_a_vm_with_a_backlog_appears_to_want_all_cpu_time(rows_by_vm, vm):
    assert rows_by_vm[vm].used + rows_by_vm[vm].waited > BEHIND
    assert rows_by_vm[vm].judged > 0.8


@pytest.mark.parametrize('vm', ['calm-closed', 'calm-open', 'calm-pool'])
def test_a_vm_that_lacks_nothing_waits_where_others_run(rows_by_vm, vm):
    assert rows_by_vm[vm].used > rows_by_vm[vm].wanted
    assert 0.1 < rows_by_vm[vm].waited < 0.2


@pytest.mark.parametrize('vm', ['idle', 'calm-idle'])
def test_an_idle_vm_hardly_waits(rows_by_vm, vm):
    assert rows_by_vm[vm].waited < 0.01


def test_the_simulator_gives_a_closed_loop_more_than_a_kernel_does(rows_by_vm):
    row = rows_by_vm['closed']
    assert row.used < row.simulated_used
    assert row.waited > row.simulated_waited


@pytest.mark.parametrize('vm', ['busy-1', 'open', 'cron', 'calm-open', 'idle'])
def test_the_simulator_waits_as_real_guests_do(rows_by_vm, vm):
    row = rows_by_vm[vm]
    assert row.simulated_used == pytest.approx(row.used, abs=0.03)
    assert row.simulated_waited == pytest.approx(row.waited, abs=0.08)


def test_table_and_documents_show_the_records(rows_by_vm):
    rows = list(rows_by_vm.values())
    kept = json.loads((RESULTS / 'simulator-and-laboratory.json').read_text())
    assert kept['loads'] == truth_loads.table(rows)
    page = TOP / 'doc' / 'source' / 'user' / 'simulator-truth-loads.inc'
    assert page.read_text('utf-8') == truth_loads.page(rows)
