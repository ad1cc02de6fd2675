# SPDX-License-Identifier: Apache-2.0

"""What is said of the exchange follows from what was measured."""

import json

import pytest

from tests.fixtures import benchmark


@pytest.fixture(scope='module')
def ratios():
    return benchmark.load('exchange.mesh_ratios')


@pytest.fixture(scope='module')
def recorded_mesh():
    return json.loads((benchmark.RESULTS / 'mesh.json').read_text())


def test_ratios_are_those_of_the_rows(ratios, recorded_mesh):
    assert ratios.ratios(recorded_mesh['rows']) == recorded_mesh['ratios']


def test_every_ratio_is_within_its_limit(recorded_mesh):
    for item in recorded_mesh['ratios']:
        assert item['cpu_ratio'] <= item['limit'], item


def test_the_model_is_that_of_the_rows_and_says_so(ratios, recorded_mesh):
    made = ratios.model(recorded_mesh['rows'])
    assert len(made) == len(recorded_mesh['model'])
    for item, known in zip(made, recorded_mesh['model'], strict=True):
        assert item == pytest.approx(known)
        assert 'not measured' in item['model']
