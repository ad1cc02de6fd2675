# SPDX-License-Identifier: Apache-2.0

"""What programs write on a terminal is plain text, whatever it names."""

import ast
import pathlib

import pytest

import nova_fairness
from nova_fairness.model import wording
from tests.unit.model import test_plain

ROOT = pathlib.Path(nova_fairness.__file__).parent / 'cmd'
STATIC = {
    # Texts of the operating system, before anything of others is read.
    'privileged.py': 1
}


def written(path):
    """What a module writes on its standard streams."""
    for each in ast.walk(ast.parse(path.read_text('utf-8'))):
        if isinstance(each, ast.Call):
            name = ast.unparse(each.func)
            assert name != 'print', path
            if name in ('sys.stdout.write', 'sys.stderr.write'):
                yield each.args[0]


def is_plain(given):
    if isinstance(given, ast.BinOp):
        return is_plain(given.right)
    if isinstance(given, ast.Call):
        return ast.unparse(given.func) in ('plain.line', 'plain.lines')
    return isinstance(given, ast.Constant)


@pytest.mark.parametrize(
    'path', sorted(ROOT.glob('*.py')), ids=lambda path: path.name
)
def test_a_program_writes_plain_text_only(path):
    raw = [each for each in written(path) if not is_plain(each)]
    assert len(raw) == STATIC.get(path.name, 0), [
        ast.unparse(each) for each in raw
    ]


@pytest.mark.parametrize('text', test_plain.POISON)
def test_a_cell_is_one_line(text):
    table = wording.format_table([('Name', 'N'), (text, '1')], (False, True))
    assert len(table.split('\n')) == 3
    assert table.replace('\n', '').isprintable()
