# SPDX-License-Identifier: Apache-2.0

"""Policy rules of hosts that move between batch system and cloud."""

from api_ext.policies import base

LIST = base.rule_name('partition', 'list')
SHOW = base.rule_name('partition', 'show')
TARGET = base.rule_name('partition', 'target')

_HOSTS = '/fairness/partition/hosts'
_ACTION = f'POST {_HOSTS}/{{host}}/action'

RULES = (
    base.rule(
        LIST,
        base.OPERATOR,
        'List hosts that move between batch system and cloud, and show the '
        'demand and the hosts of both systems.',
        'GET /fairness/partition',
        f'GET {_HOSTS}',
    ),
    base.rule(
        SHOW,
        base.OPERATOR,
        'Show a host that moves between batch system and cloud, with its '
        'work and its history.',
        f'GET {_HOSTS}/{{host}}',
    ),
    base.rule(
        base.rule_name('partition', 'move'),
        base.ADMIN,
        'Move a host from the batch system to the cloud, or back.',
        f'{_ACTION} (move)',
    ),
    base.rule(
        base.rule_name('partition', 'cancel'),
        base.ADMIN,
        'Cancel the move of a host.',
        f'{_ACTION} (cancel)',
    ),
    base.rule(
        TARGET,
        base.ADMIN,
        'Set the number of hosts that the cloud is to have.',
        'PUT /fairness/partition',
    ),
)
