# SPDX-License-Identifier: Apache-2.0

"""Every test that the evaluation's page names is there."""

import ast
import json
import pathlib
import re

import pytest

from fairness_lab.queue_sim import attacks

TOP = pathlib.Path(__file__).resolve().parents[3]
PAGE = TOP / 'doc/source/evaluation/queue.rst'
NAMED = re.compile(r'(tests/unit/[\w/]+\.py)((?:\n? *-k \w+)?)')


def named():
    return sorted(set(NAMED.findall(PAGE.read_text('utf-8'))))


def test_the_evaluation_page_names_tests():
    assert len(named()) >= 20


@pytest.mark.parametrize(('path', 'chosen'), named())
def test_each_pytest_command_of_the_page_selects_tests(path, chosen):
    tree = ast.parse((TOP / path).read_text('utf-8'))
    tests = [
        each.name
        for each in tree.body
        if isinstance(each, ast.FunctionDef) and each.name.startswith('test_')
    ]
    word = chosen.split()[-1] if chosen else ''
    assert [name for name in tests if word in name]


def test_results_of_shares_before_a_real_nova_are_told_as_recorded():
    path = TOP / 'benchmarks/results/queue/shares-nova.json'
    found = json.loads(path.read_text())
    where = ('part_of_physics', 'part_of_physics_in_ledger')
    parts = [found[name] for name in where]
    assert all(abs(each - 0.7) <= 0.05 for each in parts)
    first, asked = found['estimates']['first'], found['requests']
    page = PAGE.read_text('utf-8')
    for part in (*parts, first['by_p90']):
        assert f'\n     - {100 * part:.0f} %\n' in page, part
    words = ' '.join(page.split())
    assert f'By ``p50`` {100 * first["by_p50"]:.0f} of 100 started' in words
    assert f'{first["count"]} of {sum(asked.values())}\n' in page


def test_victims_are_found_as_soon_and_as_well_as_is_told():
    path = TOP / 'benchmarks/results/queue/preemption.json'
    found = json.loads(path.read_text())
    largest = [e for e in found['decisions'] if e['preemptible'] == 10_000]
    assert len(largest) == 2
    assert all(each['cpu_s'] < 1 for each in largest)
    gap = found['gap']
    assert gap['largest'] < 0.05
    page = ' '.join(PAGE.read_text('utf-8').split())
    assert f'{gap["exact"]} of {gap["cases"]} are the same' in page


def test_plans_of_markets_take_as_little_as_is_told():
    path = TOP / 'benchmarks/results/market.json'
    found = json.loads(path.read_text())
    for name in ('four rates', 'own rates'):
        largest = found[name]['plans'][-1]
        assert (largest['hosts'], largest['servers']) == (1000, 20_000)
        assert largest['cpu_s'] < 10
        assert largest['changed_moves_by_margin'] == 0


def test_plans_of_moves_take_as_little_as_is_told():
    path = TOP / 'benchmarks/results/packing.json'
    found = json.loads(path.read_text())
    goals = [each for each in found.values() if 'plans' in each]
    assert len(goals) == 6
    for goal in goals:
        largest = goal['plans'][-1]
        assert (largest['hosts'], largest['servers']) == (1000, 20_000)
        assert largest['cpu_s'] < 30


def test_every_attack_is_described():
    text = PAGE.read_text('utf-8')
    for name in attacks.ATTACKS:
        assert f'\n``{name}``\n' in text, name
