# SPDX-License-Identifier: Apache-2.0


"""Runs of the simulator side by side."""

import csv
import dataclasses
import json

import pytest

from fairness_lab.cmd import batches
from fairness_lab.measures import running


@pytest.fixture
def asked():
    return batches.ComparedRuns(
        scenarios=['one-node', 'two-nodes'],
        metrics=['DominantShareMetric', 'UniformMetric'],
        policies=['feedback', 'none'],
        overrides={'rounds': '8'},
        choice=running.RunOptions(),
    )


def test_a_comparison_has_a_row_for_each_pair_and_one_without_agents(
    tmp_path, asked
):
    content = batches.compare(asked, tmp_path, None)
    assert json.loads((tmp_path / 'compare.json').read_text()) == content
    rows = [
        (row['scenario'], row['metric'], row['policy'])
        for row in content['runs']
    ]
    assert len(set(rows)) == len(rows) == 6
    assert [row[0] for row in rows if row[2] == 'none'] == asked.scenarios
    assert {name for name, _, _ in rows} == {'one-node', 'two-nodes'}
    for row in content['runs']:
        assert (tmp_path / row['directory'] / 'result.json').is_file()
    assert (tmp_path / 'report.html').is_file()
    lines = batches.runs_table(content['runs']).splitlines()
    assert len(lines) == 7


def test_a_sweep_has_a_row_for_each_combination(tmp_path, asked):
    grid = {
        'agent.fairness.decay_factor': ['0.3', '1.0'],
        'max_weight_ratio': ['2', '20'],
    }
    few = dataclasses.replace(
        asked,
        scenarios=['one-node'],
        metrics=[],
        policies=['feedback'],
    )
    content = batches.sweep(few, grid, tmp_path, None)
    assert [row['set'] for row in content['runs']] == [
        {'agent.fairness.decay_factor': decay, 'max_weight_ratio': ratio}
        for decay in ('0.3', '1.0')
        for ratio in ('2', '20')
    ]
    with (tmp_path / 'sweep.csv').open(newline='') as file:
        rows = list(csv.DictReader(file))
    assert [row['max_weight_ratio'] for row in rows] == ['2', '20'] * 2
    result = json.loads((tmp_path / 'runs/0001/result.json').read_text())
    assert result['agents']['decay_factor'] == 0.3
    assert result['agents']['max_weight_ratio'] == 2
