# SPDX-License-Identifier: Apache-2.0

"""Policy rules of users."""

from api_ext.policies import base

LIST = base.rule_name('users', 'list')
SHOW = base.rule_name('users', 'show')

RULES = (
    base.rule(
        LIST,
        base.OPERATOR,
        'Show the heaviness of all users.',
        'GET /fairness/users',
    ),
    base.rule(
        SHOW,
        f'{base.OPERATOR} or (role:reader and user_id:%(user_id)s)',
        'Show the heaviness of a user. By default users may see their own.',
        'GET /fairness/users/{id}',
    ),
)
