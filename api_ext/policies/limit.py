# SPDX-License-Identifier: Apache-2.0

"""Policy rules of limits of accounts."""

from api_ext.policies import base

LIST = base.rule_name('limits', 'list')
LIST_ALL = base.rule_name('limits', 'list-all')
SET = base.rule_name('limits', 'set')

RULES = (
    base.rule(
        LIST,
        f'{base.OPERATOR} or ({base.PROJECT_READER})',
        "List the limits of the caller's own project and its users.",
        'GET /fairness/limits',
    ),
    base.rule(
        LIST_ALL,
        base.OPERATOR,
        'List the limits of all accounts.',
        'GET /fairness/limits (all_projects)',
    ),
    base.rule(
        SET,
        f'{base.ADMIN} or (role:manager and project_id:%(project_id)s)',
        'Set or unset limits of an account. By default managers of a project '
        'may set the limits of its users.',
        'PUT /fairness/limits',
    ),
)
