# SPDX-License-Identifier: Apache-2.0

"""Policy rule of the cloud's capacity and use."""

from api_ext.policies import base

SHOW = base.name('capacity', 'show')

RULES = (
    base.rule(
        SHOW,
        base.EVERYBODY,
        'Show how full the cloud is, and how many servers of each flavor '
        'start now. Flavors that are not public are told to the projects '
        'that may use them.',
        'GET /fairness/capacity',
    ),
)
