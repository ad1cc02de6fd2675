# SPDX-License-Identifier: Apache-2.0

"""Resources of ``conn.fairness``, and lists of them that are read page by
page.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from typing import Generic
from typing import Self
from typing import TypeVar
from urllib import parse

from openstack import resource

ROOT = '/fairness'

Answer = Mapping[str, Any]


class FairnessResource(resource.Resource):
    """Base class of resources; fields without an attribute here are attributes
    as well.

    :ivar answer: all fields, as the API returns them and in its order.
    """

    _allow_unknown_attrs_in_body = True

    answer: Answer

    @classmethod
    def existing(cls, connection: Any = None, **answer: Any) -> Self:
        """Create a resource from an answer of the API."""
        instance = super().existing(connection=connection, **answer)
        instance.answer = answer
        return instance


class RequestResource(FairnessResource):
    """A request: servers that were requested together."""

    base_path = f'{ROOT}/requests'
    resource_key = 'request'
    resources_key = 'requests'

    uuid = resource.Body('uuid', alternate_id=True)
    state = resource.Body('state')
    reason = resource.Body('reason')
    explanation = resource.Body('explanation')
    position = resource.Body('position')
    servers = resource.Body('servers')
    project_id = resource.Body('project_id')
    user_id = resource.Body('user_id')


class WaitResource(FairnessResource):
    """Waits of the requests of a project, of a flavor, or with a reason."""

    base_path = f'{ROOT}/waits'
    resources_key = 'waits'

    name = resource.Body('name', alternate_id=True)
    requests_count = resource.Body('requests_count')
    p50 = resource.Body('p50')
    p90 = resource.Body('p90')
    p95 = resource.Body('p95')


class ServerResource(FairnessResource):
    """A server: its usage, weights and a summary."""

    base_path = f'{ROOT}/instances'
    resource_key = 'instance'

    uuid = resource.Body('uuid', alternate_id=True)
    summary = resource.Body('summary')
    usage = resource.Body('usage')
    weights = resource.Body('weights')


class PreemptionResource(FairnessResource):
    """A preemption: the eviction of one server for a request."""

    base_path = f'{ROOT}/preemptions'
    resource_key = 'preemption'
    resources_key = 'preemptions'

    uuid = resource.Body('uuid', alternate_id=True)
    state = resource.Body('state')


class ShareResource(FairnessResource):
    """The share of an account."""

    base_path = f'{ROOT}/shares'
    resources_key = 'shares'

    name = resource.Body('name', alternate_id=True)
    share = resource.Body('share')


class LimitResource(FairnessResource):
    """The limits of an account."""

    base_path = f'{ROOT}/limits'
    resources_key = 'limits'

    account = resource.Body('account', alternate_id=True)
    budget = resource.Body('budget')
    budget_used = resource.Body('budget_used')
    budget_committed = resource.Body('budget_committed')
    budget_left = resource.Body('budget_left')
    budget_until = resource.Body('budget_until')


class GroupResource(FairnessResource):
    """A group of servers of a project with a spending rate."""

    base_path = f'{ROOT}/groups'
    resource_key = 'group'
    resources_key = 'groups'

    name = resource.Body('name', alternate_id=True)
    rate = resource.Body('rate')


class PriceResource(FairnessResource):
    """A price of a host: the spending rate of all its servers for a resource
    class.
    """

    base_path = f'{ROOT}/prices'
    resources_key = 'prices'

    host = resource.Body('host')
    price = resource.Body('price')


class PlanResource(FairnessResource):
    """A migration plan."""

    base_path = f'{ROOT}/plans'
    resource_key = 'plan'
    resources_key = 'plans'

    uuid = resource.Body('uuid', alternate_id=True)
    state = resource.Body('state')


class HostResource(FairnessResource):
    """A host with an agent."""

    base_path = f'{ROOT}/hosts'
    resource_key = 'host'
    resources_key = 'hosts'

    name = resource.Body('name', alternate_id=True)


class BorderHostResource(FairnessResource):
    """A host that moves between batch system and cloud."""

    base_path = f'{ROOT}/partition/hosts'
    resource_key = 'host'
    resources_key = 'hosts'

    name = resource.Body('name', alternate_id=True)
    state = resource.Body('state')


class UserResource(FairnessResource):
    """A user and the user's heaviness."""

    base_path = f'{ROOT}/users'
    resource_key = 'user'
    resources_key = 'users'


class ProjectResource(FairnessResource):
    """A project and its heaviness."""

    base_path = f'{ROOT}/projects'
    resource_key = 'project'
    resources_key = 'projects'


T = TypeVar('T', bound=FairnessResource)


class PagedList(Iterator[T], Generic[T]):
    """A list whose pages are read when they are needed.

    :param noun: key of the list in an answer.
    :param read: queries a page, given its parameters.
    :param query: parameters of the first page.
    :param make: creates a resource from its fields.
    :ivar answers: fields of each object, without a resource. Creating a
        resource of openstacksdk takes a millisecond.
    :ivar partial: whether objects are missing in the pages that were read.
    :ivar not_reached: reason by host, for hosts that did not answer; empty for
        callers who may not see hosts.
    """

    def __init__(
        self,
        noun: str,
        read: Callable[[Answer], Answer],
        query: Answer,
        make: Callable[[Answer], T],
    ) -> None:
        self.answers = self._read(noun, read, query)
        self.partial = False
        self.not_reached: dict[str, str] = {}
        self._make = make

    def __next__(self) -> T:
        return self._make(next(self.answers))

    def _read(
        self, noun: str, read: Callable[[Answer], Answer], query: Answer
    ) -> Iterator[Answer]:
        """Read pages until the last page or an empty page."""
        more: Answer | None = query
        while more is not None:
            answer = read(more)
            self.partial = self.partial or bool(answer.get('partial'))
            self.not_reached |= reasons_by_host(answer.get('not_reached'))
            yield from answer[noun]
            more = _next_page(answer, noun) if answer[noun] else None


def reasons_by_host(missing_hosts: Any) -> dict[str, str]:
    """Return the reasons why hosts are missing in an answer, by host."""
    return {
        str(item.get('host')): str(item.get('reason'))
        for item in missing_hosts or ()
    }


def _next_page(answer: Answer, noun: str) -> Answer | None:
    """Return the parameters of the next page; ``None`` if there is none.

    The address in a link may be that of a machine behind a proxy, so only the
    parameters are used.
    """
    for link in answer.get(f'{noun}_links') or ():
        if link.get('rel') == 'next':
            return dict(parse.parse_qsl(parse.urlsplit(link['href']).query))
    return None
