# SPDX-License-Identifier: Apache-2.0

"""The description of the interface."""

from api_ext.policies import base

SHOW = 'os_fairness_api:openapi:show'

RULES = (
    base.rule(
        'openapi',
        'show',
        base.EVERYBODY,
        'Read the OpenAPI document of this interface.',
        'GET /fairness/openapi.json',
    ),
)
