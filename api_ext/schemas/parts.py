# SPDX-License-Identifier: Apache-2.0

"""Shared parts of schemas."""

from collections.abc import Mapping
import types
from typing import Any

from api_ext.schemas import patterns

Schema = Mapping[str, Any]

TEXT: Schema = {'type': 'string'}
MAYBE_TEXT: Schema = {'type': ['string', 'null']}
BOOLEAN: Schema = {'type': 'boolean'}
COUNT: Schema = {'type': 'integer', 'minimum': 0}
NUMBER: Schema = {'type': 'number'}
MAYBE_NUMBER: Schema = {'type': ['number', 'null']}
MAYBE_COUNT: Schema = {'type': ['integer', 'null'], 'minimum': 0}
TEXTS: Schema = {'type': 'array', 'items': TEXT}
NUMBER_MAP: Schema = {'type': 'object', 'additionalProperties': NUMBER}
MAYBE_NUMBER_MAP: Schema = {
    'type': 'object',
    'additionalProperties': MAYBE_NUMBER,
}

NOTHING: Mapping[str, str] = types.MappingProxyType({})


def describe(schema: Schema, text: str) -> Schema:
    """Return a schema with a description, for the OpenAPI document and the
    manual.
    """
    return {**schema, 'description': text}


def record(
    properties: Mapping[str, Any],
    optional: tuple[str, ...] = (),
    since: Mapping[str, str] = NOTHING,
) -> Schema:
    """Return the schema of an object with the given keys and no others.

    :param optional: keys that may be missing.
    :param since: keys with the version of the RPC API that introduced them,
        such as ``{'until': '1.8'}``. These keys may be missing in answers of
        an older release.
    """
    return {
        'type': 'object',
        'properties': dict(properties),
        'required': [
            key
            for key in properties
            if key not in optional and key not in since
        ],
        'additionalProperties': False,
    }


def records(
    properties: Mapping[str, Any], since: Mapping[str, str] = NOTHING
) -> Schema:
    """Return the schema of an array of objects with the given keys."""
    return {'type': 'array', 'items': record(properties, since=since)}


MISSING_HOSTS: Schema = records({'host': TEXT, 'reason': TEXT})
"""Hosts without an answer, with the reasons."""

PARTIAL: Mapping[str, Any] = {'partial': BOOLEAN, 'not_reached': MISSING_HOSTS}
"""Fields that tell whether hosts are missing, and which ones if the caller may
see hosts.
"""

LINKS: Schema = records({'rel': TEXT, 'href': TEXT})

ACCOUNT: Schema = {
    'type': 'string',
    'maxLength': 255,
    'pattern': patterns.ACCOUNT,
    'description': 'A project, PROJECT/USER, or an account of the shares file',
}

EVICTION_FIELDS: Schema = {
    'server': TEXT,
    'state': describe(
        TEXT,
        '``chosen``, ``told`` (the owner has a notice), ``acting`` or '
        '``asked``: the eviction is under way; ``undoing``: the eviction is '
        'not needed any more, and the server is started again; ``gone``: the '
        'room of the server is free; ``returned``: the server runs again; '
        '``stays``: its room is not free after all actions; ``spared``: the '
        'eviction was withdrawn',
    ),
    'cause': describe(
        TEXT,
        '``time_limit``, ``room`` (preemption), ``host`` (the host moves to '
        'the batch system), ``idle``, ``free`` (a part of the cloud must stay '
        'free) or ``retires``',
    ),
    'for_request': describe(
        MAYBE_TEXT,
        'UUID of the preemptor; null without a preemptor, and for callers who '
        'may not see it',
    ),
    'action': describe(
        TEXT, 'Last action on the server, or the first planned one'
    ),
    'leaves_at': describe(TEXT, 'Earliest time of the first action'),
    'reason': TEXT,
    'explanation': TEXT,
    'subject': TEXT,
    'numbers': NUMBER_MAP,
}
"""Fields of an eviction in answers."""
