# SPDX-License-Identifier: Apache-2.0


"""The laboratory's guests got what the simulator says."""

import json
import pathlib

import pytest

from fairness_lab.measures import truth

TOP = pathlib.Path(__file__).resolve().parents[4]
RECORDED = TOP / 'benchmarks' / 'results' / 'scenarios'
TABLE = TOP / 'benchmarks' / 'results' / 'simulator-and-laboratory.json'


@pytest.fixture(scope='module')
def rows():
    return truth.compare(RECORDED)


def test_all_four_scenarios_are_compared(rows):
    assert {row.scenario for row in rows} == {
        'one-node-cpu',
        'many-against-one',
        'closed-loops',
        'two-nodes-cpu',
    }


def test_real_guests_differ_by_at_most_a_tenth_from_the_simulator(rows):
    for row in rows:
        assert row.difference == pytest.approx(
            row.laboratory / row.simulator - 1
        )
        assert abs(row.difference) <= truth.LARGEST_DIFFERENCE, row


def test_the_table_shows_the_records(rows):
    table = json.loads(TABLE.read_text())
    del table['loads']
    assert table == truth.table(rows)


def test_the_documents_show_the_recorded_comparison(rows):
    page = TOP / 'doc' / 'source' / 'user' / 'simulator-truth.inc'
    assert page.read_text('utf-8') == truth.page(rows)
