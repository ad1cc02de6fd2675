# SPDX-License-Identifier: Apache-2.0

"""What the manual says was measured is what was recorded."""

import pytest

from tests.fixtures import benchmark


@pytest.mark.parametrize(
    'name',
    [
        'all_at_once_page',
        'api_latency_page',
        'exchange_page',
        'hostile_peer_page',
        'queue_cost_page',
        'scenarios_page',
        'sizing_page',
    ],
)
def test_the_page_is_made_of_what_is_recorded(name):
    page = benchmark.load(name)
    assert page.PAGE.read_text() == page.recorded()
