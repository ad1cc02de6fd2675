# SPDX-License-Identifier: Apache-2.0

"""Sentences say ``1 server`` and ``2 servers``, by one rule."""

import ast
import pathlib
import re

import pytest

from nova_fairness.model import reason
from nova_fairness.model import wording

ROOT = pathlib.Path(__file__).parents[2]
PACKAGES = ('nova_fairness', 'api_ext')
NOUNS = '|'.join(
    (
        *('accounts', 'agents', 'charges', 'controls', 'cores', 'domains'),
        *('entries', 'errors', 'groups', 'hosts', 'messages', 'moves'),
        *('nodes', 'projects', 'requests', 'rounds', 'rows', 'servers'),
        *('shares', 'unit-hours', 'users', 'victims', 'CPUs', 'VMs'),
    )
)
_WORDS = rf' (?:more |other |of its )?(?:{NOUNS})\b'
_AFTER = re.compile(_WORDS)
_WITHIN = re.compile(rf'(?:%(?:\(\w+\))?d|{{\w+(?::[^|}}]*)?}}){_WORDS}')
_MANY = re.compile(
    r'most|limit|_?[A-Z][A-Z_]+$|total$|(FINE|max_peers)|len\((users|names)\)'
    r'|there$|len\((found|kept)\)|_their|cost'
)
"""Numbers that are never 1: limits, sums of several and what exceeds them."""


def uncounted(tree):
    """Numbers of things that have one word for one and for several."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _WITHIN.findall(node.value)
        if not isinstance(node, ast.JoinedStr):
            continue
        for field, after in zip(node.values, node.values[1:], strict=False):
            is_text = isinstance(after, ast.Constant)
            if not isinstance(field, ast.FormattedValue) or not is_text:
                continue
            value = ast.unparse(field.value)
            if _AFTER.match(after.value) and not _MANY.search(value):
                yield value + after.value


def test_numbers_of_things_are_counted_by_one_rule():
    found = {
        str(path.relative_to(ROOT)): texts
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob('*.py'))
        if (texts := [*uncounted(ast.parse(path.read_text('utf-8')))])
    }
    assert found == {}


@pytest.mark.parametrize(
    'text',
    [
        "f'{n} servers'",
        "f'{n:g} more users'",
        "'%d hosts'",
        "'{n:g} requests'",
    ],
)
def test_a_number_that_is_not_counted_is_found(text):
    assert [*uncounted(ast.parse(text))]


@pytest.mark.parametrize('text', ["f'{most} servers'", "'{n:host|hosts}'"])
def test_limits_and_counted_numbers_pass(text):
    assert not [*uncounted(ast.parse(text))]


def test_one_thing_is_one():
    counted = wording.counted
    assert counted(1, 'server') == '1 server'
    assert counted(0, 'server') == '0 servers'
    assert counted(1.0, 'core') == '1 core'
    assert counted(1.5, 'core') == '1.5 cores'
    assert counted(2, 'entry is', 'entries are') == '2 entries are'
    text = '{n:request is|requests are} before {name}'
    told = wording.filled(text, {'n': 1.0, 'name': '1 hosts'})
    assert told == '1 request is before 1 hosts'


@pytest.mark.parametrize('token', reason.NUMBERS)
def test_reasons_speak_of_one_thing_as_of_one(token):
    numbers = dict.fromkeys(reason.NUMBERS[token], 1.0)
    why = reason.why(token, 'VCPU', **numbers)
    for audience in reason.Audience:
        told = reason.told(why, audience, 'p').sentence
        for text in (told, why.sentence):
            assert not re.search(rf'\b1 (?:{NOUNS})\b', text)
            assert not re.search(r'\b1 \w+ (?:are|wait|have|start)\b', text)
