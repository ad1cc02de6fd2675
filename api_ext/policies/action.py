# SPDX-License-Identifier: Apache-2.0

"""Policy rules of actions on hosts, one per action."""

from collections.abc import Mapping
from typing import Any

from api_ext.policies import base
from api_ext.schemas import action

_WHAT = {
    'set-metric': 'Choose the metric of the domain.',
    'set-policy': 'Choose the policy of the domain.',
    'pause': 'Restore the former controls of a host, and stop steering it.',
    'resume': 'Steer a host again.',
    'reset': 'Restart a host with neutral weights.',
}
_URL = 'POST /fairness/{host}/action'


def of_body(body: Mapping[str, Any]) -> str:
    """Rule of the action in a body."""
    [of_action] = body
    return base.name('hosts', of_action)


RULES = tuple(
    base.rule(
        base.name('hosts', key), base.ADMIN, _WHAT[key], f'{_URL} ({key})'
    )
    for key in action.METHODS
)

ANY = tuple(rule.name for rule in RULES)
"""Rules of all actions: callers without any are refused before the body is
read.
"""
