# SPDX-License-Identifier: Apache-2.0

"""What a scenario expects: read, refused, and applied to a user's own."""

import json

import pytest

from fairness_lab.cmd import lab
from fairness_lab.scenario import programs
from fairness_lab.scenario import reader
from nova_fairness import exception
from tests.unit.fairness_lab.testbed import fake_backend

SCENARIO = """\
description: Two users compete.
duration: 20
interval: 1
nodes:
  node1: {cpus: [0]}
vms:
  a: {user: alice, count: 2}
  b: {user: bob}
load:
  a: [{at: 0, cpu: max}]
  b: [{at: 0, cpu: max}]
expect:
  - %s
"""


def write_scenario(tmp_path, entry):
    path = tmp_path / 'mine.yaml'
    path.write_text(SCENARIO % entry)
    return path


def test_a_group_in_an_expectation_means_all_its_copies(tmp_path):
    entry = '{check: cpu-ratio, name: more, of: b, to: a, at_least: 1.5}'
    (found,) = reader.read(
        write_scenario(tmp_path, entry), programs.LABORATORY
    ).expect
    assert (found.name, found.of, found.to) == ('more', ('b',), ('a-1', 'a-2'))
    assert (found.at_least, found.at_most) == (1.5, None)


def test_a_check_is_called_by_its_word_if_it_has_no_name(tmp_path):
    entry = '{check: farthest-vm, at_most: 0.1, when: {agents: true}}'
    (found,) = reader.read(
        write_scenario(tmp_path, entry), programs.LABORATORY
    ).expect
    assert found.name == 'farthest-vm'
    assert found.when.agents is True


WRONG = {
    '{check: cpu-parts, at_least: 1}': 'did you mean cpu-part?',
    '{name: mine, at_least: 1}': 'key check, which is missing',
    '{check: cpu-part}': 'either "at_least" or "at_most"',
    '{check: cpu-part, around: equal}': '"around" and "within" together',
    '{check: cpu-part, around: bounded, within: 1}': (
        'one of equal, max-min, a number'
    ),
    '{check: cpu-part, around: 1, within: -1}': 'a number, at least 0',
    '{check: cpu-part, around: 1, within: 1, at_most: 2}': 'either "at_least"',
    '{check: cpu-part, at_least: much}': "a number, got 'much'",
    '{check: cpu-part, of: alice, at_least: 1}': 'one of a',
    '{check: user-cpu-part, of: [b], at_least: 1}': 'one of alice, bob',
    '{check: windows, of: b, at_least: 1}': 'no such key with this check',
    '{check: cpu-part, to: b, at_least: 1}': 'no such key with this check',
    '{check: cpu-ratio, of: a, to: b, at_least: 1}': 'one VM as "of"',
    '{check: cpu-ratio, of: b, at_least: 1}': 'one VM as "of"',
    '{check: windows, at_least: 1, wen: {}}': 'unknown key wen (did you mean',
    '{check: windows, at_least: 1, when: {agents: 1}}': 'one of true, false',
    '{check: windows, name: a b, at_least: 1}': 'a name of at most 40',
}


@pytest.mark.parametrize(('entry', 'said'), WRONG.items(), ids=WRONG)
def test_a_wrong_expectation_is_refused_with_its_line(tmp_path, entry, said):
    path = write_scenario(tmp_path, entry)
    with pytest.raises(exception.BadScenario) as caught:
        reader.read(path, programs.LABORATORY)
    assert f'{path}, line 13: ' in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ('within', 'code'), [(0.05, lab.DONE), (0.0, lab.FAILED)]
)
def test_a_scenario_of_a_user_is_judged(
    tmp_path, within, code, capsys, monkeypatch
):
    fake_backend.use_fake_backend(monkeypatch)
    entry = (
        '{check: user-cpu-part, name: half, around: max-min, '
        f'within: {within}}}'
    )
    path, out = write_scenario(tmp_path, entry), tmp_path / 'out'
    arguments = ['run', str(path), f'--out={out}']
    assert lab.main([*arguments, f'--cache={tmp_path}']) == code
    checks = json.loads((out / 'result.json').read_text())['checks']
    assert [check['name'] for check in checks] == ['half-alice', 'half-bob']
    assert checks[0]['highest'] == pytest.approx(0.5 + within)
    assert 'all used CPU that bob gets' in capsys.readouterr().out
