# SPDX-License-Identifier: Apache-2.0

"""Common code of users and projects."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
from typing import Any

from api_ext import asked as asked_module
from api_ext import faults
from api_ext import owners
from api_ext import paging
from api_ext.handlers import telling

KEYS = ('id', 'heaviness_quotas', 'instances_count', 'usage_quotas')


@dataclasses.dataclass(frozen=True)
class Kind:
    """Users or projects.

    :ivar method: of the agents, that lists them.
    :ivar shape: reads its answer.
    :ivar keys: what everybody who may see one is told.
    """

    singular: str
    plural: str
    method: str
    shape: Callable[[Any], owners.Account]
    keys: tuple[str, ...]


def index(asked: asked_module.Asked, kind: Kind) -> asked_module.Answer:
    """List all."""
    wanted = paging.Wanted.of(asked.query, 'id', asked.max_limit)
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
        **telling.partial(asked, told.missing),
    }


def show(asked: asked_module.Asked, kind: Kind) -> asked_module.Answer:
    """Show one; the caller's right was checked."""
    name = asked.names['id']
    told = asked.agents.told(kind.method, kind.shape)
    told.require_any()
    item = owners.merged(told.by_host, only=name).get(name)
    if item is not None:
        return {
            kind.singular: _shown(asked, kind, item),
            **telling.partial(asked, told.missing),
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
    asked: asked_module.Asked, kind: Kind, item: Mapping[str, Any]
) -> dict[str, Any]:
    keys = kind.keys
    if telling.sees_hosts(asked):
        keys = (*keys, 'hosts')
    return {key: item[key] for key in keys}
