# SPDX-License-Identifier: Apache-2.0

"""Policy rules of shares of accounts."""

from api_ext.policies import base

LIST = base.rule_name('shares', 'list')
LIST_ALL = base.rule_name('shares', 'list-all')
SET = base.rule_name('shares', 'set')
SET_DOMAIN = base.rule_name('shares', 'set-domain')

RULES = (
    base.rule(
        LIST,
        f'{base.OPERATOR} or ({base.PROJECT_READER})',
        "List shares and use of the caller's own project and its users.",
        'GET /fairness/shares',
    ),
    base.rule(
        LIST_ALL,
        base.OPERATOR,
        'List shares and use of all accounts.',
        'GET /fairness/shares (all_projects)',
    ),
    base.rule(
        SET,
        f'{base.ADMIN} or (role:manager and project_id:%(project_id)s)',
        'Set or unset the share of an account. By default managers of a '
        'project may set the shares of its users and of the projects directly '
        'below it.',
        'PUT /fairness/shares',
    ),
    base.rule(
        SET_DOMAIN,
        '(role:admin or role:manager) and domain_id:%(domain_id)s',
        'Set or unset the share of an account directly below a domain, with a '
        'token of the domain. Such tokens have no other permission, because a '
        'role in one domain is no role in other domains.',
        'PUT /fairness/shares',
        scopes=('domain',),
    ),
)
