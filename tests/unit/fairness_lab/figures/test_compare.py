# SPDX-License-Identifier: Apache-2.0

import json
import pathlib

import pytest

from fairness_lab.figures import compare
from fairness_lab.figures import report
from fairness_lab.results import recording
from nova_fairness import exception
from tests.unit.fairness_lab.results import fake_run

PAGE = (
    pathlib.Path(__file__)
    .parents[4]
    .joinpath('doc/source/reference/result-json.rst')
)


@pytest.fixture
def result_of(tmp_path):
    def make(place, /, **changes):
        folder = tmp_path / place
        recording.write(fake_run.one_node_cpu(**changes), folder)
        report.write(folder, folder)
        return folder

    return make


def test_two_runs_are_put_side_by_side(result_of, tmp_path):
    first, second = result_of('a', agents=False), result_of('b')
    table = compare.compare(first, second, tmp_path / 'out')
    content = json.loads((tmp_path / 'out' / 'comparison.json').read_text())
    assert content['version'] == 1
    assert content['users']['bob']['change'] == pytest.approx(1 / 6, abs=1e-3)
    assert content['first']['largest_distance'] == pytest.approx(
        1 / 6, abs=1e-3
    )
    assert content['second']['largest_distance'] < 0.01
    assert 'bob                  33.3%   50.0%   50.0%' in table
    assert 'A: without agents' in table
    picture = (tmp_path / 'out' / 'comparison.png').read_bytes()
    assert picture.startswith(b'\x89PNG')


def test_every_field_is_described(result_of, tmp_path):
    runs = [report.load(result_of(name)) for name in 'ab']
    content = compare.build(*runs)
    fields = {
        *content,
        *content['first'],
        *content['users']['bob'],
        *content['instances']['b1'],
    }
    described = PAGE.read_text().partition('\ncomparison.json\n')[2]
    assert [name for name in fields if f'``{name}``' not in described] == []


def test_runs_with_equal_labels_are_numbered(result_of, tmp_path):
    table = compare.compare(result_of('a'), result_of('b'), tmp_path)
    assert 'A: first run, with agents' in table
    assert 'B: second run, with agents' in table


def test_other_scenarios_cannot_be_compared(result_of, tmp_path):
    first, second = result_of('a'), result_of('b', name='churn')
    with pytest.raises(exception.LabError) as caught:
        compare.compare(first, second, tmp_path / 'out')
    assert 'one-node-cpu' in str(caught.value)
    assert 'churn' in str(caught.value)
    assert not (tmp_path / 'out').exists()


def test_a_folder_without_result_is_named(result_of, tmp_path):
    with pytest.raises(exception.LabError, match='no result'):
        compare.compare(result_of('a'), tmp_path, tmp_path)


def test_a_series_that_cannot_be_read_is_named(result_of, tmp_path):
    first, second = result_of('a'), result_of('b')
    (second / 'series.csv').write_text('t_s,kind\n1,user\n')
    with pytest.raises(exception.LabError, match=r'series\.csv'):
        compare.compare(first, second, tmp_path)
