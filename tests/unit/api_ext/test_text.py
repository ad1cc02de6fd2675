# SPDX-License-Identifier: Apache-2.0

"""Texts that callers give and that cannot be written anywhere."""

from collections.abc import Mapping
import json

import pytest

from api_ext import faults
from api_ext import routes
from api_ext import validation
from api_ext.schemas import patterns
from tests.unit.api_ext import test_tokens

HALVES = ('\ud800', 'a\udfffb', '\udc00\ud800')
"""Halves of characters: JSON can say them, UTF-8 cannot."""


def changed(value, text):
    """Bodies with a text in the place of one name or one text each."""
    if isinstance(value, str):
        yield text
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from ({**value, key: new} for new in changed(each, text))
            yield {
                text if name == key else name: value[name] for name in value
            }
    elif isinstance(value, list):
        for place, each in enumerate(value):
            for new in changed(each, text):
                yield [*value[:place], new, *value[place + 1 :]]


@pytest.mark.parametrize('text', HALVES)
@pytest.mark.parametrize(
    'name', sorted(each.name for each in routes.ROUTES if each.body)
)
def test_half_a_character_is_refused_wherever_it_is_given(cloud, name, text):
    route = next(each for each in routes.ROUTES if each.name == name)
    url, body, _ = test_tokens.ROUTES[name]
    for sent in changed(body, text):
        raw = json.dumps(sent).encode()
        told = cloud.ask('admin', route.method, f'/fairness{url}', raw)
        assert told.status_code == 400, sent
        assert told.json['badRequest']['message'].startswith('body')
        assert 'half of a character' in told.json['badRequest']['message']


@pytest.mark.parametrize('text', HALVES)
def test_an_error_names_the_position_of_half_a_character(text):
    raw = json.dumps({'a': [1, {'name': text}]}).encode()
    with pytest.raises(faults.BadRequest, match=r'^body\.a\.1\.name: '):
        validation.parse_json(raw)
    with pytest.raises(faults.BadRequest, match=r'^body\.a\.1: a name'):
        validation.parse_json(json.dumps({'a': [1, {text: 0}]}).encode())


def test_whole_characters_pass_however_they_are_written():
    assert validation.parse_json(b'{"a": "\\ud83d\\ude00"}') == {
        'a': '\U0001f600'
    }


@pytest.mark.parametrize('query', ['name=%ed%a0%80', 'name=%ff'])
def test_a_query_with_half_a_character_is_refused(cloud, query):
    for route in routes.ROUTES:
        url = test_tokens.ROUTES[route.name][0].partition('?')[0]
        if route.method == 'GET':
            told = cloud.ask('admin', 'GET', f'/fairness{url}?{query}')
            assert told.status_code in (400, 404), route.name


def expressions(schema):
    """All regular expressions of a schema."""
    if isinstance(schema, list | tuple):
        return {text for each in schema for text in expressions(each)}
    if not isinstance(schema, Mapping):
        return set()
    here = schema.get('pattern')
    inner = {text for each in schema.values() for text in expressions(each)}
    return inner | ({here} if isinstance(here, str) else set())


def test_no_error_message_shows_a_regular_expression():
    schemas = [each for r in routes.ROUTES for each in (r.body, r.query)]
    assert expressions(schemas) | {*patterns.BY_PLACEHOLDER.values()} == {
        *patterns.MEANINGS
    }


@pytest.mark.parametrize(
    ('body', 'said'),
    [
        (
            {'ceiling': {'vcpu': 3}},
            "ceiling: 'vcpu' is not a valid reso",
        ),
        ({'ceiling': {'VCPU': -3}}, 'ceiling.VCPU: -3 is less than the mini'),
        ({}, 'body: expected at least one of time_limit, longest_wait'),
    ],
)
def test_a_refusal_names_the_expected_value(cloud, body, said):
    sent = json.dumps({'account': 'x', **body}).encode()
    answer = cloud.ask('admin', 'PUT', '/fairness/limits', sent)
    assert said in answer.json['badRequest']['message']
