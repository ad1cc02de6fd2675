# SPDX-License-Identifier: Apache-2.0

"""Each test that a page names exists, and each chosen word selects one."""

import ast
import pathlib
import re

import pytest

TOP = pathlib.Path(__file__).resolve().parents[3]
PAGES = (TOP / 'README.rst', *sorted((TOP / 'doc/source').rglob('*.rst')))
NAMED = re.compile(
    r'(?:tests/)?((?:unit|integration|functional)/[\w/]+\.py)'
    r'(?:((?:::\w+)+)|\n? *-k (\w+))?'
)


def named_tests():
    return sorted(
        {
            (path, qualified, word)
            for page in PAGES
            for path, qualified, word in NAMED.findall(page.read_text('utf-8'))
        }
    )


def body_of(path):
    return ast.parse((TOP / 'tests' / path).read_text('utf-8')).body


def names_of(body):
    return {
        each.name: each
        for each in body
        if isinstance(each, ast.FunctionDef | ast.ClassDef)
    }


def test_pages_name_tests():
    assert len(named_tests()) >= 100


@pytest.mark.parametrize(
    ('path', 'qualified'),
    [(path, qualified) for path, qualified, word in named_tests() if not word],
)
def test_each_named_test_exists(path, qualified):
    body = body_of(path)
    for name in qualified.split('::')[1:]:
        found = names_of(body)
        assert name in found
        body = found[name].body


@pytest.mark.parametrize(
    ('path', 'word'),
    [(path, word) for path, _, word in named_tests() if word],
)
def test_each_documented_k_word_selects_tests(path, word):
    tests = [
        each.name
        for each in ast.walk(ast.Module(body_of(path), []))
        if isinstance(each, ast.FunctionDef) and each.name.startswith('test_')
    ]
    assert [name for name in tests if word in name]
