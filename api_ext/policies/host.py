# SPDX-License-Identifier: Apache-2.0

"""Policy rules of hosts with an agent."""

from api_ext.policies import base

LIST = base.name('hosts', 'list')
SHOW = base.name('hosts', 'show')
PREVIEW = base.name('hosts', 'preview')

RULES = (
    base.rule(
        LIST,
        base.OPERATOR,
        'List the hosts. Other callers see no name of a host in any answer.',
        'GET /fairness/hosts',
    ),
    base.rule(
        SHOW,
        base.OPERATOR,
        'Show the state of a host, and its knowledge of other hosts.',
        'GET /fairness/hosts/{host}',
    ),
    base.rule(
        PREVIEW,
        base.OPERATOR,
        'Show which users would gain or lose if a host enforced weights.',
        'GET /fairness/hosts/{host}/preview',
    ),
)
