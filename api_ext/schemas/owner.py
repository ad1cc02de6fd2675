# SPDX-License-Identifier: Apache-2.0

"""Schemas of users and projects, the owners of VMs."""

from typing import Any

from api_ext.schemas import parts
from api_ext.schemas import patterns
from api_ext.schemas import url

_NUMBERS = {
    'id': parts.TEXT,
    'heaviness_quotas': parts.MAYBE_NUMBER,
    'shadow_metric': parts.describe(
        parts.TEXT,
        'The shadow metric of most hosts; missing if no host has one',
    ),
    'shadow_heaviness_quotas': parts.describe(
        parts.MAYBE_NUMBER,
        'Heaviness by the shadow metric, which changes no weight; missing if '
        'no host has one',
    ),
    'instances_count': parts.COUNT,
    'usage_quotas': parts.MAYBE_NUMBER_MAP,
    'hosts': parts.TEXTS,
}
_SINCE = dict.fromkeys(('shadow_metric', 'shadow_heaviness_quotas'), '1.8')
_USER = parts.record(_NUMBERS, optional=('hosts',), since=_SINCE)
_PROJECT = parts.record(
    {
        **_NUMBERS,
        'scope': {'type': 'string', 'enum': ['host', 'domain']},
    },
    optional=('hosts',),
    since=_SINCE,
)

QUERY = url.list_query(
    patterns.ID, 'id', 'heaviness_quotas', 'instances_count'
)


def _list(plural: str, item: parts.Schema) -> parts.Schema:
    properties: dict[str, Any] = {
        plural: {'type': 'array', 'items': item},
        f'{plural}_links': parts.LINKS,
        **parts.PARTIAL,
    }
    return parts.record(
        properties, optional=(f'{plural}_links', 'not_reached')
    )


def _show(singular: str, item: parts.Schema) -> parts.Schema:
    return parts.record(
        {singular: item, **parts.PARTIAL}, optional=('not_reached',)
    )


USER_LIST = _list('users', _USER)
USER_SHOW = _show('user', _USER)
PROJECT_LIST = _list('projects', _PROJECT)
PROJECT_SHOW = _show('project', _PROJECT)
