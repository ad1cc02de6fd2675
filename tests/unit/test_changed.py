# SPDX-License-Identifier: Apache-2.0

"""Which tests a change can affect."""

import importlib.util
import pathlib

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]

TREE = {
    'ours/low.py': '',
    'ours/high.py': 'from ours import low',
    'ours/rules.py': "RULES = open('rules.yaml')",
    'ours/rules.yaml': '',
    'tests/unit/test_all.py': '',
    'tests/unit/low/test_low.py': 'import ours.low',
    'tests/unit/high/test_high.py': 'def test():\n    from ours import high',
    'tests/unit/high/test_rules.py': 'from ours.rules import RULES',
    'tests/unit/high/conftest.py': '',
    'tests/real/test_guest.py': "pytest_plugins = ('tests.fixtures.guest',)",
    'tests/fixtures/guest.py': '',
}


@pytest.fixture(scope='module')
def changed():
    path = TOP / 'tools/changed.py'
    spec = importlib.util.spec_from_file_location('changed', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ('file', 'tests'),
    [
        ('ours/low.py', ['high/test_high', 'low/test_low']),
        ('ours/high.py', ['high/test_high']),
        ('ours/rules.yaml', ['high/test_rules']),
        ('tests/unit/high/conftest.py', ['high/test_high', 'high/test_rules']),
        ('tests/unit/low/test_low.py', ['low/test_low']),
        ('tests/fixtures/guest.py', ['../real/test_guest']),
        ('README.rst', []),
    ],
)
def test_a_change_selects_its_users_and_readers_of_the_whole_tree(
    changed, tmp_path, file, tests
):
    for name, text in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    expected = {(tmp_path / 'tests/unit' / name).resolve() for name in tests}
    found = changed.affected([file], tmp_path)
    assert {(tmp_path / name).with_suffix('') for name in found} == {
        *expected,
        tmp_path / 'tests/unit/test_all',
    }


def test_a_change_of_requirements_selects_all_tests(changed):
    every = changed.affected(['requirements.txt'], TOP)
    assert len(every) > 400


def test_an_unknown_revision_is_an_error(changed, capfd):
    assert changed.main(['no-such-revision']) == 2
    assert 'no-such-revision' in capfd.readouterr().err
