# SPDX-License-Identifier: Apache-2.0

"""Every test that the page about security names is there."""

import pathlib
import re

TOP = pathlib.Path(__file__).resolve().parents[3]
PAGE = TOP / 'doc' / 'source' / 'admin' / 'security.rst'


def test_what_is_said_to_be_shown_by_a_test_has_that_test():
    named = re.findall(r'``([\w/]+\.py)::(\w+)``', PAGE.read_text('utf-8'))
    assert len(named) > 20
    for path, name in named:
        below = 'tests' if path.startswith('unit/') else 'tests/integration'
        text = (TOP / below / path).read_text('utf-8')
        assert f'def {name}(' in text, f'{path}::{name}'
