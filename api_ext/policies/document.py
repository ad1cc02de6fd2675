# SPDX-License-Identifier: Apache-2.0

"""Policy rule of the OpenAPI document."""

from api_ext.policies import base

SHOW = base.rule_name('openapi', 'show')

RULES = (
    base.rule(
        SHOW,
        base.EVERYBODY,
        'Read the OpenAPI document of the fairness API.',
        'GET /fairness/openapi.json',
    ),
)
