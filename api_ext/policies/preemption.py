# SPDX-License-Identifier: Apache-2.0

"""Policy rules of preemptions."""

from api_ext.policies import base

LIST = base.name('preemptions', 'list')
LIST_ALL = base.name('preemptions', 'list-all')
SHOW = base.name('preemptions', 'show')

RULES = (
    base.rule(
        LIST,
        f'{base.OPERATOR} or ({base.PROJECT_READER})',
        "List preemptions with victims or preemptors of the caller's own "
        "project.",
        'GET /fairness/preemptions',
    ),
    base.rule(
        LIST_ALL,
        base.OPERATOR,
        'List preemptions of all projects.',
        'GET /fairness/preemptions (all_projects)',
    ),
    base.rule(
        SHOW,
        f'{base.OPERATOR} or ({base.PROJECT_READER})',
        'Show a preemption. The project is that of the victim or that of the '
        'preemptor. For the project of the preemptor, the names of the '
        'victim and of its owner are left out.',
        'GET /fairness/preemptions/{uuid}',
    ),
)
