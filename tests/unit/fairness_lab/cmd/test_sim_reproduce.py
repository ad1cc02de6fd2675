# SPDX-License-Identifier: Apache-2.0

"""``nova-fairness-sim reproduce``: lists, tables, files and exit codes."""

import dataclasses
import json

import pytest

from fairness_lab.cmd import sim
from fairness_lab.evidence import claims
from tests.fixtures import simulator_schemas

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
        'recorded',
        'reproduced',
        'holds',
        'beside',
    ]
    assert lines[0].split()[:-1] == head
    [row] = [line for line in lines if 'published search' in line]
    assert row.split()[-5:] == ['4', '4', '4', 'yes', 'equal']
    assert lines[-1] == str(out)
    assert (out / '000-example' / 'OUT' / 'market.json').is_file()


def test_a_claim_that_does_not_hold_is_told(out, changed, capsys):
    command = 'python -c "open(\'OUT/made.json\', \'w\').write(\'[4]\')"'
    changed(command=command, made='made.json', at=['$'], recorded={0: 5})
    assert sim.main(['reproduce', NAMES[0], '--out', str(out)]) == 1
    [found] = content(out)
    assert found['outcome'] == 'differs'
    assert capsys.readouterr().out.splitlines()[1].split() == [
        NAMES[0],
        '0',
        '5',
        '4',
        'no',
    ]


def test_a_command_that_fails_is_told(out, changed, capsys):
    changed(command='python -c "raise SystemExit(7)"')
    assert sim.main(['reproduce', NAMES[0], '--out', str(out)]) == 1
    assert content(out)[0]['outcome'] == 'failed'
    assert f'{NAMES[0]}: failed: exit code 7' in capsys.readouterr().out


def test_nothing_run_is_no_success(out, capsys):
    words = ['reproduce', '000-rates', '--out', str(out)]
    assert sim.main(words) == 1
    assert content(out)[0]['outcome'] == 'not run'
    said = capsys.readouterr().out
    assert '000-rates: not run: it needs real guests' in said


def test_a_command_that_takes_too_long_is_left_out(out, capsys):
    words = ['reproduce', '003-refusals', '--within', '60', '--out', str(out)]
    assert sim.main(words) == 1
    assert 'it takes about' in capsys.readouterr().out


def test_bad_names_are_refused_with_the_names_there_are(out, capsys):
    assert sim.main(['reproduce', '000', '005', '--out', str(out)]) == 2
    said = capsys.readouterr().err
    assert "'005'" in said
    assert all(name in said for name in NAMES)
    assert not out.exists()


@pytest.mark.parametrize('words', [[], ['--list', '--out', 'x']])
def test_either_a_list_or_a_directory_is_asked_for(words, capsys):
    with pytest.raises(SystemExit):
        sim.main(['reproduce', *words])
    assert '--list' in capsys.readouterr().err
