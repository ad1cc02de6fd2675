# SPDX-License-Identifier: Apache-2.0

"""Handlers that show the heaviness of projects."""

from api_ext import http_request
from api_ext import owners
from api_ext.handlers import owner
from api_ext.policies import project as policies

_PROJECTS = owner.OwnerKind(
    singular='project',
    plural='projects',
    method='list_projects',
    shape=owners.parse_projects,
    keys=(*owner.KEYS, 'scope'),
)


def index(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """List projects with their heaviness."""
    return owner.index(caller_request, _PROJECTS)


def show(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """Return the heaviness of one project."""
    caller_request.caller.require(
        policies.SHOW, project_id=caller_request.names['id']
    )
    return owner.show(caller_request, _PROJECTS)
