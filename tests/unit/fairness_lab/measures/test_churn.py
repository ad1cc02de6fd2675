# SPDX-License-Identifier: Apache-2.0

"""The benchmark of churn changes what it says, and keeps what it found."""

import csv
import json
import pathlib

import numpy as np
import pytest

from nova_fairness.decide import foresight as decide_foresight
from tests.fixtures import benchmark

RESULTS = pathlib.Path(__file__).parents[4] / 'benchmarks' / 'results'


@pytest.fixture
def churn():
    return benchmark.load('policies.churn')


def test_each_change_starts_or_deletes_a_vm(churn):
    cloud = churn.Cloud(5, 1)
    counts = [len(cloud.vms.node)]
    for _ in range(12):
        cloud.change()
        counts.append(len(cloud.vms.node))
    assert set(np.diff(counts)) == {-1, 1}
    told = cloud.knowledge().knowledge
    wants = told.wanted[:, decide_foresight.CPU_TIME].sum()
    assert wants == pytest.approx(cloud.vms.wants.sum() * churn.INTERVAL_S)


@pytest.mark.parametrize('kind', ['steady', 'churn', 'noisy'])
def test_an_agent_of_a_small_cloud_foresees_in_all_rounds(churn, kind):
    found = churn.measure_agent(12, 1, kind, 10)
    assert found['first_usable_round'] <= 2
    assert found['decides_%'] == 100
    assert found['lacks_%'] < 2


def test_a_simulated_cloud_is_steady_and_then_changes(churn):
    (few, many) = (
        churn._draw_small_cloud(1, 4, 30, apart).cloud for apart in (8, 1)
    )
    for cloud, count in ((few, 3), (many, 20)):
        later = cloud.changes.round[cloud.changes.round > 0]
        assert len(later) == count
        assert later[0] == churn.CHURN_FROM


def test_recorded_churn_reaches_numbers_of_the_page():
    found = json.loads((RESULTS / 'churn.json').read_text())
    rows = {(row['nodes'], row['kind']): row for row in found['agent']}
    for kind in ('steady', 'churn', 'noisy'):
        row = rows[1000, kind]
        assert row['decides_%'][0] >= 95
        assert row['lacks_%'][2] <= 1
    assert rows[1000, 'churn']['ms'][2] <= 100
    for row in found['simulated']:
        charged, at_once = (
            row[name]['worst']['churn_%'][1]
            for name in ('foresight', 'foresight, searched at once')
        )
        assert charged <= at_once + 1


@pytest.mark.parametrize('recorded', ['churn', 'churn-5000'])
def test_tables_of_the_page_are_made_of_records(churn, recorded):
    found = json.loads((RESULTS / f'{recorded}.json').read_text())
    tables = churn.pages(found)
    assert tables
    for name, expected in tables.items():
        path = RESULTS / f'{recorded}-{name}.csv'
        with path.open(newline='') as stream:
            assert list(csv.reader(stream)) == expected
