# SPDX-License-Identifier: Apache-2.0

import unicodedata

import hypothesis
from hypothesis import strategies
import pytest

from nova_fairness.model import plain

POISON = (
    'a\nb', 'a\r\nINFO b', '\x1b[31mred\x1b[0m', '\x9b31m', 'a\tb', '\x00',
    '\u202egnp.exe', '\u2066a\u2069', '\u200bb', '\ud800', '\u2028', '\x85',
    '\x7f', '\ufeff', '\u061c',
)  # fmt: skip
ANY = strategies.text(strategies.characters(codec=None, categories=None))


@pytest.mark.parametrize('text', POISON)
def test_a_control_character_of_terminals_is_written_out(text):
    told = plain.line(text)
    assert told.isprintable()
    assert '\\' in told
    assert told.encode('utf-8').decode('unicode_escape')


@pytest.mark.parametrize('text', ['', 'web-1', 'Zürich 東京', 'a\\nb', '🐢 x'])
def test_a_printable_text_stays(text):
    assert plain.line(text) == plain.lines(text) == text


@hypothesis.given(ANY)
def test_any_text_is_one_line_that_can_be_encoded(text):
    told = plain.line(text)
    told.encode('utf-8')
    assert len(told.splitlines()) <= 1
    assert not any(unicodedata.category(c)[0] == 'C' for c in told)
    assert plain.line(told) == told


@hypothesis.given(ANY)
def test_ends_of_lines_stay_where_lines_are_meant(text):
    told = plain.lines(text)
    assert told.count('\n') == text.count('\n')
    assert told.replace('\n', '').isprintable()
