# SPDX-License-Identifier: Apache-2.0

"""Docstrings name the thing that they are about."""

import ast
import pathlib
import re

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
PRODUCT = (
    'nova_fairness',
    'oslo_messaging_zmq',
    'fairness_lab',
    'fairness_dashboard',
    'api_ext',
)
FOLDERS = (*PRODUCT, 'benchmarks', 'tests', 'tools')
HEADLESS = re.compile(
    'That |Those who |Who |Whom |Whose .+ it is|Which |What is |What are '
    '|To what |So (many|much|long) |After so '
)
"""Beginnings of relative clauses that say nothing of what they are about."""

DOCUMENTED = re.compile(r'^:param (\w+):', re.MULTILINE)


def beginnings(folder):
    """Line and first line of what documents a module or anything in it."""
    for path in sorted((TOP / folder).rglob('*.py')):
        for node in ast.walk(ast.parse(path.read_text('utf-8'))):
            # Strings on their own: docstrings, also those of attributes.
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                where = f'{path.relative_to(TOP)}:{node.lineno}'
                yield where, node.value.value.strip().partition('\n')[0]


@pytest.mark.parametrize('folder', FOLDERS)
def test_no_docstring_begins_with_give(folder):
    found = [
        each for each in beginnings(folder) if each[1].startswith('Give ')
    ]
    assert not found


@pytest.mark.parametrize('folder', PRODUCT)
def test_no_docstring_is_a_headless_relative_clause(folder):
    assert not [each for each in beginnings(folder) if HEADLESS.match(each[1])]


def arguments(function):
    """Names of all arguments of a function."""
    found = function.args
    last = [each for each in (found.vararg, found.kwarg) if each is not None]
    named = (*found.posonlyargs, *found.args, *found.kwonlyargs, *last)
    return {each.arg for each in named}


@pytest.mark.parametrize('folder', FOLDERS)
def test_documented_arguments_of_functions_exist(folder):
    absent = [
        f'{path.relative_to(TOP)}:{node.lineno} {node.name}: {name}'
        for path in sorted((TOP / folder).rglob('*.py'))
        for node in ast.walk(ast.parse(path.read_text('utf-8')))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for name in DOCUMENTED.findall(ast.get_docstring(node) or '')
        if name not in arguments(node)
    ]
    assert not absent


def test_the_docstring_check_finds_docstrings():
    assert len(list(beginnings('nova_fairness'))) > 500
