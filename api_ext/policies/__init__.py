# SPDX-License-Identifier: Apache-2.0

"""Policy rules with their defaults."""

from collections.abc import Sequence

from oslo_policy import policy

from api_ext.policies import action
from api_ext.policies import base
from api_ext.policies import capacity
from api_ext.policies import document
from api_ext.policies import group
from api_ext.policies import host
from api_ext.policies import instance
from api_ext.policies import limit
from api_ext.policies import order
from api_ext.policies import partition
from api_ext.policies import plan
from api_ext.policies import plugin
from api_ext.policies import preemption
from api_ext.policies import price
from api_ext.policies import project
from api_ext.policies import reason
from api_ext.policies import request
from api_ext.policies import share
from api_ext.policies import status
from api_ext.policies import user

SCOPES = base.SCOPES
"""Scopes of tokens for rules without scopes of their own."""


def list_rules() -> Sequence[policy.DocumentedRuleDefault]:
    """Return all policy rules."""
    return [
        *plugin.RULES,
        *document.RULES,
        *action.RULES,
        *host.RULES,
        *user.RULES,
        *project.RULES,
        *instance.RULES,
        *request.RULES,
        *share.RULES,
        *limit.RULES,
        *order.RULES,
        *preemption.RULES,
        *group.RULES,
        *price.RULES,
        *reason.RULES,
        *capacity.RULES,
        *partition.RULES,
        *plan.RULES,
        *status.RULES,
    ]
