# SPDX-License-Identifier: Apache-2.0

"""What the log of nova-api says of names that others chose."""

import json
import logging

import pytest

from api_ext import routes
from nova_fairness import exception
from tests.unit.api_ext import fake_cloud
from tests.unit.api_ext import test_tokens
from tests.unit.model import test_plain


@pytest.fixture
def safe_cloud(tmp_path):
    """The interface, with its door of the log."""
    before = logging.getLogRecordFactory()
    logging.setLogRecordFactory(logging.LogRecord)
    yield fake_cloud.FakeCloud(tmp_path)
    logging.setLogRecordFactory(before)


def poisoned(value, text):
    """The body with a text in the place of each one."""
    if isinstance(value, dict):
        return {key: poisoned(each, text) for key, each in value.items()} | {
            text: text
        }
    return text if isinstance(value, str) else value


def same_keys(value, text):
    if isinstance(value, dict):
        return {key: same_keys(each, text) for key, each in value.items()}
    return text if isinstance(value, str) else value


@pytest.mark.repeated
@pytest.mark.parametrize('text', test_plain.POISON)
def test_no_name_that_is_sent_makes_a_second_line(safe_cloud, caplog, text):
    caplog.set_level(logging.DEBUG)
    for route in routes.ROUTES:
        url, body, _ = test_tokens.ROUTES[route.name]
        for sent in (same_keys(body, text), poisoned(body, text)):
            raw = None if sent is None else json.dumps(sent).encode()
            safe_cloud.ask('admin', route.method, f'/fairness{url}', raw)
    ours = [
        each
        for each in caplog.records
        if each.name.startswith(('api_ext', 'nova_fairness'))
    ]
    assert len(ours) > 10
    for record in ours:
        assert record.getMessage().isprintable(), record


@pytest.mark.parametrize('text', test_plain.POISON)
def test_no_error_of_a_service_makes_a_second_line(safe_cloud, caplog, text):
    caplog.set_level(logging.DEBUG)
    for error in (exception.StoreAway, exception.IllegalStep,
                  exception.BadShares, exception.UnknownHost):  # fmt: skip
        safe_cloud.requests.operations.error = error(text)
        for url in ('capacity', 'plans', 'partition', 'shares'):
            safe_cloud.ask('admin', 'GET', f'/fairness/{url}')
    for record in caplog.records:
        if record.name.startswith(('api_ext', 'nova_fairness')):
            assert record.getMessage().isprintable(), record
    assert caplog.records
