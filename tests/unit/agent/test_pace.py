# SPDX-License-Identifier: Apache-2.0

"""When rounds begin."""

import pytest

from nova_fairness.agent import service


@pytest.mark.parametrize(
    ('finished_s', 'missed', 'next_s'),
    [
        (100.5, 0, 110.0),
        (109.99, 0, 110.0),
        (110.0, 0, 110.0),
        (110.5, 1, 120.0),
        (120.0, 1, 120.0),
        (155.0, 5, 160.0),
    ],
    ids=[
        'a short round waits for the next time',
        'a round may take almost the interval',
        'a round may take the interval',
        'a round a little late leaves one out',
        'a round that ends on time is not late',
        'a very late round leaves out all whose time is over',
    ],
)
def test_late_rounds_never_pile_up(finished_s, missed, next_s):
    pace = service.Pace(10.0, 100.0)
    assert pace.advance(finished_s) == missed
    assert pace.next_s == next_s
