# SPDX-License-Identifier: Apache-2.0

"""Policy rules for the names in reasons."""

from api_ext.policies import base

MANAGER = base.rule_name('reasons', 'manager')
OPERATOR = base.rule_name('reasons', 'operator')

RULES = (
    base.rule(
        MANAGER,
        'role:manager and project_id:%(project_id)s',
        "Read reasons of the caller's own project as a manager: with the "
        'names of accounts above it.',
        'GET /fairness/requests',
        'GET /fairness/requests/{uuid}',
        'GET /fairness/preemptions',
        'GET /fairness/preemptions/{uuid}',
    ),
    base.rule(
        OPERATOR,
        base.OPERATOR,
        'Read reasons as an operator: with the names of other projects, of '
        'their requests and of hosts. Also read the capacity for all '
        'flavors.',
        'GET /fairness/requests',
        'GET /fairness/requests/{uuid}',
        'GET /fairness/preemptions',
        'GET /fairness/preemptions/{uuid}',
        'GET /fairness/capacity',
    ),
)
