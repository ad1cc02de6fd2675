# SPDX-License-Identifier: Apache-2.0

"""Policy rule of instances."""

from api_ext.policies import base

SHOW = base.name('instances', 'show')

RULES = (
    base.rule(
        SHOW,
        f'{base.OPERATOR} or (role:reader and project_id:%(project_id)s)',
        'Show why an instance is treated as it is. By default for all who '
        'may see it in Nova: readers of its project. The answer tells how '
        'heavy the user is who started it, and what the instance uses.',
        'GET /fairness/instances/{uuid}',
    ),
)
