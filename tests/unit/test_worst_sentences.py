# SPDX-License-Identifier: Apache-2.0

"""Sentences that readers did not understand do not come back."""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PACKAGES = ('nova_fairness', 'api_ext', 'fairness_lab')
WORST = (
    'beyond the guaranteed part',
    'cannot take the step',
    'no plan goes on',
    'has used 0.',
    'times theirs',
    'room is promised to it',
    'servers leave for it',
    'the host that comes closest gives',
    'The cluster service does not answer, or cannot do it now',
    'took its place that matters more',
    'seed of all chance',
    'of servers that make room, seconds',
)


def texts(tree):
    """Strings of a module that are no docstrings."""
    plain = {
        id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)
    }
    for each in ast.walk(tree):
        is_text = isinstance(each, ast.Constant) and id(each) not in plain
        if is_text and isinstance(each.value, str):
            yield each.value


def found_in(tree):
    return [worst for text in texts(tree) for worst in WORST if worst in text]


def test_no_text_repeats_a_rejected_sentence():
    found = {
        str(path.relative_to(ROOT)): worst
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob('*.py'))
        if (worst := found_in(ast.parse(path.read_text('utf-8'))))
    }
    assert found == {}


@pytest.mark.parametrize('worst', WORST)
def test_the_check_finds_a_rejected_sentence(worst):
    assert found_in(ast.parse(f'raise Refused({worst + " so"!r})')) == [worst]
    assert found_in(ast.parse(f'def f():\n    {worst!r}')) == []
