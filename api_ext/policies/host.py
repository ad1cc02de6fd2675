# SPDX-License-Identifier: Apache-2.0

"""Policy rules of hosts with an agent."""

from api_ext.policies import base

LIST = base.rule_name('hosts', 'list')
SHOW = base.rule_name('hosts', 'show')
PREVIEW = base.rule_name('hosts', 'preview')

RULES = (
    base.rule(
        LIST,
        base.OPERATOR,
        'List the hosts with an agent. Callers without this permission see '
        'no names of hosts in any answer.',
        'GET /fairness/hosts',
    ),
    base.rule(
        SHOW,
        base.OPERATOR,
        'Show the state of the agent of a host, and its view of other hosts.',
        'GET /fairness/hosts/{host}',
    ),
    base.rule(
        PREVIEW,
        base.OPERATOR,
        'Show which users would gain or lose if a host enforced weights.',
        'GET /fairness/hosts/{host}/preview',
    ),
)
