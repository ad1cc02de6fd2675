# SPDX-License-Identifier: Apache-2.0

"""Users."""

from api_ext.policies import base

LIST = 'os_fairness_api:users:list'
SHOW = 'os_fairness_api:users:show'

RULES = (
    base.rule(
        'users',
        'list',
        base.OPERATOR,
        'List how heavy all users are.',
        'GET /fairness/users',
    ),
    base.rule(
        'users',
        'show',
        f'{base.OPERATOR} or (role:reader and user_id:%(user_id)s)',
        'Show how heavy a user is. By default one may see oneself.',
        'GET /fairness/users/{id}',
    ),
)
