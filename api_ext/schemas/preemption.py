# SPDX-License-Identifier: Apache-2.0

"""Schemas of preemptions."""

from api_ext.schemas import parts
from api_ext.schemas import url

ITEM = parts.record(
    {
        'uuid': parts.TEXT,
        'project_id': parts.describe(
            parts.MAYBE_TEXT,
            'Owner of the server; ``server``, ``project_id`` and '
            '``user_id`` are null for those who may not see the '
            'server: room was made for them',
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
            '``freed``: its room became free; ``stayed``: it did not, '
            'whatever was done; ``spared``: it need not leave any '
            'more; null while that is open',
        ),
        'chosen_at': parts.describe(
            parts.TEXT,
            'When it was chosen. All moments that have not come are null',
        ),
        'told_at': parts.describe(
            parts.MAYBE_TEXT, 'When its metadata said so'
        ),
        'acted_at': parts.describe(
            parts.MAYBE_TEXT, 'When the first action began'
        ),
        'freed_at': parts.describe(
            parts.MAYBE_TEXT, 'When its room was seen to be free'
        ),
        'returned_at': parts.describe(
            parts.MAYBE_TEXT, 'When it was seen to run again'
        ),
        'answered': parts.describe(
            parts.TRUTH,
            'The server said that it was done, so that it left before '
            '``leaves_at``',
        ),
        'notice_s': parts.describe(
            parts.MAYBE_NUMBER,
            'Seconds from ``told_at`` until the first action, or '
            'until it had left by itself',
        ),
        'lost_vcpu_s': parts.describe(
            parts.NUMBER,
            'Its VCPUs times the seconds from its last start to '
            '``acted_at``: work that may be lost. How much of it was '
            'saved only its owner knows. 0 if it answered, and if '
            'nothing was done to it',
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
