# SPDX-License-Identifier: Apache-2.0

"""Policy rules of hosts between batch system and cloud."""

from api_ext.policies import base

LIST = base.name('partition', 'list')
SHOW = base.name('partition', 'show')
TARGET = base.name('partition', 'target')

_HOSTS = '/fairness/partition/hosts'
_ACTION = f'POST {_HOSTS}/{{host}}/action'

RULES = (
    base.rule(
        LIST,
        base.OPERATOR,
        'List hosts that move between batch and cloud, and demand and hosts '
        'of both sides.',
        'GET /fairness/partition',
        f'GET {_HOSTS}',
    ),
    base.rule(
        SHOW,
        base.OPERATOR,
        'Show a host that moves, with its work and its history.',
        f'GET {_HOSTS}/{{host}}',
    ),
    base.rule(
        base.name('partition', 'move'),
        base.ADMIN,
        'Move a host to the other side.',
        f'{_ACTION} (move)',
    ),
    base.rule(
        base.name('partition', 'cancel'),
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
