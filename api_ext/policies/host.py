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
        'List the hosts. Callers who may not are told no name of a host in '
        'any answer.',
        'GET /fairness/hosts',
    ),
    base.rule(
        SHOW,
        base.OPERATOR,
        'Show the state of a host, and what it knows of the others.',
        'GET /fairness/hosts/{host}',
    ),
    base.rule(
        PREVIEW,
        base.OPERATOR,
        'Show who would gain or lose how much if a host enforced.',
        'GET /fairness/hosts/{host}/preview',
    ),
)
