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
            'Parent account; null at the top of the tree. It is also null for '
            "the caller's project without ``all_projects=true``, because only "
            'operators see names of groups',
        ),
        'share': parts.NUMBER,
        'normalised_share': parts.describe(
            parts.NUMBER,
            'Part of the cloud that the account gets by its share if all '
            'accounts use their parts, 0 to 1',
        ),
        'used': parts.describe(
            parts.NUMBER_MAP,
            'Past allocation as a part of the cloud, by resource class of '
            'Placement; older use counts less',
        ),
        'fair_share': parts.describe(
            parts.NUMBER,
            "Factor from 0 to 1: 1 without use, 0.5 if the decayed use equals "
            "the share (Slurm's ``2^(-U_E / S)``). The use of siblings and of "
            "accounts above counts in part. Use is the use of the account's "
            "dominant resource class, divided by the sum of such use of all "
            "accounts at the top of the tree",
        ),
        'vanished': parts.describe(
            parts.BOOLEAN,
            "Whether the account was deleted in Keystone, so that only its "
            "past use remains; false if the tree is not Keystone's",
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

QUERY = url.project_list_query(url.NAME_MARKER)

_SHARE: parts.Schema = {
    'type': ['number', 'null'],
    'minimum': 0,
    'maximum': 1e9,
    'description': 'Share relative to accounts with the same parent; null '
    'restores the value in the file of shares',
}

SET = parts.record(
    {
        'account': parts.ACCOUNT,
        'share': _SHARE,
        'dry_run': dry_run.DRY_RUN_FLAG,
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
