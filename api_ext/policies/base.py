# SPDX-License-Identifier: Apache-2.0

"""Parts of the rules."""

from collections.abc import Sequence

from oslo_policy import policy

ADMIN = 'role:admin'
OPERATOR = f'{ADMIN} or (role:reader and system_scope:all)'
"""Rule for administrators, and readers of the system."""

PROJECT_READER = 'role:reader and project_id:%(project_id)s'
PROJECT_MEMBER = 'role:member and project_id:%(project_id)s'

EVERYBODY = 'role:reader or role:admin'

SCOPES = ('system', 'project')
"""Tokens of projects are what Nova knows; those of the system are good here
as well, because nothing of this belongs to one project."""


def name(noun: str, verb: str) -> str:
    """Name of a rule."""
    return f'os_fairness_api:{noun}:{verb}'


def rule(
    of: str,
    default: str,
    description: str,
    *urls: str,
    scopes: Sequence[str] = SCOPES,
) -> policy.DocumentedRuleDefault:
    """Make a rule.

    :param of: its name, see :func:`name`.
    :param urls: method and URL, with a blank between.
    :param scopes: of tokens that are good for it.
    """
    operations: list[policy.Operation] = []
    for url in urls:
        method, _, path = url.partition(' ')
        operations.append({'method': method, 'path': path})
    return policy.DocumentedRuleDefault(
        name=of,
        check_str=default,
        description=description,
        operations=operations,
        scope_types=list(scopes),
    )
