# SPDX-License-Identifier: Apache-2.0

"""Policy rules of prices of hosts."""

from api_ext.policies import base

LIST = base.name('prices', 'list')
HISTORY = base.name('prices', 'history')

RULES = (
    base.rule(
        LIST,
        f'{base.OPERATOR} or ({base.PROJECT_READER})',
        'List what all servers of each host spend. Callers who may not list '
        'hosts are told what other projects spend, rounded, under IDs that '
        'hold for their own project alone, and nothing where no group with a '
        'spending rate is set.',
        'GET /fairness/prices',
    ),
    base.rule(
        HISTORY,
        base.OPERATOR,
        'List what all servers of a host have spent.',
        'GET /fairness/hosts/{host}/prices',
    ),
)
