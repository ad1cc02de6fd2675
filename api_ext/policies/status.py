# SPDX-License-Identifier: Apache-2.0

"""Policy rule of the state of the cluster service."""

from api_ext.policies import base

SHOW = base.name('status', 'show')

RULES = (
    base.rule(
        SHOW,
        base.OPERATOR,
        'Show the leader, waiting requests, evictions, open plans, hosts '
        'between batch and cloud, and warnings.',
        'GET /fairness/status',
    ),
)
