# SPDX-License-Identifier: Apache-2.0

"""Users read the pages of the Horizon in a real cloud, in a real browser.

:mod:`tests.functional.test_cloud_dashboard` brings the cloud up and runs this
in the virtual environment of Horizon.
"""

import datetime as dt
import json
import os
import re

import pytest

from tests.fixtures import patience
from tests.integration.dashboard import browser
from tests.integration.dashboard import test_pages

CLOUD = json.loads(os.environ['FAIRNESS_CLOUD'])
"""URL of Horizon (``site``), ``password``, and ``servers`` of alice: UUIDs by
name."""

SLOW, WAITS = 'alice-1', 'alice-waits'
ESTIMATE = re.compile(r'(\d{4}-\d\d-\d\d \d\d:\d\d) UTC')
REQUESTS = 'project/fairness_requests/'
DETAIL = f'{REQUESTS}{CLOUD["servers"][WAITS]}/'


@pytest.fixture
def browser_of():
    def log_in(user):
        return browser.logged_in_browser(
            CLOUD['site'], user, CLOUD['password']
        )

    return log_in


def part_of(text, name):
    """What a page of servers tells of one of them."""
    found = re.split(r'\n(?=[\w-]+ [0-9a-f]{8}-)', text)
    [told] = [each for each in found if each.startswith(f'{name} ')]
    return told


def row_of(page, name):
    """Text of the row of a table that names a server."""
    path = f'//tr[th[contains(., "{name}")]]'
    return page.driver.find_element('xpath', path).text


def test_a_member_of_another_project_sees_none_of_it(browser_of):
    secrets = [*CLOUD['servers'], *CLOUD['servers'].values()]
    assert {SLOW, WAITS} <= set(secrets)
    paths = (
        'project/fairness_servers/',
        REQUESTS,
        f'{REQUESTS}?all=1',
        'project/fairness_share/',
        'project/fairness_starts/',
        *test_pages.OF_OPERATORS,
    )
    with browser_of('carol') as page:
        for path in paths:
            page.open(path)
            assert [each for each in secrets if each in page.source] == []
        assert 'carol-waits' in page.open(REQUESTS)
        text = page.open(DETAIL)
        assert 'could not be found' in text
        assert 'Cancel' not in text
        assert WAITS not in page.source


def test_an_operator_sees_both_hosts_and_the_queue(browser_of):
    with browser_of('admin') as page:
        text = page.open('admin/fairness_board/')
        assert 'cmp1' in text
        assert 'cmp2' in text
        text = page.open('admin/fairness_queue/')
        assert CLOUD['servers'][WAITS] in text
        for project in ('alpha', 'beta', 'gamma'):
            assert f' {project}\n' in text

        def are_shown():
            text = page.open('admin/fairness_hosts/?host=cmp1')
            rows = [each.split()[:1] for each in text.splitlines()]
            return ['alice'] in rows and ['bob'] in rows

        # An agent may take longer to answer than Horizon waits.
        patience.wait_for_value(are_shown)


def test_alice_sees_a_slow_server_and_cancels_one_that_waits(browser_of):
    with browser_of('alice') as page:

        def is_slow():
            text = page.open('project/fairness_servers/')
            return 'slowed down by sharing' in part_of(text, SLOW)

        patience.wait_for_value(is_slow)
        assert 'Weight of' in part_of(page.text, SLOW)
        assert part_of(page.text, SLOW).count('slowed down by sharing') == 1
        assert 'slowed down' not in part_of(page.text, WAITS)

        def is_estimated():
            page.open(REQUESTS)
            return ESTIMATE.search(row_of(page, WAITS))

        patience.wait_for_value(is_estimated)
        told = row_of(page, WAITS)
        assert 'VCPU' in told
        now = dt.datetime.now(dt.UTC)
        starts = dt.datetime.fromisoformat(f'{ESTIMATE.search(told)[1]}Z')
        assert starts > now - dt.timedelta(minutes=1)
        text = page.open(DETAIL)
        assert 'it starts at about' in text.lower()
        page.press(f'Cancel {WAITS}')
        page.press('Cancel the request')
        assert 'Done.' in page.text
        patience.wait_for_value(lambda: WAITS not in page.open(REQUESTS))
        assert SLOW in page.open('project/fairness_servers/')
