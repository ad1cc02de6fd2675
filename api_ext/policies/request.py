# SPDX-License-Identifier: Apache-2.0

"""Requests that wait, and the room there is."""

from api_ext.policies import base

LIST = base.name('requests', 'list')
LIST_ALL = base.name('requests', 'list-all')
SHOW = base.name('requests', 'show')
SHARES = base.name('shares', 'list')
SHARES_ALL = base.name('shares', 'list-all')
SHARES_SET = base.name('shares', 'set')
SHARES_SET_DOMAIN = base.name('shares', 'set-domain')
LIMITS = base.name('limits', 'list')
LIMITS_ALL = base.name('limits', 'list-all')
LIMITS_SET = base.name('limits', 'set')
PREEMPTIONS = base.name('preemptions', 'list')
PREEMPTIONS_ALL = base.name('preemptions', 'list-all')
PREEMPTIONS_SHOW = base.name('preemptions', 'show')
GROUPS = base.name('groups', 'list')
GROUPS_ALL = base.name('groups', 'list-all')
GROUPS_SET = base.name('groups', 'set')
PRICES = base.name('prices', 'list')
PRICES_HISTORY = base.name('prices', 'history')
REASONS_MANAGER = base.name('reasons', 'manager')
REASONS_OPERATOR = base.name('reasons', 'operator')
HOLD_AS_OPERATOR = base.name('requests', 'hold-as-operator')
CAPACITY = base.name('capacity', 'show')

_URL = 'POST /fairness/requests/{uuid}/action'
_READER = 'role:reader and project_id:%(project_id)s'
_MEMBER = 'role:member and project_id:%(project_id)s'


RULES = (
    base.rule(
        LIST,
        f'{base.OPERATOR} or ({_READER})',
        "List the requests of the caller's own project.",
        'GET /fairness/requests',
    ),
    base.rule(
        LIST_ALL,
        base.OPERATOR,
        'List the requests of all projects.',
        'GET /fairness/requests (all_projects)',
    ),
    base.rule(
        SHOW,
        f'{base.OPERATOR} or ({_READER})',
        'Show a request, and why it waits. By default readers of its project '
        'may; for others it does not exist.',
        'GET /fairness/requests/{uuid}',
    ),
    base.rule(
        base.name('requests', 'cancel'),
        f'{base.ADMIN} or ({_MEMBER})',
        'Take back a build that waits, and delete its servers.',
        f'{_URL} (cancel)',
    ),
    base.rule(
        base.name('requests', 'release'),
        base.ADMIN,
        'Start a request whatever the plan is.',
        f'{_URL} (release)',
    ),
    base.rule(
        base.name('requests', 'first'),
        base.ADMIN,
        'Put a request before all others of its band.',
        f'{_URL} (first)',
    ),
    base.rule(
        base.name('requests', 'unfirst'),
        base.ADMIN,
        'Let a request that was put first stand where the order puts it.',
        f'{_URL} (unfirst)',
    ),
    base.rule(
        base.name('requests', 'hold'),
        f'{base.ADMIN} or ({_MEMBER})',
        'Keep a request from starting.',
        f'{_URL} (hold)',
    ),
    base.rule(
        base.name('requests', 'unhold'),
        f'{base.ADMIN} or ({_MEMBER})',
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
        f'{base.ADMIN} or ({_MEMBER})',
        'Let servers of a request run longer, as far as that is allowed.',
        f'{_URL} (extend)',
    ),
    base.rule(
        SHARES,
        f'{base.OPERATOR} or ({_READER})',
        "List shares and use of the caller's own project and its users.",
        'GET /fairness/shares',
    ),
    base.rule(
        SHARES_ALL,
        base.OPERATOR,
        'List shares and use of all accounts.',
        'GET /fairness/shares (all_projects)',
    ),
    base.rule(
        SHARES_SET,
        f'{base.ADMIN} or (role:manager and project_id:%(project_id)s)',
        'Set the share of an account, or take it back. By default managers '
        'of a project set those of its users and of the projects right below '
        'it.',
        'PUT /fairness/shares',
    ),
    base.rule(
        SHARES_SET_DOMAIN,
        '(role:admin or role:manager) and domain_id:%(domain_id)s',
        'Set the share of an account right below a domain, or take it back, '
        'with a token of the domain. Tokens of domains are good for nothing '
        'else: a role in one domain says nothing about others.',
        'PUT /fairness/shares',
        scopes=('domain',),
    ),
    base.rule(
        LIMITS,
        f'{base.OPERATOR} or ({_READER})',
        "List the limits of the caller's own project and its users.",
        'GET /fairness/limits',
    ),
    base.rule(
        LIMITS_ALL,
        base.OPERATOR,
        'List the limits of all accounts.',
        'GET /fairness/limits (all_projects)',
    ),
    base.rule(
        LIMITS_SET,
        f'{base.ADMIN} or (role:manager and project_id:%(project_id)s)',
        'Set limits of an account, or take them back. By default managers of '
        'a project set those of its users.',
        'PUT /fairness/limits',
    ),
    base.rule(
        PREEMPTIONS,
        f'{base.OPERATOR} or ({_READER})',
        "List when servers of the caller's own project had to make room, and "
        'when others made room for it.',
        'GET /fairness/preemptions',
    ),
    base.rule(
        PREEMPTIONS_ALL,
        base.OPERATOR,
        'List when servers of all projects had to make room.',
        'GET /fairness/preemptions (all_projects)',
    ),
    base.rule(
        PREEMPTIONS_SHOW,
        f'{base.OPERATOR} or ({_READER})',
        'Show a preemption. The project is that of the victim or that of the '
        'preemptor. For the project of the preemptor, the names of the '
        'victim and of its owner are left out.',
        'GET /fairness/preemptions/{uuid}',
    ),
    base.rule(
        GROUPS,
        f'{base.OPERATOR} or ({_READER})',
        "List the groups with spending rates of the caller's own project.",
        'GET /fairness/groups',
    ),
    base.rule(
        GROUPS_ALL,
        base.OPERATOR,
        'List the groups with spending rates of all projects.',
        'GET /fairness/groups (all_projects)',
    ),
    base.rule(
        GROUPS_SET,
        f'{base.ADMIN} or ({_MEMBER})',
        'Say what is spent for a group of servers of a project, change it, or '
        'take the group away.',
        'POST /fairness/groups',
        'PUT /fairness/groups',
    ),
    base.rule(
        PRICES,
        f'{base.OPERATOR} or ({_READER})',
        'List what all servers of each host spend. Callers who may not list '
        'hosts are told what other projects spend, rounded, under IDs that '
        'hold for their own project alone, and nothing where no group with a '
        'spending rate is set.',
        'GET /fairness/prices',
    ),
    base.rule(
        PRICES_HISTORY,
        base.OPERATOR,
        'List what all servers of a host have spent.',
        'GET /fairness/hosts/{host}/prices',
    ),
    base.rule(
        REASONS_MANAGER,
        'role:manager and project_id:%(project_id)s',
        'Read reasons of the own project as its managers do: with names of '
        'accounts above it.',
        'GET /fairness/requests',
        'GET /fairness/requests/{uuid}',
        'GET /fairness/preemptions',
        'GET /fairness/preemptions/{uuid}',
    ),
    base.rule(
        REASONS_OPERATOR,
        base.OPERATOR,
        'Read reasons as operators do: with names of other projects, of their '
        'requests and of hosts, and capacity with all flavors.',
        'GET /fairness/requests',
        'GET /fairness/requests/{uuid}',
        'GET /fairness/preemptions',
        'GET /fairness/preemptions/{uuid}',
        'GET /fairness/capacity',
    ),
    base.rule(
        CAPACITY,
        base.EVERYBODY,
        'Show how full the cloud is, and how many servers of each flavor '
        'start now. Flavors that are not public are told to the projects '
        'that may use them.',
        'GET /fairness/capacity',
    ),
)
