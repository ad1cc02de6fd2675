# SPDX-License-Identifier: Apache-2.0

"""Instances."""

from api_ext.policies import base

SHOW = 'os_fairness_api:instances:show'

RULES = (
    base.rule(
        'instances',
        'show',
        f'{base.OPERATOR} or (role:reader and project_id:%(project_id)s)',
        'Show why an instance is treated as it is. By default whoever may '
        'see it in Nova: readers of its project. They are told how heavy the '
        'user is who started it, as they are told what it uses.',
        'GET /fairness/instances/{uuid}',
    ),
)
