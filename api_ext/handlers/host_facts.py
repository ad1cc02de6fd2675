# SPDX-License-Identifier: Apache-2.0

"""Facts about hosts, and permissions to read them."""

from collections.abc import Mapping
from typing import Any

from api_ext import http_request
from api_ext.policies import host
from api_ext.policies import reason


def sees_hosts(asked: http_request.CallerRequest) -> bool:
    """Whether the caller may see names of hosts."""
    return asked.caller.may(host.LIST)


def audience(asked: http_request.CallerRequest) -> str:
    """Audience of reasons to which the caller belongs."""
    caller = asked.caller
    if caller.may(reason.OPERATOR):
        return 'operator'
    own = caller.project_id
    if caller.may(reason.MANAGER, project_id=own):
        return 'manager'
    return 'member'


def why_not(missing: Mapping[str, str]) -> list[Mapping[str, str]]:
    """List of hosts with reasons."""
    return [
        {'host': name, 'reason': reason}
        for name, reason in sorted(missing.items())
    ]


def partial(
    asked: http_request.CallerRequest, missing: Mapping[str, str]
) -> dict[str, Any]:
    """Whether an answer is partial, and why if the caller may see hosts."""
    answer: dict[str, Any] = {'partial': bool(missing)}
    if sees_hosts(asked):
        answer['not_reached'] = why_not(missing)
    return answer
