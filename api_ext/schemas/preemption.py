# SPDX-License-Identifier: Apache-2.0

"""Schemas of preemptions."""

from api_ext.schemas import parts
from api_ext.schemas import url

ITEM = parts.record(
    {
        'uuid': parts.TEXT,
        'project_id': parts.describe(
            parts.MAYBE_TEXT,
            'Owner of the server. ``server``, ``project_id`` and ``user_id`` '
            'are null for callers who may not see the server, but the '
            'preemptor',
        ),
        'user_id': parts.MAYBE_TEXT,
        'server': parts.MAYBE_TEXT,
        **{
            name: each
            for name, each in parts.LEAVE.items()
            if name != 'server'
        },
        'for_project': parts.describe(
            parts.MAYBE_TEXT,
            'Project of the preemptor; null for those who may not see '
            'it. Then ``explanation`` says "another project", and '
            '``subject`` is empty',
        ),
        'outcome': parts.describe(
            {'enum': ['freed', 'stayed', 'spared', None]},
            '``freed``: its room became free; ``stayed``: it did not, in '
            'spite of all actions; ``spared``: it need not leave; null while '
            'this is open',
        ),
        'chosen_at': parts.describe(
            parts.TEXT,
            'When it was chosen. Times in the future are null',
        ),
        'told_at': parts.describe(
            parts.MAYBE_TEXT, 'When its metadata had the notice'
        ),
        'acted_at': parts.describe(
            parts.MAYBE_TEXT, 'When the first action began'
        ),
        'freed_at': parts.describe(
            parts.MAYBE_TEXT, 'When its room was first seen free'
        ),
        'returned_at': parts.describe(
            parts.MAYBE_TEXT, 'When it was first seen running again'
        ),
        'answered': parts.describe(
            parts.TRUTH,
            'The server allowed its eviction before ``leaves_at``',
        ),
        'notice_s': parts.describe(
            parts.MAYBE_NUMBER,
            'Seconds from ``told_at`` until the first action, or until the '
            'server had left by itself',
        ),
        'lost_vcpu_s': parts.describe(
            parts.NUMBER,
            'Its VCPUs times the seconds from its last start to ``acted_at``: '
            'work that may be lost. Only its owner knows how much was saved. '
            '0 if it allowed its eviction, and without any action',
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

QUERY = url.project_listing(url.UUID_MARKER)

SHOW = parts.record({'preemption': ITEM})
