# SPDX-License-Identifier: Apache-2.0

"""Managers and operators change what a real cloud does, in a real browser.

:mod:`tests.functional.test_cloud_dashboard` brings the cloud up, and runs each
of these in the virtual environment of Horizon. It asks the command line
afterwards whether the cloud has it.
"""

import json
import os

import pytest

from tests.fixtures import patience
from tests.integration.dashboard import browser
from tests.integration.dashboard import test_launch

CLOUD = json.loads(os.environ['FAIRNESS_CLOUD'])
"""URL of Horizon (``site``), ``password``, UUIDs of ``servers`` by name, a
``plan`` that waits for approval, and ``account``, of alice in her project."""

SHARE, QUEUE = 'project/fairness_share/', 'admin/fairness_queue/'
METRIC = 'GreedinessMetric'
FIRST = 'bob-waits'


@pytest.fixture
def opened():
    def log_in(user):
        return browser.opened(CLOUD['site'], user, CLOUD['password'])

    return log_in


def of_row(page, label, name):
    """Press a button of the row of a table that names a server."""
    path = f'//tr[th[contains(., "{name}")]]//button[contains(., "{label}")]'
    page.driver.find_element('xpath', path).click()


def share_form(page):
    """CSS selector of the field with the share of alice."""
    form = f'form:has(input[value="{CLOUD["account"]}"])'
    assert page.find(f'{form} [name=share]').is_displayed()
    return f'{form} [name=share]'


def test_a_manager_previews_and_divides_the_share(opened):
    with opened('mary') as page:
        patience.wait_for_value(lambda: CLOUD['account'] in page.open(SHARE))
        before = page.find(share_form(page)).get_attribute('value')
        assert before != '3.0'
        page.fill(share_form(page), '3')
        page.press('Preview')
        assert 'Preview, nothing was changed: of 2 requests' in page.text
        value = page.find(share_form(page)).get_attribute('value')
        assert value == before
        page.fill(share_form(page), '3')
        page.press('Set')

        def is_set():
            page.open(SHARE)
            found = page.find(share_form(page)).get_attribute('value')
            return found == '3.0'

        patience.wait_for_value(is_set)


def test_an_operator_puts_a_request_first(opened):
    with opened('admin') as page:
        page.open(QUEUE)
        assert '(first)' not in page.text
        of_row(page, 'First', FIRST)
        patience.wait_for_value(lambda: '1 (first)' in page.open(QUEUE))


def test_an_operator_previews_and_sets_a_metric(opened):
    with opened('admin') as page:
        page.open('admin/fairness_choices/?host=cmp1')
        assert 'Would get' in page.text
        rows = [line.split()[:1] for line in page.text.splitlines()]
        assert ['alice'] in rows
        page.press(f'Set on all hosts {METRIC}')
        assert 'Done.' in page.text


def test_an_operator_approves_a_plan(opened):
    with opened('admin') as page:
        page.open('admin/fairness_plans/')
        assert CLOUD['plan'] in page.source
        page.open(f'admin/fairness_plans/{CLOUD["plan"]}/')
        page.press('Approve')
        assert 'Done.' in page.text


def test_users_read_in_the_dialog_which_flavors_start(opened):
    with opened('alice') as page:
        test_launch.dialog(page, 'Flavor')
        found = test_launch.said(page, 'small', 'shares')
        assert [each[:5] for each in found] == ['waits', 'waits']


def test_others_see_nothing_of_plans_and_shares(opened):
    secrets = [CLOUD['plan'], CLOUD['account'], *CLOUD['servers'].values()]
    with opened('carol') as page:
        for path in (
            SHARE,
            QUEUE,
            'admin/fairness_tree/',
            'admin/fairness_plans/',
            f'admin/fairness_plans/{CLOUD["plan"]}/',
            'admin/fairness_choices/?host=cmp1',
        ):
            page.open(path)
            shown = page.source.replace(path, '')
            assert [each for each in secrets if each in shown] == [], path
