# SPDX-License-Identifier: Apache-2.0

"""Sentences say ``1 server`` and ``2 servers``, by one rule.

Pages of Horizon have the plurals of Django, which translations have, too.
"""

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

PAGES = ROOT / 'fairness_dashboard'
_PLURALS = ('ngettext', 'ngettext_lazy')
_THINGS = (
    rf'(?:{NOUNS}|CPU|core|server|host|request|days?|hours?|jobs?|plans?)'
)
_FILLED = re.compile(
    rf'%(?:\(\w+\))?[ds] (?:more |other )?{_THINGS}\b'
    r'|%\(\w*count\)[ds] (?:[^.,%]* )?(?:their|its|are|is|have|has)\b'
)
"""A number in a text of Django, and its noun or what agrees with it."""

_PLURAL_BLOCK = re.compile(
    r'{% blocktranslate[^%]* count .*?{% plural %}.*?{% endblocktranslate %}',
    re.DOTALL,
)
_SHOWN = re.compile(
    r"{{ *(?!most\b)[\w.|:]+ *}}\s*(?:{% translate ['\"])?"
    rf'{_THINGS}\b'
)
"""A number in a template, and its noun."""


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


def unplural(tree):
    """Texts of pages whose noun is the same for one and for several."""
    counted = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition('.')[2] in _PLURALS
        for text in node.args
        for part in ast.walk(text)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(
            node.value, str
        )
        if is_text and id(node) not in counted:
            yield from _FILLED.findall(node.value)
    yield from uncounted(tree)


def unplural_shown(template):
    """The same in a template."""
    return _SHOWN.findall(_PLURAL_BLOCK.sub('', template))


def test_pages_have_a_noun_for_one_thing_and_one_for_several():
    found = {
        str(path.relative_to(ROOT)): texts
        for path in sorted(PAGES.rglob('*'))
        if path.suffix in ('.py', '.html')
        for text in (path.read_text('utf-8'),)
        if (
            texts := [
                *(
                    unplural(ast.parse(text))
                    if path.suffix == '.py'
                    else unplural_shown(text)
                )
            ]
        )
    }
    assert found == {}


@pytest.mark.parametrize(
    'text',
    [
        "_('%s days')",
        "_('The %(count)s requests of the last week')",
        "gettext_lazy('%(n)d other server')",
        "_('%(sooner_count)s would come nearer to their start')",
        "f'{n} servers'",
    ],
)
def test_a_text_of_a_page_without_a_plural_is_found(text):
    assert [*unplural(ast.parse(text))]


@pytest.mark.parametrize(
    'text',
    [
        "ngettext('%s day', '%s days', n)",
        "translation.ngettext_lazy('%(n)s host', '%(n)s hosts', 'n')",
        "_('%s h')",
        "_('weight now %s')",
    ],
)
def test_texts_of_pages_with_plurals_pass(text):
    assert not [*unplural(ast.parse(text))]


@pytest.mark.parametrize(
    'text',
    [
        '{{ cores }} cores',
        "{{ each.count }} {% translate 'requests' %}",
        '{% blocktranslate with n=n %}{{ n }} hosts{% endblocktranslate %}',
        (
            '{% blocktranslate count n=n %}{{ n }} is{% plural %}{{ n }} are'
            '{% endblocktranslate %} on {{ m|floatformat:2 }} CPUs'
        ),
    ],
)
def test_a_template_without_a_plural_is_found(text):
    assert unplural_shown(text)


@pytest.mark.parametrize(
    'text',
    [
        (
            '{% blocktranslate with a=a count n=n %}{{ n }} host{% plural %}'
            '{{ n }} hosts{% endblocktranslate %}'
        ),
        '{{ most }} servers',
        "<td>{{ n }}</td><th>{% translate 'Hosts' %}</th>",
    ],
)
def test_templates_with_plurals_pass(text):
    assert not unplural_shown(text)


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


def test_counted_uses_the_singular_for_one():
    counted = wording.counted
    assert counted(1, 'server') == '1 server'
    assert counted(0, 'server') == '0 servers'
    assert counted(1.0, 'core') == '1 core'
    assert counted(1.5, 'core') == '1.5 cores'
    assert counted(2, 'entry is', 'entries are') == '2 entries are'
    text = '{n:request is|requests are} before {name}'
    told = wording.fill_in(text, {'n': 1.0, 'name': '1 hosts'})
    assert told == '1 request is before 1 hosts'


@pytest.mark.parametrize('token', reason.NUMBERS)
def test_reasons_use_the_singular_for_one(token):
    numbers = dict.fromkeys(reason.NUMBERS[token], 1.0)
    why = reason.why(token, 'VCPU', **numbers)
    for audience in reason.Audience:
        told = reason.readable_reason(why, audience, 'p').sentence
        for text in (told, why.sentence):
            assert not re.search(rf'\b1 (?:{NOUNS})\b', text)
            assert not re.search(r'\b1 \w+ (?:are|wait|have|start)\b', text)
