# SPDX-License-Identifier: Apache-2.0

"""Handler that explains the treatment of an instance."""

from collections.abc import Mapping
import json
from typing import Any

from api_ext import agents as agents_module
from api_ext import faults
from api_ext import http_request
from api_ext import instance_states
from api_ext import validation
from api_ext.handlers import host_facts
from api_ext.handlers import instance_requests
from api_ext.policies import instance as policies
from api_ext.schemas import instance as schemas
from nova_fairness import exception
from nova_fairness.rpc import client

_METHOD = 'get_instance'
_READER = validation.AnswerReader(
    schemas.ITEM, 'uuid', 'user_id', 'project_id'
)
_UNKNOWN = 'Instance {} could not be found.'
_SILENT = 'The agents that may know instance {} do not answer.'


def show(asked: http_request.CallerRequest) -> http_request.Answer:
    """Show one instance, if the caller may see it."""
    uuid = asked.names['uuid'].lower()
    try:
        owner = _owner(asked, uuid)
    except LookupError:
        return {'instance': _gone(asked, uuid)}
    if owner is None:
        item = _item(asked, uuid, None)
        found = instance_requests.newest(asked, uuid, item['project_id'])
    else:
        found = instance_requests.newest(asked, uuid, owner.project_id)
        at_rest = instance_requests.is_at_rest(found)
        # Agents are not asked about instances that they cannot know.
        is_known = at_rest or not instance_states.runs(owner)
        item = (
            instance_states.item(uuid, owner)
            if is_known
            else _running(asked, uuid, owner, found)
        )
    return {'instance': instance_requests.joined(item, found)}


def _gone(asked: http_request.CallerRequest, uuid: str) -> dict[str, Any]:
    """A deleted instance, by the data of its request.

    :raises NotFound: if it has no request, or the caller may not see it.
    """
    found = instance_requests.newest(asked, uuid)
    if found is None:
        raise faults.NotFound(_UNKNOWN.format(uuid))
    owner = {key: found[key] for key in ('user_id', 'project_id')}
    _require(asked, uuid, **owner)
    return instance_states.gone(uuid, found)


def _running(
    asked: http_request.CallerRequest,
    uuid: str,
    owner: http_request.Owner,
    request: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """An instance that may run.

    :param request: request of the instance; ``None`` if unknown.
    :raises Unavailable: if neither agents nor the request know its state.
    """
    try:
        return _item(asked, uuid, owner)
    except faults.Unavailable:
        if instance_requests.is_quiet(request):
            raise
        return instance_states.item(uuid, owner)


def _item(
    asked: http_request.CallerRequest,
    uuid: str,
    owner: http_request.Owner | None,
) -> dict[str, Any]:
    """An instance, as agents know it.

    :param owner: owner of the instance, by Nova; ``None`` without Nova.
    :raises NotFound: if it does not exist, or the caller may not see it.
    """
    told = _ask_agents(asked, uuid, None if owner is None else owner.host)
    for name, item in told.by_host.items():
        if told.missing and not _may_see(asked, item):
            # The same answer as for an unknown instance: it does not reveal
            # this one.
            raise faults.Unavailable(_SILENT.format(uuid))
        _require(asked, uuid, item['user_id'], item['project_id'])
        if host_facts.sees_hosts(asked):
            item['host'] = name
        return item
    if told.missing:
        raise faults.Unavailable(_SILENT.format(uuid))
    if owner is not None:
        return instance_states.item(uuid, owner)
    raise faults.NotFound(_UNKNOWN.format(uuid))


def _owner(
    asked: http_request.CallerRequest, uuid: str
) -> http_request.Owner | None:
    """Ask Nova for owner and host of an instance; ``None`` without Nova.

    :raises LookupError: if it does not exist.
    :raises NotFound: if the caller may not see it.
    """
    if asked.locate is None:
        return None
    owner = asked.locate(asked.caller.context, uuid)
    _require(asked, uuid, owner.user_id, owner.project_id)
    return owner


def _require(
    asked: http_request.CallerRequest, uuid: str, user_id: str, project_id: str
) -> None:
    """Check that the caller may see the instance.

    :raises NotFound: otherwise, as if it did not exist.
    """
    if not _may_see(asked, {'user_id': user_id, 'project_id': project_id}):
        raise faults.NotFound(_UNKNOWN.format(uuid))


def _may_see(
    asked: http_request.CallerRequest, item: Mapping[str, Any]
) -> bool:
    owner = {key: item[key] for key in ('user_id', 'project_id')}
    return asked.caller.may(policies.SHOW, **owner)


def _ask_agents(
    asked: http_request.CallerRequest, uuid: str, host: str | None
) -> agents_module.AgentAnswers[dict[str, Any]]:
    """Ask the given host, or all; hosts without the instance are left out."""
    agents = asked.agents
    if host is not None:
        return agents_module.understood(_of_host(agents, uuid, host), _shape)
    answers = agents.look(agents.hosts(), _METHOD, uuid=uuid)
    return agents_module.understood(
        client.Answers(answers.by_host, answers.not_reached), _shape
    )


def _of_host(
    agents: agents_module.Agents, uuid: str, host: str
) -> client.Answers:
    try:
        answer = agents.call(host, _METHOD, uuid=uuid)
    except exception.UnknownInstance:
        return client.Answers({}, {})
    except exception.FairnessError as error:
        return client.Answers({}, {host: str(error)})
    return client.Answers({host: answer}, {})


def _shape(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The part of an agent's answer that callers may read.

    :raises ValueError: if it does not follow the schema.
    """
    try:
        item = _READER.read(answer['instance'], 'instance')
    except faults.BadRequest as error:
        raise ValueError(str(error)) from error
    # Not for all callers, or unknown to agents.
    for key in ('host', 'request_id', 'standing'):
        item.pop(key, None)
    return dict(json.loads(json.dumps(item, allow_nan=False)))
