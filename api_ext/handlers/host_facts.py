# SPDX-License-Identifier: Apache-2.0

"""Information about hosts in answers, and permissions to read it."""

from collections.abc import Mapping
from typing import Any

from api_ext import http_request
from api_ext.policies import host
from api_ext.policies import reason


def sees_hosts(caller_request: http_request.CallerRequest) -> bool:
    """Return whether the caller may see names of hosts."""
    return caller_request.caller.is_allowed(host.LIST)


def audience(caller_request: http_request.CallerRequest) -> str:
    """Return the audience of reasons to which the caller belongs:
    ``operator``, ``manager`` or ``member``.
    """
    caller = caller_request.caller
    if caller.is_allowed(reason.OPERATOR):
        return 'operator'
    own = caller.project_id
    if caller.is_allowed(reason.MANAGER, project_id=own):
        return 'manager'
    return 'member'


def missing_hosts(missing: Mapping[str, str]) -> list[Mapping[str, str]]:
    """Return hosts with the reasons for their missing answers, as a list."""
    return [
        {'host': name, 'reason': reason}
        for name, reason in sorted(missing.items())
    ]


def partial_fields(
    caller_request: http_request.CallerRequest, missing: Mapping[str, str]
) -> dict[str, Any]:
    """Return whether hosts are missing in an answer, and which ones if the
    caller may see hosts.
    """
    answer: dict[str, Any] = {'partial': bool(missing)}
    if sees_hosts(caller_request):
        answer['not_reached'] = missing_hosts(missing)
    return answer
