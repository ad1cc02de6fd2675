# SPDX-License-Identifier: Apache-2.0

"""Each fraction of the code that judges is on the page of thresholds."""

import pytest

from tests.fixtures import documented
from tests.fixtures import manual_fields

EXTENSION = manual_fields.load('fractions')
PAGE = documented.PAGES.parent / 'contributor/thresholds.rst'
ROOMS = ('measure', 'decide', 'shares', 'agent')
FOUND = [each for room in ROOMS for each in EXTENSION.fractions(room)]


def test_the_page_lists_the_fractions_of_each_folder_that_judges():
    page = PAGE.read_text('utf-8')
    assert [
        room for room in ROOMS if f'fractions:: {room}\n' not in page
    ] == []


@pytest.mark.parametrize('each', FOUND, ids=lambda each: each.name)
def test_the_page_has_a_text_for_each_fraction(each):
    assert each.said.endswith('.') or each.said.endswith('...'), each
    assert f'``{each.module}.{each.name}``' in EXTENSION.text(
        each.module.partition('.')[0]
    )


def test_seconds_and_guards_of_divisions_are_no_fractions():
    names = {each.name for each in FOUND}
    assert {'SHORT_CPUS', 'MARGIN'} <= names
    assert not any(name.endswith('_S') for name in names)
    assert '_NEXT_TO_NOTHING' not in names
