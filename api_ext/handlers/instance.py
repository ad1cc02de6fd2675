# SPDX-License-Identifier: Apache-2.0

"""Handler that explains the weights and usage of an instance."""

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
_SILENT = 'Agents that may measure instance {} do not answer.'


def show(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """Return one instance, if the caller may see it."""
    uuid = caller_request.names['uuid'].lower()
    try:
        owner = _owner(caller_request, uuid)
    except LookupError:
        return {'instance': _deleted_instance(caller_request, uuid)}
    if owner is None:
        item = _item(caller_request, uuid, None)
        found = instance_requests.newest_request(
            caller_request, uuid, item['project_id']
        )
    else:
        found = instance_requests.newest_request(
            caller_request, uuid, owner.project_id
        )
        at_rest = instance_requests.is_at_rest(found)
        # Agents are not asked about instances that they cannot know.
        is_known = at_rest or not instance_states.may_be_measured(owner)
        item = (
            instance_states.unmeasured_item(uuid, owner)
            if is_known
            else _running_instance(caller_request, uuid, owner, found)
        )
    return {'instance': instance_requests.with_request(item, found)}


def _deleted_instance(
    caller_request: http_request.CallerRequest, uuid: str
) -> dict[str, Any]:
    """Return a deleted instance, with the data of its request.

    :raises NotFound: if it has no request, or the caller may not see it.
    """
    found = instance_requests.newest_request(caller_request, uuid)
    if found is None:
        raise faults.NotFound(_UNKNOWN.format(uuid))
    owner = {key: found[key] for key in ('user_id', 'project_id')}
    _require(caller_request, uuid, **owner)
    return instance_states.deleted_item(uuid, found)


def _running_instance(
    caller_request: http_request.CallerRequest,
    uuid: str,
    owner: http_request.Owner,
    request: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return an instance that may run.

    :param request: request of the instance; ``None`` if unknown.
    :raises Unavailable: if neither the agents nor the request have its state.
    """
    try:
        return _item(caller_request, uuid, owner)
    except faults.Unavailable:
        if instance_requests.has_no_effect(request):
            raise
        return instance_states.unmeasured_item(uuid, owner)


def _item(
    caller_request: http_request.CallerRequest,
    uuid: str,
    owner: http_request.Owner | None,
) -> dict[str, Any]:
    """Return an instance with the measurements of agents.

    :param owner: owner of the instance in Nova; ``None`` without Nova.
    :raises NotFound: if it does not exist, or the caller may not see it.
    :raises Unavailable: if agents that may measure it do not answer.
    """
    told = _ask_agents(
        caller_request, uuid, None if owner is None else owner.host
    )
    for name, item in told.by_host.items():
        if told.missing and not _may_see(caller_request, item):
            # The same answer as for an unknown instance: it does not reveal
            # this one.
            raise faults.Unavailable(_SILENT.format(uuid))
        _require(caller_request, uuid, item['user_id'], item['project_id'])
        if host_facts.sees_hosts(caller_request):
            item['host'] = name
        return item
    if told.missing:
        raise faults.Unavailable(_SILENT.format(uuid))
    if owner is not None:
        return instance_states.unmeasured_item(uuid, owner)
    raise faults.NotFound(_UNKNOWN.format(uuid))


def _owner(
    caller_request: http_request.CallerRequest, uuid: str
) -> http_request.Owner | None:
    """Query Nova for the owner and the host of an instance; ``None`` without
    Nova.

    :raises LookupError: if it does not exist.
    :raises NotFound: if the caller may not see it.
    """
    if caller_request.locate is None:
        return None
    owner = caller_request.locate(caller_request.caller.context, uuid)
    _require(caller_request, uuid, owner.user_id, owner.project_id)
    return owner


def _require(
    caller_request: http_request.CallerRequest,
    uuid: str,
    user_id: str,
    project_id: str,
) -> None:
    """Check that the caller may see an instance.

    :raises NotFound: if not, as if the instance did not exist.
    """
    if not _may_see(
        caller_request, {'user_id': user_id, 'project_id': project_id}
    ):
        raise faults.NotFound(_UNKNOWN.format(uuid))


def _may_see(
    caller_request: http_request.CallerRequest, item: Mapping[str, Any]
) -> bool:
    owner = {key: item[key] for key in ('user_id', 'project_id')}
    return caller_request.caller.is_allowed(policies.SHOW, **owner)


def _ask_agents(
    caller_request: http_request.CallerRequest, uuid: str, host: str | None
) -> agents_module.AgentAnswers[dict[str, Any]]:
    """Query the agent of the given host, or all agents; hosts without the
    instance are omitted.
    """
    agents = caller_request.agents
    if host is not None:
        return agents_module.parse_answers(
            _ask_agent(agents, uuid, host), _shape
        )
    answers = agents.call_responsive(agents.hosts(), _METHOD, uuid=uuid)
    return agents_module.parse_answers(
        client.Answers(answers.by_host, answers.not_reached), _shape
    )


def _ask_agent(
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
    """Return the fields of an agent's answer that callers may read.

    :raises ValueError: if the answer does not follow the schema.
    """
    try:
        item = _READER.read(answer['instance'], 'instance')
    except faults.BadRequest as error:
        raise ValueError(str(error)) from error
    # Not for all callers, or unknown to agents.
    for key in ('host', 'request_id', 'standing'):
        item.pop(key, None)
    return dict(json.loads(json.dumps(item, allow_nan=False)))
