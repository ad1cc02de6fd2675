# SPDX-License-Identifier: Apache-2.0

"""Every test that the evaluation's page names is there."""

import ast
import pathlib
import re

import pytest

from fairness_lab.cluster import attacks

TOP = pathlib.Path(__file__).resolve().parents[3]
PAGE = TOP / 'doc/source/reference/evaluation.rst'
NAMED = re.compile(r'(tests/unit/[\w/]+\.py)((?:\n? *-k \w+)?)')


def named():
    return sorted(set(NAMED.findall(PAGE.read_text('utf-8'))))


def test_tests_are_named():
    assert len(named()) >= 20


@pytest.mark.parametrize(('path', 'chosen'), named())
def test_a_command_chooses_tests(path, chosen):
    tree = ast.parse((TOP / path).read_text('utf-8'))
    tests = [
        each.name
        for each in tree.body
        if isinstance(each, ast.FunctionDef) and each.name.startswith('test_')
    ]
    word = chosen.split()[-1] if chosen else ''
    assert [name for name in tests if word in name]


def test_every_attack_is_described():
    text = PAGE.read_text('utf-8')
    for name in attacks.ATTACKS:
        assert f'\n``{name}``\n' in text, name
