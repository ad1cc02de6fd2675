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
    shape=owners.of_projects,
    keys=(*owner.KEYS, 'scope'),
)


def index(asked: http_request.CallerRequest) -> http_request.Answer:
    """List projects."""
    return owner.index(asked, _PROJECTS)


def show(asked: http_request.CallerRequest) -> http_request.Answer:
    """Show one project."""
    asked.caller.require(policies.SHOW, project_id=asked.names['id'])
    return owner.show(asked, _PROJECTS)
