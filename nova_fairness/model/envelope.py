# SPDX-License-Identifier: Apache-2.0

"""Parser of messages of oslo.messaging: a JSON object that contains a JSON
text.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import json
from typing import Any

from nova_fairness import exception
from nova_fairness.model import plain

_VERSION = '2.'


def parse_message(body: bytes) -> Mapping[str, Any]:
    """Parse the inner message. Errors do not show its content.

    :param body: bytes as they were received.
    :raises Unreadable: if the message does not have the known form.
    """
    return _parse_envelope(body)[1]


def with_message(body: bytes, inner: Mapping[str, Any]) -> bytes:
    """Return the envelope with another inner message; raises the errors of
    :func:`parse_message`.
    """
    envelope, _ = _parse_envelope(body)
    return json.dumps({**envelope, 'oslo.message': json.dumps(inner)}).encode()


def named_servers(arguments: Any) -> list[str]:
    """Return names and UUIDs of the servers of a build or an unshelve, for the
    log.

    :param arguments: arguments of the method; servers of another form are
        omitted.
    """
    given = _mapping_or_empty(arguments)
    builds = given.get('build_requests')
    found = [
        _object_fields(each).get('instance')
        for each in (builds if isinstance(builds, list) else ())
    ]
    servers = map(_object_fields, (*found, given.get('instance')))
    return [_name_and_uuid(each) for each in servers if each.get('uuid')]


def scheduler_hints(arguments: Any) -> Iterator[dict[str, Any]]:
    """Yield the hints of each request of a build or an unshelve.

    :param arguments: arguments of the method; requests of another form have no
        hints.
    """
    given = _mapping_or_empty(arguments)
    listed = given.get('request_specs')
    specs = listed if isinstance(listed, list) else []
    for spec in (*specs, given.get('request_spec')):
        yield _mapping_or_empty(_object_fields(spec).get('scheduler_hints'))


def _parse_envelope(
    body: bytes,
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    try:
        envelope = json.loads(body)
        version = envelope['oslo.version']
        inner = json.loads(envelope['oslo.message'])
    except exception.UNREADABLE as error:
        raise exception.Unreadable(
            f'a message is not of the form of oslo.messaging:'
            f' {type(error).__name__}'
        ) from None
    if not isinstance(inner, dict) or not str(version).startswith(_VERSION):
        raise exception.Unreadable(
            f'a message must be of version {_VERSION}x and an object'
        )
    return envelope, inner


def _name_and_uuid(server: Mapping[str, Any]) -> str:
    name, uuid = server.get('display_name'), server['uuid']
    return plain.line(f'{name} ({uuid})' if name else uuid)


def _object_fields(value: Any) -> dict[str, Any]:
    """Fields of an object of Nova; empty for any other value."""
    return _mapping_or_empty(_mapping_or_empty(value).get('nova_object.data'))


def _mapping_or_empty(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
