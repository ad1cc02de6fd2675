# SPDX-License-Identifier: Apache-2.0

"""The calls that the cluster service answers; see the page of the RPC
interface.
"""

import abc
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any
from typing import Self

import oslo_messaging

from nova_fairness import exception
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.model import waits
from nova_fairness.rpc import arguments
from nova_fairness.rpc import calls
from nova_fairness.rpc import client
from nova_fairness.rpc import plans
from nova_fairness.rpc import protocol
from nova_fairness.rpc import roles
from nova_fairness.rpc import silence as silence_module

Answer = calls.Answer
Context = calls.Context

OPERATOR = reason.Audience.OPERATOR


@dataclasses.dataclass(frozen=True, slots=True)
class DryRunReader:
    """The reader of a dry run.

    :ivar project: project whose requests are named; ``None`` for all.
    :ivar most: largest number of requests that are named, >= 0.
    :ivar audience: of the reader.
    """

    project: str | None
    most: int
    audience: reason.Audience


class ClusterCalls(plans.PlanCalls):
    """The operations of the cluster service.

    They are called on threads of the RPC server, several at once. All answers
    are JSON types. Every method raises ``NotLeading`` in a process that does
    not act.
    """

    @abc.abstractmethod
    def requests(
        self,
        project: str | None,
        marker: str | None,
        limit: int,
        preemptible: bool | None = None,
        audience: reason.Audience = OPERATOR,
        wanted: request.RequestFilter | None = None,
    ) -> Answer:
        """Requests of a project or of all, the oldest first.

        :param project: owner of the requests; ``None`` for all projects.
        :param marker: UUID of the last request of the page before.
        :param preemptible: ``True`` for preemptible requests only, ``False``
            for others only; ``None`` for both.
        :param audience: of the reader of the answer.
        :param wanted: filter of requests; ``None`` for those that have not
            ended.
        :raises UnknownRequest: if there is no such request.
        """

    @abc.abstractmethod
    def request(
        self,
        uuid: str,
        audience: reason.Audience = OPERATOR,
        events: bool = False,
    ) -> Answer:
        """One request.

        :param audience: of the reader of the answer.
        :param events: whether the answer includes its history.
        :raises UnknownRequest: if there is no such request.
        """

    @abc.abstractmethod
    def waits(
        self, wanted: waits.WaitFilter, marker: str | None, limit: int
    ) -> Answer:
        """Percentiles of waits, grouped by project, flavor or reason, by name.

        :param wanted: filter of waits; without a begin, the last
        :data:`waits.USUAL_S` count.
        :param marker: name of the last group of the page before.
        :returns: ``waits``: ``name``, ``requests_count``, and seconds ``p50``,
            ``p90`` and ``p95`` of each group; of reasons also ``explanation``.
        """

    @abc.abstractmethod
    def cancel(self, uuid: str, by_operator: bool) -> Answer:
        """Cancel a waiting build, and delete its servers.

        :raises UnknownRequest: if there is no such request.
        :raises IllegalStep: if it no longer waits, or is no build.
        """

    @abc.abstractmethod
    def release(self, uuid: str, without_room: bool = False) -> Answer:
        """Start a request regardless of the plan.

        :param without_room: whether Nova looks for room itself, and fails the
            request if it finds none.
        :raises UnknownRequest: if there is no such request.
        :raises NoRoom: if there is no room besides the room of other requests.
        :raises IllegalStep: if Nova has the request already.
        """

    @abc.abstractmethod
    def first(self, uuid: str) -> Answer:
        """Put a request before all others of its priority class.

        :raises UnknownRequest: if there is no such request.
        :raises IllegalStep: if it no longer waits.
        """

    @abc.abstractmethod
    def unfirst(self, uuid: str) -> Answer:
        """Let the order decide the position of a request; see
        :meth:`first`.
        """

    @abc.abstractmethod
    def hold(
        self, uuid: str, by_operator: bool, why: str | None = None
    ) -> Answer:
        """Keep a request from starting.

        :param by_operator: whether only an operator may end the hold.
        :param why: reason in the words of the holder.
        :raises UnknownRequest: if there is no such request.
        :raises IllegalStep: if it no longer waits.
        """

    @abc.abstractmethod
    def unhold(self, uuid: str, by_operator: bool) -> Answer:
        """End the hold of a request.

        :raises UnknownRequest: if there is no such request.
        :raises IllegalStep: if it no longer waits, or an operator holds it.
        """

    @abc.abstractmethod
    def capacity(self, project: str | None = None) -> Answer:
        """Used and free capacity of the cloud, and flavors that can start now.

        :param project: only flavors that this project may use; '' for flavors
            that all projects may use, ``None`` for all flavors.
        """

    @abc.abstractmethod
    def status(self) -> Answer:
        """Leader, waits, evictions, plans, border and warnings."""

    @abc.abstractmethod
    def shares(
        self, project: str | None, marker: str | None, limit: int
    ) -> Answer:
        """The share tree; each account comes before the accounts below it.

        :param project: only this project, with its users; ``None`` for all.
        :param marker: name of the last account of the page before.
        :raises UnknownAccount: if there is no such account.
        """

    @abc.abstractmethod
    def set_share(self, name: str, share: float | None) -> Answer:
        """Set the share of an account.

        :param share: ``None`` for the share in the file.
        :returns: ``account`` and ``share``, as given.
        :raises BadShares: if the number is no valid share.
        :raises UnknownAccount: if there is no such project, user of a project,
            or account in the file; or if there is no share to remove.
        :raises AccountUnchecked: if Keystone does not answer.
        """

    @abc.abstractmethod
    def extend(self, uuid: str, by_s: float) -> Answer:
        """Let the servers of a request run longer.

        :raises UnknownRequest: if there is no such request.
        :raises IllegalStep: if that is not allowed, or the servers leave
            already.
        """

    @abc.abstractmethod
    def limits(
        self, project: str | None, marker: str | None, limit: int
    ) -> Answer:
        """Accounts that have limits of their own, by name.

        :param project: only this project, with its users; ``None`` for all.
        :param marker: name of the last account of the page before.
        """

    @abc.abstractmethod
    def set_limits(self, name: str, limits: Mapping[str, Any]) -> Answer:
        """Set limits of an account.

        :param limits: ``time_limit`` and ``longest_wait``, seconds;
            ``budget``, unit-hours; ``ceiling``, ``nominal``,
            ``borrowing_limit`` and ``lending_limit``, amounts by resource
            class; ``windows``, a list of ``begins``, ``lasts`` (seconds) and
            ``zone``. ``None`` for the value in the file.
        :returns: ``account`` and the limits, as given.
        :raises BadArgument: if there is no such limit.
        :raises BadShares: if a limit is out of its range.
        :raises UnknownAccount: if there is no such project, user of a project,
            or account in the file; or if there is no limit to remove.
        :raises AccountUnchecked: if Keystone does not answer.
        """

    @abc.abstractmethod
    def try_account(
        self, name: str, values: Mapping[str, Any], reader: DryRunReader
    ) -> Answer:
        """Compute the effect of a change of an account, without the change.

        :param values: ``share``, and limits as in :meth:`set_limits`.
        :returns: ``dry_run``: numbers of requests, and ``requests`` with the
            positions of each ``before`` and ``after``.
        :raises Busy: if another dry run is running, or has just ended.
        :raises IllegalStep: if it failed, or took too long.
        :raises FairnessError: as :meth:`set_share` and :meth:`set_limits`.
        """

    @abc.abstractmethod
    def try_order(
        self,
        name: str,
        parameters: Mapping[str, float],
        reader: DryRunReader,
    ) -> Answer:
        """Compute the effect of another order; see :meth:`try_account`.

        :param name: name of the order.
        :param parameters: parameters of the order, by name.
        :raises BadArgument: if the order or a parameter cannot be used.
        """

    @abc.abstractmethod
    def preemptions(
        self,
        project: str | None,
        marker: str | None,
        limit: int,
        audience: reason.Audience = OPERATOR,
    ) -> Answer:
        """Evictions of preemptible servers that make room, the newest first.

        :param project: project of the reader: only evictions of its servers,
            or for its requests; ``None`` for all.
        :param marker: UUID of the last eviction of the page before.
        :param audience: of the reader of the answer.
        :raises UnknownPreemption: if there is no such marker.
        """

    @abc.abstractmethod
    def preemption(
        self,
        uuid: str,
        project: str | None = None,
        audience: reason.Audience = OPERATOR,
    ) -> Answer:
        """One eviction of a preemptible server that makes room.

        :param project: project of the reader; ``None`` for the project of the
            server.
        :param audience: of the reader of the answer.
        :raises UnknownPreemption: if there is no such eviction.
        """

    @abc.abstractmethod
    def border(self) -> Answer:
        """Resources and demand of both sides of the border.

        :raises UnknownHost: if this cloud has no border.
        """

    @abc.abstractmethod
    def hosts(self, marker: str | None, limit: int) -> Answer:
        """Hosts that can move between batch system and cloud, by name.

        :param marker: name of the last host of the page before.
        :raises UnknownHost: if this cloud has no border.
        """

    @abc.abstractmethod
    def host(self, name: str) -> Answer:
        """One host, with its jobs, servers and past moves.

        :raises UnknownHost: if no host with this name can move between batch
            system and cloud.
        """

    @abc.abstractmethod
    def move(self, name: str) -> Answer:
        """Send a host to the other side.

        :raises UnknownHost: if no host with this name can move between batch
            system and cloud.
        :raises IllegalStep: if the host is fixed, or already moves.
        """

    @abc.abstractmethod
    def stay(self, name: str) -> Answer:
        """Cancel the move of a host.

        :raises UnknownHost: if no host with this name can move between batch
            system and cloud.
        :raises IllegalStep: if the host does not move.
        """

    @abc.abstractmethod
    def aim(self, hosts: int | None) -> Answer:
        """Set the number of hosts that the cloud is to have.

        :param hosts: ``None``: calendar and demand decide.
        :raises UnknownHost: if this cloud has no border.
        :raises IllegalStep: if there are fewer hosts.
        """

    @abc.abstractmethod
    def tree(self, known: str) -> Answer:
        """Shares of all accounts, for agents.

        :param known: version that the caller has.
        :returns: ``version``, and ``accounts``: ``name``, ``parent``,
            ``share`` and ``fair_share`` of each account; ``None`` if version
            ``known`` is still valid.
        """

    @abc.abstractmethod
    def preemptible(self, servers: Sequence[str]) -> Answer:
        """Preemptible servers among some servers, for agents.

        :param servers: UUIDs.
        :returns: ``servers``: UUIDs of the preemptible ones, sorted.
        """

    @abc.abstractmethod
    def notices(self, servers: Sequence[str]) -> Answer:
        """Texts for the guests of some servers, for agents.

        :param servers: UUIDs.
        :returns: ``notices``: metadata of servers that leave or are at risk,
            by UUID.
        """


_READ = calls.answers(roles.Access.READ)
_OVERSEE = calls.answers(roles.Access.OVERSEE)
_CHANGE = calls.answers(roles.Access.CHANGE)


class RequestsEndpoint(plans.PlansEndpoint):
    """Checks calls and passes them to the operations.

    :param operations: operations of the service.
    """

    target = oslo_messaging.Target(version=protocol.FIRST)
    _operations: ClusterCalls

    def __init__(self, operations: ClusterCalls) -> None:
        super().__init__(operations)

    @_OVERSEE
    def list_requests(
        self,
        ctxt: Context,
        project: Any = None,
        marker: Any = None,
        limit: Any = protocol.MOST_REQUESTS,
        preemptible: Any = None,
        audience: Any = None,
        filters: Any = None,
    ) -> Answer:
        """Requests of a project or of all."""
        return self._operations.requests(
            *arguments.page(project, marker, limit),
            arguments.optional_truth('preemptible', preemptible),
            arguments.audience(audience),
            arguments.request_filter(filters),
        )

    @_OVERSEE
    def get_request(
        self,
        ctxt: Context,
        uuid: Any,
        audience: Any = None,
        events: Any = False,
    ) -> Answer:
        """One request."""
        return self._operations.request(
            arguments.name('uuid', uuid),
            arguments.audience(audience),
            events is True,
        )

    @_OVERSEE
    def list_waits(
        self,
        ctxt: Context,
        by: Any,
        project: Any = None,
        since: Any = None,
        marker: Any = None,
        limit: Any = protocol.MOST_REQUESTS,
    ) -> Answer:
        """Percentiles of waits by project, flavor or reason."""
        project, marker, limit = arguments.page(project, marker, limit)
        since = arguments.optional_number('since', since)
        wanted = waits.WaitFilter(arguments.wait_key(by), project, since)
        return self._operations.waits(wanted, marker, limit)

    @_CHANGE
    def cancel(
        self, ctxt: Context, uuid: Any, by_operator: Any = False
    ) -> Answer:
        """Cancel a waiting build."""
        return self._operations.cancel(
            arguments.name('uuid', uuid), by_operator is True
        )

    @_CHANGE
    def release(
        self, ctxt: Context, uuid: Any, without_room: Any = None
    ) -> Answer:
        """Start a request regardless of the plan."""
        asked = arguments.optional_truth('without_room', without_room)
        name = arguments.name('uuid', uuid)
        return self._operations.release(name, asked or False)

    @_CHANGE
    def first(self, ctxt: Context, uuid: Any) -> Answer:
        """Put a request before all others of its priority class."""
        return self._operations.first(arguments.name('uuid', uuid))

    @_CHANGE
    def unfirst(self, ctxt: Context, uuid: Any) -> Answer:
        """Let the order decide the position of a request."""
        return self._operations.unfirst(arguments.name('uuid', uuid))

    @_CHANGE
    def hold(
        self,
        ctxt: Context,
        uuid: Any,
        by_operator: Any = False,
        why: Any = None,
    ) -> Answer:
        """Keep a request from starting."""
        return self._operations.hold(
            arguments.name('uuid', uuid),
            by_operator is True,
            arguments.optional_name('why', why),
        )

    @_CHANGE
    def unhold(
        self, ctxt: Context, uuid: Any, by_operator: Any = False
    ) -> Answer:
        """End the hold of a request."""
        return self._operations.unhold(
            arguments.name('uuid', uuid), by_operator is True
        )

    @_OVERSEE
    def list_shares(
        self,
        ctxt: Context,
        project: Any = None,
        marker: Any = None,
        limit: Any = protocol.MOST_REQUESTS,
    ) -> Answer:
        """The share tree."""
        return self._operations.shares(*arguments.page(project, marker, limit))

    @_CHANGE
    def set_share(
        self, ctxt: Context, account: Any, share: Any = None
    ) -> Answer:
        """Set the share of an account."""
        return self._operations.set_share(
            arguments.name('account', account),
            arguments.optional_number('share', share),
        )

    @_CHANGE
    def extend(self, ctxt: Context, uuid: Any, seconds: Any) -> Answer:
        """Let the servers of a request run longer."""
        by_s = arguments.optional_number('seconds', seconds)
        if by_s is None or not 0 < by_s <= protocol.LONGEST_S:
            raise exception.BadArgument(
                'seconds must be more than 0 and at most'
                f' {protocol.LONGEST_S:g}'
            )
        return self._operations.extend(arguments.name('uuid', uuid), by_s)

    @_OVERSEE
    def list_limits(
        self,
        ctxt: Context,
        project: Any = None,
        marker: Any = None,
        limit: Any = protocol.MOST_REQUESTS,
    ) -> Answer:
        """Accounts that have limits of their own."""
        return self._operations.limits(*arguments.page(project, marker, limit))

    @_CHANGE
    def set_limits(self, ctxt: Context, account: Any, limits: Any) -> Answer:
        """Set limits of an account."""
        return self._operations.set_limits(
            arguments.name('account', account), arguments.by_name(limits)
        )

    @_OVERSEE
    def dry_run(
        self,
        ctxt: Context,
        account: Any = None,
        values: Any = None,
        order: Any = None,
        parameters: Any = None,
        project: Any = None,
        most: Any = 0,
        audience: Any = None,
    ) -> Answer:
        """Compute the effect of a change, without the change."""
        reader = DryRunReader(
            arguments.optional_name('project', project),
            arguments.count('most', most, protocol.MOST_DRY_RUN, 0),
            arguments.audience(audience),
        )
        if order is None:
            return self._operations.try_account(
                arguments.name('account', account),
                arguments.by_name(values),
                reader,
            )
        return self._operations.try_order(
            arguments.name('order', order),
            arguments.finite_numbers(parameters or {}),
            reader,
        )

    @_OVERSEE
    def list_preemptions(
        self,
        ctxt: Context,
        project: Any = None,
        marker: Any = None,
        limit: Any = protocol.MOST_REQUESTS,
        audience: Any = None,
    ) -> Answer:
        """Evictions of preemptible servers that make room."""
        return self._operations.preemptions(
            *arguments.page(project, marker, limit),
            arguments.audience(audience),
        )

    @_OVERSEE
    def get_preemption(
        self,
        ctxt: Context,
        uuid: Any,
        project: Any = None,
        audience: Any = None,
    ) -> Answer:
        """One eviction of a preemptible server that makes room."""
        return self._operations.preemption(
            arguments.name('uuid', uuid),
            arguments.optional_name('project', project),
            arguments.audience(audience),
        )

    @_OVERSEE
    def get_border(self, ctxt: Context) -> Answer:
        """Resources and demand of both sides of the border."""
        return self._operations.border()

    @_OVERSEE
    def list_border_hosts(
        self,
        ctxt: Context,
        marker: Any = None,
        limit: Any = protocol.MOST_REQUESTS,
    ) -> Answer:
        """Hosts between batch and cloud."""
        return self._operations.hosts(*arguments.page(None, marker, limit)[1:])

    @_OVERSEE
    def get_border_host(self, ctxt: Context, name: Any) -> Answer:
        """One host between batch and cloud."""
        return self._operations.host(arguments.name('name', name))

    @_CHANGE
    def move_host(self, ctxt: Context, name: Any) -> Answer:
        """Send a host to the other side."""
        return self._operations.move(arguments.name('name', name))

    @_CHANGE
    def cancel_host(self, ctxt: Context, name: Any) -> Answer:
        """Cancel the move of a host."""
        return self._operations.stay(arguments.name('name', name))

    @_CHANGE
    def set_target(self, ctxt: Context, hosts: Any = None) -> Answer:
        """Set the number of hosts that the cloud is to have."""
        return self._operations.aim(
            None
            if hosts is None
            else arguments.count('hosts', hosts, protocol.MOST_NUMBERS, 0)
        )

    @_READ
    def get_tree(self, ctxt: Context, known: Any = None) -> Answer:
        """Shares of all accounts, unless the caller has the newest version."""
        return self._operations.tree(
            arguments.optional_name('known', known) or ''
        )

    @_READ
    def get_preemptible(self, ctxt: Context, servers: Any) -> Answer:
        """Preemptible servers among some servers."""
        return self._operations.preemptible(arguments.names('server', servers))

    @_READ
    def get_notices(self, ctxt: Context, servers: Any) -> Answer:
        """Texts for the guests of some servers about evictions."""
        return self._operations.notices(arguments.names('server', servers))

    @_OVERSEE
    def get_status(self, ctxt: Context) -> Answer:
        """State of the whole service."""
        return self._operations.status()

    @_OVERSEE
    def get_capacity(
        self, ctxt: Context, project: Any = None, audience: Any = None
    ) -> Answer:
        """Used and free capacity of the cloud."""
        whose = arguments.optional_name('project', project) or ''
        is_all = arguments.audience(audience) is OPERATOR
        return self._operations.capacity(None if is_all else whose)


_ANY = ''
"""Key of the whole service in its record of silence: any process may
answer.
"""


class RequestsClient:
    """Calls the process of the cluster service that acts.

    :param rpc: client for the topic :data:`protocol.REQUESTS_TOPIC`.
    :param silence: record of failed calls to the service; clients share it.
    """

    def __init__(
        self,
        rpc: client.FairnessClient,
        silence: silence_module.Silence | None = None,
    ) -> None:
        self._rpc = rpc
        self._silence = silence or silence_module.Silence(0.0)

    def for_request(self, request_id: str, user_id: str = '') -> Self:
        """A client whose calls belong to a request of the HTTP interface."""
        rpc = self._rpc.for_request(request_id, user_id)
        return type(self)(rpc, self._silence)

    def call(self, method: str, **given: Any) -> Any:
        """Call a method of the service.

        :raises HostNotReached: if no process answers in time.
        :raises NotLeading: if no process acts now.
        :raises FairnessError: error that the service raised, with its class.
        """
        if (why := self._silence.why(_ANY)) is not None:
            raise exception.HostNotReached(why)
        try:
            return self._rpc.call(None, method, **given)
        except exception.NotLeading as error:
            if str(error) == protocol.NOBODY:
                raise
            return self._rpc.call(str(error), method, **given)
        except exception.HostNotReached as error:
            self._silence.note((), {_ANY: str(error)})
            raise
