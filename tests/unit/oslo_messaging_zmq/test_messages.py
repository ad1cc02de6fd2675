# SPDX-License-Identifier: Apache-2.0

"""The format on the wire: what goes in comes out, and nothing else."""

import datetime as dt

from hypothesis import given
from hypothesis import strategies as st
import msgpack
import pytest

from oslo_messaging_zmq import errors
from oslo_messaging_zmq import messages

LIMIT = 2**23

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def request(**changes):
    fields = {
        'kind': messages.CALL,
        'msg_id': 'id',
        'exchange': 'x',
        'topic': 't',
        'server': 's',
        'client_timeout': None,
        'ctxt': {'user': 'u'},
        'message': {'method': 'm', 'args': {}},
    }
    return messages.RequestMessage(**fields | changes)


@given(ctxt=st.dictionaries(st.text(), plain), value=plain)
def test_a_request_comes_out_as_it_went_in(ctxt, value):
    sent = request(ctxt=ctxt, message={'value': value})
    assert (
        messages.decode_request(messages.encode_request(sent, LIMIT), LIMIT)
        == sent
    )


@given(result=plain, failure=st.none() | st.text())
def test_an_answer_comes_out_as_it_went_in(result, failure):
    for kind in (messages.REPLY, messages.HEARTBEAT, messages.REFUSED):
        sent = messages.Answer(kind, 'id', result, failure)
        payload = messages.encode_answer(sent, LIMIT)
        assert messages.decode_answer(payload, LIMIT) == sent


@pytest.mark.parametrize(
    ('value', 'expected'),
    [
        (2**64, 2**64),
        (-(2**100), -(2**100)),
        ('\udc80', '\udc80'),
        ({1: 2}, {'1': 2}),
        ({None: 2}, {'null': 2}),
        ((1, (2,)), [1, [2]]),
        ({3}, [3]),
        (dt.datetime(2026, 1, 2), '2026-01-02T00:00:00.000000'),
        (b'bytes', b'bytes'),
    ],
)
def test_a_value_that_msgpack_lacks_travels_as_by_json(value, expected):
    sent = request(message={'value': value})
    got = messages.decode_request(messages.encode_request(sent, LIMIT), LIMIT)
    assert got.message == {'value': expected}
    answer = messages.encode_answer(
        messages.Answer(messages.REPLY, 'i', value), LIMIT
    )
    assert messages.decode_answer(answer, LIMIT).result == expected


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def test_a_value_without_any_form_is_refused_by_the_sender():
    endless = []
    endless.append(endless)
    for value in (nested(100_000), endless):
        with pytest.raises(errors.UnsendableMessage):
            messages.encode_request(request(message={'v': value}), LIMIT)


@pytest.mark.parametrize('where', ['ctxt', 'message'])
def test_keys_that_are_bytes_are_refused_by_both_sides(where):
    sent = request(**{where: {'deep': [{b'key': 1}]}})
    with pytest.raises(errors.UnsendableMessage, match='keys must be'):
        messages.encode_request(sent, LIMIT)
    fields = [1, sent.kind, 'id', 'x', 't', 's', None, sent.ctxt, sent.message]
    with pytest.raises(errors.BadMessage, match='no msgpack'):
        messages.decode_request(msgpack.packb(fields), LIMIT)


def test_the_largest_message_fits_and_one_byte_more_does_not():
    sent = request(message={'v': 'x' * 1000})
    size = len(messages.encode_request(sent, LIMIT))
    assert (
        messages.decode_request(messages.encode_request(sent, size), size)
        == sent
    )
    with pytest.raises(errors.UnsendableMessage, match=str(size)):
        messages.encode_request(sent, size - 1)
    with pytest.raises(errors.BadMessage, match='more than'):
        messages.decode_request(messages.encode_request(sent, size), size - 1)


GOOD = msgpack.unpackb(messages.encode_request(request(), LIMIT))
ANSWER = msgpack.unpackb(
    messages.encode_answer(messages.Answer(messages.REPLY, 'i', 1), LIMIT)
)


def changed(fields, place, value):
    return msgpack.packb([*fields[:place], value, *fields[place + 1 :]])


@pytest.mark.parametrize(
    ('payload', 'why'),
    [
        (b'', 'no msgpack'),
        (b'\xc1', 'no msgpack'),
        (b'\x91' * 2000, 'no msgpack'),
        (b'\xdd\xff\xff\xff\xff', 'no msgpack'),
        (b'\xc6\xff\xff\xff\xff', 'no msgpack'),
        (msgpack.packb({}), 'no array'),
        (msgpack.packb([]), 'no array'),
        (msgpack.packb([1]), 'elements'),
        (changed(GOOD, 0, 2), 'version'),
        (changed(GOOD, 0, True), 'version'),
        (changed(GOOD, 0, 'x' * 1000), 'version'),
        (changed(GOOD, 1, 'call'), 'kind'),
        (changed(GOOD, 1, messages.REPLY), 'kind'),
        (changed(GOOD, 1, -1), 'kind'),
        (changed(GOOD, 1, messages.JSON + messages.CALL), 'byte string'),
        (changed(GOOD, 2, None), 'id'),
        (changed(GOOD, 3, b'x'), 'exchange'),
        (changed(GOOD, 4, 1), 'topic'),
        (changed(GOOD, 5, None), 'server'),
        (changed(GOOD, 6, 'soon'), 'timeout'),
        (changed(GOOD, 6, 0), 'timeout'),
        (changed(GOOD, 6, float('inf')), 'timeout'),
        (changed(GOOD, 6, float('nan')), 'timeout'),
        (changed(GOOD, 6, True), 'timeout'),
        (changed(GOOD, 7, None), 'context'),
        (changed(GOOD, 8, 'text'), 'message'),
        (changed(GOOD, 8, {1: 2}), 'no msgpack'),
        (changed(GOOD, 8, {'v': msgpack.ExtType(1, b'')}), 'extension'),
    ],
)
def test_a_payload_that_is_no_request_is_refused_with_its_reason(payload, why):
    with pytest.raises(errors.BadMessage, match=why):
        messages.decode_request(payload, LIMIT)


@pytest.mark.parametrize(
    ('payload', 'why'),
    [
        (changed(ANSWER, 1, messages.CALL), 'kind'),
        (changed(ANSWER, 4, 5), 'failure'),
        (changed(ANSWER, 1, messages.JSON + messages.REPLY), 'byte string'),
        (
            msgpack.packb(
                [1, messages.REPLY + messages.JSON, 'i', b'{}', None]
            ),
            'two',
        ),
        (
            msgpack.packb(
                [1, messages.REPLY + messages.JSON, 'i', b'{', None]
            ),
            'JSON',
        ),
        (
            msgpack.packb(
                [1, messages.REPLY + messages.JSON, 'i', b'[' * 10**5, None]
            ),
            'JSON',
        ),
        (msgpack.packb(GOOD), 'elements'),
    ],
)
def test_a_payload_that_is_no_answer_is_refused_with_its_reason(payload, why):
    with pytest.raises(errors.BadMessage, match=why):
        messages.decode_answer(payload, LIMIT)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_refused(payload):
    for decode in (messages.decode_request, messages.decode_answer):
        try:
            decode(payload, LIMIT)
        except errors.BadMessage:
            continue
