# SPDX-License-Identifier: Apache-2.0

import json

import pytest

from fairness_lab.border_sim import reader
from fairness_lab.border_sim import runs as runs_module
from fairness_lab.figures import border as border_figures

DAY = """
description: A day in which servers are wanted before noon and jobs after.
days: 1
half_life_hours: 3
cycle_s: 120
hosts: {count: 4, vcpus: 8, memory_gib: 32}
cloud:
  longest_wait_hours: 1
  projects:
    - name: a
      share: 2
      demand: 1
      lifetime_hours: 1
      active_days: [[0, 0.4]]
      sizes: [{vcpus: 2, memory_gib: 8}]
batch:
  projects: &jobs
    - name: a
      share: 2
      demand: 0.7
      lifetime_hours: 0.5
      active_days: [[0.5, 1]]
      sizes: [{vcpus: 2, memory_gib: 8}, {vcpus: 8, memory_gib: 8}]
    - name: b
      demand: 0.7
      lifetime_hours: 0.5
      active_days: [[0.5, 1]]
      sizes: [{vcpus: 4, memory_gib: 8}]
border: {stay_s: 1800, operator_hours: [6, 12, 18]}
"""


@pytest.fixture(scope='module')
def day(tmp_path_factory):
    """A run of all movers."""
    folder = tmp_path_factory.mktemp('day')
    path = folder / 'day.yaml'
    path.write_text(DAY, encoding='utf-8')
    world = reader.find(str(path))
    return (
        world,
        runs_module.compare(world, runs_module.MOVERS, folder),
        folder,
    )


def by_name(result):
    return {each['name']: each for each in result['runs']}


def test_demand_gets_more_done_than_the_best_fixed_border(day):
    _, result, _ = day
    runs = by_name(result)
    best = runs[result['best_fixed']]
    demand = runs['demand']
    assert demand['work']['total'] > 1.2 * best['work']['total']
    assert demand['work']['total'] > runs['operator']['work']['total']
    assert demand['moves']['a_host_a_day'] < 4
    assert demand['moves']['most_of_a_host_in_a_day'] <= 3
    assert demand['killed'] == demand['in_both'] == demand['work']['lost'] == 0


def test_the_best_fixed_border_is_the_best_of_all(day):
    world, result, _ = day
    fixed = [each for each in result['runs'] if not each['moves']['count']]
    assert len(fixed) == len(world.cloud.hosts) + 1
    most = max(each['work']['total'] for each in fixed)
    assert by_name(result)[result['best_fixed']]['work']['total'] == most
    assert all(each['cloud_hosts'] is not None for each in fixed)


def test_no_more_is_done_than_was_asked_for(day):
    _, result, _ = day
    for run in result['runs']:
        for side in ('batch', 'cloud'):
            assert run['work'][side] <= result['wanted'][side] * (1 + 1e-6)
        assert run['work']['part'] <= 1


def test_a_repeated_run_writes_the_same_bytes(day, tmp_path):
    world, _, folder = day
    runs_module.compare(world, ('demand', 'operator'), tmp_path)
    for name in ('series-demand.csv', 'groups-operator.csv'):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_a_page_explains_its_terms(day, tmp_path):
    _, result, folder = day
    assert json.loads((folder / 'border.json').read_text()) == result
    border_figures.write(folder, result)
    page = (folder / 'report.html').read_text('utf-8')
    for says in (
        'a border between batch and cloud',
        '<td>demand</td>',
        '<td>fixed-004</td>',
        '<dt>work done</dt>',
        'src="data:image/png;base64,',
    ):
        assert says in page
    first = (folder / 'border.png').read_bytes()
    border_figures.write(folder, result)
    assert (folder / 'border.png').read_bytes() == first
