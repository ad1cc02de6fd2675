# SPDX-License-Identifier: Apache-2.0

"""What is said of costs beside another commit follows from measurements."""

import json

import pytest

from tests.fixtures import benchmark


@pytest.fixture(scope='module')
def beside():
    return benchmark.load('beside')


@pytest.fixture(scope='module')
def recorded():
    return json.loads((benchmark.RESULTS / 'beside.json').read_text())


def runs_of(rows):
    """What ``compared`` was given."""
    return [
        tuple(
            {row['figure']: row[kind][turn] for row in rows}
            for kind in ('before_runs', 'now_runs')
        )
        for turn in range(len(rows[0]['now_runs']))
    ]


def test_the_ratio_is_the_median_over_turns(beside):
    runs = [({'a': 2.0}, {'a': 3.0}), ({'a': 9.0}, {'a': 9.0}),
            ({'a': 1.0}, {'a': 8.0})]  # fmt: skip
    (row,) = beside.compared(runs)
    assert (row['before'], row['now'], row['ratio']) == (2.0, 8.0, 1.5)
    assert row['before_runs'] == [2.0, 9.0, 1.0]


@pytest.mark.parametrize(
    ('figure', 'limit'),
    [
        ('agent_pss_mib', 1.0),
        ('tree_pss_mib', 1.0),
        ('exchange cpu_ms_per_node_round', 1.05),
        ('feedback 500 peak_mib', 1.05),
        ('10% changed ours_us_per_vm', 1.05),
    ],
)
def test_memory_of_agents_may_not_grow_and_all_else_by_a_twentieth(
    beside, figure, limit
):
    assert beside.limit(figure) == limit


def test_every_part_is_recorded(beside, recorded):
    assert recorded.keys() == beside.PARTS.keys()


def test_recorded_medians_and_ratios_are_those_of_the_runs(beside, recorded):
    for part in recorded.values():
        assert beside.compared(runs_of(part['rows'])) == part['rows']


def test_every_recorded_ratio_is_within_its_limit(recorded):
    for name, part in recorded.items():
        for row in part['rows']:
            assert row['ratio'] <= row['limit'], (name, row['figure'])


def test_figures_of_rounds_and_agents_are_those_that_are_recorded(beside):
    text = (benchmark.RESULTS / 'node_cycle.json').read_text()
    found = json.loads(text)
    rows = [row for row in found['rows'] if row['vms'] == 100]
    assert list(beside.of_rows(rows)) == [
        '0% changed ours_us_per_vm',
        '10% changed ours_us_per_vm',
        '100% changed ours_us_per_vm',
    ]
    assert beside.of_agent(found['agent']) == {
        'agent_pss_mib': found['agent']['agent_pss_mib'],
        'tree_pss_mib': found['agent']['tree_pss_mib'],
    }
