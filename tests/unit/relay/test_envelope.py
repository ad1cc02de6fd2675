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
    found = read(body(method=method))
    assert (found.uuid, found.method) == ('u1', method)


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
def test_all_other_messages_pass(text):
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


def spec(**hints):
    return {
        'nova_object.name': 'RequestSpec',
        'nova_object.data': {'scheduler_hints': hints, 'num_instances': 1},
    }


def arguments(text):
    return json.loads(json.loads(text)['oslo.message'])['args']


FORGED = {'_nova_check_type': ['rebuild']}


@pytest.mark.parametrize(
    ('given', 'left'),
    [
        pytest.param(
            {'request_specs': [spec(**FORGED, group=['g']), spec(**FORGED)]},
            {'request_specs': [spec(group=['g']), spec()]},
            id='build',
        ),
        pytest.param(
            {'request_spec': spec(**FORGED), 'instance': {}},
            {'request_spec': spec(), 'instance': {}},
            id='unshelve',
        ),
        pytest.param(
            {'request_spec': spec(_nova_next=1)},
            {'request_spec': spec()},
            id='another',
        ),
    ],
)
def test_hints_that_only_nova_may_set_are_removed(given, left):
    text, removed = envelope.without_reserved_hints(body(args=given))
    assert arguments(text) == left
    assert len(removed) == 1
    assert envelope.without_reserved_hints(text) == (text, ())


@pytest.mark.parametrize(
    'given',
    [
        {'request_specs': [spec(group=['_nova_check_type'])]},
        {'request_specs': [spec(my_nova_check_type=1)]},
        {'instance': {'metadata': FORGED}},
        *(
            {'request_spec': each, 'request_specs': each, 'x': '_nova_'}
            for each in (None, 7, [7], {'nova_object.data': 7}, spec())
        ),
        {'request_spec': {'nova_object.data': {'scheduler_hints': [1]}},
         'x': '_nova_'},
        ['_nova_check_type'],
    ],
)  # fmt: skip
def test_a_cast_without_reserved_hints_stays_as_it_is(given):
    text = body(args=given)
    assert envelope.without_reserved_hints(text) == (text, ())


def server(uuid, name):
    return {'nova_object.data': {'uuid': uuid, 'display_name': name}}


def build(*servers):
    builds = [{'nova_object.data': {'instance': each}} for each in servers]
    return {'build_requests': builds}


@pytest.mark.parametrize(
    ('arguments', 'named'),
    [
        (build(server('u', 'web-1')), 'web-1 (u)'),
        (build(server('u', 'a'), server('v', 'b')), 'a (u), b (v)'),
        ({'instance': server('u', 'web-1')}, 'web-1 (u)'),
        (build(server('u', 'two\nlines')), 'two\\nlines (u)'),
        (build(server('u', None)), 'u'),
        ({}, ''),
        (None, ''),
        ({'build_requests': 7, 'instance': 'x'}, ''),
        (build(None, {'nova_object.data': []}), ''),
    ],
)
def test_a_cast_names_its_servers_for_the_log(arguments, named):
    assert read(body(args=arguments)).named == named
