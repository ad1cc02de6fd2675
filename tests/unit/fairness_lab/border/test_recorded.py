# SPDX-License-Identifier: Apache-2.0

"""Runs that are recorded keep what was asked of the border."""

import json
import pathlib

import pytest

PLACE = pathlib.Path(__file__).parents[4] / 'benchmarks/results/border'


def recorded(name):
    return json.loads((PLACE / f'{name}.json').read_text('utf-8'))


@pytest.mark.parametrize(
    ('name', 'within'), [('both', True), ('apart', False)]
)
def test_use_of_both_sides_is_within_five_points_of_pledges(name, within):
    result = recorded(name)
    assert result['shares_of_both_sides'] is within
    [run] = result['runs']
    assert run['settled_s'] == 2 * result['half_life_s']
    assert (run['pledge_error']['largest'] <= 0.05) is within
