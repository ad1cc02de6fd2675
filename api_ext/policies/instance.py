# SPDX-License-Identifier: Apache-2.0

"""Policy rule of instances."""

from api_ext.policies import base

SHOW = base.name('instances', 'show')

RULES = (
    base.rule(
        SHOW,
        f'{base.OPERATOR} or (role:reader and project_id:%(project_id)s)',
        'Explain how an instance is treated. By default callers who may see '
        'it in Nova: readers of its project. The answer shows the heaviness '
        'of its user, and the use of the instance.',
        'GET /fairness/instances/{uuid}',
    ),
)
