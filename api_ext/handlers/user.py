# SPDX-License-Identifier: Apache-2.0

"""Handlers that show the heaviness of users."""

from api_ext import http_request
from api_ext import owners
from api_ext.handlers import owner
from api_ext.policies import user as policies

_USERS = owner.OwnerKind(
    singular='user',
    plural='users',
    method='list_users',
    shape=owners.parse_users,
    keys=owner.KEYS,
)


def index(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """List users with their heaviness."""
    return owner.index(caller_request, _USERS)


def show(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """Return the heaviness of one user."""
    caller_request.caller.require(
        policies.SHOW, user_id=caller_request.names['id']
    )
    return owner.show(caller_request, _USERS)
