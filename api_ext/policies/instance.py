# SPDX-License-Identifier: Apache-2.0

"""Policy rule of instances."""

from api_ext.policies import base

SHOW = base.rule_name('instances', 'show')

RULES = (
    base.rule(
        SHOW,
        f'{base.OPERATOR} or (role:reader and project_id:%(project_id)s)',
        'Show the usage and the weights of an instance, with causes and '
        'advice, and the heaviness of its user. By default readers of its '
        'project, who may see it in Nova, have this permission.',
        'GET /fairness/instances/{uuid}',
    ),
)
