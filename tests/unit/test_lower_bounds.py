# SPDX-License-Identifier: Apache-2.0

"""The list of lowest versions is that of the package's own files."""

import re

import pytest

from tests.fixtures import lower_bounds


def test_every_library_of_every_extra_has_one_lower_bound():
    extras = {'api', 'client', 'cluster', 'lab', 'parquet', 'sim'}
    found = lower_bounds.pinned(extras)
    assert all(
        re.fullmatch(r'[\w.-]+(\[\w+\])?==[\d.]+', each) for each in found
    )
    names = [each.partition('==')[0] for each in found]
    assert {'SQLAlchemy', 'numpy', 'WebOb', 'scipy', 'kombu'} <= set(names)
    assert len(set(names)) == len(names)


def test_pip_takes_the_higher_of_two_bounds():
    both = lower_bounds.lowest({'api'})['oslo.context']
    assert both == max(
        ('5.7.1', '5.5'), key=lambda each: [int(n) for n in each.split('.')]
    )


@pytest.mark.parametrize('line', ['numpy', 'numpy==1.0', 'numpy<2'])
def test_a_library_without_a_lower_bound_is_named(monkeypatch, line):
    monkeypatch.setattr(lower_bounds, '_lines', lambda _: [line])
    with pytest.raises(ValueError, match='one lower bound'):
        lower_bounds.lowest(set())


def test_rooms_whose_tests_run_with_them_are_there():
    for room in lower_bounds.ROOMS:
        assert (lower_bounds.TOP / 'tests' / 'unit' / room).is_dir()
