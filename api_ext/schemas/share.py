# SPDX-License-Identifier: Apache-2.0

"""Schemas of shares of accounts."""

from api_ext.schemas import dry_run
from api_ext.schemas import parts
from api_ext.schemas import url

ITEM = parts.record(
    {
        'name': parts.describe(
            parts.TEXT,
            'Of a group as the operator named it, of a project its '
            'id, of a user ``PROJECT/USER``',
        ),
        'parent': parts.describe(
            parts.MAYBE_TEXT,
            'The account right above; null at the top, and of the own '
            'project without ``all_projects=true``: names of groups '
            'are for operators',
        ),
        'share': parts.NUMBER,
        'normalised_share': parts.describe(
            parts.NUMBER,
            'Part of the cloud by shares, if everybody wanted something',
        ),
        'used': parts.describe(
            parts.NUMBERS,
            'Part of the cloud that was allocated, the longer ago the '
            'less it counts, by resource class of Placement',
        ),
        'fair_share': parts.describe(
            parts.NUMBER,
            "0 to 1: 1 if nothing was used, 0.5 if the use that "
            "counts is exactly the share (Slurm's ``2^(-U_E / S)``). "
            "In part, the use of siblings and of the accounts above "
            "counts as well. The class that an account used most "
            "counts, divided by the sum of this over the accounts at "
            "the top",
        ),
        'vanished': parts.describe(
            parts.TRUTH,
            "It is gone from Keystone, and only its use is left; "
            "false where the tree is not Keystone's",
        ),
    }
)

LIST = parts.record(
    {
        'shares': {'type': 'array', 'items': ITEM},
        'shares_links': parts.LINKS,
    },
    optional=('shares_links',),
)

QUERY = url.project_listing(url.NAME_MARKER)

_SHARE: parts.Schema = {
    'type': ['number', 'null'],
    'minimum': 0,
    'maximum': 1e9,
    'description': 'Beside its siblings; null for what the file says',
}

SET = parts.record(
    {
        'account': parts.ACCOUNT,
        'share': _SHARE,
        'dry_run': dry_run.ASKED,
    },
    optional=('dry_run',),
)

DONE = parts.record(
    {
        'account': parts.ACCOUNT,
        'share': _SHARE,
        'dry_run': parts.describe(
            dry_run.ITEM, 'With ``dry_run``: nothing was set'
        ),
    },
    optional=('dry_run',),
)
