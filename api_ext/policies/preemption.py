# SPDX-License-Identifier: Apache-2.0

"""Policy rules of preemptions."""

from api_ext.policies import base

LIST = base.rule_name('preemptions', 'list')
LIST_ALL = base.rule_name('preemptions', 'list-all')
SHOW = base.rule_name('preemptions', 'show')

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
        'Show a preemption to the project of the victim or of the preemptor. '
        'The project of the preemptor does not see the names of the victim '
        'and of its owner.',
        'GET /fairness/preemptions/{uuid}',
    ),
)
