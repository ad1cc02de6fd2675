# SPDX-License-Identifier: Apache-2.0

"""What is said of the exchange follows from what was measured."""

import json

import pytest

from tests.fixtures import benchmark


@pytest.fixture(scope='module')
def ratios():
    return benchmark.load('exchange.mesh_ratios')


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
