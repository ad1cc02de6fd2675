# SPDX-License-Identifier: Apache-2.0

"""Schemas of preemptions."""

from api_ext.schemas import parts
from api_ext.schemas import url

ITEM = parts.record(
    {
        'uuid': parts.TEXT,
        'project_id': parts.describe(
            parts.MAYBE_TEXT,
            'Project of the victim. ``server``, ``project_id`` and '
            '``user_id`` are null for callers who may see the preemptor, but '
            'not the victim',
        ),
        'user_id': parts.MAYBE_TEXT,
        'server': parts.MAYBE_TEXT,
        **{
            name: each
            for name, each in parts.EVICTION_FIELDS.items()
            if name != 'server'
        },
        'for_project': parts.describe(
            parts.MAYBE_TEXT,
            'Project of the preemptor; null for callers who may not see it. '
            'Then ``explanation`` contains "another project", and '
            '``subject`` is empty',
        ),
        'outcome': parts.describe(
            {'enum': ['freed', 'stayed', 'spared', None]},
            '``freed``: the room of the victim became free; ``stayed``: its '
            'room is not free after all actions; ``spared``: the eviction was '
            'withdrawn; null before the outcome',
        ),
        'chosen_at': parts.describe(
            parts.TEXT,
            'Time at which the victim was chosen. Times that have not come '
            'are null',
        ),
        'told_at': parts.describe(
            parts.MAYBE_TEXT,
            'Time at which the notice was in the metadata of the victim',
        ),
        'acted_at': parts.describe(
            parts.MAYBE_TEXT, 'Time at which the first action began'
        ),
        'freed_at': parts.describe(
            parts.MAYBE_TEXT,
            'Time at which the room of the victim was found free',
        ),
        'returned_at': parts.describe(
            parts.MAYBE_TEXT,
            'Time at which the victim was found running again',
        ),
        'answered': parts.describe(
            parts.BOOLEAN,
            'Whether the server agreed to its eviction before ``leaves_at``',
        ),
        'notice_s': parts.describe(
            parts.MAYBE_NUMBER,
            'Seconds from ``told_at`` until the first action, or until the '
            'server ended without an action',
        ),
        'lost_vcpu_s': parts.describe(
            parts.NUMBER,
            'VCPUs of the victim times the seconds from its last start to '
            '``acted_at``: work that may be lost. Only its owner knows how '
            'much work was saved. 0 if the server agreed to its eviction, and '
            'without any action',
        ),
    }
)

LIST = parts.record(
    {
        'preemptions': {'type': 'array', 'items': ITEM},
        'preemptions_links': parts.LINKS,
    },
    optional=('preemptions_links',),
)

QUERY = url.project_list_query(url.UUID_MARKER)

SHOW = parts.record({'preemption': ITEM})
