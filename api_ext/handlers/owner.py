# SPDX-License-Identifier: Apache-2.0

"""Shared handlers of users and projects."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
from typing import Any

from api_ext import faults
from api_ext import http_request
from api_ext import owners
from api_ext import paging
from api_ext.handlers import host_facts

KEYS = (
    'id',
    'heaviness_quotas',
    'shadow_metric',
    'shadow_heaviness_quotas',
    'instances_count',
    'usage_quotas',
)


@dataclasses.dataclass(frozen=True)
class OwnerKind:
    """Kind of owners: users or projects.

    :ivar singular: key of one owner in answers.
    :ivar plural: key of the list in answers.
    :ivar method: RPC method of agents that lists the owners.
    :ivar shape: parses an answer of that method.
    :ivar keys: keys of the answer that every caller may read.
    """

    singular: str
    plural: str
    method: str
    shape: Callable[[Any], owners.HostOwners]
    keys: tuple[str, ...]


def index(
    caller_request: http_request.CallerRequest, kind: OwnerKind
) -> http_request.Answer:
    """List all owners of a kind."""
    wanted = paging.PageRequest.of(
        caller_request.query, 'id', caller_request.max_limit
    )
    told = caller_request.agents.query_all(kind.method, kind.shape)
    told.require_any()
    everybody = owners.merge_hosts(told.by_host)
    listed, more = paging.items_on_page(list(everybody.values()), wanted)
    return {
        **paging.page(
            kind.plural,
            caller_request.url,
            caller_request.query,
            [_visible_fields(caller_request, kind, item) for item in listed],
            str(listed[-1]['id']) if more else None,
        ),
        **host_facts.partial_fields(caller_request, told.missing),
    }


def show(
    caller_request: http_request.CallerRequest, kind: OwnerKind
) -> http_request.Answer:
    """Return one owner; the caller's permission must already be checked."""
    name = caller_request.names['id']
    told = caller_request.agents.query_all(kind.method, kind.shape)
    told.require_any()
    item = owners.merge_hosts(told.by_host, only=name).get(name)
    if item is not None:
        return {
            kind.singular: _visible_fields(caller_request, kind, item),
            **host_facts.partial_fields(caller_request, told.missing),
        }
    if told.missing:
        raise faults.Unavailable(
            f'{kind.singular.capitalize()} {name} has no instance on any '
            'host whose agent answers; some agents do not answer.'
        )
    raise faults.NotFound(
        f'{kind.singular.capitalize()} {name} could not be found: no host '
        'has an instance of it.'
    )


def _visible_fields(
    caller_request: http_request.CallerRequest,
    kind: OwnerKind,
    item: Mapping[str, Any],
) -> dict[str, Any]:
    keys = kind.keys
    if host_facts.sees_hosts(caller_request):
        keys = (*keys, 'hosts')
    # Without a shadow metric there are no fields of it.
    return {key: item[key] for key in keys if key in item}
