# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.


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


def test_real_guests_lie_within_a_tenth_of_the_simulator(rows):
    for row in rows:
        assert row.difference == pytest.approx(
            row.laboratory / row.simulator - 1
        )
        assert abs(row.difference) <= truth.LARGEST_DIFFERENCE, row


def test_the_table_shows_what_is_recorded(rows):
    table = json.loads(TABLE.read_text())
    del table['loads']
    assert table == truth.table(rows)


def test_the_documents_show_the_same(rows):
    page = TOP / 'doc' / 'source' / 'user' / 'simulator-truth.inc'
    assert page.read_text('utf-8') == truth.page(rows)
