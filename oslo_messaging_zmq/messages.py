# SPDX-License-Identifier: Apache-2.0

"""Messages between peers, as bytes: pure reading and writing.

Every message is one msgpack array whose first elements are the version of
this format and the kind of the message::

    request  [version, kind, msg_id, exchange, topic, server,
              client_timeout, ctxt, message]
    answer   [version, kind, msg_id, result, failure]

msgpack has neither integers beyond 64 bits nor lone surrogates, and keys of
a mapping must be text. A body with such things travels as JSON, like in
other drivers (keys become text): ``JSON`` is added to the kind, and the body
is one byte string, in place of ``message`` or ``result``.

A message becomes only plain containers, numbers and text, so reading one runs
no code of its sender. Reading is bounded: the size is looked at first, no
container may claim more elements than the message has bytes, and msgpack's
reader takes at most 1024 containers within each other.
"""

from collections.abc import Sequence
import dataclasses
import functools
import json
import math
from typing import Any
from typing import NoReturn

import msgpack
from oslo_serialization import jsonutils

from oslo_messaging_zmq import errors

VERSION = 1

CALL = 1
CAST = 2
FANOUT = 3
REPLY = 4
HEARTBEAT = 5
REFUSED = 6

JSON = 64
"""Number added to the kind of a message whose body is JSON."""

Address = tuple[str, str, str]
"""Exchange, topic and server."""

_REQUESTS = frozenset({CALL, CAST, FANOUT})
_ANSWERS = frozenset({REPLY, HEARTBEAT, REFUSED})
_UNREADABLE = (ValueError, TypeError, OverflowError, RecursionError)


@dataclasses.dataclass(slots=True)
class RequestMessage:
    """A request of a client to a listener.

    :param kind: ``CALL``, ``CAST`` or ``FANOUT``.
    :param msg_id: identifier that the answer repeats; empty without an answer.
    :param server: empty if any server of the topic may process it.
    :param client_timeout: seconds without a heartbeat after which the client
        stops waiting; ``None`` if it needs no heartbeats.
    :param ctxt: the request's context.
    :param message: method, arguments and version, from oslo.messaging.
    """

    kind: int
    msg_id: str
    exchange: str
    topic: str
    server: str
    client_timeout: float | None
    ctxt: dict[str, Any]
    message: dict[str, Any]

    @property
    def address(self) -> Address:
        """The exchange, topic and server of the request."""
        return self.exchange, self.topic, self.server


@dataclasses.dataclass(slots=True)
class Answer:
    """An answer of a listener to a call.

    :param kind: ``REPLY``, ``HEARTBEAT`` or ``REFUSED``; a refused call was
        not executed and may be sent to another listener.
    :param failure: a serialised exception, or ``None``.
    """

    kind: int
    msg_id: str
    result: Any = None
    failure: str | None = None


def encode_request(request: RequestMessage, limit: int) -> bytes:
    """Encode a request.

    :param limit: largest size of a message in bytes.
    :raises UnsendableMessage: if it cannot be encoded, or is too large.
    """
    head = [
        VERSION,
        request.kind,
        request.msg_id,
        request.exchange,
        request.topic,
        request.server,
        request.client_timeout,
    ]
    body = [request.ctxt, request.message]
    try:
        payload = _pack(head + body)
    except _UNREADABLE:
        head[1] = request.kind + JSON
        payload = _pack_with_json([*head, None], body)
    return _check_size(payload, limit)


def encode_answer(answer: Answer, limit: int) -> bytes:
    """Encode an answer.

    :param limit: largest size of a message in bytes.
    :raises UnsendableMessage: if it cannot be encoded, or is too large.
    """
    head = [VERSION, answer.kind, answer.msg_id]
    try:
        payload = _pack([*head, answer.result, answer.failure])
    except _UNREADABLE:
        head[1] = answer.kind + JSON
        payload = _pack_with_json(
            head, [answer.result, answer.failure], [None]
        )
    return _check_size(payload, limit)


def decode_request(payload: bytes, limit: int) -> RequestMessage:
    """Decode a request.

    :param limit: largest size of a message in bytes.
    :raises BadMessage: if it is no request.
    """
    fields = _unpack_checked(payload, limit, 9, 'request')
    kind = fields[1]
    if kind >= JSON:
        fields[1] = kind = kind - JSON
        fields[7:] = _parse_json_body(fields[8])
    if kind not in _REQUESTS:
        _raise_bad_message(f'kind {kind} is not that of a request')
    _check_request(*fields[3:])
    return RequestMessage(*fields[1:])


def decode_answer(payload: bytes, limit: int) -> Answer:
    """Decode an answer.

    :param limit: largest size of a message in bytes.
    :raises BadMessage: if it is no answer.
    """
    fields = _unpack_checked(payload, limit, 5, 'answer')
    if fields[1] >= JSON:
        fields[1] -= JSON
        fields[3:] = _parse_json_body(fields[3])
    answer = Answer(*fields[1:])
    if answer.kind not in _ANSWERS:
        _raise_bad_message(f'kind {answer.kind} is not that of an answer')
    if not isinstance(answer.failure, str | None):
        _raise_bad_message('the failure is neither text nor absent')
    return answer


def _pack(fields: Sequence[Any]) -> bytes:
    payload: bytes = msgpack.packb(fields, default=jsonutils.to_primitive)
    # Packing does not look at keys, and the reader refuses all but text.
    # Reading it here costs less than looking at every key in Python.
    _read(payload)
    return payload


def _with_text_keys(mapping: dict[Any, Any]) -> dict[str, Any]:
    ''.join(mapping)  # the cheapest way to look at all of them
    return mapping


def _no_extension(code: int, content: bytes) -> NoReturn:
    msg = f'extension type {code} of {len(content)} bytes'
    raise ValueError(msg)


_read = functools.partial(
    msgpack.unpackb, ext_hook=_no_extension, object_hook=_with_text_keys
)


def _pack_with_json(
    head: Sequence[Any], body: Sequence[Any], tail: Sequence[Any] = ()
) -> bytes:
    try:
        text = jsonutils.dumps(body)
        payload: bytes = msgpack.packb([*head, text.encode('ascii'), *tail])
    except _UNREADABLE as error:
        msg = f'the message cannot be sent: {error}'
        raise errors.UnsendableMessage(msg) from error
    return payload


def _parse_json_body(body: Any) -> list[Any]:
    if not isinstance(body, bytes):
        _raise_bad_message('the JSON body is no byte string')
    try:
        pair = json.loads(body)
    except _UNREADABLE as error:
        _raise_bad_message(f'the body is no JSON: {error}')
    if not isinstance(pair, list) or len(pair) != 2:
        _raise_bad_message('the JSON body is no array of two')
    return pair


def _check_size(payload: bytes, limit: int) -> bytes:
    if len(payload) > limit:
        msg = (
            f'the message has {len(payload)} bytes; [oslo_messaging_zmq]'
            f' max_message_size is {limit}'
        )
        raise errors.UnsendableMessage(msg)
    return payload


def _unpack_checked(
    payload: bytes, limit: int, count: int, what: str
) -> list[Any]:
    if len(payload) > limit:
        _raise_bad_message(f'{len(payload)} bytes, more than {limit}')
    try:
        fields = _read(payload)
    # The unpacker has errors of its own that are no ValueError.
    except (*_UNREADABLE, msgpack.UnpackException) as error:
        _raise_bad_message(f'no msgpack: {type(error).__name__}: {error}')
    if not isinstance(fields, list) or not fields:
        _raise_bad_message('no array')
    if type(fields[0]) is not int or fields[0] != VERSION:
        # Never its text: that may be long, and hold anything.
        given = fields[0] if type(fields[0]) is int else type(fields[0])
        _raise_bad_message(f'format version {given}, expected {VERSION}')
    if len(fields) != count:
        _raise_bad_message(
            f'{len(fields)} elements, expected {count} of a(n) {what}'
        )
    if type(fields[1]) is not int or type(fields[2]) is not str:
        _raise_bad_message('kind or id of the message have a wrong type')
    return fields


def _check_request(
    exchange: Any,
    topic: Any,
    server: Any,
    timeout: Any,
    ctxt: Any,
    message: Any,
) -> None:
    # Written out: this is done for every message.
    if not (type(exchange) is type(topic) is type(server) is str):
        _raise_bad_message('exchange, topic or server are no text')
    if not (type(ctxt) is type(message) is dict):
        _raise_bad_message('context or message are no mapping')
    if timeout is not None and not (
        type(timeout) in {int, float}
        and timeout > 0
        and math.isfinite(timeout)
    ):
        _raise_bad_message('the client timeout is no positive number')


def _raise_bad_message(why: str) -> NoReturn:
    raise errors.BadMessage(why)
