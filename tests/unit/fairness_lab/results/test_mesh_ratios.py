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

"""What is said of the exchange follows from what was measured."""

import json

import pytest

from tests.fixtures import benchmark


@pytest.fixture(scope='module')
def ratios():
    return benchmark.load('mesh_ratios')


@pytest.fixture(scope='module')
def recorded():
    return json.loads((benchmark.RESULTS / 'mesh.json').read_text())


def test_ratios_are_those_of_the_rows(ratios, recorded):
    assert ratios.ratios(recorded['rows']) == recorded['ratios']


def test_every_ratio_is_within_its_limit(recorded):
    for item in recorded['ratios']:
        assert item['cpu_ratio'] <= item['limit'], item


def test_the_model_is_that_of_the_rows_and_says_so(ratios, recorded):
    made = ratios.model(recorded['rows'])
    assert len(made) == len(recorded['model'])
    for item, known in zip(made, recorded['model'], strict=True):
        assert item == pytest.approx(known)
        assert 'not measured' in item['model']
