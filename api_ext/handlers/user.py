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
    shape=owners.of_users,
    keys=owner.KEYS,
)


def index(asked: http_request.CallerRequest) -> http_request.Answer:
    """List users."""
    return owner.index(asked, _USERS)


def show(asked: http_request.CallerRequest) -> http_request.Answer:
    """Show one user."""
    asked.caller.require(policies.SHOW, user_id=asked.names['id'])
    return owner.show(asked, _USERS)
