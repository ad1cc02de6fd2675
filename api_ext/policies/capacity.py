# SPDX-License-Identifier: Apache-2.0

"""Policy rule of the cloud's capacity and use."""

from api_ext.policies import base

SHOW = base.rule_name('capacity', 'show')

RULES = (
    base.rule(
        SHOW,
        base.EVERYBODY,
        'Show the use of the cloud, and the number of servers of each flavor '
        'that could start now. A private flavor is visible only to projects '
        'that may use it.',
        'GET /fairness/capacity',
    ),
)
