# SPDX-License-Identifier: Apache-2.0

"""Common parts of answers."""

from collections.abc import Mapping
import types
from typing import Any

Schema = Mapping[str, Any]

TEXT: Schema = {'type': 'string'}
MAYBE_TEXT: Schema = {'type': ['string', 'null']}
TRUTH: Schema = {'type': 'boolean'}
COUNT: Schema = {'type': 'integer', 'minimum': 0}
NUMBER: Schema = {'type': 'number'}
MAYBE_NUMBER: Schema = {'type': ['number', 'null']}
MAYBE_COUNT: Schema = {'type': ['integer', 'null'], 'minimum': 0}
TEXTS: Schema = {'type': 'array', 'items': TEXT}
NUMBERS: Schema = {'type': 'object', 'additionalProperties': NUMBER}
MAYBE_NUMBERS: Schema = {
    'type': 'object',
    'additionalProperties': MAYBE_NUMBER,
}

NOTHING: Mapping[str, str] = types.MappingProxyType({})


def record(
    properties: Mapping[str, Any],
    optional: tuple[str, ...] = (),
    since: Mapping[str, str] = NOTHING,
) -> Schema:
    """Describe an object with these keys and no others.

    :param optional: keys that may be missing.
    :param since: keys that answers of other processes have since a version of
        the calls, such as ``{'until': '1.8'}``: they may be missing as long as
        processes of the release before may answer.
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
    """Describe an array of such objects."""
    return {'type': 'array', 'items': record(properties, since=since)}


WHY_NOT: Schema = records({'host': TEXT, 'reason': TEXT})
"""Hosts and reasons."""

PARTIAL: Mapping[str, Any] = {'partial': TRUTH, 'not_reached': WHY_NOT}
"""Whether something is missing, and for some callers what."""

LINKS: Schema = records({'rel': TEXT, 'href': TEXT})

ACCOUNT: Schema = {
    'type': 'string',
    'maxLength': 255,
    'pattern': '^[^/]+(/[^/]+)?$',
    'description': 'A project, PROJECT/USER, or a name of the file',
}

LEAVE: Schema = {
    'server': TEXT,
    'state': TEXT,
    'cause': TEXT,
    'for_request': MAYBE_TEXT,
    'action': TEXT,
    'leaves_at': TEXT,
    'reason': TEXT,
    'explanation': TEXT,
    'subject': TEXT,
    'numbers': NUMBERS,
}
"""Keys of a server that leaves."""
