# SPDX-License-Identifier: Apache-2.0

"""Hosts with an agent."""

from api_ext.policies import base

LIST = 'os_fairness_api:hosts:list'
SHOW = 'os_fairness_api:hosts:show'
PREVIEW = 'os_fairness_api:hosts:preview'

RULES = (
    base.rule(
        'hosts',
        'list',
        base.OPERATOR,
        'List the hosts. Who may not is told the name of no host anywhere.',
        'GET /fairness/hosts',
    ),
    base.rule(
        'hosts',
        'show',
        base.OPERATOR,
        'Show how a host is, and what it knows of the others.',
        'GET /fairness/hosts/{host}',
    ),
    base.rule(
        'hosts',
        'preview',
        base.OPERATOR,
        'Show who would gain or lose how much if a host enforced.',
        'GET /fairness/hosts/{host}/preview',
    ),
)
