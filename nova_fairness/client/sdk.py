# SPDX-License-Identifier: Apache-2.0

"""``conn.fairness``: the HTTP interface as a service of openstacksdk.

:func:`register` adds it to a connection; see the page about scripts.
"""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import re
from typing import Any
from typing import TYPE_CHECKING
from typing import TypeVar
from urllib import parse

from openstack import exceptions
from openstack import proxy
from openstack import resource
from openstack import service_description
from openstack import utils

_ROOT = '/fairness'

_VERSIONED = re.compile(r'/v2(\.\d+)?(/|$)')
"""Some clouds register the compute service without its version."""

GIVEN_UP = frozenset({'ended', 'cancelled', 'expired', 'failed'})
"""States in which a request stays."""

PLAN_ENDS = frozenset({'partial', 'done', 'stopped', 'expired', 'failed'})
"""States in which a plan moves nothing any more."""

POLL_S = 2.0
"""Between two times that is looked whether a wait is over."""


class FairnessResource(resource.Resource):
    """One thing; fields without a name here are attributes as well."""

    _allow_unknown_attrs_in_body = True
    allow_list = True
    allow_fetch = True

    _query_mapping = resource.QueryParameters(
        'all_projects', 'sort_key', 'sort_dir', 'preemptible'
    )

    @classmethod
    def _get_next_link(
        cls, uri: str, _response: Any, data: Any, *_: Any
    ) -> Any:
        """Path and query of the next page.

        The address in a link may be that of a machine behind a proxy.
        """
        for link in data.get(f'{cls.resources_key}_links') or ():
            if link.get('rel') == 'next':
                query = parse.urlsplit(link['href']).query
                return uri, dict(parse.parse_qsl(query))
        return None, {}


class RequestResource(FairnessResource):
    """Servers that were asked for at once, and wait, run or ran."""

    base_path = f'{_ROOT}/requests'
    resource_key = 'request'
    resources_key = 'requests'

    _query_mapping = resource.QueryParameters(
        'all_projects',
        'ended',
        'host',
        'preemptible',
        'project_id',
        'running',
        'server',
        'since',
        'state',
        'user_id',
    )

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

    allow_fetch = False
    base_path = f'{_ROOT}/waits'
    resources_key = 'waits'

    _query_mapping = resource.QueryParameters(
        'all_projects', 'by', 'project_id', 'since'
    )

    name = resource.Body('name', alternate_id=True)
    requests_count = resource.Body('requests_count')
    p50 = resource.Body('p50')
    p90 = resource.Body('p90')
    p95 = resource.Body('p95')


class ServerResource(FairnessResource):
    """A server: how it fares, and why."""

    allow_list = False
    base_path = f'{_ROOT}/instances'
    resource_key = 'instance'

    uuid = resource.Body('uuid', alternate_id=True)
    summary = resource.Body('summary')
    usage = resource.Body('usage')
    weights = resource.Body('weights')


class PreemptionResource(FairnessResource):
    """A server that had to make room."""

    base_path = f'{_ROOT}/preemptions'
    resource_key = 'preemption'
    resources_key = 'preemptions'

    uuid = resource.Body('uuid', alternate_id=True)
    state = resource.Body('state')


class ShareResource(FairnessResource):
    """The share of an account."""

    allow_fetch = False
    base_path = f'{_ROOT}/shares'
    resources_key = 'shares'

    name = resource.Body('name', alternate_id=True)
    share = resource.Body('share')


class LimitResource(FairnessResource):
    """The limits of an account."""

    allow_fetch = False
    base_path = f'{_ROOT}/limits'
    resources_key = 'limits'

    account = resource.Body('account', alternate_id=True)
    budget = resource.Body('budget')
    budget_used = resource.Body('budget_used')
    budget_committed = resource.Body('budget_committed')
    budget_left = resource.Body('budget_left')
    budget_until = resource.Body('budget_until')


class PlanResource(FairnessResource):
    """Servers that are to move."""

    base_path = f'{_ROOT}/plans'
    resource_key = 'plan'
    resources_key = 'plans'

    uuid = resource.Body('uuid', alternate_id=True)
    state = resource.Body('state')


class HostResource(FairnessResource):
    """A host with an agent."""

    base_path = f'{_ROOT}/hosts'
    resource_key = 'host'
    resources_key = 'hosts'

    name = resource.Body('name', alternate_id=True)


class BorderHostResource(FairnessResource):
    """A host that moves between batch and cloud."""

    base_path = f'{_ROOT}/partition/hosts'
    resource_key = 'host'
    resources_key = 'hosts'

    name = resource.Body('name', alternate_id=True)
    state = resource.Body('state')


class UserResource(FairnessResource):
    """A user: how heavy they are."""

    base_path = f'{_ROOT}/users'
    resource_key = 'user'
    resources_key = 'users'


class ProjectResource(FairnessResource):
    """A project: how heavy it is."""

    base_path = f'{_ROOT}/projects'
    resource_key = 'project'
    resources_key = 'projects'


T = TypeVar('T', bound=FairnessResource)


class FairnessProxy(proxy.Proxy):
    """Methods of ``conn.fairness``.

    Every method raises ``openstack.exceptions.HttpException`` with the reason
    if it is refused. Projects, users and servers are named by ids.
    """

    def request(self, url: str, method: str, *args: Any, **more: Any) -> Any:
        """Ask the compute endpoint, which may lack its version."""
        if f'/{url.lstrip("/")}'.startswith(_ROOT):
            path = parse.urlsplit(self.get_endpoint() or '').path
            if not _VERSIONED.search(path):
                url = f'/v2.1/{url.lstrip("/")}'
        return super().request(url, method, *args, **more)

    def attach(self, connection: Any) -> None:
        """Count and cache as a connection of openstacksdk does."""
        self._connection = connection

    def requests(self, **query: Any) -> Iterator[RequestResource]:
        """Requests, the oldest first; those that just run or ended on demand.

        :param query: filters of the HTTP interface: ``all_projects``,
            ``ended``, ``host``, ``preemptible``, ``project_id``, ``running``,
            ``server``, ``since``, ``state``, ``user_id``; ``limit`` (of a
            page) and ``marker``.
        """
        return self._listed(RequestResource, query)

    def get_request(self, request: str | RequestResource) -> RequestResource:
        """One request."""
        return self._get(RequestResource, request)

    def request_events(
        self, request: str | RequestResource
    ) -> list[Mapping[str, Any]]:
        """The history of a request, the oldest event first."""
        uuid = parse.quote(_id(request), safe='')
        path = f'{RequestResource.base_path}/{uuid}?events=true'
        found = self._answer('GET', path)['request'].get('events')
        return list(found or ())

    def waits(self, **query: Any) -> Iterator[WaitResource]:
        """Seconds that requests waited until they were sent to Nova.

        :param query: ``by`` (``project``, ``flavor`` or ``reason``),
            ``since``, ``project_id``, ``all_projects``, ``limit`` (of a
            page), ``marker``.
        """
        return self._listed(WaitResource, query)

    def cancel_request(
        self, request: str | RequestResource
    ) -> RequestResource:
        """Take a build back that waits, and delete its servers."""
        return self._acted(RequestResource, request, 'cancel')

    def release_request(
        self, request: str | RequestResource, *, without_room: bool = False
    ) -> RequestResource:
        """Start a request whatever the plan is, where there is room.

        :param without_room: Nova looks for room, and destroys the request if
            there is none.
        """
        order = {'without_room': True} if without_room else None
        return self._acted(RequestResource, request, 'release', order)

    def put_request_first(
        self, request: str | RequestResource
    ) -> RequestResource:
        """Let a request be next."""
        return self._acted(RequestResource, request, 'first')

    def put_request_back(
        self, request: str | RequestResource
    ) -> RequestResource:
        """Let a request stand where the order puts it."""
        return self._acted(RequestResource, request, 'unfirst')

    def hold_request(
        self, request: str | RequestResource, why: str | None = None
    ) -> RequestResource:
        """Keep a request from starting.

        :param why: text for its owners.
        """
        order = None if why is None else {'why': why}
        return self._acted(RequestResource, request, 'hold', order)

    def unhold_request(
        self, request: str | RequestResource
    ) -> RequestResource:
        """End the hold of a request."""
        return self._acted(RequestResource, request, 'unhold')

    def extend_request(
        self, request: str | RequestResource, seconds: float
    ) -> RequestResource:
        """Let servers of a request run longer."""
        return self._acted(
            RequestResource, request, 'extend', {'seconds': seconds}
        )

    def wait_for_request(
        self,
        request: str | RequestResource,
        states: Collection[str] = ('active',),
        wait: float | None = None,
        interval: float = POLL_S,
    ) -> RequestResource:
        """Wait until a request is in one of some states.

        :param wait: seconds at most; ``None`` for no limit.
        :param interval: seconds between two looks.
        :raises ResourceFailure: if it ended in another state.
        :raises ResourceTimeout: if it took longer.
        """
        return self._waited(
            RequestResource, request, states, GIVEN_UP, wait, interval
        )

    def get_server(self, uuid: str) -> ServerResource:
        """How a server fares, and why."""
        return self._get(ServerResource, uuid)

    def preemptions(self, **query: Any) -> Iterator[PreemptionResource]:
        """Servers that had to make room, the newest first."""
        return self._listed(PreemptionResource, query)

    def get_preemption(
        self, preemption: str | PreemptionResource
    ) -> PreemptionResource:
        """One server that had to make room."""
        return self._get(PreemptionResource, preemption)

    def shares(self, **query: Any) -> Iterator[ShareResource]:
        """Shares of the own project and its users, or of all accounts."""
        return self._listed(ShareResource, query)

    def set_share(
        self, account: str, share: float | None, *, dry_run: bool = False
    ) -> Mapping[str, Any]:
        """Set the share of an account.

        :param account: id of a project, ``PROJECT/USER``, or a name of the
            file of shares.
        :param share: ``None`` for that of the file.
        :param dry_run: set nothing; ``dry_run`` of the answer says who would
            start next.
        """
        wanted = {'account': account, 'share': share}
        return self._put('shares', wanted, dry_run)

    def limits(self, **query: Any) -> Iterator[LimitResource]:
        """Limits of the own project and its users, or of all accounts."""
        return self._listed(LimitResource, query)

    def set_limits(
        self, account: str, *, dry_run: bool = False, **limits: Any
    ) -> Mapping[str, Any]:
        """Set limits of an account.

        :param dry_run: as of :meth:`set_share`.
        :param limits: such as ``time_limit``, in the form of the interface;
            ``None`` for that of the file.
        """
        return self._put('limits', {'account': account, **limits}, dry_run)

    def preview_order(
        self, order: str, **parameters: float
    ) -> Mapping[str, Any]:
        """The effect of another order on the queue; nothing is changed.

        :param order: its name, such as ``fair_tree``.
        :param parameters: numbers of it; those not named have their defaults.
        """
        path = f'{_ROOT}/orders/{parse.quote(order, safe="")}/preview'
        if parameters:
            told = ','.join(f'{key}={n}' for key, n in parameters.items())
            path += f'?parameters={parse.quote(told)}'
        found: Mapping[str, Any] = self._answer('GET', path)['dry_run']
        return found

    def plans(self, **query: Any) -> Iterator[PlanResource]:
        """Plans of moves, the newest first."""
        return self._listed(PlanResource, query)

    def get_plan(self, plan: str | PlanResource) -> PlanResource:
        """One plan of moves."""
        return self._get(PlanResource, plan)

    def empty_host(self, host: str) -> PlanResource:
        """Propose a plan that empties a host."""
        return self._posted(
            PlanResource, PlanResource.base_path, {'empty': host}
        )

    def approve_plan(self, plan: str | PlanResource) -> PlanResource:
        """Let a plan of moves begin."""
        return self._acted(PlanResource, plan, 'approve')

    def stop_plan(self, plan: str | PlanResource) -> PlanResource:
        """End a plan of moves."""
        return self._acted(PlanResource, plan, 'stop')

    def wait_for_plan(
        self,
        plan: str | PlanResource,
        states: Collection[str] = ('done',),
        wait: float | None = None,
        interval: float = POLL_S,
    ) -> PlanResource:
        """Wait until a plan is in one of some states.

        Parameters and errors: :meth:`wait_for_request`.
        """
        return self._waited(
            PlanResource, plan, states, PLAN_ENDS, wait, interval
        )

    def hosts(self, **query: Any) -> Iterator[HostResource]:
        """Hosts with an agent; those that do not answer are left out."""
        return self._listed(HostResource, query)

    def get_host(self, host: str | HostResource) -> HostResource:
        """One host with an agent."""
        return self._get(HostResource, host)

    def act_on_host(
        self, host: str, action: str, argument: Any = None
    ) -> Mapping[str, Any]:
        """Let a host do something.

        :param host: its name; ``all`` for every host of the domain.
        :param action: such as ``pause``, ``resume`` or ``set-metric``.
        :param argument: of the action, such as ``{'name': 'M'}``.
        :returns: ``hosts``, ``not_reached`` and ``refused``.
        """
        return self._answer(
            'POST', f'{_path(host)}/action', {action: argument}
        )

    def get_border(self) -> Mapping[str, Any]:
        """Cores that batch and cloud have and want."""
        found: Mapping[str, Any] = self._answer('GET', f'{_ROOT}/partition')[
            'partition'
        ]
        return found

    def border_hosts(self, **query: Any) -> Iterator[BorderHostResource]:
        """Hosts that move between batch and cloud."""
        return self._listed(BorderHostResource, query)

    def get_border_host(
        self, host: str | BorderHostResource
    ) -> BorderHostResource:
        """One of these hosts, what runs there, and its last steps."""
        return self._get(BorderHostResource, host)

    def act_on_border_host(
        self, host: str | BorderHostResource, action: str
    ) -> BorderHostResource:
        """Send a host to the other side, or let it stay.

        :param action: ``move`` or ``cancel``.
        """
        return self._acted(BorderHostResource, host, action)

    def users(self, **query: Any) -> Iterator[UserResource]:
        """Users and how heavy they are."""
        return self._listed(UserResource, query)

    def get_user(self, user: str | UserResource = 'me') -> UserResource:
        """One user; by default that of the token."""
        return self._get(UserResource, user)

    def projects(self, **query: Any) -> Iterator[ProjectResource]:
        """Projects and how heavy they are."""
        return self._listed(ProjectResource, query)

    def get_project(
        self, project: str | ProjectResource = 'me'
    ) -> ProjectResource:
        """One project; by default that of the token."""
        return self._get(ProjectResource, project)

    def get_capacity(self) -> Mapping[str, Any]:
        """How full the cloud is, and how many servers start now."""
        found: Mapping[str, Any] = self._answer('GET', f'{_ROOT}/capacity')[
            'capacity'
        ]
        return found

    def get_status(self) -> Mapping[str, Any]:
        """State of the cluster service and of the agents."""
        found: Mapping[str, Any] = self._answer('GET', f'{_ROOT}/status')[
            'status'
        ]
        return found

    def get_plugins(self) -> Mapping[str, Any]:
        """Metrics and policies that agents have installed."""
        return self._answer('GET', _ROOT)

    def get_preview(self, host: str) -> Mapping[str, Any]:
        """CPU that users would gain or lose if a host enforced."""
        path = f'{_ROOT}/hosts/{parse.quote(host, safe="")}/preview'
        found: Mapping[str, Any] = self._answer('GET', path)['preview']
        return found

    def _listed(self, kind: type[T], query: Mapping[str, Any]) -> Iterator[T]:
        """A list, page by page; truths as the interface writes them."""
        given: dict[str, Any] = {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in query.items()
        }
        return self._list(kind, **given)

    def _acted(
        self, kind: type[T], thing: str | T, action: str, order: Any = None
    ) -> T:
        uuid = _id(thing)
        path = f'{kind.base_path}/{parse.quote(uuid, safe="")}/action'
        return self._posted(kind, path, {action: order})

    def _posted(self, kind: type[T], path: str, body: Any) -> T:
        found = self._answer('POST', path, body)[str(kind.resource_key)]
        return kind.existing(connection=self._get_connection(), **found)

    def _put(
        self, plural: str, wanted: Mapping[str, Any], dry_run: bool
    ) -> Mapping[str, Any]:
        body = {**wanted, **({'dry_run': True} if dry_run else {})}
        return self._answer('PUT', f'{_ROOT}/{plural}', body)

    def _answer(
        self, method: str, path: str, body: Any = None
    ) -> Mapping[str, Any]:
        said = self.request(path, method, json=body)
        exceptions.raise_from_response(said)
        answer: Mapping[str, Any] = said.json()
        return answer

    def _waited(
        self,
        kind: type[T],
        thing: str | T,
        states: Collection[str],
        ends: Collection[str],
        wait: float | None,
        interval: float,
    ) -> T:
        name = f'{kind.resource_key} {_id(thing)}'
        late = f'{name}: not {" or ".join(states)} in {wait} s'
        for _ in utils.iterate_timeout(wait, late, interval):
            found = self._get(kind, thing)
            state = str(found.state)
            if state in states:
                return found
            if state in ends:
                raise exceptions.ResourceFailure(
                    f'{name}: is {state}: {found.to_dict().get("explanation")}'
                )
        raise AssertionError(late)


if TYPE_CHECKING:
    _Description = service_description.ServiceDescription[FairnessProxy]
else:
    # That of Debian 12, 0.101, says nothing of its kind of proxy.
    _Description = service_description.ServiceDescription


class FairnessServiceDescription(_Description):
    """Finds the interface: it is below the endpoint of compute."""

    def _make_proxy(self, instance: Any) -> FairnessProxy:
        made: FairnessProxy = instance.config.get_session_client(
            'compute', constructor=FairnessProxy
        )
        return made


def register(connection: Any) -> None:
    """Add ``connection.fairness``.

    ``vendor_hook: nova_fairness.client.sdk:register`` of a cloud in
    clouds.yaml does the same for each of its connections.

    :param connection: of openstacksdk.
    """
    connection.add_service(FairnessServiceDescription('fairness'))


def _id(thing: str | FairnessResource) -> str:
    return thing if isinstance(thing, str) else str(thing.id)


def _path(host: str) -> str:
    return f'{_ROOT}/{parse.quote(host, safe="")}'
