# SPDX-License-Identifier: Apache-2.0

"""Shared parts of policy rules."""

from collections.abc import Sequence

from oslo_policy import policy

ADMIN = 'role:admin'
OPERATOR = f'{ADMIN} or (role:reader and system_scope:all)'
"""Default check for administrators and readers of the system."""

PROJECT_READER = 'role:reader and project_id:%(project_id)s'
PROJECT_MEMBER = 'role:member and project_id:%(project_id)s'

EVERYBODY = 'role:reader or role:admin'

SCOPES = ('system', 'project')
"""Nova uses tokens of projects. Tokens of the system are also accepted,
because many answers do not belong to one project.
"""


def rule_name(noun: str, verb: str) -> str:
    """Return the name of a rule, such as ``os_fairness_api:hosts:list``."""
    return f'os_fairness_api:{noun}:{verb}'


def rule(
    of: str,
    default: str,
    description: str,
    *urls: str,
    scopes: Sequence[str] = SCOPES,
) -> policy.DocumentedRuleDefault:
    """Create a policy rule.

    :param of: name of the rule, see :func:`rule_name`.
    :param default: default check.
    :param description: text for operators.
    :param urls: method and URL, separated by a blank.
    :param scopes: scopes of tokens that the rule accepts.
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
