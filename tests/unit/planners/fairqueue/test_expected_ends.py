# SPDX-License-Identifier: Apache-2.0

import pytest

from nova_fairness.model import cluster
from nova_fairness.planners.fairqueue import expected_ends

TEN = tuple(float(n) for n in range(10, 110, 10))


@pytest.mark.parametrize(
    ('age_s', 'quantile', 'lasts'),
    [
        (0, expected_ends.MEDIAN, 50),
        (0, expected_ends.LATE, 90),
        (0, 1, 100),
        # Those that are younger in the end say nothing of it any more.
        (55, expected_ends.MEDIAN, 80),
        (95, expected_ends.MEDIAN, 100),
        (100, expected_ends.MEDIAN, None),
        (500, expected_ends.LATE, None),
    ],
)
def test_expected_lifetimes_are_those_of_older_servers(age_s, quantile, lasts):
    assert expected_ends.expected_lifetime(TEN, age_s, quantile) == lasts


def test_too_few_lifetimes_give_no_expectation():
    assert (
        expected_ends.expected_lifetime(
            TEN[: expected_ends.LEAST], 0, expected_ends.MEDIAN
        )
        == 30
    )
    assert (
        expected_ends.expected_lifetime(
            TEN[: expected_ends.LEAST - 1], 0, expected_ends.MEDIAN
        )
        is None
    )
    assert expected_ends.expected_lifetime((), 0, expected_ends.MEDIAN) is None


@pytest.mark.parametrize(
    ('ends_at', 'at'),
    [
        (None, 60.0),
        (200.0, 60.0),
        (40.0, 40.0),
        # It should have ended: it does now.
        (20.0, 30.0),
    ],
)
def test_the_expected_end_is_at_most_the_time_limit(ends_at, at):
    amounts = (('VCPU', 1),)
    lifetimes = {cluster.kind_of('p', amounts): TEN}
    server = cluster.Running('h', 'p', amounts, 0.0, ends_at=ends_at)
    assert expected_ends.expected_end(server, lifetimes, 30.0, 0.4) == at
    alone = None if ends_at is None else max(ends_at, 30.0)
    assert expected_ends.expected_end(server, {}, 30.0, 0.4) == alone
