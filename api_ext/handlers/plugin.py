# SPDX-License-Identifier: Apache-2.0

"""Handler of installed metrics and policies."""

from collections.abc import Mapping
from typing import Any

from api_ext import http_request
from api_ext.handlers import host_facts

_UNUSABLE = 'unusable:'

Descriptions = Mapping[str, str]

_IN_FORCE = {'metrics': 'metric', 'policies': 'policy'}


def index(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """List the metrics and policies of all hosts."""
    told = caller_request.agents.query_all('get_plugins', parse_plugins)
    told.require_any()
    sees_hosts = host_facts.sees_hosts(caller_request)
    answer = {
        plural: [
            {singular: item}
            for item in _merged(told.by_host, plural, sees_hosts)
        ]
        for plural, singular in (('metrics', 'metric'), ('policies', 'policy'))
    }
    if not told.missing:
        return answer
    return {
        **answer,
        **host_facts.partial_fields(caller_request, told.missing),
    }


def parse_plugins(answer: Any) -> Mapping[str, Descriptions]:
    """Parse the names and descriptions in an agent's answer.

    :returns: descriptions by name, under ``metrics`` and ``policies``, and the
        name in use under ``metric`` and ``policy``; agents of an older release
        do not send the latter.
    """
    described: dict[str, Descriptions] = {
        plural: {
            str(item['name']): str(item['description'])
            for item in answer[plural]
        }
        for plural in _IN_FORCE
    }
    for singular in _IN_FORCE.values():
        name = answer.get(singular)
        described[singular] = {} if name is None else {str(name): ''}
    return described


def installed_names(
    by_host: Mapping[str, Mapping[str, Descriptions]], plural: str
) -> list[str]:
    """Return the sorted names of plugins that at least one host can use."""
    return [
        item['name']
        for item in _merged(by_host, plural, sees_hosts=True)
        if len(item['hosts_without']) < len(by_host)
    ]


def _merged(
    by_host: Mapping[str, Mapping[str, Descriptions]],
    plural: str,
    sees_hosts: bool,
) -> list[dict[str, Any]]:
    names = {name for known in by_host.values() for name in known[plural]}
    return [
        _item(
            name,
            {host: known[plural].get(name) for host, known in by_host.items()},
            sees_hosts,
            any(
                name in known.get(_IN_FORCE[plural], {})
                for known in by_host.values()
            ),
        )
        for name in sorted(names)
    ]


def _item(
    name: str,
    descriptions: Mapping[str, str | None],
    sees_hosts: bool,
    in_force: bool,
) -> dict[str, Any]:
    """Return the fields of a plugin; hosts that cannot load it are listed as
    hosts without it.
    """
    usable = {
        host: text
        for host, text in descriptions.items()
        if text is not None and not text.startswith(_UNUSABLE)
    }
    # The cause names files of a host.
    broken = filter(None, descriptions.values()) if sees_hosts else ()
    texts = [*usable.values(), *broken, '']
    item: dict[str, Any] = {
        'name': name,
        'description': texts[0],
        'in_force': in_force,
    }
    if sees_hosts:
        item['hosts_without'] = sorted(set(descriptions) - set(usable))
    return item
