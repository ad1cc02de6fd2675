# SPDX-License-Identifier: Apache-2.0

"""Policy rule of orders of the queue."""

from api_ext.policies import base

PREVIEW = base.rule_name('orders', 'preview')

RULES = (
    base.rule(
        PREVIEW,
        base.OPERATOR,
        'Show which requests would start next with another order of the '
        'queue.',
        'GET /fairness/orders/{order}/preview',
    ),
)
