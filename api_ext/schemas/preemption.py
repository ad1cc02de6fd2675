# SPDX-License-Identifier: Apache-2.0

"""Servers that had to make room."""

from api_ext.schemas import parts
from api_ext.schemas import url

ITEM = parts.record(
    {
        'uuid': parts.TEXT,
        'project_id': parts.MAYBE_TEXT,
        'user_id': parts.MAYBE_TEXT,
        'server': parts.MAYBE_TEXT,
        **{
            name: each
            for name, each in parts.LEAVE.items()
            if name != 'server'
        },
        'for_project': parts.MAYBE_TEXT,
        'outcome': {'enum': ['freed', 'stayed', 'spared', None]},
        'chosen_at': parts.TEXT,
        'told_at': parts.MAYBE_TEXT,
        'acted_at': parts.MAYBE_TEXT,
        'freed_at': parts.MAYBE_TEXT,
        'returned_at': parts.MAYBE_TEXT,
        'answered': parts.TRUTH,
        'notice_s': parts.MAYBE_NUMBER,
        'lost_vcpu_s': parts.NUMBER,
    }
)

LIST = parts.record(
    {
        'preemptions': {'type': 'array', 'items': ITEM},
        'preemptions_links': parts.LINKS,
    },
    optional=('preemptions_links',),
)

QUERY = url.project_listing(url.UUID_MARKER)

SHOW = parts.record({'preemption': ITEM})
