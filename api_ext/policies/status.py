# SPDX-License-Identifier: Apache-2.0

"""Policy rule of the state of the cluster service."""

from api_ext.policies import base

SHOW = base.rule_name('status', 'show')

RULES = (
    base.rule(
        SHOW,
        base.OPERATOR,
        'Show the leader of the cluster service, waiting requests, evictions, '
        'open migration plans, hosts between batch system and cloud, and '
        'warnings.',
        'GET /fairness/status',
    ),
)
