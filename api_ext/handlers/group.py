# SPDX-License-Identifier: Apache-2.0

"""Handlers of groups with spending rates."""

from api_ext import faults
from api_ext import http_request
from api_ext import validation
from api_ext.handlers import account_access
from api_ext.handlers import service
from api_ext.policies import group as policies
from api_ext.schemas import group as schemas

_GROUP = validation.AnswerReader(schemas.ITEM, 'id', 'name', 'project_id')


def index(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """List the groups with spending rates of the caller's project, or of all
    projects.
    """
    whose = account_access.permitted_project(
        caller_request, policies.LIST, policies.LIST_ALL
    )
    said = service.call_page(caller_request, 'list_groups', whose)
    return service.page(caller_request, said, 'groups', 'id', _GROUP)


def create(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """Create a group with a spending rate."""
    body = caller_request.body
    said = service.call(
        caller_request,
        'create_group',
        project=_require_project(caller_request),
        group=body['name'],
        rate=body['rate'],
        count=body.get('count', 1),
    )
    return {
        'group': service.parse_fields(
            service.required_field(said, 'group'), _GROUP
        )
    }


def set_group(
    caller_request: http_request.CallerRequest,
) -> http_request.Answer:
    """Change the spending rate of a group, or delete the group."""
    body = caller_request.body
    given = {
        'project': _require_project(caller_request),
        'group': body['name'],
    }
    if body.get('rate', 0) is None:
        service.call(caller_request, 'delete_group', **given)
        return {'group': None}
    more = {key: body[key] for key in ('rate', 'count') if key in body}
    said = service.call(caller_request, 'set_group', **given, **more)
    return {
        'group': service.parse_fields(
            service.required_field(said, 'group'), _GROUP
        )
    }


def _require_project(caller_request: http_request.CallerRequest) -> str:
    """Return the project of the group, after a check that the caller may
    change the group.
    """
    project = (
        caller_request.body.get('project_id')
        or caller_request.caller.project_id
    )
    if project is None:
        raise faults.BadRequest('The token has no project.')
    caller_request.caller.require(policies.SET, project_id=project)
    wanted = {key: caller_request.body.get(key) for key in ('rate', 'count')}
    caller_request.log(
        f'group {caller_request.body["name"]} of project {project}: {wanted}'
    )
    return str(project)
