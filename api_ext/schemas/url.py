# SPDX-License-Identifier: Apache-2.0

"""Schemas of parts of URLs."""

from api_ext.schemas import parts
from api_ext.schemas import patterns

UUID_MARKER: parts.Schema = {'type': 'string', 'pattern': patterns.UUID}
NAME_MARKER: parts.Schema = {
    'type': 'string',
    'minLength': 1,
    'maxLength': 255,
}

FLAG: parts.Schema = {'type': 'string', 'enum': ['true', 'false']}

TIME: parts.Schema = {
    'type': 'string',
    'maxLength': 40,
    'description': 'Time in ISO 8601; UTC by default',
}

LARGEST_LIMIT = 2**31 - 1

NOTHING = parts.record({})
"""Query without parameters."""


def list_query(marker: str, *sort_keys: str) -> parts.Schema:
    """Return the schema of the query of a list.

    :param marker: pattern of an item's name.
    :param sort_keys: sort keys; the first one is the default.
    """
    properties = {
        'limit': {'type': 'integer', 'minimum': 1, 'maximum': LARGEST_LIMIT},
        'marker': {'type': 'string', 'pattern': marker},
        'sort_key': {
            'type': 'string',
            'enum': list(sort_keys),
            'default': sort_keys[0],
        },
        'sort_dir': {
            'type': 'string',
            'enum': ['asc', 'desc'],
            'default': 'asc',
        },
    }
    return parts.record(properties, optional=tuple(properties))


def project_list_query(marker: parts.Schema) -> parts.Schema:
    """Return the schema of the query of a list, for the caller's project or
    for all projects.
    """
    return parts.record(
        {
            'limit': {
                'type': 'integer',
                'minimum': 1,
                'maximum': LARGEST_LIMIT,
            },
            'marker': marker,
            'all_projects': FLAG,
        },
        optional=('limit', 'marker', 'all_projects'),
    )
