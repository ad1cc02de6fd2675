# SPDX-License-Identifier: Apache-2.0

"""``nova-fairness-sim reproduce``: lists, tables, files and exit codes."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import yaml

from fairness_lab.cmd import sim
from fairness_lab.evidence import claims
from tests.fixtures import benchmark
from tests.fixtures import simulator_schemas

MARKET = 'queue/market/market.json'
NAMES = [each.name for each in claims.read().claims]


@pytest.fixture
def out(tmp_path):
    return tmp_path / 'result'


@pytest.fixture
def changed(monkeypatch):
    """Change the first claim that is declared."""

    def change(**changes):
        evidence = claims.read()
        first, *others = evidence.claims
        first = dataclasses.replace(first, **changes)
        other = dataclasses.replace(evidence, claims=[first, *others])
        monkeypatch.setattr(claims, 'read', lambda: other)
        return first

    return change


def content(out):
    found = json.loads((out / 'reproduction.json').read_text())
    simulator_schemas.validate(found, 'evidence')
    return found['claims']


def test_claims_are_listed(capsys):
    assert sim.main(['reproduce', '--list']) == 0
    said = capsys.readouterr().out
    for each in claims.read().claims:
        assert each.name in said
        assert each.command in said
        assert each.file in said
        assert each.because in said


def test_claims_of_a_document_are_listed(capsys):
    assert sim.main(['reproduce', '003', '--list']) == 0
    said = capsys.readouterr().out
    assert 'Baadal' in said
    assert [name for name in NAMES if f'\n{name} ' in said] == [
        name for name in NAMES if name.startswith('003')
    ]


def test_a_published_result_is_reproduced(out, capsys):
    words = ['reproduce', '000-migrations', '000-example', '--out', str(out)]
    assert sim.main(words) == 0
    example, migrations = content(out)
    assert (example['outcome'], migrations['outcome']) == ('holds', 'holds')
    found = {
        each['of']: (each['published'], each['reproduced'], each['verdict'])
        for each in migrations['numbers']
    }
    assert found == {
        'groups in their order': (8, 8, 'equal'),
        'published search': (4, 4, 'equal'),
        'this planner': (4, 0, 'better'),
    }
    lines = capsys.readouterr().out.splitlines()
    head = [
        'claim',
        'of',
        'published',
        'declared',
        'recorded',
        'reproduced',
        'holds',
        'beside',
    ]
    assert lines[0].split()[:-1] == head
    [row] = [line for line in lines if 'published search' in line]
    assert row.split()[-6:] == ['4', '4', '4', '4', 'yes', 'equal']
    assert lines[-1] == str(out)
    assert (out / '000-example' / 'OUT' / 'market.json').is_file()


def run_copy(top, out, *names):
    """Run the command of a copy of the evaluation in a process of its own."""
    paths = os.pathsep.join([str(top), str(benchmark.TOP)])
    program = [sys.executable, '-m', 'fairness_lab.cmd.sim']
    return subprocess.run(
        [*program, 'reproduce', *names, '--out', str(out)],
        cwd=top,
        env={**os.environ, 'PYTHONPATH': paths},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.fixture
def copy(tmp_path):
    """The evaluation and one of its results, which a test may change."""
    top = tmp_path / 'copy'
    shutil.copytree(
        benchmark.TOP / 'fairness_lab',
        top / 'fairness_lab',
        ignore=shutil.ignore_patterns('__pycache__'),
    )
    result = pathlib.Path('benchmarks', 'results', MARKET)
    (top / result).parent.mkdir(parents=True)
    shutil.copy(benchmark.TOP / result, top / result)
    return top


def declare(top, number, within=0):
    """Declare another number of the planner that moves no server."""
    path = top / 'fairness_lab' / 'evidence' / 'claims.yaml'
    content = yaml.safe_load(path.read_text('utf-8'))
    claim = content['claims']['000-migrations']
    assert claim['recorded']['this planner'] == 0
    claim['recorded']['this planner'] = number
    claim['within'] = within
    path.write_text(yaml.safe_dump(content, sort_keys=False), 'utf-8')


def record(top, number):
    """Record another number of it."""
    path = top / 'benchmarks' / 'results' / MARKET
    content = json.loads(path.read_text('utf-8'))
    [row] = [
        each
        for each in content['migrations']
        if each['groups go to nodes by'] == 'this planner'
    ]
    assert row['in turn'] == 0
    row['in turn'] = number
    path.write_text(json.dumps(content), 'utf-8')


@pytest.mark.parametrize(
    ('change', 'numbers'),
    [
        (declare, 'declared 1, recorded 0, reproduced 0'),
        (record, 'declared 0, recorded 1, reproduced 0'),
    ],
)
def test_a_real_run_detects_a_wrong_declared_number(
    copy, out, change, numbers
):
    change(copy, 1)
    ran = run_copy(copy, out, '000-migrations', '000-example')
    assert ran.returncode == 1, ran.stderr
    said = f'000-migrations: differs: this planner: {numbers}'
    assert said in ran.stdout.splitlines()
    assert '000-example: ' not in ran.stdout
    example, migrations = content(out)
    assert (example['outcome'], migrations['outcome']) == ('holds', 'differs')
    holds = {each['of']: each['holds'] for each in migrations['numbers']}
    assert holds == {
        'groups in their order': True,
        'published search': True,
        'this planner': False,
    }


@pytest.mark.repeated
@pytest.mark.parametrize(('within', 'code'), [(1, 0), (0.99, 1)])
def test_a_tolerance_ends_at_its_edge_in_a_real_run(copy, out, within, code):
    declare(copy, 1, within)
    record(copy, 1)
    ran = run_copy(copy, out, '000-migrations')
    assert ran.returncode == code, ran.stderr
    said = 'this planner: declared 1, recorded 1, reproduced 0'
    assert (said in ran.stdout) == bool(code)


def test_a_failing_command_is_reported(out, changed, capsys):
    changed(command='python -c "raise SystemExit(7)"')
    assert sim.main(['reproduce', NAMES[0], '--out', str(out)]) == 1
    assert content(out)[0]['outcome'] == 'failed'
    assert f'{NAMES[0]}: failed: exit code 7' in capsys.readouterr().out


def test_a_reproduction_that_ran_nothing_fails(out, capsys):
    words = ['reproduce', '000-rates', '--out', str(out)]
    assert sim.main(words) == 1
    assert content(out)[0]['outcome'] == 'not run'
    said = capsys.readouterr().out
    assert '000-rates: not run: it needs real guests' in said


def test_a_command_that_takes_too_long_is_left_out(out, capsys):
    words = ['reproduce', '003-refusals', '--within', '60', '--out', str(out)]
    assert sim.main(words) == 1
    assert 'it takes about' in capsys.readouterr().out


def test_unknown_claims_are_refused_with_the_known_names(out, capsys):
    assert sim.main(['reproduce', '000', '005', '--out', str(out)]) == 2
    said = capsys.readouterr().err
    assert "'005'" in said
    assert all(name in said for name in NAMES)
    assert not out.exists()


@pytest.mark.parametrize('words', [[], ['--list', '--out', 'x']])
def test_reproduce_needs_a_list_option_or_a_directory(words, capsys):
    with pytest.raises(SystemExit):
        sim.main(['reproduce', *words])
    assert '--list' in capsys.readouterr().err
