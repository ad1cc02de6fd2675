# SPDX-License-Identifier: Apache-2.0

"""Policy rules of prices of hosts."""

from api_ext.policies import base

LIST = base.name('prices', 'list')
HISTORY = base.name('prices', 'history')

RULES = (
    base.rule(
        LIST,
        f'{base.OPERATOR} or ({base.PROJECT_READER})',
        'List the spending of all servers of each host. Callers who may not '
        'list hosts see the spending of other projects, rounded, under IDs '
        'for their own project alone, and nothing while no group with a '
        'spending rate exists.',
        'GET /fairness/prices',
    ),
    base.rule(
        HISTORY,
        base.OPERATOR,
        'List the past spending of all servers of a host.',
        'GET /fairness/hosts/{host}/prices',
    ),
)
