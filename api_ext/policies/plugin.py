# SPDX-License-Identifier: Apache-2.0

"""Policy rule of installed metrics and policies."""

from api_ext.policies import base

LIST = base.rule_name('plugins', 'list')

RULES = (
    base.rule(
        LIST,
        base.EVERYBODY,
        'List the installed metrics and policies. Only callers who may list '
        'hosts see names of hosts.',
        'GET /fairness',
    ),
)
