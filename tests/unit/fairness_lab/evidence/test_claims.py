# SPDX-License-Identifier: Apache-2.0

"""What is claimed is what is recorded, and what the manual tells."""

import dataclasses
import fractions
import math
import re

import hypothesis
from hypothesis import strategies as st
import pytest

from fairness_lab.evidence import claims
from nova_fairness import exception
from tests.fixtures import benchmark

SOURCE = benchmark.TOP / 'doc' / 'source'
ALL = claims.read().claims
BY_NAME = {each.name: each for each in ALL}


def passages(page):
    """Rows and paragraphs of a page, with the files that it includes."""
    text = page.read_text('utf-8')
    for name in re.findall(r'(?:include::|:file:) (\S+)', text):
        included = (page.parent / name).read_text('utf-8')
        if name.endswith('.csv'):
            included = included.replace('\n', '\n\n')
        text += f'\n\n{included}'
    # A row of a table begins with an asterisk, or is a line of numbers.
    parts = re.split(r'\n\n|\n(?= +\* - )|\n(?= +\d+, )', text)
    return [' '.join(part.replace('"', '').split()) for part in parts]


@pytest.fixture(params=ALL, ids=lambda claim: claim.name)
def claim(request):
    return request.param


def test_declared_numbers_equal_recorded_numbers(claim):
    assert claim.numbers(benchmark.RESULTS / claim.file) == claim.recorded


def test_the_page_shows_the_declared_numbers(claim):
    found = passages(SOURCE / f'{claim.page}.rst')
    assert '{value' in claim.told or '{percent' in claim.told
    for label, value in claim.recorded.items():
        told = claim.told.format(label=label, value=value, percent=100 * value)
        wanted = '.*'.join(map(re.escape, told.split('…')))
        assert any(re.search(wanted, part) for part in found), told


def test_a_claim_can_be_read_and_reproduced(claim):
    assert claim.document in claims.read().documents
    assert claim.says.endswith('.')
    assert claim.because.endswith('.')
    assert claim.better in ('', 'less', 'more')
    assert {*claim.published} <= {*claim.recorded}
    assert not claim.published or claim.better or claim.differs
    assert claim.cost_s > 0
    assert claim.needs or 'OUT' in claim.command
    if '-m pytest' in claim.command:
        assert (benchmark.TOP / claim.command.split()[-1]).is_file()


def test_the_check_finds_a_number_that_a_page_shows_differently(tmp_path):
    page = tmp_path / 'page.rst'
    page.write_text('Of ten\ncases 4 hold.\n\n   * - a\n     - 5\n   * - b\n')
    assert passages(page) == ['Of ten cases 4 hold.', '* - a - 5', '* - b']


@pytest.mark.parametrize(
    ('content', 'where'),
    [
        ('{"rows": [{"name": "b", "n": 1}]}', 'result.json'),
        ('{"rows": [{"name": "a", "n": "many"}]}', 'result.json'),
        ('{', 'result.json'),
        ('name,n\nb,1\n', 'result.csv'),
    ],
)
def test_a_result_without_the_number_is_named(tmp_path, content, where):
    path = tmp_path / where
    path.write_text(content)
    top = [] if path.suffix == '.csv' else ['rows']
    claim = dataclasses.replace(
        BY_NAME['own-victims'],
        at=[*top, {'name': '$'}, 'n'],
        recorded={'a': 1.0},
    )
    with pytest.raises(exception.SimError, match=where):
        claim.numbers(path)


def declared(number, within):
    return dataclasses.replace(
        BY_NAME['own-victims'], recorded={'a': number}, within=within
    )


# In thousandths: most decimals are rounded, and so are their differences.
THOUSANDTHS = st.integers(-(10**6), 10**6)
TOLERANCES = st.integers(0, 10**6)


@hypothesis.given(THOUSANDTHS, TOLERANCES, st.sampled_from([-1, 1]))
@hypothesis.example(700, 100, 1)
def test_a_number_at_the_edge_of_its_tolerance_holds(number, within, side):
    claim = declared(number / 1000, within / 1000)
    edge = number + side * within
    assert claim.holds('a', (edge - side) / 1000) == (within > 0)
    assert claim.holds('a', edge / 1000)
    assert not claim.holds('a', (edge + side) / 1000)


@hypothesis.given(
    st.floats(-1e6, 1e6), st.floats(0, 1e6), st.floats(-1e7, 1e7)
)
def test_a_number_holds_within_its_tolerance(number, within, found):
    exact, is_tolerated = fractions.Fraction, fractions.Fraction(within)
    beyond = abs(exact(found) - exact(number)) - is_tolerated
    # Rounding is tolerated at the ninth digit, and no more.
    rounding = exact(1, 10**9) * max(abs(exact(found)), abs(exact(number)))
    claim = declared(number, within)
    if beyond <= 0:
        assert claim.holds('a', found)
    if beyond > 2 * rounding:
        assert not claim.holds('a', found)


@hypothesis.given(THOUSANDTHS, THOUSANDTHS, TOLERANCES)
def test_the_tolerance_is_symmetric(one, two, within):
    one, two, within = one / 1000, two / 1000, within / 1000
    there = declared(one, within).holds('a', two)
    assert there == declared(two, within).holds('a', one)


@pytest.mark.parametrize('number', [math.nan, math.inf, -math.inf])
def test_infinite_and_missing_numbers_never_hold(number):
    assert not declared(1.0, 10.0**9).holds('a', number)


@hypothesis.given(THOUSANDTHS, THOUSANDTHS, TOLERANCES)
def test_a_recorded_number_must_equal_the_declared_one_exactly(
    one, two, within
):
    claim = declared(one / 1000, within / 1000)
    assert claim.is_on_record('a', two / 1000) == (one == two)


def test_a_number_is_compared_with_the_published_number():
    claim = dataclasses.replace(
        BY_NAME['000-migrations'], published={'a': 4}, better='less'
    )
    found = [claim.verdict('a', number) for number in (3, 4, 5)]
    assert found == ['better', 'equal', 'worse']
    more = dataclasses.replace(claim, better='more')
    assert more.verdict('a', 3) == 'worse'
    other = dataclasses.replace(claim, differs='Others are drawn.')
    assert other.verdict('a', 3) == 'not comparable'
    assert claim.verdict('b', 3) == ''


def test_claims_are_chosen_by_name_and_by_document():
    evidence = claims.read()
    assert evidence.chosen([]) == list(ALL)
    found = evidence.chosen(['own-victims', '000', '000-drawn'])
    assert [each.name for each in found] == [
        *(each.name for each in ALL if each.document == '000'),
        'own-victims',
    ]


def test_an_unknown_claim_is_refused_with_the_known_ones():
    with pytest.raises(exception.UnknownParameter) as caught:
        claims.read().chosen(['000', '001'])
    assert "'001'" in str(caught.value)
    assert all(name in str(caught.value) for name in ('004', *BY_NAME))
