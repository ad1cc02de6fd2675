# SPDX-License-Identifier: Apache-2.0

"""Answers why an instance is treated as it is."""

from collections.abc import Mapping
import json
from typing import Any

from api_ext import agents as agents_module
from api_ext import faults
from api_ext import http_request
from api_ext import instance_states
from api_ext import validation
from api_ext.handlers import host_facts
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
    owner = _owner(asked, uuid)
    if owner is not None and not instance_states.runs(owner):
        return {'instance': instance_states.item(uuid, owner)}
    told = _told(asked, uuid, None if owner is None else owner.host)
    for name, item in told.by_host.items():
        if told.missing and not _may(asked, item):
            # As one that is unknown: nobody learns that it is there.
            raise faults.Unavailable(_SILENT.format(uuid))
        _require(asked, uuid, item['user_id'], item['project_id'])
        if host_facts.sees_hosts(asked):
            item['host'] = name
        return {'instance': item}
    if told.missing:
        raise faults.Unavailable(_SILENT.format(uuid))
    if owner is not None:
        return {'instance': instance_states.item(uuid, owner)}
    raise faults.NotFound(_UNKNOWN.format(uuid))


def _owner(
    asked: http_request.CallerRequest, uuid: str
) -> http_request.Owner | None:
    """Ask Nova whose an instance is and where, if Nova is there.

    :raises NotFound: if there is none, or it is not the caller's.
    """
    if asked.locate is None:
        return None
    try:
        owner = asked.locate(asked.caller.context, uuid)
    except LookupError as error:
        raise faults.NotFound(_UNKNOWN.format(uuid)) from error
    _require(asked, uuid, owner.user_id, owner.project_id)
    return owner


def _require(
    asked: http_request.CallerRequest, uuid: str, user_id: str, project_id: str
) -> None:
    """Go on if the caller may see the instance.

    :raises NotFound: otherwise, as if it were not there.
    """
    if not _may(asked, {'user_id': user_id, 'project_id': project_id}):
        raise faults.NotFound(_UNKNOWN.format(uuid))


def _may(asked: http_request.CallerRequest, item: Mapping[str, Any]) -> bool:
    owner = {key: item[key] for key in ('user_id', 'project_id')}
    return asked.caller.may(policies.SHOW, **owner)


def _told(
    asked: http_request.CallerRequest, uuid: str, host: str | None
) -> agents_module.AgentAnswers[dict[str, Any]]:
    """Ask the host, or all; those that do not know it are left out."""
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
    """Take what may be told.

    :raises ValueError: if it is not as the schema says.
    """
    try:
        item = _READER.read(answer['instance'], 'instance')
    except faults.BadRequest as error:
        raise ValueError(str(error)) from error
    # Not for everybody: whoever may know it is told who answered.
    item.pop('host', None)
    return dict(json.loads(json.dumps(item, allow_nan=False)))
