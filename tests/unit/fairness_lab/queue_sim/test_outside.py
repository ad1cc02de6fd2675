# SPDX-License-Identifier: Apache-2.0

"""The queue is compared with starts that another system recorded."""

import csv
import json

import numpy as np
import pytest

from tests.fixtures import benchmark

HEAD = (
    *('jobID', 'submission_time', 'requested_number_of_processors'),
    *('requested_time', 'execution_time', 'starting_time'),
)
JOBS = [
    # The last came first; the fourth fits beside the first until it ends.
    (2, 1.0, 20, 60.0, 50.0, 100.0),
    (3, 2.0, 12, 60.0, 50.0, 150.0),
    (4, 3.0, 8, 60.0, 50.0, 5.0),
    (1, 0.0, 24, 100.0, 99.0, 0.5),
]


@pytest.fixture(scope='module')
def outside():
    return benchmark.load('queue.outside')


@pytest.fixture
def jobs(tmp_path):
    path = tmp_path / 'jobs.csv'
    with path.open('w', newline='') as file:
        csv.writer(file).writerows([HEAD, *JOBS])
    return path


def test_jobs_are_read_in_the_order_in_which_they_came(outside, jobs):
    found = outside.Record.read(jobs)
    assert found.asked_s.tolist() == [0, 1, 2, 3]
    assert found.processors.tolist() == [24, 20, 12, 8]
    assert found.started_s.tolist() == [0.5, 100, 150, 5]


def test_a_job_starts_before_an_earlier_one_only_by_backfilling(outside, jobs):
    record = outside.Record.read(jobs)
    in_order = outside.starts_in_order(record)
    assert in_order.tolist() == [0, 99, 99, 149]
    backfilled = outside.starts_with_backfilling(record)
    # Plans are made each second, and the fourth job delays no other.
    assert backfilled == pytest.approx([0, 99, 99, 3], abs=1.01)


def test_distances_from_the_record_are_compared(outside, jobs):
    found = outside.compared(outside.Record.read(jobs))
    assert found['jobs'] == len(JOBS)
    assert found['without backfilling']['apart_s']['most'] == 144
    assert found['without backfilling']['near_%'] == 50
    assert found['fifo']['near_%'] == 75


def test_starts_are_recorded_to_be_near_those_of_other_systems():
    path = benchmark.RESULTS / 'queue/outside.json'
    systems = json.loads(path.read_text('utf-8'))['systems']
    assert {*systems} == {'oar', 'batsim'}
    for each in systems.values():
        fifo, in_order = each['fifo'], each['without backfilling']
        assert each['jobs'] == 800
        assert fifo['near_%'] > 90 > in_order['near_%']
        apart = [of['apart_s']['mean'] for of in (fifo, in_order)]
        assert apart[0] < apart[1] / 2
    batsim = systems['batsim']
    own, theirs = (each['wait_s']['mean'] for each in (batsim['fifo'], batsim))
    assert own == pytest.approx(theirs, rel=0.1)


# The package is downloaded.
@pytest.mark.slow
def test_the_recorded_comparison_is_made_again(outside, tmp_path, monkeypatch):
    out = tmp_path / 'outside.json'
    monkeypatch.setattr('sys.argv', ['outside', '--out', str(out)])
    outside.main()
    made, kept = (
        json.loads(path.read_text('utf-8'))['systems']
        for path in (out, benchmark.RESULTS / 'queue/outside.json')
    )
    assert made == kept
    with out.with_suffix('.csv').open(newline='') as file:
        assert np.shape([*csv.reader(file)]) == (7, 6)
