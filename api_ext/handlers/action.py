# SPDX-License-Identifier: Apache-2.0

"""Handler of actions on hosts."""

from collections.abc import Mapping
from typing import Any

from api_ext import agents as agents_module
from api_ext import faults
from api_ext import http_request
from api_ext import validation
from api_ext.handlers import host_facts
from api_ext.handlers import plugin
from api_ext.policies import action as policies
from api_ext.schemas import action as schemas
from nova_fairness import exception
from nova_fairness.rpc import client as client_module

ALL = 'all'
"""Value in place of a host's name: every host of the domain."""

_PLURALS = {'set-metric': 'metrics', 'set-policy': 'policies'}

_READER = validation.AnswerReader(schemas.DONE, 'from_round')


def perform(asked: http_request.CallerRequest) -> http_request.Answer:
    """Carry out one action on one host or on all hosts."""
    [(action, given)] = asked.body.items()
    asked.caller.require(policies.of_body(asked.body))
    host = asked.names['host']
    asked.log(f'{action} of {host}')
    agents = asked.agents
    if host == ALL:
        answers = _all(agents, action, given or {})
    else:
        answers = _one(agents, host, action, given or {})
    return _answer(action, answers)


def _one(
    agents: agents_module.Agents,
    host: str,
    action: str,
    given: Mapping[str, Any],
) -> client_module.Answers:
    agents.require(host)
    try:
        method = schemas.METHODS[action]
        answer = (
            agents.set_by(host, method, given['name'])
            if action in schemas.CHOOSING
            else agents.call(host, method, **given)
        )
    except exception.HostNotReached as error:
        raise faults.Unavailable(
            f'Host {host} was not reached: {error}'
        ) from error
    except (exception.PluginError, exception.BadArgument) as error:
        raise faults.BadRequest(f'Host {host} refused: {error}') from error
    except exception.FairnessError as error:
        raise faults.Conflict(f'Host {host} refused: {error}') from error
    return client_module.Answers({host: answer}, {})


def _all(
    agents: agents_module.Agents, action: str, given: Mapping[str, Any]
) -> client_module.Answers:
    method = schemas.METHODS[action]
    if action in schemas.CHOOSING:
        try:
            answers = agents.set_for_all(method, given['name'])
        except exception.NotAllowed as error:
            raise faults.Conflict(str(error)) from error
    else:
        answers = agents.to_all(agents.hosts(fresh=True), method)
    if answers.by_host:
        return answers
    if not answers.refused:
        raise faults.Unavailable('No host was reached.')
    if action in schemas.CHOOSING:
        _require_installed(agents, _PLURALS[action], given['name'])
    why = agents_module.reasons(answers.refused)
    raise faults.Conflict(
        'No host carried it out: '
        + '; '.join(f'{host}: {reason}' for host, reason in why.items())
    )


def _require_installed(
    agents: agents_module.Agents, plural: str, name: str
) -> None:
    """Check that at least one host has a plugin.

    :raises BadRequest: otherwise; the error lists installed plugins.
    """
    told = agents.told('get_plugins', plugin.shape)
    names = plugin.installed(told.by_host, plural)
    if names and name not in names:
        raise faults.BadRequest(
            f'{name} is not among the {plural} that are installed: '
            + ', '.join(names)
        )


def _answer(
    action: str, answers: client_module.Answers
) -> http_request.Answer:
    done = agents_module.understood(answers, _reported)
    refused = agents_module.reasons(answers.refused)
    not_reached = {
        host: reason
        for host, reason in done.missing.items()
        if host not in refused
    }
    return {
        'action': action,
        'hosts': [
            {'name': host, **said} for host, said in done.by_host.items()
        ],
        'not_reached': host_facts.why_not(not_reached),
        'refused': host_facts.why_not(refused),
    }


def _reported(answer: Any) -> dict[str, Any]:
    try:
        return dict(_READER.read(answer, 'answer'))
    except faults.BadRequest as error:
        raise ValueError(str(error)) from error
