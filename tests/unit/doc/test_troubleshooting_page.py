# SPDX-License-Identifier: Apache-2.0

"""What the page about troubleshooting names is in the programs."""

import ast
import functools
import pathlib
import re

import pytest

from nova_fairness.cmd import status_cloud
from nova_fairness.cmd import status_node

TOP = pathlib.Path(__file__).resolve().parents[3]
TEXT = TOP.joinpath('doc/source/admin/troubleshooting.rst').read_text('utf-8')
ANYTHING = '...'
PROGRAMS = ('nova_fairness', 'oslo_messaging_zmq', 'api_ext')
_TERM = re.compile(r'^``([^`]+ [^`]+)``$', re.MULTILINE)
_ELLIPTIC = re.compile(r'``([^`]*\.\.\.[^`]*)``')
_CHECK = re.compile(r'\b[Tt]he checks?\s+``([^`]+)``(?:\s+and\s+``([^`]+)``)?')
_METRIC = re.compile(r'``nova_fairness_(\w+?)(?:_total)?``')
_FORMAT = re.compile(r'%[-#.0-9]*[a-z]')


def messages():
    """What the page says that programs say, each once, sorted."""
    found = {*_TERM.findall(TEXT), *_ELLIPTIC.findall(TEXT)}
    return sorted(found - {ANYTHING})


@functools.cache
def said():
    """All texts of the programs, with dots where something is put in."""
    return frozenset(
        text
        for room in PROGRAMS
        for path in TOP.joinpath(room).rglob('*.py')
        for node in ast.walk(ast.parse(path.read_text('utf-8')))
        if (text := text_of(node))
    )


def text_of(node):
    if isinstance(node, ast.JoinedStr):
        return ''.join(
            part.value if isinstance(part, ast.Constant) else ANYTHING
            for part in node.values
        )
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _FORMAT.sub(ANYTHING, node.value)
    return ''


def is_said(message):
    parts = [re.escape(part.strip()) for part in message.split(ANYTHING)]
    pattern = re.compile('.*'.join(parts))
    return any(map(pattern.search, said()))


@pytest.mark.parametrize('message', messages())
def test_every_message_is_one_of_the_programs(message):
    assert is_said(message)


def test_the_message_check_finds_unknown_messages():
    assert len(messages()) > 30
    assert not is_said('a message ... that nobody writes')


def test_every_check_exists():
    known = {name for name, _ in (*status_node.CHECKS, *status_cloud.CHECKS)}
    named = {name for pair in _CHECK.findall(TEXT) for name in pair if name}
    assert len(named) > 5
    assert named <= known


def test_every_metric_exists():
    observe = TOP / 'nova_fairness' / 'observe'
    source = ''.join(path.read_text('utf-8') for path in observe.glob('*.py'))
    named = set(_METRIC.findall(TEXT))
    assert len(named) > 5
    assert {name for name in named if f"'{name}'" not in source} == set()
