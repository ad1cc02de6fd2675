# SPDX-License-Identifier: Apache-2.0

"""``conn.fairness``: the HTTP API as a service of openstacksdk.

:func:`register` adds it to a connection; see the documentation about scripts.
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
"""Version in the path of a URL. Some clouds register the compute service
without it.
"""

REQUEST_ENDS = frozenset({'ended', 'cancelled', 'expired', 'failed'})
"""Final states of a request, except success."""

PLAN_ENDS = frozenset({'partial', 'done', 'stopped', 'expired', 'failed'})
"""Final states of a plan, in which it moves nothing."""

POLL_S = 2.0
"""Seconds from one query to the next during a wait."""

_JSON = {'Accept': 'application/json'}

_NOTHING: resources.Answer = {}

_Listed = resources.PagedList
_Request = str | resources.RequestResource

T = TypeVar('T', bound=resources.FairnessResource)


class FairnessProxy(proxy.Proxy):
    """Methods of ``conn.fairness``.

    Every method raises ``openstack.exceptions.HttpException`` with the reason
    if the API refuses the call. Arguments for projects, users and servers are
    IDs. Resources have their fields as attributes, and all fields in
    ``answer``, in the order of the API.
    """

    def request(self, url: str, method: str, *args: Any, **more: Any) -> Any:
        """Send a request to the compute endpoint, and add the version to its
        path if it is missing.
        """
        if f'/{url.lstrip("/")}'.startswith(resources.ROOT):
            path = parse.urlsplit(self.get_endpoint() or '').path
            if not _VERSIONED.search(path):
                url = f'/v2.1/{url.lstrip("/")}'
        return super().request(url, method, *args, **more)

    def attach(self, connection: Any) -> None:
        """Attach the connection, whose statistics and cache this client then
        uses.
        """
        self._connection = connection

    def requests(self, **query: Any) -> _Listed[resources.RequestResource]:
        """List requests, the oldest first; running and ended ones on demand.

        :param query: filters of the HTTP API: ``all_projects``, ``ended``,
            ``host``, ``preemptible``, ``project_id``, ``running``, ``server``,
            ``since``, ``state``, ``user_id``; ``limit`` (of a page) and
            ``marker``.
        """
        return self._list_resources(resources.RequestResource, query)

    def get_request(
        self, request: _Request, *, events: bool = False
    ) -> resources.RequestResource:
        """Read one request.

        :param events: whether the request includes its history, as ``events``.
        """
        query = {'events': 'true'} if events else {}
        return self._read_resource(resources.RequestResource, request, query)

    def request_events(self, request: _Request) -> list[resources.Answer]:
        """Read the history of a request, the oldest event first."""
        found = self.get_request(request, events=True)
        return list(found.answer.get('events') or ())

    def waits(self, **query: Any) -> _Listed[resources.WaitResource]:
        """List the seconds that requests waited until they were sent to Nova.

        :param query: ``by`` (``project``, ``flavor`` or ``reason``),
            ``since``, ``project_id``, ``all_projects``, ``limit`` (of a page),
            ``marker``.
        """
        return self._list_resources(resources.WaitResource, query)

    def cancel_request(self, request: _Request) -> resources.RequestResource:
        """Cancel a waiting build request, and delete its servers."""
        return self._run_action(resources.RequestResource, request, 'cancel')

    def release_request(
        self, request: _Request, *, without_room: bool = False
    ) -> resources.RequestResource:
        """Start a request at once on a host with room, before its turn.

        :param without_room: send the request to Nova even if no host has room;
            Nova fails it if it finds none.
        """
        order = {'without_room': True} if without_room else None
        return self._run_action(
            resources.RequestResource, request, 'release', order
        )

    def put_request_first(
        self, request: _Request
    ) -> resources.RequestResource:
        """Put a request before all others of its priority class."""
        return self._run_action(resources.RequestResource, request, 'first')

    def put_request_back(self, request: _Request) -> resources.RequestResource:
        """Undo :meth:`put_request_first`: the order decides again."""
        return self._run_action(resources.RequestResource, request, 'unfirst')

    def hold_request(
        self, request: _Request, why: str | None = None
    ) -> resources.RequestResource:
        """Hold a request: it does not start until the hold ends.

        :param why: text for its owners.
        """
        order = None if why is None else {'why': why}
        return self._run_action(
            resources.RequestResource, request, 'hold', order
        )

    def unhold_request(self, request: _Request) -> resources.RequestResource:
        """End the hold of a request."""
        return self._run_action(resources.RequestResource, request, 'unhold')

    def extend_request(
        self, request: _Request, seconds: float
    ) -> resources.RequestResource:
        """Extend the time limit of the servers of a request.

        :param seconds: extension, > 0.
        """
        return self._run_action(
            resources.RequestResource, request, 'extend', {'seconds': seconds}
        )

    def wait_for_request(
        self,
        request: _Request,
        states: Collection[str] = ('active',),
        wait: float | None = None,
        interval: float = POLL_S,
    ) -> resources.RequestResource:
        """Wait until a request is in one of the given states.

        :param wait: longest wait in seconds; ``None`` for no limit.
        :param interval: seconds from one query to the next.
        :raises ResourceFailure: if it ended in another state.
        :raises ResourceTimeout: if the longest wait passed.
        """
        return self._wait_for_state(
            resources.RequestResource,
            request,
            states,
            REQUEST_ENDS,
            wait,
            interval,
        )

    def get_server(self, uuid: str) -> resources.ServerResource:
        """Read the usage, weights and summary of a server."""
        return self._read_resource(resources.ServerResource, uuid)

    def preemptions(
        self, **query: Any
    ) -> _Listed[resources.PreemptionResource]:
        """List preemptions, the newest first."""
        return self._list_resources(resources.PreemptionResource, query)

    def get_preemption(
        self, preemption: str | resources.PreemptionResource
    ) -> resources.PreemptionResource:
        """Read one preemption."""
        return self._read_resource(resources.PreemptionResource, preemption)

    def shares(self, **query: Any) -> _Listed[resources.ShareResource]:
        """List the shares of the caller's project and its users, or of all
        accounts.
        """
        return self._list_resources(resources.ShareResource, query)

    def set_share(
        self, account: str, share: float | None, *, dry_run: bool = False
    ) -> resources.Answer:
        """Set the share of an account.

        :param account: ID of a project, ``PROJECT/USER``, or a name in the
            file of shares.
        :param share: ``None`` restores the share of the file.
        :param dry_run: change nothing; ``dry_run`` of the answer lists the
            requests that would start next.
        """
        wanted = {'account': account, 'share': share}
        return self._put('shares', wanted, dry_run)

    def limits(self, **query: Any) -> _Listed[resources.LimitResource]:
        """List the limits of the caller's project and its users, or of all
        accounts.
        """
        return self._list_resources(resources.LimitResource, query)

    def set_limits(
        self, account: str, *, dry_run: bool = False, **limits: Any
    ) -> resources.Answer:
        """Set limits of an account.

        :param dry_run: change nothing, as in :meth:`set_share`.
        :param limits: limits such as ``time_limit``, in the form of the HTTP
            API; ``None`` restores the limit of the file.
        """
        return self._put('limits', {'account': account, **limits}, dry_run)

    def preview_order(
        self, order: str, /, **parameters: float | str
    ) -> resources.Answer:
        """Compute the effect of another order on the queue; nothing is
        changed.

        :param order: its name, such as ``fair_tree``.
        :param parameters: parameters of the order; missing ones have their
            defaults.
        """
        told = ','.join(f'{key}={n}' for key, n in parameters.items())
        query = {'parameters': told} if told else {}
        return self._part('dry_run', 'orders', order, 'preview', params=query)

    def groups(self, **query: Any) -> _Listed[resources.GroupResource]:
        """List groups of servers with a spending rate."""
        return self._list_resources(resources.GroupResource, query)

    def create_group(
        self, name: str, rate: float, **wanted: Any
    ) -> resources.GroupResource:
        """Create a group of servers with a spending rate.

        :param rate: currency for a CPU-hour, of all its servers together.
        :param wanted: ``count``, the number of servers that share the rate;
            ``project_id``, if it is not the project of the token.
        """
        return self._group('POST', name, {'rate': rate, **wanted})

    def set_group(self, name: str, **wanted: Any) -> resources.GroupResource:
        """Change the spending rate of a group while its servers run.

        :param wanted: ``rate``, and the parameters of :meth:`create_group`.
        """
        return self._group('PUT', name, wanted)

    def delete_group(
        self, name: str, **wanted: Any
    ) -> resources.GroupResource:
        """Delete a group: its servers get the lowest rate.

        :param wanted: ``project_id``, as in :meth:`create_group`.
        :returns: a group without fields.
        """
        return self._group('PUT', name, {**wanted, 'rate': None})

    def prices(self, **query: Any) -> _Listed[resources.PriceResource]:
        """List the prices of all hosts: the spending rates of all servers of a
        host.
        """
        return self._list_resources(resources.PriceResource, query)

    def price_history(
        self, host: str, **query: Any
    ) -> _Listed[resources.PriceResource]:
        """List the prices of a host, the newest first."""
        return self._list_resources(
            resources.PriceResource, query, _path('hosts', host, 'prices')
        )

    def plans(self, **query: Any) -> _Listed[resources.PlanResource]:
        """List migration plans, the newest first."""
        return self._list_resources(resources.PlanResource, query)

    def get_plan(
        self, plan: str | resources.PlanResource
    ) -> resources.PlanResource:
        """Read one migration plan."""
        return self._read_resource(resources.PlanResource, plan)

    def empty_host(self, host: str) -> resources.PlanResource:
        """Propose a migration plan that empties a host."""
        kind = resources.PlanResource
        return self._request_resource(
            kind, 'POST', kind.base_path, json={'empty': host}
        )

    def approve_plan(
        self, plan: str | resources.PlanResource
    ) -> resources.PlanResource:
        """Approve a migration plan, so that its moves begin."""
        return self._run_action(resources.PlanResource, plan, 'approve')

    def stop_plan(
        self, plan: str | resources.PlanResource
    ) -> resources.PlanResource:
        """Stop a migration plan."""
        return self._run_action(resources.PlanResource, plan, 'stop')

    def wait_for_plan(
        self,
        plan: str | resources.PlanResource,
        states: Collection[str] = ('done',),
        wait: float | None = None,
        interval: float = POLL_S,
    ) -> resources.PlanResource:
        """Wait until a plan is in one of the given states.

        Parameters and errors are those of :meth:`wait_for_request`.
        """
        return self._wait_for_state(
            resources.PlanResource, plan, states, PLAN_ENDS, wait, interval
        )

    def hosts(self, **query: Any) -> _Listed[resources.HostResource]:
        """List hosts with an agent.

        Hosts that do not answer are in ``not_reached`` of the list.
        """
        return self._list_resources(resources.HostResource, query)

    def get_host(
        self, host: str | resources.HostResource
    ) -> resources.HostResource:
        """Read the state of one host with an agent."""
        return self._read_resource(resources.HostResource, host)

    def act_on_host(
        self, host: str, action: str, argument: Any = None
    ) -> resources.Answer:
        """Run an action on a host.

        :param host: its name; ``all`` for every host of the domain.
        :param action: such as ``pause``, ``resume`` or ``set-metric``.
        :param argument: argument of the action, such as ``{'name': 'M'}``.
        :returns: ``hosts``, ``not_reached`` and ``refused``.
        """
        path = _path(host, 'action')
        return self._answer('POST', path, json={action: argument})

    def get_border(self) -> resources.Answer:
        """Read the supply and the demand of batch system and cloud, in
        cores.
        """
        return self._part('partition', 'partition')

    def set_border_target(self, hosts: int | None) -> resources.Answer:
        """Set the number of hosts that the cloud is to have.

        :param hosts: ``None``: calendar and demand decide.
        :returns: ``target``.
        """
        path = _path('partition')
        return self._answer('PUT', path, json={'target': hosts})

    def border_hosts(
        self, **query: Any
    ) -> _Listed[resources.BorderHostResource]:
        """List hosts that move between batch system and cloud."""
        return self._list_resources(resources.BorderHostResource, query)

    def get_border_host(
        self, host: str | resources.BorderHostResource
    ) -> resources.BorderHostResource:
        """Read one host that moves between batch system and cloud, with its
        work and last steps.
        """
        return self._read_resource(resources.BorderHostResource, host)

    def act_on_border_host(
        self, host: str | resources.BorderHostResource, action: str
    ) -> resources.BorderHostResource:
        """Move a host to the other system, or cancel its move.

        :param action: ``move`` or ``cancel``.
        """
        return self._run_action(resources.BorderHostResource, host, action)

    def users(self, **query: Any) -> _Listed[resources.UserResource]:
        """List users and their heaviness."""
        return self._list_resources(resources.UserResource, query)

    def get_user(
        self, user: str | resources.UserResource = 'me'
    ) -> resources.UserResource:
        """Read the heaviness of one user; by default the user of the token."""
        return self._read_resource(resources.UserResource, user)

    def projects(self, **query: Any) -> _Listed[resources.ProjectResource]:
        """List projects and their heaviness."""
        return self._list_resources(resources.ProjectResource, query)

    def get_project(
        self, project: str | resources.ProjectResource = 'me'
    ) -> resources.ProjectResource:
        """Read the heaviness of one project; by default the project of the
        token.
        """
        return self._read_resource(resources.ProjectResource, project)

    def get_capacity(self) -> resources.Answer:
        """Read the use of the cloud, and the number of servers that could
        start now.
        """
        return self._part('capacity', 'capacity')

    def get_status(self) -> resources.Answer:
        """Read the state of the cluster service and of the agents."""
        return self._part('status', 'status')

    def get_plugins(self) -> resources.Answer:
        """Read the metrics and policies that agents have installed."""
        return self._answer('GET', _path())

    def get_preview(self, host: str) -> resources.Answer:
        """Read the CPU time that users would gain or lose if a host enforced
        weights.
        """
        return self._part('preview', 'hosts', host, 'preview')

    def _list_resources(
        self, kind: type[T], query: resources.Answer, path: str = ''
    ) -> _Listed[T]:
        """Return a list of resources; truth values are sent in the form of the
        API.
        """
        given = {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in query.items()
        }
        noun, path = str(kind.resources_key), path or kind.base_path
        return resources.PagedList(
            noun,
            lambda more: self._answer('GET', path, noun, params=more),
            given,
            functools.partial(self._make_resource, kind),
        )

    def _read_resource(
        self, kind: type[T], thing: str | T, query: resources.Answer = _NOTHING
    ) -> T:
        return self._request_resource(
            kind, 'GET', _resource_path(kind, thing), params=query
        )

    def _run_action(
        self, kind: type[T], thing: str | T, action: str, order: Any = None
    ) -> T:
        path = f'{_resource_path(kind, thing)}/action'
        return self._request_resource(kind, 'POST', path, json={action: order})

    def _group(
        self, method: str, name: str, wanted: resources.Answer
    ) -> resources.GroupResource:
        path = resources.GroupResource.base_path
        body = {'name': name, **wanted}
        found = self._answer(method, path, 'group', json=body)['group']
        return self._make_resource(resources.GroupResource, found or {})

    def _request_resource(
        self, kind: type[T], method: str, path: str, **given: Any
    ) -> T:
        noun = str(kind.resource_key)
        answer = self._answer(method, path, noun, **given)
        return self._make_resource(kind, answer[noun])

    def _make_resource(self, kind: type[T], answer: resources.Answer) -> T:
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
        """Send a request, and parse the answer.

        :param noun: key that the answer must have.
        :param given: parameters or body.
        :raises HttpException: if the API refuses the call.
        :raises SDKException: if the answer does not come from this API.
        """
        response = self.request(path, method, headers=_JSON, **given)
        exceptions.raise_from_response(response)
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise exceptions.SDKException(
                f'{response.url}: invalid answer ({response.status_code}): it'
                ' is not a JSON object; check the URL of the compute endpoint'
            )
        if noun and noun not in answer:
            raise exceptions.SDKException(
                f'{response.url}: invalid answer: it lacks {noun!r}; check'
                ' that nova-api has the filter of nova-fairness'
            )
        return answer

    def _wait_for_state(
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
            found = self._read_resource(kind, thing)
            state = str(found.state)
            if state in states:
                return found
            if state in ends:
                raise exceptions.ResourceFailure(
                    f'{name}: is {state}: {found.answer.get("explanation")}'
                )
        raise AssertionError(late)


if TYPE_CHECKING:
    _Description = service_description.ServiceDescription[FairnessProxy]
else:
    # openstacksdk 4.7 and older, which Debian 12 and 13 have, takes no type.
    _Description = service_description.ServiceDescription


class FairnessServiceDescription(_Description):
    """Description of the fairness service, which is below the compute
    endpoint.
    """

    def _make_proxy(self, instance: Any) -> FairnessProxy:
        made: FairnessProxy = instance.config.get_session_client(
            'compute', constructor=FairnessProxy
        )
        return made


def register(connection: Any) -> None:
    """Add ``connection.fairness`` to a connection.

    ``vendor_hook: nova_fairness.client.sdk:register`` of a cloud in
    clouds.yaml does the same for each of its connections.

    :param connection: connection of openstacksdk.
    """
    connection.add_service(FairnessServiceDescription('fairness'))


def _id(thing: str | resources.FairnessResource) -> str:
    return thing if isinstance(thing, str) else str(thing.id)


def _path(*names: str) -> str:
    """Return a path below the compute endpoint, with each name quoted."""
    quoted = (parse.quote(each, safe='') for each in names)
    return '/'.join((resources.ROOT, *quoted))


def _resource_path(kind: type[T], thing: str | T) -> str:
    return f'{kind.base_path}/{parse.quote(_id(thing), safe="")}'
