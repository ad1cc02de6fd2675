# SPDX-License-Identifier: Apache-2.0

"""Policy rules of requests."""

from api_ext.policies import base

LIST = base.name('requests', 'list')
LIST_ALL = base.name('requests', 'list-all')
SHOW = base.name('requests', 'show')
HOLD_AS_OPERATOR = base.name('requests', 'hold-as-operator')

_URL = 'POST /fairness/requests/{uuid}/action'

RULES = (
    base.rule(
        LIST,
        f'{base.OPERATOR} or ({base.PROJECT_READER})',
        "List the requests of the caller's own project, and their waits.",
        'GET /fairness/requests',
        'GET /fairness/waits',
    ),
    base.rule(
        LIST_ALL,
        base.OPERATOR,
        'List the requests of all projects, and their waits.',
        'GET /fairness/requests (all_projects)',
        'GET /fairness/waits (all_projects)',
    ),
    base.rule(
        SHOW,
        f'{base.OPERATOR} or ({base.PROJECT_READER})',
        'Show a request, and why it waits. By default readers of its project '
        'may; for others it does not exist.',
        'GET /fairness/requests/{uuid}',
    ),
    base.rule(
        base.name('requests', 'cancel'),
        f'{base.ADMIN} or ({base.PROJECT_MEMBER})',
        'Cancel a build that waits, and delete its servers.',
        f'{_URL} (cancel)',
    ),
    base.rule(
        base.name('requests', 'release'),
        base.ADMIN,
        'Start a request now, before its turn.',
        f'{_URL} (release)',
    ),
    base.rule(
        base.name('requests', 'first'),
        base.ADMIN,
        'Put a request before all others of its priority.',
        f'{_URL} (first)',
    ),
    base.rule(
        base.name('requests', 'unfirst'),
        base.ADMIN,
        'Return a request that was put first to the position by the order.',
        f'{_URL} (unfirst)',
    ),
    base.rule(
        base.name('requests', 'hold'),
        f'{base.ADMIN} or ({base.PROJECT_MEMBER})',
        'Hold a request: it does not start.',
        f'{_URL} (hold)',
    ),
    base.rule(
        base.name('requests', 'unhold'),
        f'{base.ADMIN} or ({base.PROJECT_MEMBER})',
        'End the hold of a request.',
        f'{_URL} (unhold)',
    ),
    base.rule(
        HOLD_AS_OPERATOR,
        base.ADMIN,
        'Set and end holds as an operator. Only operators end such holds, '
        'and a request does not expire while an operator holds it.',
        f'{_URL} (hold, unhold)',
    ),
    base.rule(
        base.name('requests', 'extend'),
        f'{base.ADMIN} or ({base.PROJECT_MEMBER})',
        'Extend the time limit of servers, as far as that is allowed.',
        f'{_URL} (extend)',
    ),
)
