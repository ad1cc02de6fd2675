# SPDX-License-Identifier: Apache-2.0

"""Policy rule of installed metrics and policies."""

from api_ext.policies import base

LIST = base.name('plugins', 'list')

RULES = (
    base.rule(
        LIST,
        base.EVERYBODY,
        'List the metrics and policies that are installed. Hosts are named '
        'only to those who may list hosts.',
        'GET /fairness',
    ),
)
