# SPDX-License-Identifier: Apache-2.0

"""Programs in pages and in strings of tests import what there is."""

import ast
import importlib.util
import pathlib
import re

import pytest

TOP = pathlib.Path(__file__).parents[3]
OURS = 'nova_fairness|api_ext|fairness_lab|oslo_messaging_zmq'
LINE = re.compile(
    rf'^\s*from ((?:{OURS})[\w.]*) import ([\w, ]+)$', re.MULTILINE
)
# Its strings are imports that must be refused.
REFUSED = 'tests/unit/test_layers.py'


def texts():
    for path in TOP.glob('doc/source/**/*.rst'):
        yield path, path.read_text('utf-8')
    for folder in ('tests', 'benchmarks'):
        for path in (TOP / folder).rglob('*.py'):
            for node in ast.walk(ast.parse(path.read_text('utf-8'))):
                if isinstance(node, ast.Constant) and isinstance(
                    node.value, str
                ):
                    yield path, node.value


def imports():
    found = {}
    for path, text in texts():
        name = str(path.relative_to(TOP))
        for module, names in LINE.findall(text) if name != REFUSED else ():
            for each in names.split(','):
                place = each.split(' as ')[0].strip()
                found[f'{module}.{place}'] = name
    return found


@pytest.mark.parametrize(('module', 'where'), imports().items())
def test_an_import_of_an_example_finds_its_module(module, where):
    above = importlib.util.find_spec(module.rpartition('.')[0])
    assert above, f'{where} imports {module}'
    if above.submodule_search_locations:
        assert importlib.util.find_spec(module), f'{where} imports {module}'
