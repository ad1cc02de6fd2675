# SPDX-License-Identifier: Apache-2.0

"""Every test that the pages of security and of the queue name is there."""

import pathlib
import re

import pytest

TOP = pathlib.Path(__file__).resolve().parents[3]
PAGES = TOP / 'doc/source/admin'
TEXT = (PAGES / 'security.rst').read_text('utf-8')
QUEUE = (
    (PAGES / 'queue.rst').read_text('utf-8').partition('Faults and their')[2]
)
NAMED = re.findall(r'``([\w/]+\.py)(?:::(\w+))?``', TEXT + QUEUE)
ROWS = re.findall(
    r'^   \* - (.+?)\n     - (.+?)\n     - (.+?)(?=^   \*|^\S|^$)',
    TEXT,
    re.MULTILINE | re.DOTALL,
)


@pytest.mark.parametrize(('path', 'name'), NAMED)
def test_a_claim_that_is_shown_by_a_test_has_that_test(path, name):
    kinds = ('unit/', 'functional/', 'fixtures/')
    below = 'tests' if path.startswith(kinds) else 'tests/integration'
    text = (TOP / below / path).read_text('utf-8')
    assert f'def {name or "test_"}' in text


def test_a_claim_that_is_not_simply_so_names_its_test():
    rows = [row for row in ROWS if not row[1].startswith('Can ')]
    bounded = [row for row in rows if row[1].strip('*') != 'yes']
    assert len(bounded) > 50
    assert not [what for what, _, shown in bounded if '.py' not in shown]


def test_a_fault_of_the_queue_names_its_test():
    table = QUEUE.partition('The order of requests')[0]
    rows = table.split('   * - ')[2:]
    assert len(rows) > 10
    assert not [row for row in rows if '.py::' not in row]
