# SPDX-License-Identifier: Apache-2.0

"""Schemas of shares of accounts."""

from api_ext.schemas import dry_run
from api_ext.schemas import parts
from api_ext.schemas import url

ITEM = parts.record(
    {
        'name': parts.describe(
            parts.TEXT,
            'Name of a group, ID of a project, or ``PROJECT/USER``',
        ),
        'parent': parts.describe(
            parts.MAYBE_TEXT,
            'Parent account; null at the top, and for the own project without '
            '``all_projects=true``: only operators see names of groups',
        ),
        'share': parts.NUMBER,
        'normalised_share': parts.describe(
            parts.NUMBER,
            'Part of the cloud by shares, if all accounts want something',
        ),
        'used': parts.describe(
            parts.NUMBERS,
            'Past allocation as a part of the cloud, by resource class of '
            'Placement; older use counts less',
        ),
        'fair_share': parts.describe(
            parts.NUMBER,
            "0 to 1: 1 without use, 0.5 if the decayed use is exactly the "
            "share (Slurm's ``2^(-U_E / S)``). In part, the use of siblings "
            "and of the accounts above counts, too. Use is that of the "
            "account's dominant class, divided by the sum of such use over "
            "the accounts at the top",
        ),
        'vanished': parts.describe(
            parts.TRUTH,
            "Keystone no longer has it, and only its use remains; false if "
            "the tree is not Keystone's",
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
    'description': 'Share relative to its siblings; null for the value of the '
    'file',
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
