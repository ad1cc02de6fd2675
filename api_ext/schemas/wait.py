# SPDX-License-Identifier: Apache-2.0

"""Schemas of waits of requests."""

from api_ext.schemas import parts
from api_ext.schemas import patterns
from api_ext.schemas import url
from nova_fairness.model import waits

GROUP_KEYS = tuple(each.value for each in waits.WaitKey)
"""Keys by which waits are grouped; the first one is the default."""

_SECONDS: parts.Schema = {**parts.NUMBER, 'description': 'Seconds'}

ITEM = parts.record(
    {
        'name': parts.TEXT,
        'explanation': parts.MAYBE_TEXT,
        'requests_count': parts.COUNT,
        **{f'p{part}': _SECONDS for part in waits.PERCENTILES},
    }
)

LIST = parts.record(
    {
        'waits': {'type': 'array', 'items': ITEM},
        'waits_links': parts.LINKS,
    },
    optional=('waits_links',),
)

_GROUPS = url.project_list_query(url.NAME_MARKER)

QUERY: parts.Schema = {
    **_GROUPS,
    'properties': {
        **_GROUPS['properties'],
        'by': {
            'type': 'string',
            'enum': list(GROUP_KEYS),
            'default': GROUP_KEYS[0],
        },
        'project_id': {'type': 'string', 'pattern': patterns.ID},
        'since': url.TIME,
    },
}
