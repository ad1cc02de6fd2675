# SPDX-License-Identifier: Apache-2.0

"""Projects."""

from api_ext.policies import base

LIST = 'os_fairness_api:projects:list'
SHOW = 'os_fairness_api:projects:show'

RULES = (
    base.rule(
        'projects',
        'list',
        base.OPERATOR,
        'List how heavy all projects are.',
        'GET /fairness/projects',
    ),
    base.rule(
        'projects',
        'show',
        f'{base.OPERATOR} or (role:reader and project_id:%(project_id)s)',
        'Show how heavy a project is. By default its members may see it.',
        'GET /fairness/projects/{id}',
    ),
)
