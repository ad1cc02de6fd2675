# SPDX-License-Identifier: Apache-2.0

"""Policy rules of prices of hosts."""

from api_ext.policies import base

LIST = base.rule_name('prices', 'list')
HISTORY = base.rule_name('prices', 'history')

RULES = (
    base.rule(
        LIST,
        f'{base.OPERATOR} or ({base.PROJECT_READER})',
        'List the price of each host: the sum of the spending rates of its '
        'servers. Callers who may not list hosts see rounded prices, with '
        'IDs in place of names of hosts; the IDs differ between projects. '
        'They see nothing while no group has a spending rate.',
        'GET /fairness/prices',
    ),
    base.rule(
        HISTORY,
        base.OPERATOR,
        'List the past prices of a host.',
        'GET /fairness/hosts/{host}/prices',
    ),
)
