# SPDX-License-Identifier: Apache-2.0

import json

import pytest

from nova_fairness import exception
from nova_fairness.relay import envelope
from nova_fairness.relay import jobs

BUILD = 'schedule_and_build_instances'


def body(version='2.0', inner=None, **message):
    message = {'method': BUILD, '_unique_id': 'u1', 'args': {}, **message}
    text = json.dumps(message) if inner is None else inner
    return json.dumps({'oslo.version': version, 'oslo.message': text}).encode()


def read(text):
    return envelope.cast_to_hold(text, jobs.HELD_METHODS)


@pytest.mark.parametrize('method', jobs.HELD_METHODS)
def test_a_cast_that_takes_room_is_found(method):
    assert read(body(method=method)) == ('u1', method)


@pytest.mark.parametrize(
    'text',
    [
        body(method='rebuild_instance'),
        body(method='live_migrate_instance', args={'hint': BUILD}),
        body(_msg_id='somebody waits'),
        b'',
        b'\xff\xfe not even text',
    ],
)
def test_everything_else_passes(text):
    assert read(text) is None


@pytest.mark.parametrize(
    'text',
    [
        BUILD.encode(),
        b'[' * 100_000 + BUILD.encode(),
        b'{"oslo.version": "2.0", "x": "schedule_and_build_instances"}',
        json.dumps([BUILD]).encode(),
        body(version='3.0'),
        body(inner=f'"{BUILD}"'),
        body(inner=f'{{"method": "{BUILD}"'),
        body(_unique_id=None),
        body(_unique_id=''),
        body(_unique_id='x' * 65),
    ],
)
def test_an_unreadable_text_is_named_without_showing_it(text):
    with pytest.raises(exception.Unreadable) as caught:
        read(text)
    assert '_context' not in str(caught.value)
    assert len(str(caught.value)) < 200
