# SPDX-License-Identifier: Apache-2.0

"""``conn.fairness``: the HTTP interface as a service of openstacksdk.

:func:`register` adds it to a connection; see the page about scripts.
"""

from collections.abc import Collection
import functools
import re
from typing import Any
from typing import TYPE_CHECKING
from typing import TypeVar
from urllib import parse

from openstack import exceptions
from openstack import proxy
from openstack import service_description
from openstack import utils

from nova_fairness.client import resources

_VERSIONED = re.compile(r'/v2(\.\d+)?(/|$)')
"""Some clouds register the compute service without its version."""

GIVEN_UP = frozenset({'ended', 'cancelled', 'expired', 'failed'})
"""States in which a request stays."""

PLAN_ENDS = frozenset({'partial', 'done', 'stopped', 'expired', 'failed'})
"""States in which a plan moves nothing any more."""

POLL_S = 2.0
"""Between two times that is looked whether a wait is over."""

_JSON = {'Accept': 'application/json'}

_NOTHING: resources.Answer = {}

_Listed = resources.PagedList
_Request = str | resources.RequestResource

T = TypeVar('T', bound=resources.FairnessResource)


class FairnessProxy(proxy.Proxy):
    """Methods of ``conn.fairness``.

    Every method raises ``openstack.exceptions.HttpException`` with the reason
    if it is refused. Projects, users and servers are named by ids. Things have
    their fields as attributes, and all of them in ``answer``, in the order of
    the interface.
    """

    def request(self, url: str, method: str, *args: Any, **more: Any) -> Any:
        """Ask the compute endpoint, which may lack its version."""
        if f'/{url.lstrip("/")}'.startswith(resources.ROOT):
            path = parse.urlsplit(self.get_endpoint() or '').path
            if not _VERSIONED.search(path):
                url = f'/v2.1/{url.lstrip("/")}'
        return super().request(url, method, *args, **more)

    def attach(self, connection: Any) -> None:
        """Count and cache as a connection of openstacksdk does."""
        self._connection = connection

    def requests(self, **query: Any) -> _Listed[resources.RequestResource]:
        """Requests, the oldest first; those that just run or ended on demand.

        :param query: filters of the HTTP interface: ``all_projects``,
            ``ended``, ``host``, ``preemptible``, ``project_id``, ``running``,
            ``server``, ``since``, ``state``, ``user_id``; ``limit`` (of a
            page) and ``marker``.
        """
        return self._listed(resources.RequestResource, query)

    def get_request(
        self, request: _Request, *, events: bool = False
    ) -> resources.RequestResource:
        """One request.

        :param events: whether its history is in its ``events``.
        """
        query = {'events': 'true'} if events else {}
        return self._one(resources.RequestResource, request, query)

    def request_events(self, request: _Request) -> list[resources.Answer]:
        """The history of a request, the oldest event first."""
        found = self.get_request(request, events=True)
        return list(found.answer.get('events') or ())

    def waits(self, **query: Any) -> _Listed[resources.WaitResource]:
        """Seconds that requests waited until they were sent to Nova.

        :param query: ``by`` (``project``, ``flavor`` or ``reason``),
            ``since``, ``project_id``, ``all_projects``, ``limit`` (of a
            page), ``marker``.
        """
        return self._listed(resources.WaitResource, query)

    def cancel_request(self, request: _Request) -> resources.RequestResource:
        """Take a build back that waits, and delete its servers."""
        return self._acted(resources.RequestResource, request, 'cancel')

    def release_request(
        self, request: _Request, *, without_room: bool = False
    ) -> resources.RequestResource:
        """Start a request whatever the plan is, where there is room.

        :param without_room: Nova looks for room, and destroys the request if
            there is none.
        """
        order = {'without_room': True} if without_room else None
        return self._acted(
            resources.RequestResource, request, 'release', order
        )

    def put_request_first(
        self, request: _Request
    ) -> resources.RequestResource:
        """Let a request be next."""
        return self._acted(resources.RequestResource, request, 'first')

    def put_request_back(self, request: _Request) -> resources.RequestResource:
        """Let a request stand where the order puts it."""
        return self._acted(resources.RequestResource, request, 'unfirst')

    def hold_request(
        self, request: _Request, why: str | None = None
    ) -> resources.RequestResource:
        """Keep a request from starting.

        :param why: text for its owners.
        """
        order = None if why is None else {'why': why}
        return self._acted(resources.RequestResource, request, 'hold', order)

    def unhold_request(self, request: _Request) -> resources.RequestResource:
        """End the hold of a request."""
        return self._acted(resources.RequestResource, request, 'unhold')

    def extend_request(
        self, request: _Request, seconds: float
    ) -> resources.RequestResource:
        """Let servers of a request run longer."""
        return self._acted(
            resources.RequestResource, request, 'extend', {'seconds': seconds}
        )

    def wait_for_request(
        self,
        request: _Request,
        states: Collection[str] = ('active',),
        wait: float | None = None,
        interval: float = POLL_S,
    ) -> resources.RequestResource:
        """Wait until a request is in one of some states.

        :param wait: seconds at most; ``None`` for no limit.
        :param interval: seconds between two looks.
        :raises ResourceFailure: if it ended in another state.
        :raises ResourceTimeout: if it took longer.
        """
        return self._waited(
            resources.RequestResource,
            request,
            states,
            GIVEN_UP,
            wait,
            interval,
        )

    def get_server(self, uuid: str) -> resources.ServerResource:
        """How a server fares, and why."""
        return self._one(resources.ServerResource, uuid)

    def preemptions(
        self, **query: Any
    ) -> _Listed[resources.PreemptionResource]:
        """Servers that had to make room, the newest first."""
        return self._listed(resources.PreemptionResource, query)

    def get_preemption(
        self, preemption: str | resources.PreemptionResource
    ) -> resources.PreemptionResource:
        """One server that had to make room."""
        return self._one(resources.PreemptionResource, preemption)

    def shares(self, **query: Any) -> _Listed[resources.ShareResource]:
        """Shares of the own project and its users, or of all accounts."""
        return self._listed(resources.ShareResource, query)

    def set_share(
        self, account: str, share: float | None, *, dry_run: bool = False
    ) -> resources.Answer:
        """Set the share of an account.

        :param account: id of a project, ``PROJECT/USER``, or a name of the
            file of shares.
        :param share: ``None`` for that of the file.
        :param dry_run: set nothing; ``dry_run`` of the answer says who would
            start next.
        """
        wanted = {'account': account, 'share': share}
        return self._put('shares', wanted, dry_run)

    def limits(self, **query: Any) -> _Listed[resources.LimitResource]:
        """Limits of the own project and its users, or of all accounts."""
        return self._listed(resources.LimitResource, query)

    def set_limits(
        self, account: str, *, dry_run: bool = False, **limits: Any
    ) -> resources.Answer:
        """Set limits of an account.

        :param dry_run: as of :meth:`set_share`.
        :param limits: such as ``time_limit``, in the form of the interface;
            ``None`` for that of the file.
        """
        return self._put('limits', {'account': account, **limits}, dry_run)

    def preview_order(
        self, order: str, /, **parameters: float | str
    ) -> resources.Answer:
        """The effect of another order on the queue; nothing is changed.

        :param order: its name, such as ``fair_tree``.
        :param parameters: numbers of it; those not named have their defaults.
        """
        told = ','.join(f'{key}={n}' for key, n in parameters.items())
        query = {'parameters': told} if told else {}
        return self._part('dry_run', 'orders', order, 'preview', params=query)

    def groups(self, **query: Any) -> _Listed[resources.GroupResource]:
        """Groups of servers with a spending rate."""
        return self._listed(resources.GroupResource, query)

    def create_group(
        self, name: str, rate: float, **wanted: Any
    ) -> resources.GroupResource:
        """Say what is spent for servers that are in a group.

        :param rate: currency for a CPU-hour, of all its servers together.
        :param wanted: ``count`` of the servers that the rate is for;
            ``project_id``, if it is not that of the token.
        """
        return self._group('POST', name, {'rate': rate, **wanted})

    def set_group(self, name: str, **wanted: Any) -> resources.GroupResource:
        """Change what is spent for a group while its servers run.

        :param wanted: ``rate``, and those of :meth:`create_group`.
        """
        return self._group('PUT', name, wanted)

    def delete_group(
        self, name: str, **wanted: Any
    ) -> resources.GroupResource:
        """Take a group away: its servers have the lowest rate.

        :param wanted: ``project_id``, as of :meth:`create_group`.
        :returns: a group without fields.
        """
        return self._group('PUT', name, {**wanted, 'rate': None})

    def prices(self, **query: Any) -> _Listed[resources.PriceResource]:
        """Prices of all hosts: each is spent by all servers of a host."""
        return self._listed(resources.PriceResource, query)

    def price_history(
        self, host: str, **query: Any
    ) -> _Listed[resources.PriceResource]:
        """Prices of a host, the newest first."""
        return self._listed(
            resources.PriceResource, query, _path('hosts', host, 'prices')
        )

    def plans(self, **query: Any) -> _Listed[resources.PlanResource]:
        """Plans of moves, the newest first."""
        return self._listed(resources.PlanResource, query)

    def get_plan(
        self, plan: str | resources.PlanResource
    ) -> resources.PlanResource:
        """One plan of moves."""
        return self._one(resources.PlanResource, plan)

    def empty_host(self, host: str) -> resources.PlanResource:
        """Propose a plan that empties a host."""
        kind = resources.PlanResource
        return self._told(kind, 'POST', kind.base_path, json={'empty': host})

    def approve_plan(
        self, plan: str | resources.PlanResource
    ) -> resources.PlanResource:
        """Let a plan of moves begin."""
        return self._acted(resources.PlanResource, plan, 'approve')

    def stop_plan(
        self, plan: str | resources.PlanResource
    ) -> resources.PlanResource:
        """End a plan of moves."""
        return self._acted(resources.PlanResource, plan, 'stop')

    def wait_for_plan(
        self,
        plan: str | resources.PlanResource,
        states: Collection[str] = ('done',),
        wait: float | None = None,
        interval: float = POLL_S,
    ) -> resources.PlanResource:
        """Wait until a plan is in one of some states.

        Parameters and errors: :meth:`wait_for_request`.
        """
        return self._waited(
            resources.PlanResource, plan, states, PLAN_ENDS, wait, interval
        )

    def hosts(self, **query: Any) -> _Listed[resources.HostResource]:
        """Hosts with an agent.

        Those that do not answer are in ``not_reached`` of the list.
        """
        return self._listed(resources.HostResource, query)

    def get_host(
        self, host: str | resources.HostResource
    ) -> resources.HostResource:
        """One host with an agent."""
        return self._one(resources.HostResource, host)

    def act_on_host(
        self, host: str, action: str, argument: Any = None
    ) -> resources.Answer:
        """Let a host do something.

        :param host: its name; ``all`` for every host of the domain.
        :param action: such as ``pause``, ``resume`` or ``set-metric``.
        :param argument: of the action, such as ``{'name': 'M'}``.
        :returns: ``hosts``, ``not_reached`` and ``refused``.
        """
        path = _path(host, 'action')
        return self._answer('POST', path, json={action: argument})

    def get_border(self) -> resources.Answer:
        """Cores that batch and cloud have and want."""
        return self._part('partition', 'partition')

    def set_border_target(self, hosts: int | None) -> resources.Answer:
        """Say how many hosts the cloud is to have.

        :param hosts: ``None`` to go by calendar and demand.
        :returns: ``target``.
        """
        path = _path('partition')
        return self._answer('PUT', path, json={'target': hosts})

    def border_hosts(
        self, **query: Any
    ) -> _Listed[resources.BorderHostResource]:
        """Hosts that move between batch and cloud."""
        return self._listed(resources.BorderHostResource, query)

    def get_border_host(
        self, host: str | resources.BorderHostResource
    ) -> resources.BorderHostResource:
        """One of these hosts, what runs there, and its last steps."""
        return self._one(resources.BorderHostResource, host)

    def act_on_border_host(
        self, host: str | resources.BorderHostResource, action: str
    ) -> resources.BorderHostResource:
        """Send a host to the other side, or let it stay.

        :param action: ``move`` or ``cancel``.
        """
        return self._acted(resources.BorderHostResource, host, action)

    def users(self, **query: Any) -> _Listed[resources.UserResource]:
        """Users and how heavy they are."""
        return self._listed(resources.UserResource, query)

    def get_user(
        self, user: str | resources.UserResource = 'me'
    ) -> resources.UserResource:
        """One user; by default that of the token."""
        return self._one(resources.UserResource, user)

    def projects(self, **query: Any) -> _Listed[resources.ProjectResource]:
        """Projects and how heavy they are."""
        return self._listed(resources.ProjectResource, query)

    def get_project(
        self, project: str | resources.ProjectResource = 'me'
    ) -> resources.ProjectResource:
        """One project; by default that of the token."""
        return self._one(resources.ProjectResource, project)

    def get_capacity(self) -> resources.Answer:
        """How full the cloud is, and how many servers start now."""
        return self._part('capacity', 'capacity')

    def get_status(self) -> resources.Answer:
        """State of the cluster service and of the agents."""
        return self._part('status', 'status')

    def get_plugins(self) -> resources.Answer:
        """Metrics and policies that agents have installed."""
        return self._answer('GET', _path())

    def get_preview(self, host: str) -> resources.Answer:
        """CPU that users would gain or lose if a host enforced."""
        return self._part('preview', 'hosts', host, 'preview')

    def _listed(
        self, kind: type[T], query: resources.Answer, path: str = ''
    ) -> _Listed[T]:
        """A list; truths as the interface writes them."""
        given = {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in query.items()
        }
        noun, path = str(kind.resources_key), path or kind.base_path
        return resources.PagedList(
            noun,
            lambda more: self._answer('GET', path, noun, params=more),
            given,
            functools.partial(self._made, kind),
        )

    def _one(
        self, kind: type[T], thing: str | T, query: resources.Answer = _NOTHING
    ) -> T:
        return self._told(kind, 'GET', _of(kind, thing), params=query)

    def _acted(
        self, kind: type[T], thing: str | T, action: str, order: Any = None
    ) -> T:
        path = f'{_of(kind, thing)}/action'
        return self._told(kind, 'POST', path, json={action: order})

    def _group(
        self, method: str, name: str, wanted: resources.Answer
    ) -> resources.GroupResource:
        path = resources.GroupResource.base_path
        body = {'name': name, **wanted}
        found = self._answer(method, path, 'group', json=body)['group']
        return self._made(resources.GroupResource, found or {})

    def _told(self, kind: type[T], method: str, path: str, **given: Any) -> T:
        noun = str(kind.resource_key)
        answer = self._answer(method, path, noun, **given)
        return self._made(kind, answer[noun])

    def _made(self, kind: type[T], answer: resources.Answer) -> T:
        return kind.existing(connection=self._get_connection(), **answer)

    def _put(
        self, plural: str, wanted: resources.Answer, dry_run: bool
    ) -> resources.Answer:
        body = {**wanted, **({'dry_run': True} if dry_run else {})}
        return self._answer('PUT', _path(plural), json=body)

    def _part(self, noun: str, *names: str, **given: Any) -> resources.Answer:
        answer = self._answer('GET', _path(*names), noun, **given)
        found: resources.Answer = answer[noun]
        return found

    def _answer(
        self, method: str, path: str, noun: str = '', **given: Any
    ) -> resources.Answer:
        """Ask, and read the answer.

        :param noun: key that the answer must have.
        :param given: parameters or body.
        :raises HttpException: if it is refused.
        :raises SDKException: if the answer is none of this interface.
        """
        said = self.request(path, method, headers=_JSON, **given)
        exceptions.raise_from_response(said)
        try:
            answer = said.json()
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise exceptions.SDKException(
                f'{said.url} answered {said.status_code} with something else'
                ' than a JSON object'
            )
        if noun and noun not in answer:
            raise exceptions.SDKException(
                f'the answer lacks {noun!r}: this is no interface of'
                ' nova-fairness'
            )
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
            found = self._one(kind, thing)
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
    # openstacksdk 4.7 and older, which Debian 12 and 13 have, takes no type.
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


def _id(thing: str | resources.FairnessResource) -> str:
    return thing if isinstance(thing, str) else str(thing.id)


def _path(*names: str) -> str:
    """Path below the compute endpoint; each name is one part of it."""
    quoted = (parse.quote(each, safe='') for each in names)
    return '/'.join((resources.ROOT, *quoted))


def _of(kind: type[T], thing: str | T) -> str:
    return f'{kind.base_path}/{parse.quote(_id(thing), safe="")}'
