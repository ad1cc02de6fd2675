# SPDX-License-Identifier: Apache-2.0

"""Policy rule of the cloud's capacity and use."""

from api_ext.policies import base

SHOW = base.name('capacity', 'show')

RULES = (
    base.rule(
        SHOW,
        base.EVERYBODY,
        'Show how full the cloud is, and how many servers of each flavor '
        'could start now. Only projects that may use a flavor that is not '
        'public see it.',
        'GET /fairness/capacity',
    ),
)
