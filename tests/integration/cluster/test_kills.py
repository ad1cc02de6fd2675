# SPDX-License-Identifier: Apache-2.0

"""Nothing is lost and nothing starts twice, whatever dies."""

import pytest

from tests.fixtures import killing

_LONG = [
    pytest.param('mariadb', 100, id='mariadb'),
    pytest.param('sqlite', 100, id='sqlite'),
]


def test_a_kill_at_any_write_loses_and_doubles_nothing():
    with killing.cloud('mariadb', seed=1) as cloud:
        counts = killing.runs(cloud, 6)
    assert counts.is_clean, counts
    assert counts.requests == 6 * killing.REQUESTS


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(('database', 'count'), _LONG)
def test_many_kills_lose_and_double_nothing(database, count):
    with killing.cloud(database, seed=2) as cloud:
        counts = killing.runs(cloud, count)
    assert counts.is_clean, counts
    assert counts.struck > count / 2, counts
