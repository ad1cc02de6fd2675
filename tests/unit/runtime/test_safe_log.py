# SPDX-License-Identifier: Apache-2.0

import logging

import pytest

from nova_fairness.runtime import safe_log
from tests.unit.model import test_plain


@pytest.fixture
def installed():
    before = logging.getLogRecordFactory()
    logging.setLogRecordFactory(logging.LogRecord)
    safe_log.install()
    yield
    logging.setLogRecordFactory(before)


@pytest.mark.parametrize('text', test_plain.POISON)
@pytest.mark.parametrize('name', safe_log.OURS)
def test_a_message_of_ours_is_one_line(installed, caplog, name, text):
    log = logging.getLogger(f'{name}.some.module')
    for given in (text, ValueError(text), [text]):
        log.warning('server %s is told: %s', given, given)
    for record in caplog.records:
        assert record.getMessage().isprintable()


def test_log_messages_of_other_packages_are_unchanged(installed, caplog):
    logging.getLogger('nova.compute').warning('a\nb %s', 1)
    assert caplog.messages == ['a\nb 1']


def test_a_message_that_can_be_printed_keeps_its_arguments(installed, caplog):
    logging.getLogger('api_ext').warning('%s is %d', 'x', 7)
    [record] = caplog.records
    assert (record.msg, record.args) == ('%s is %d', ('x', 7))


def test_a_message_that_cannot_be_made_is_left_to_the_handlers(installed):
    make = logging.getLogRecordFactory()
    record = make('api_ext', 30, 'f', 1, '%d', ('x',), None)
    assert record.args == ('x',)


def test_the_safe_log_is_installed_once(installed):
    first = logging.getLogRecordFactory()
    safe_log.install()
    assert logging.getLogRecordFactory() is first


def test_a_record_of_another_process_is_made_as_usual(installed):
    """As privsep makes one of each message of its helper."""
    given = {'name': 'nova_fairness.apply', 'msg': 'a %s', 'args': ('b',)}
    assert logging.makeLogRecord(given).getMessage() == 'a b'


@pytest.mark.parametrize(
    ('given', 'told'),
    [
        (
            'The resource could not be found.<br /><br />\n\n\n',
            'nova: The resource could not be found.',
        ),
        (
            '<!DOCTYPE html><title>503</title><h1>Away</h1><p a="x">No.</p>',
            'nova: 503 Away No.',
        ),
        ('<Segment 3> of <name>', 'nova: <Segment 3> of <name>'),
    ],
)
def test_a_page_of_html_is_logged_without_its_tags(
    installed, caplog, given, told
):
    logging.getLogger('nova_fairness.x').warning('nova: %s', given)
    assert ' '.join(caplog.messages[0].split()) == told
