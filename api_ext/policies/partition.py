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
        'List hosts that move between batch and cloud, and what both sides'
        ' have and want.',
        'GET /fairness/partition',
        f'GET {_HOSTS}',
    ),
    base.rule(
        SHOW,
        base.OPERATOR,
        'Show a host that moves, what runs there and its history.',
        f'GET {_HOSTS}/{{host}}',
    ),
    base.rule(
        base.name('partition', 'move'),
        base.ADMIN,
        'Send a host to the other side.',
        f'{_ACTION} (move)',
    ),
    base.rule(
        base.name('partition', 'cancel'),
        base.ADMIN,
        'Let a host stay that is on its way.',
        f'{_ACTION} (cancel)',
    ),
    base.rule(
        TARGET,
        base.ADMIN,
        'Say how many hosts the cloud is to have.',
        'PUT /fairness/partition',
    ),
)
