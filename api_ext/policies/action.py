# SPDX-License-Identifier: Apache-2.0

"""Policy rules of actions on hosts, one per action."""

from collections.abc import Mapping
from typing import Any

from api_ext.policies import base
from api_ext.schemas import action

_WHAT = {
    'set-metric': 'Select the metric of the domain.',
    'set-policy': 'Select the policy of the domain.',
    'pause': 'Pause the agent of a host: it restores the original values of '
    'all controls and changes no weights.',
    'resume': 'Let the agent of a paused host change weights again.',
    'reset': 'Set all weights of a host to neutral and start again.',
}
_URL = 'POST /fairness/{host}/action'


def rule_for_body(body: Mapping[str, Any]) -> str:
    """Return the name of the rule for the action in a body."""
    [of_action] = body
    return base.rule_name('hosts', of_action)


RULES = tuple(
    base.rule(
        base.rule_name('hosts', key), base.ADMIN, _WHAT[key], f'{_URL} ({key})'
    )
    for key in action.METHODS
)

ANY = tuple(rule.name for rule in RULES)
"""Names of the rules of all actions. A caller without any of these permissions
is refused before the body is read.
"""
