# SPDX-License-Identifier: Apache-2.0

"""Common handlers of users and projects."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
from typing import Any

from api_ext import faults
from api_ext import http_request
from api_ext import owners
from api_ext import paging
from api_ext.handlers import host_facts

KEYS = ('id', 'heaviness_quotas', 'instances_count', 'usage_quotas')


@dataclasses.dataclass(frozen=True)
class OwnerKind:
    """Users or projects.

    :ivar singular: name of one owner in answers.
    :ivar plural: name of the list in answers.
    :ivar method: method of agents that lists them.
    :ivar shape: reads an answer of that method.
    :ivar keys: keys of the answer that every reader sees.
    """

    singular: str
    plural: str
    method: str
    shape: Callable[[Any], owners.HostOwners]
    keys: tuple[str, ...]


def index(
    asked: http_request.CallerRequest, kind: OwnerKind
) -> http_request.Answer:
    """List all owners."""
    wanted = paging.PageRequest.of(asked.query, 'id', asked.max_limit)
    told = asked.agents.told(kind.method, kind.shape)
    told.require_any()
    everybody = owners.merged(told.by_host)
    listed, more = paging.items(list(everybody.values()), wanted)
    return {
        **paging.page(
            kind.plural,
            asked.url,
            asked.query,
            [_shown(asked, kind, item) for item in listed],
            str(listed[-1]['id']) if more else None,
        ),
        **host_facts.partial(asked, told.missing),
    }


def show(
    asked: http_request.CallerRequest, kind: OwnerKind
) -> http_request.Answer:
    """Show one owner; the permission is already checked."""
    name = asked.names['id']
    told = asked.agents.told(kind.method, kind.shape)
    told.require_any()
    item = owners.merged(told.by_host, only=name).get(name)
    if item is not None:
        return {
            kind.singular: _shown(asked, kind, item),
            **host_facts.partial(asked, told.missing),
        }
    if told.missing:
        raise faults.Unavailable(
            f'No agent that answers knows {kind.singular} {name}, and some '
            'do not answer.'
        )
    raise faults.NotFound(
        f'{kind.singular.capitalize()} {name} could not be found: no agent '
        'knows an instance of it.'
    )


def _shown(
    asked: http_request.CallerRequest, kind: OwnerKind, item: Mapping[str, Any]
) -> dict[str, Any]:
    keys = kind.keys
    if host_facts.sees_hosts(asked):
        keys = (*keys, 'hosts')
    return {key: item[key] for key in keys}
