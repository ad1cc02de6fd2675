# SPDX-License-Identifier: Apache-2.0

"""Requests that wait, and the room there is."""

from api_ext.policies import base

LIST = base.name('requests', 'list')
LIST_ALL = base.name('requests', 'list-all')
SHOW = base.name('requests', 'show')
SHARES = base.name('shares', 'list')
SHARES_ALL = base.name('shares', 'list-all')
CAPACITY = base.name('capacity', 'show')

_URL = 'POST /fairness/requests/{uuid}/action'
_READER = 'role:reader and project_id:%(project_id)s'
_MEMBER = 'role:member and project_id:%(project_id)s'


RULES = (
    base.rule(
        'requests',
        'list',
        f'{base.OPERATOR} or ({_READER})',
        'List the requests of the own project.',
        'GET /fairness/requests',
    ),
    base.rule(
        'requests',
        'list-all',
        base.OPERATOR,
        'List the requests of all projects.',
        'GET /fairness/requests (all_projects)',
    ),
    base.rule(
        'requests',
        'show',
        f'{base.OPERATOR} or ({_READER})',
        'Show a request, and why it waits. By default readers of its project '
        'may; to others it is not there.',
        'GET /fairness/requests/{uuid}',
    ),
    base.rule(
        'requests',
        'cancel',
        f'{base.ADMIN} or ({_MEMBER})',
        'Take a build back that waits, and delete its servers.',
        f'{_URL} (cancel)',
    ),
    base.rule(
        'requests',
        'release',
        base.ADMIN,
        'Start a request whatever the plan is.',
        f'{_URL} (release)',
    ),
    base.rule(
        'shares',
        'list',
        f'{base.OPERATOR} or ({_READER})',
        'List shares and use of the own project and its users.',
        'GET /fairness/shares',
    ),
    base.rule(
        'shares',
        'list-all',
        base.OPERATOR,
        'List shares and use of all accounts.',
        'GET /fairness/shares (all_projects)',
    ),
    base.rule(
        'capacity',
        'show',
        base.EVERYBODY,
        'Show how full the cloud is, and how many servers of each flavor '
        'start now.',
        'GET /fairness/capacity',
    ),
)
