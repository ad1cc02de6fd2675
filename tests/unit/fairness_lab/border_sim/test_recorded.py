# SPDX-License-Identifier: Apache-2.0

"""Runs that are recorded keep what was asked of the border."""

import json
import pathlib

import pytest

from tests.fixtures import benchmark

WEEKS = benchmark.load('pages.border')
PLACE = pathlib.Path(__file__).parents[4] / 'benchmarks/results/border'


def recorded(name):
    return json.loads((PLACE / f'{name}.json').read_text('utf-8'))


@pytest.mark.parametrize(
    ('name', 'within'), [('both', True), ('apart', False)]
)
def test_use_of_both_sides_is_within_five_points_of_pledges(name, within):
    result = recorded(name)
    assert result['shares_of_both_sides'] is within
    [run] = result['runs']
    assert run['settled_s'] == 2 * result['half_life_s']
    assert (run['pledge_error']['largest'] <= 0.05) is within


@pytest.mark.parametrize(
    'week', WEEKS.weeks(), ids=lambda week: f'{week["hosts"]}-{week["seed"]}'
)
def test_a_moving_border_does_a_fifth_more_than_the_best_fixed_one(week):
    moved, best = WEEKS.pair(week)
    fixed = [run for run in week['runs'] if run['name'].startswith('fixed')]
    assert len(fixed) == week['hosts'] + 1
    assert best['work']['total'] == max(run['work']['total'] for run in fixed)
    assert moved['work']['total'] >= 1.2 * best['work']['total']
    assert 0 < moved['moves']['a_host_a_day'] < 4
    assert moved['moves']['most_of_a_host_in_a_day'] < 4
    assert moved['killed'] == moved['in_both'] == moved['work']['lost'] == 0


def test_results_of_three_further_weeks_are_recorded():
    seen = {(week['hosts'], week['seed']) for week in WEEKS.weeks()}
    assert len(seen) >= 4
    assert all(week['duration_s'] == 7 * 86400 for week in WEEKS.weeks())


def test_no_host_was_on_both_sides_in_recorded_kills():
    """Of a real Slurm and the real Nova."""
    found = json.loads((benchmark.RESULTS / 'kills-border.json').read_text())
    runs = {title: run for title, run in found.items() if title != 'test'}
    for run in runs.values():
        assert run['looks'] > 50
        assert run['hosts_seen_on_both_sides'] == []
        assert run['hosts_on_both_sides_by_records'] == 0
    for victim in ('nova-fairness-cluster', 'slurmctld', 'nova-compute'):
        moments = runs[f'{victim} is killed']['killed_at']
        assert len({*moments}) == 10
    assert 'called back' in runs
    assert 'load there and back' in runs
