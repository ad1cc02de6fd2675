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
"""Value in place of a host's name that means all hosts of the domain."""

_PLURALS = {'set-metric': 'metrics', 'set-policy': 'policies'}

_READER = validation.AnswerReader(schemas.DONE, 'from_round')


def perform(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """Execute one action on one host or on all hosts."""
    [(action, given)] = caller_request.body.items()
    caller_request.caller.require(policies.rule_for_body(caller_request.body))
    host = caller_request.names['host']
    caller_request.log(f'{action} of {host}')
    agents = caller_request.agents
    if host == ALL:
        answers = _act_on_all(agents, action, given or {})
    else:
        answers = _act_on_host(agents, host, action, given or {})
    return _answer(action, answers)


def _act_on_host(
    agents: agents_module.Agents,
    host: str,
    action: str,
    given: Mapping[str, Any],
) -> client_module.Answers:
    agents.require(host)
    try:
        method = schemas.METHODS[action]
        answer = (
            agents.set_through_host(host, method, given['name'])
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


def _act_on_all(
    agents: agents_module.Agents, action: str, given: Mapping[str, Any]
) -> client_module.Answers:
    method = schemas.METHODS[action]
    if action in schemas.CHOOSING:
        try:
            answers = agents.set_for_all(method, given['name'])
        except exception.NotAllowed as error:
            raise faults.Conflict(str(error)) from error
    else:
        answers = agents.call_all(agents.hosts(fresh=True), method)
    if answers.by_host:
        return answers
    if not answers.refused:
        raise faults.Unavailable('No host was reached.')
    if action in schemas.CHOOSING:
        _require_installed(agents, _PLURALS[action], given['name'])
    why = agents_module.short_reasons(answers.refused)
    raise faults.Conflict(
        f'{action}: no host executed it: '
        + '; '.join(f'{host}: {reason}' for host, reason in why.items())
    )


def _require_installed(
    agents: agents_module.Agents, plural: str, name: str
) -> None:
    """Check that at least one host has a plugin.

    :raises BadRequest: if no host has it; the error lists the installed
        plugins.
    """
    told = agents.query_all('get_plugins', plugin.parse_plugins)
    names = plugin.installed_names(told.by_host, plural)
    if names and name not in names:
        raise faults.BadRequest(
            f'{name} is not installed; installed {plural}: ' + ', '.join(names)
        )


def _answer(
    action: str, answers: client_module.Answers
) -> http_request.Answer:
    done = agents_module.parse_answers(answers, _parse_result)
    refused = agents_module.short_reasons(answers.refused)
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
        'not_reached': host_facts.missing_hosts(not_reached),
        'refused': host_facts.missing_hosts(refused),
    }


def _parse_result(answer: Any) -> dict[str, Any]:
    try:
        return dict(_READER.read(answer, 'answer'))
    except faults.BadRequest as error:
        raise ValueError(str(error)) from error
