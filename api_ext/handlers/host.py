# SPDX-License-Identifier: Apache-2.0

"""Handlers that show hosts."""

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
"""Answers, items of the page, and name of the last item if a page follows."""


def index(asked: http_request.CallerRequest) -> http_request.Answer:
    """List hosts."""
    wanted = paging.PageRequest.of(asked.query, 'name', asked.max_limit)
    choose = _by_name if wanted.is_by_name else _by_value
    told, listed, last = choose(asked, asked.agents.hosts(), wanted)
    return {
        **paging.page('hosts', asked.url, asked.query, listed, last),
        'partial': bool(told.missing),
        'not_reached': host_facts.why_not(told.missing),
    }


def _by_name(
    asked: http_request.CallerRequest,
    hosts: Sequence[str],
    wanted: paging.PageRequest,
) -> _Chosen:
    """Ask only hosts of the page; its last host may be silent."""
    names, more = paging.names(hosts, wanted)
    told = _statuses(asked, names)
    if len(names) == len(hosts):
        told.require_any()
    listed = [told.by_host[name] for name in names if name in told.by_host]
    return told, listed, names[-1] if more else None


def _by_value(
    asked: http_request.CallerRequest,
    hosts: Sequence[str],
    wanted: paging.PageRequest,
) -> _Chosen:
    """Ask all hosts, because any may be on the page."""
    told = _statuses(asked, hosts)
    told.require_any()
    listed, more = paging.items(list(told.by_host.values()), wanted)
    return told, listed, str(listed[-1]['name']) if more else None


def _statuses(
    asked: http_request.CallerRequest, names: Iterable[str]
) -> _Statuses:
    answers = asked.agents.look(names, _METHOD)
    return agents_module.understood(
        answers, functools.partial(summary, now_s=asked.now_s)
    )


def show(asked: http_request.CallerRequest) -> http_request.Answer:
    """Show one host."""
    return {'host': _host_answer(asked, _METHOD)}


def preview(asked: http_request.CallerRequest) -> http_request.Answer:
    """Show how enforcement would change the VMs of one host."""
    return {'preview': _host_answer(asked, 'get_preview')}


def _host_answer(
    asked: http_request.CallerRequest, method: str
) -> Mapping[str, Any]:
    """The whole answer of a host."""
    host = asked.names['host']
    agents = asked.agents
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
            f'The answer of host {host} cannot be understood.'
        ) from error


def summary(status: Mapping[str, Any], now_s: float) -> Mapping[str, Any]:
    """Summary of an agent's status.

    :param now_s: seconds of the Unix epoch.
    """
    peers = status['peers']
    return {
        'name': str(status['host']),
        'version': str(status['version']),
        'metric': str(status['metric']),
        'policy': str(status['policy']),
        'epoch': owners.whole(status['epoch']),
        'paused': bool(status['paused']),
        'enforce': bool(status['enforce']),
        'refused': str(status['refused']),
        'interval_s': owners.number(status['interval_s']),
        'peers_count': len(peers),
        'left_out_count': sum(
            1 for peer in peers.values() if peer['left_out'] is not None
        ),
        **_of_round(status['round'], now_s),
    }


def _of_round(done: Mapping[str, Any] | None, now_s: float) -> dict[str, Any]:
    if done is None:
        keys = (
            'round',
            'duration_s',
            'age_s',
            'instances_count',
            'users_count',
        )
        return dict.fromkeys(keys)
    began_s = owners.number(done['wall_s'])
    return {
        'round': owners.whole(done['number']),
        'duration_s': owners.number(done['duration_s']),
        'age_s': None if began_s is None else max(0.0, now_s - began_s),
        'instances_count': owners.whole(done['instances_count']),
        'users_count': owners.whole(done['users_count']),
    }
