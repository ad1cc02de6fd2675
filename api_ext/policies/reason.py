# SPDX-License-Identifier: Apache-2.0

"""Policy rules of reasons: which names a reader sees."""

from api_ext.policies import base

MANAGER = base.name('reasons', 'manager')
OPERATOR = base.name('reasons', 'operator')

RULES = (
    base.rule(
        MANAGER,
        'role:manager and project_id:%(project_id)s',
        'Read reasons of the own project as a manager: with names of the '
        'accounts above it.',
        'GET /fairness/requests',
        'GET /fairness/requests/{uuid}',
        'GET /fairness/preemptions',
        'GET /fairness/preemptions/{uuid}',
    ),
    base.rule(
        OPERATOR,
        base.OPERATOR,
        'Read reasons as an operator: with names of other projects, of their '
        'requests and of hosts, and capacity with all flavors.',
        'GET /fairness/requests',
        'GET /fairness/requests/{uuid}',
        'GET /fairness/preemptions',
        'GET /fairness/preemptions/{uuid}',
        'GET /fairness/capacity',
    ),
)
