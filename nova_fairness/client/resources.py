# SPDX-License-Identifier: Apache-2.0

"""Things of ``conn.fairness``, and lists of them that are read by pages."""

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
    """One thing; fields without a name here are attributes as well.

    :ivar answer: all fields, as the interface tells them and in its order.
    """

    _allow_unknown_attrs_in_body = True

    answer: Answer

    @classmethod
    def existing(cls, connection: Any = None, **answer: Any) -> Self:
        """Make it of an answer."""
        made = super().existing(connection=connection, **answer)
        made.answer = answer
        return made


class RequestResource(FairnessResource):
    """Servers that were asked for at once, and wait, run or ran."""

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
    """Waits of the requests of a project, of a flavor, or for a reason."""

    base_path = f'{ROOT}/waits'
    resources_key = 'waits'

    name = resource.Body('name', alternate_id=True)
    requests_count = resource.Body('requests_count')
    p50 = resource.Body('p50')
    p90 = resource.Body('p90')
    p95 = resource.Body('p95')


class ServerResource(FairnessResource):
    """A server: how it fares, and why."""

    base_path = f'{ROOT}/instances'
    resource_key = 'instance'

    uuid = resource.Body('uuid', alternate_id=True)
    summary = resource.Body('summary')
    usage = resource.Body('usage')
    weights = resource.Body('weights')


class PreemptionResource(FairnessResource):
    """A server that had to make room."""

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
    """Servers of a project with a spending rate."""

    base_path = f'{ROOT}/groups'
    resource_key = 'group'
    resources_key = 'groups'

    name = resource.Body('name', alternate_id=True)
    rate = resource.Body('rate')


class PriceResource(FairnessResource):
    """A price of a host: all its servers spend it for a class of resources."""

    base_path = f'{ROOT}/prices'
    resources_key = 'prices'

    host = resource.Body('host')
    price = resource.Body('price')


class PlanResource(FairnessResource):
    """Servers that are to move."""

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
    """A host that moves between batch and cloud."""

    base_path = f'{ROOT}/partition/hosts'
    resource_key = 'host'
    resources_key = 'hosts'

    name = resource.Body('name', alternate_id=True)
    state = resource.Body('state')


class UserResource(FairnessResource):
    """A user: how heavy they are."""

    base_path = f'{ROOT}/users'
    resource_key = 'user'
    resources_key = 'users'


class ProjectResource(FairnessResource):
    """A project: how heavy it is."""

    base_path = f'{ROOT}/projects'
    resource_key = 'project'
    resources_key = 'projects'


T = TypeVar('T', bound=FairnessResource)


class PagedList(Iterator[T], Generic[T]):
    """A list that is read page by page, as far as it is used.

    :param read: asks for a page, by the parameters of it.
    :param make: a thing of its fields.
    :ivar answers: fields of each thing, in place of the thing. Resources of
        openstacksdk take a millisecond each.
    :ivar partial: whether something is missing in what was read so far.
    :ivar not_reached: why hosts did not answer so far, by host; empty for
        those who may not see hosts.
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
        """Read up to the last page, or one that is empty."""
        more: Answer | None = query
        while more is not None:
            answer = read(more)
            self.partial = self.partial or bool(answer.get('partial'))
            self.not_reached |= reasons(answer.get('not_reached'))
            yield from answer[noun]
            more = _next(answer, noun) if answer[noun] else None


def reasons(listed: Any) -> dict[str, str]:
    """Why hosts are missing in an answer, by host."""
    return {
        str(item.get('host')): str(item.get('reason')) for item in listed or ()
    }


def _next(answer: Answer, noun: str) -> Answer | None:
    """Parameters of the next page, if there is one.

    The address in a link may be that of a machine behind a proxy.
    """
    for link in answer.get(f'{noun}_links') or ():
        if link.get('rel') == 'next':
            return dict(parse.parse_qsl(parse.urlsplit(link['href']).query))
    return None
