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


def index(asked: http_request.CallerRequest) -> http_request.Answer:
    """List groups with spending rates of the caller's project, or of all."""
    whose = account_access.whose(asked, policies.LIST, policies.LIST_ALL)
    said = service.call_page(asked, 'list_groups', whose)
    return service.page(asked, said, 'groups', 'id', _GROUP)


def create(asked: http_request.CallerRequest) -> http_request.Answer:
    """Create a group with a spending rate."""
    body = asked.body
    said = service.call(
        asked,
        'create_group',
        project=_payer(asked),
        group=body['name'],
        rate=body['rate'],
        count=body.get('count', 1),
    )
    return {'group': service.checked(service.part(said, 'group'), _GROUP)}


def set_group(asked: http_request.CallerRequest) -> http_request.Answer:
    """Change the spending rate of a group, or delete the group."""
    body = asked.body
    given = {'project': _payer(asked), 'group': body['name']}
    if body.get('rate', 0) is None:
        service.call(asked, 'delete_group', **given)
        return {'group': None}
    more = {key: body[key] for key in ('rate', 'count') if key in body}
    said = service.call(asked, 'set_group', **given, **more)
    return {'group': service.checked(service.part(said, 'group'), _GROUP)}


def _payer(asked: http_request.CallerRequest) -> str:
    """Project of the group; checks that the caller may change it."""
    project = asked.body.get('project_id') or asked.caller.project_id
    if project is None:
        raise faults.BadRequest('The token has no project.')
    asked.caller.require(policies.SET, project_id=project)
    wanted = {key: asked.body.get(key) for key in ('rate', 'count')}
    asked.log(f'group {asked.body["name"]} of project {project}: {wanted}')
    return str(project)
