# SPDX-License-Identifier: Apache-2.0

"""Each mark of the table of what is supported has a test that is run."""

import pathlib
import re

import pytest

from nova_fairness.nova_service import releases

TOP = pathlib.Path(__file__).resolve().parents[3]
PAGE = (TOP / 'doc/source/install/support.rst').read_text('utf-8')
RUN = (TOP / 'tools/test.sh').read_text('utf-8')
CLOUD = TOP / 'tests/fixtures/nova_cloud'


def rows():
    """Cells of each row: part, version, state, what shows it."""
    table = PAGE.split('     - shown by\n', 1)[1].split('\n\n', 1)[0]
    for row in table.split('   * - ')[1:]:
        cells = re.split(r'\n     -', row)
        yield tuple(' '.join(cell.split()) for cell in cells)


TESTED = [
    pytest.param(shown, id=f'{part}-{version}')
    for part, version, state, shown in rows()
    if state == 'tested'
]


def files(shown):
    """Tests that a cell names; a name alone is beside the one before it."""
    folder = TOP
    for name in re.findall(r'``([\w/]+(?:\.py)?)``', shown):
        if name.startswith('tests/'):
            path = TOP / name
            folder = path.parent if path.suffix else path
            yield path
        elif name.startswith('test_'):
            yield folder / name


def test_the_table_has_rows_of_four_cells():
    assert len([*rows()]) > 15
    assert all(len(row) == 4 for row in rows())


@pytest.mark.parametrize('shown', TESTED)
def test_each_row_of_tested_parts_names_a_test(shown):
    found = [*files(shown)]
    assert found or shown.startswith('all tests'), shown
    for path in found:
        assert path.exists(), path
        # tools/test.sh --full runs all that is below these.
        assert path.relative_to(TOP).parts[1] in {'functional', 'integration'}


def nova_releases(state):
    """Numbers of the releases of Nova with a state of the page: ``tested``."""
    return {
        int(number)
        for part, version, is_state, _ in rows()
        if part == 'Nova' and is_state == state
        for number in re.findall(r'\b(\d\d)\b(?! *\.)', version)
    }


def test_the_releases_of_nova_are_those_that_the_code_takes():
    assert nova_releases('tested') == {
        *range(releases.OLDEST, releases.NEWEST + 1)
    }
    assert nova_releases('refused') == {releases.OLDEST - 1}
    assert nova_releases('not tested') == {releases.NEWEST + 1}


def test_each_older_release_is_run_with_its_own_constraints():
    (named,) = re.findall(r'^RELEASES=\((.*)\)$', RUN, re.MULTILINE)
    older = [*range(releases.OLDEST, releases.NEWEST)]
    assert [*map(int, named.split())] == older
    for number in older:
        text = (CLOUD / f'constraints-{number}.txt').read_text('utf-8')
        assert re.search(rf'^nova=={number}\.', text, re.MULTILINE)
