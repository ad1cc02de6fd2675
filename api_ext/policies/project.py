# SPDX-License-Identifier: Apache-2.0

"""Policy rules of projects."""

from api_ext.policies import base

LIST = base.rule_name('projects', 'list')
SHOW = base.rule_name('projects', 'show')

RULES = (
    base.rule(
        LIST,
        base.OPERATOR,
        'Show the heaviness of all projects.',
        'GET /fairness/projects',
    ),
    base.rule(
        SHOW,
        f'{base.OPERATOR} or (role:reader and project_id:%(project_id)s)',
        'Show the heaviness of a project. By default readers of the project '
        'have this permission.',
        'GET /fairness/projects/{id}',
    ),
)
