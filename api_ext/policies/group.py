# SPDX-License-Identifier: Apache-2.0

"""Policy rules of groups with spending rates."""

from api_ext.policies import base

LIST = base.rule_name('groups', 'list')
LIST_ALL = base.rule_name('groups', 'list-all')
SET = base.rule_name('groups', 'set')

RULES = (
    base.rule(
        LIST,
        f'{base.OPERATOR} or ({base.PROJECT_READER})',
        "List the groups with spending rates of the caller's own project.",
        'GET /fairness/groups',
    ),
    base.rule(
        LIST_ALL,
        base.OPERATOR,
        'List the groups with spending rates of all projects.',
        'GET /fairness/groups (all_projects)',
    ),
    base.rule(
        SET,
        f'{base.ADMIN} or ({base.PROJECT_MEMBER})',
        'Create, change or delete a group of servers with a spending rate.',
        'POST /fairness/groups',
        'PUT /fairness/groups',
    ),
)
