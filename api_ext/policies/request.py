# SPDX-License-Identifier: Apache-2.0

"""Policy rules of requests."""

from api_ext.policies import base

LIST = base.rule_name('requests', 'list')
LIST_ALL = base.rule_name('requests', 'list-all')
SHOW = base.rule_name('requests', 'show')
HOLD_AS_OPERATOR = base.rule_name('requests', 'hold-as-operator')

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
        'Show a request, and the reason for its wait. By default readers of '
        'its project have this permission; other callers get "not found".',
        'GET /fairness/requests/{uuid}',
    ),
    base.rule(
        base.rule_name('requests', 'cancel'),
        f'{base.ADMIN} or ({base.PROJECT_MEMBER})',
        'Cancel a waiting build request, and delete its servers.',
        f'{_URL} (cancel)',
    ),
    base.rule(
        base.rule_name('requests', 'release'),
        base.ADMIN,
        'Start a request at once, before its turn.',
        f'{_URL} (release)',
    ),
    base.rule(
        base.rule_name('requests', 'first'),
        base.ADMIN,
        'Put a request before all others of its priority class.',
        f'{_URL} (first)',
    ),
    base.rule(
        base.rule_name('requests', 'unfirst'),
        base.ADMIN,
        'Undo "first": the order of the queue decides again.',
        f'{_URL} (unfirst)',
    ),
    base.rule(
        base.rule_name('requests', 'hold'),
        f'{base.ADMIN} or ({base.PROJECT_MEMBER})',
        'Hold a request: it does not start until the hold ends.',
        f'{_URL} (hold)',
    ),
    base.rule(
        base.rule_name('requests', 'unhold'),
        f'{base.ADMIN} or ({base.PROJECT_MEMBER})',
        'End the hold of a request.',
        f'{_URL} (unhold)',
    ),
    base.rule(
        HOLD_AS_OPERATOR,
        base.ADMIN,
        'Set and end holds as an operator. Only operators can end such '
        'holds, and a request does not expire during such a hold.',
        f'{_URL} (hold, unhold)',
    ),
    base.rule(
        base.rule_name('requests', 'extend'),
        f'{base.ADMIN} or ({base.PROJECT_MEMBER})',
        'Extend the time limit of servers, up to the configured maximum.',
        f'{_URL} (extend)',
    ),
)
