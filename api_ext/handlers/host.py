# SPDX-License-Identifier: Apache-2.0

"""Handlers that list and show hosts."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import functools
import json
from typing import Any

from api_ext import agents as agents_module
from api_ext import faults
from api_ext import http_request
from api_ext import owners
from api_ext import paging
from api_ext.handlers import host_facts
from nova_fairness import exception

_METHOD = 'get_status'

_Statuses = agents_module.AgentAnswers[paging.Item]
_Chosen = tuple[_Statuses, list[paging.Item], str | None]
"""Answers, items of the page, and the last name if another page follows."""


def index(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """List hosts with an agent."""
    wanted = paging.PageRequest.of(
        caller_request.query, 'name', caller_request.max_limit
    )
    choose = _page_by_name if wanted.is_by_name else _page_by_value
    told, listed, last = choose(
        caller_request, caller_request.agents.hosts(), wanted
    )
    return {
        **paging.page(
            'hosts', caller_request.url, caller_request.query, listed, last
        ),
        'partial': bool(told.missing),
        'not_reached': host_facts.missing_hosts(told.missing),
    }


def _page_by_name(
    caller_request: http_request.CallerRequest,
    hosts: Sequence[str],
    wanted: paging.PageRequest,
) -> _Chosen:
    """Query only the hosts of the page; the last host of the page may be
    silent.
    """
    names, more = paging.names_on_page(hosts, wanted)
    told = _statuses(caller_request, names)
    if len(names) == len(hosts):
        told.require_any()
    listed = [told.by_host[name] for name in names if name in told.by_host]
    return told, listed, names[-1] if more else None


def _page_by_value(
    caller_request: http_request.CallerRequest,
    hosts: Sequence[str],
    wanted: paging.PageRequest,
) -> _Chosen:
    """Query all hosts, because any of them may belong to the page."""
    told = _statuses(caller_request, hosts)
    told.require_any()
    listed, more = paging.items_on_page(list(told.by_host.values()), wanted)
    return told, listed, str(listed[-1]['name']) if more else None


def _statuses(
    caller_request: http_request.CallerRequest, names: Iterable[str]
) -> _Statuses:
    answers = caller_request.agents.call_responsive(names, _METHOD)
    return agents_module.parse_answers(
        answers, functools.partial(summary, now_s=caller_request.now_s)
    )


def show(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """Return the state of one host."""
    return {'host': _host_answer(caller_request, _METHOD)}


def preview(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """Return the effect of enforcement on the VMs of one host."""
    return {'preview': _host_answer(caller_request, 'get_preview')}


def _host_answer(
    caller_request: http_request.CallerRequest, method: str
) -> Mapping[str, Any]:
    """Return the complete answer of a host's agent.

    :raises Unavailable: if the host does not answer, or its answer cannot be
        parsed.
    """
    host = caller_request.names['host']
    agents = caller_request.agents
    agents.require(host)
    try:
        said = dict(agents.call(host, method))
        named = {'name': str(said.pop('host')), **said}
        # Answers of agents must be JSON, which has no NaN.
        told: Mapping[str, Any] = json.loads(
            json.dumps(named, allow_nan=False)
        )
        return told
    except exception.HostNotReached as error:
        raise faults.Unavailable(
            f'Host {host} was not reached: {error}'
        ) from error
    except exception.FairnessError as error:
        raise faults.Unavailable(f'Host {host} refused: {error}') from error
    except exception.UNREADABLE as error:
        raise faults.Unavailable(
            f'The answer of host {host} cannot be parsed.'
        ) from error


def summary(status: Mapping[str, Any], now_s: float) -> Mapping[str, Any]:
    """Return the summary of an agent's status.

    :param status: answer of ``get_status``.
    :param now_s: seconds since the Unix epoch.
    """
    peers = status['peers']
    return {
        'name': str(status['host']),
        'version': str(status['version']),
        'metric': str(status['metric']),
        'policy': str(status['policy']),
        'epoch': owners.parse_count(status['epoch']),
        'paused': bool(status['paused']),
        'enforce': bool(status['enforce']),
        'refused': str(status['refused']),
        'interval_s': owners.parse_number(status['interval_s']),
        'peers_count': len(peers),
        'left_out_count': sum(
            1 for peer in peers.values() if peer['left_out'] is not None
        ),
        **_round_fields(status['round'], now_s),
    }


def _round_fields(
    done: Mapping[str, Any] | None, now_s: float
) -> dict[str, Any]:
    if done is None:
        keys = (
            'round',
            'duration_s',
            'age_s',
            'instances_count',
            'users_count',
        )
        return dict.fromkeys(keys)
    began_s = owners.parse_number(done['wall_s'])
    return {
        'round': owners.parse_count(done['number']),
        'duration_s': owners.parse_number(done['duration_s']),
        'age_s': None if began_s is None else max(0.0, now_s - began_s),
        'instances_count': owners.parse_count(done['instances_count']),
        'users_count': owners.parse_count(done['users_count']),
    }
