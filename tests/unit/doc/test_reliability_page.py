# SPDX-License-Identifier: Apache-2.0

"""What the page about reliability tells of runs is what was recorded."""

import json
import pathlib
import re

import pytest

from tests.chaos import test_agent as chaos

TOP = pathlib.Path(__file__).resolve().parents[3]
RESULTS = TOP / 'benchmarks' / 'results'
TEXT = TOP.joinpath('doc/source/admin/reliability.rst').read_text('utf-8')
ROWS = [
    [' '.join(cell.split()) for cell in re.split(r'\n {5}- ', row)]
    for row in re.findall(r'^ {3}\* - (.+(?:\n {5}.+)*)', TEXT, re.MULTILINE)
]


def recorded(name):
    return json.loads((RESULTS / name).read_text())


def shown_by(name):
    """The row that a run, or a test, shows."""
    (row,) = [row for row in ROWS if f'``{name}``' in row[-1]]
    return row


@pytest.mark.parametrize(
    'fault', [name for name in chaos.FAULTS if ':' not in name]
)
def test_each_fault_heals_within_the_documented_time(fault):
    most = recorded('chaos.json')['faults'][fault]['most_rounds']
    assert shown_by_fault(fault)[2] == f'{most} round{"s" * (most > 1)}'


def test_the_reliability_page_sums_up_plugins_in_one_row():
    found = recorded('chaos.json')['faults']
    plugins = [name for name in chaos.FAULTS if name.startswith('plugin: ')]
    most = max(found[name]['most_rounds'] for name in plugins)
    told = shown_by_fault('plugin: ...')[2]
    assert told == f'{most} round{"s" * (most > 1)} after another is chosen'


def shown_by_fault(name):
    (row,) = [row for row in ROWS if f'``{name}``' in row[-1].split(', ')]
    return row


BETWEEN = {
    'redis-away': ('window-2', 'window-4'),
    'redis-flushed': ('window-2',),
    'silent-peer': ('window-2',),
    'killed-peer': ('window-2',),
    'cut-node': ('window-2',),
    'rolling-restart': ('window-2',),
}
"""Windows of a scenario in which its faults last."""


@pytest.mark.parametrize(('scenario', 'meanwhile'), BETWEEN.items())
def test_faults_between_nodes_are_told_as_recorded(scenario, meanwhile):
    checks = {
        check['name']: check['measured']
        for check in recorded(f'scenarios/{scenario}/result.json')['checks']
    }

    def most(kind):
        return max(
            value for name, value in checks.items() if name.startswith(kind)
        )

    _, _, known, off, after, _ = shown_by(scenario)
    rounds = most('known-')
    assert known == f'{rounds} round{"s" * (rounds > 1)}'
    assert off == f'{100 * max(checks[name] for name in meanwhile):.1f} %'
    assert after == f'{100 * most("as-before-"):.1f} %'


def test_kills_before_nova_are_told_as_recorded():
    found = recorded('kills.json').values()
    lost, asked, twice = (
        sum(run[name] for run in found)
        for name in ('lost', 'requests', 'doubles')
    )
    told = shown_by('benchmarks/queue/kills.py')[1]
    assert told.endswith(
        f'{lost} of {asked:,} were lost, {twice} started twice'
    )


def test_kills_of_the_real_cloud_are_told_as_recorded():
    found = recorded('kills-nova.json')
    assert sum(found['killed'].values()) == 20
    assert found['not_as_it_should_be'] == []
    asked, gone = found['requests'], found['withdrawn']
    page = (TOP / 'doc/source/admin/queue.rst').read_text('utf-8')
    page = ' '.join(page.split())
    told = re.search(
        r'Of the (\d+) requests in the [^.]+, (\d+) withdrawn', page
    )
    assert told
    assert told.groups() == (str(asked), str(gone))


def test_requests_to_many_hosts_are_told_as_recorded():
    found = recorded('many_hosts.json')
    asked, hosts = found['requests'], found['hosts']
    room = hosts * found['vcpus_of_a_host']
    assert found['active'] == asked
    assert not found['lost'] + found['built_twice']
    assert found['beyond_capacity'] == []
    page = (TOP / 'doc/source/admin/queue.rst').read_text('utf-8')
    page = ' '.join(page.split())
    told = re.search(
        r'with (\d+) hosts of its [^.]+ for (\d+) servers; (\d+) have', page
    )
    assert told
    assert told.groups() == (str(hosts), str(asked), str(room))


@pytest.mark.parametrize(
    ('path', 'name'), re.findall(r'``([\w/]+\.py)(?:::([\w:]+))?``', TEXT)
)
def test_a_named_test_is_there(path, name):
    below = '' if path.startswith('benchmarks/') else 'tests'
    text = (TOP / below / path).read_text('utf-8')
    for each in filter(None, name.split('::')):
        assert re.search(rf'^ *(def|class) {each}\b', text, re.MULTILINE)
