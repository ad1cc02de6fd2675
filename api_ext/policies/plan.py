# SPDX-License-Identifier: Apache-2.0

"""Policy rules of migration plans."""

from api_ext.policies import base

LIST = base.rule_name('plans', 'list')
SHOW = base.rule_name('plans', 'show')
CREATE = base.rule_name('plans', 'create')

_PLANS = '/fairness/plans'
_ACTION = f'POST {_PLANS}/{{uuid}}/action'

RULES = (
    base.rule(
        LIST,
        base.OPERATOR,
        'List migration plans, with expected and measured results.',
        f'GET {_PLANS}',
    ),
    base.rule(
        SHOW,
        base.OPERATOR,
        'Show a migration plan, with its moves.',
        f'GET {_PLANS}/{{uuid}}',
    ),
    base.rule(
        CREATE,
        base.ADMIN,
        'Propose a migration plan that empties a host.',
        f'POST {_PLANS}',
    ),
    base.rule(
        base.rule_name('plans', 'approve'),
        base.ADMIN,
        'Approve a migration plan.',
        f'{_ACTION} (approve)',
    ),
    base.rule(
        base.rule_name('plans', 'stop'),
        base.ADMIN,
        'Stop a migration plan.',
        f'{_ACTION} (stop)',
    ),
)
