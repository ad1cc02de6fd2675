# SPDX-License-Identifier: Apache-2.0

"""Common parts of schemas."""

from collections.abc import Mapping
import types
from typing import Any

from api_ext.schemas import patterns

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


def describe(schema: Schema, text: str) -> Schema:
    """A schema with a description, for the OpenAPI document and the manual."""
    return {**schema, 'description': text}


def record(
    properties: Mapping[str, Any],
    optional: tuple[str, ...] = (),
    since: Mapping[str, str] = NOTHING,
) -> Schema:
    """Schema of an object with these keys and no others.

    :param optional: keys that may be missing.
    :param since: keys that other processes send since a version of the calls,
        such as ``{'until': '1.8'}``: they may be missing as long as processes
        of the release before may answer.
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
    """Schema of an array of such objects."""
    return {'type': 'array', 'items': record(properties, since=since)}


WHY_NOT: Schema = records({'host': TEXT, 'reason': TEXT})
"""Hosts without an answer, and reasons."""

PARTIAL: Mapping[str, Any] = {'partial': TRUTH, 'not_reached': WHY_NOT}
"""Whether hosts are missing; which ones, if the caller may see hosts."""

LINKS: Schema = records({'rel': TEXT, 'href': TEXT})

ACCOUNT: Schema = {
    'type': 'string',
    'maxLength': 255,
    'pattern': patterns.ACCOUNT,
    'description': 'A project, PROJECT/USER, or an account of the shares file',
}

LEAVE: Schema = {
    'server': TEXT,
    'state': describe(
        TEXT,
        '``chosen``, ``told``, ``acting`` or ``asked``: under way; '
        '``undoing``: it need not leave, and is started again; ``gone``: its '
        'room is free; ``returned``: it runs again; ``stays``: its room is '
        'not free in spite of all actions; ``spared``: it need not leave',
    ),
    'cause': describe(
        TEXT,
        '``time_limit``, ``room``, ``host``, ``idle``, ``free`` (a part of '
        'the cloud is kept free) or ``retires``',
    ),
    'for_request': describe(
        MAYBE_TEXT,
        'UUID of the preemptor; null without one, and for callers who may not '
        'see it',
    ),
    'action': describe(TEXT, 'Last action, or the first one if none was done'),
    'leaves_at': describe(TEXT, 'No action is done before this time'),
    'reason': TEXT,
    'explanation': TEXT,
    'subject': TEXT,
    'numbers': NUMBERS,
}
"""Fields of an eviction in answers."""
