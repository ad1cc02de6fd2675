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

    :ivar project: whose requests are named; ``None`` for all.
    :ivar most: number of requests that are named, >= 0.
    :ivar audience: of the reader.
    """

    project: str | None
    most: int
    audience: reason.Audience


class ClusterCalls(plans.PlanCalls):
    """The operations of the cluster service.

    Called on threads of the RPC server, several at once. All answers are JSON
    types. Every method raises ``NotLeading`` in a process that does not act.
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
        """Requests that have not ended, or others, the oldest first.

        :param project: owner of the requests; ``None`` for all projects.
        :param marker: UUID of the last one of the page before.
        :param preemptible: those that are, or are not; ``None`` for both.
        :param audience: of the reader of the answer.
        :param wanted: others than those that have not ended; ``None`` for
            these.
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
        :param events: whether its history is told, too.
        :raises UnknownRequest: if there is no such request.
        """

    @abc.abstractmethod
    def waits(
        self, wanted: waits.WaitFilter, marker: str | None, limit: int
    ) -> Answer:
        """Percentiles of waits by project, flavor or reason, by name.

        :param wanted: of the last :data:`waits.USUAL_S` if it has no begin.
        :param marker: name of the last one of the page before.
        :returns: ``waits``: ``name``, ``requests_count``, and seconds ``p50``,
            ``p90`` and ``p95`` of each; of reasons ``explanation``, too.
        """

    @abc.abstractmethod
    def cancel(self, uuid: str, by_operator: bool) -> Answer:
        """Take a build back that waits, and delete its servers.

        :raises UnknownRequest: if there is no such request.
        :raises IllegalStep: if it does not wait any longer, or is no build.
        """

    @abc.abstractmethod
    def release(self, uuid: str, without_room: bool = False) -> Answer:
        """Start a request whatever the plan is.

        :param without_room: whether Nova looks for room itself, and destroys
            the request if it finds none.
        :raises UnknownRequest: if there is no such request.
        :raises NoRoom: if there is no room beside what others have.
        :raises IllegalStep: if Nova has it already.
        """

    @abc.abstractmethod
    def first(self, uuid: str) -> Answer:
        """Put a request before all others of its band.

        :raises UnknownRequest: if there is no such request.
        :raises IllegalStep: if it waits no longer.
        """

    @abc.abstractmethod
    def unfirst(self, uuid: str) -> Answer:
        """Let a request stand where the order puts it; see :meth:`first`."""

    @abc.abstractmethod
    def hold(
        self, uuid: str, by_operator: bool, why: str | None = None
    ) -> Answer:
        """Keep a request from starting.

        :param by_operator: whether only an operator may end the hold.
        :param why: in the words of the holder.
        :raises UnknownRequest: if there is no such request.
        :raises IllegalStep: if it waits no longer.
        """

    @abc.abstractmethod
    def unhold(self, uuid: str, by_operator: bool) -> Answer:
        """Let a request start in its turn.

        :raises UnknownRequest: if there is no such request.
        :raises IllegalStep: if it waits no longer, or an operator holds it.
        """

    @abc.abstractmethod
    def capacity(self, project: str | None = None) -> Answer:
        """How full the cloud is, and what starts now.

        :param project: that may use the flavors that are told; '' for those
            that all may use, ``None`` for all flavors.
        """

    @abc.abstractmethod
    def status(self) -> Answer:
        """Leader, waits, leaving servers, plans, border and warnings."""

    @abc.abstractmethod
    def shares(
        self, project: str | None, marker: str | None, limit: int
    ) -> Answer:
        """The share tree, those below an account after it.

        :param project: the only one, with its users; ``None`` for all.
        :param marker: name of the last account of the page before.
        :raises UnknownAccount: if there is no such account.
        """

    @abc.abstractmethod
    def set_share(self, name: str, share: float | None) -> Answer:
        """Set the share of an account.

        :param share: ``None`` for what the file says.
        :returns: ``account`` and ``share``, as given.
        :raises BadShares: if it is no share.
        :raises UnknownAccount: if there is no such project, user of one, or
            account of the file; or if none was set that could be taken back.
        :raises AccountUnchecked: if Keystone cannot be asked.
        """

    @abc.abstractmethod
    def extend(self, uuid: str, by_s: float) -> Answer:
        """Let servers of a request run longer.

        :raises UnknownRequest: if there is no such request.
        :raises IllegalStep: if they may not, or leave already.
        """

    @abc.abstractmethod
    def limits(
        self, project: str | None, marker: str | None, limit: int
    ) -> Answer:
        """Accounts that have limits of their own, by name.

        :param project: the only one, with its users; ``None`` for all.
        :param marker: name of the last account of the page before.
        """

    @abc.abstractmethod
    def set_limits(self, name: str, limits: Mapping[str, Any]) -> Answer:
        """Set limits of an account.

        :param limits: ``time_limit`` and ``longest_wait``, seconds;
            ``budget``, unit-hours; ``ceiling``, ``nominal``,
            ``borrowing_limit`` and ``lending_limit``, amounts by resource
            class; ``windows``, a list of ``begins``, ``lasts`` (seconds) and
            ``zone``; ``None`` for what the file says.
        :returns: ``account`` and the limits, as given.
        :raises BadArgument: if there is no such limit.
        :raises BadShares: if one is out of its range.
        :raises UnknownAccount: if there is no such project, user of one, or
            account of the file; or if none was set that could be taken back.
        :raises AccountUnchecked: if Keystone cannot be asked.
        """

    @abc.abstractmethod
    def try_account(
        self, name: str, values: Mapping[str, Any], reader: DryRunReader
    ) -> Answer:
        """Tell the effect of a change of an account; nothing is set.

        :param values: ``share``, and limits as of :meth:`set_limits`.
        :returns: ``dry_run``: numbers of requests, and ``requests``: where
            each stands ``before`` and ``after``.
        :raises Busy: if another dry run goes on, or ended just now.
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
        """Tell the effect of another order; see :meth:`try_account`.

        :param name: of the order.
        :param parameters: numbers of it, by name.
        :raises BadArgument: if it cannot be used.
        """

    @abc.abstractmethod
    def preemptions(
        self,
        project: str | None,
        marker: str | None,
        limit: int,
        audience: reason.Audience = OPERATOR,
    ) -> Answer:
        """Times that servers were to make room, the newest first.

        :param project: the reader, whose server or request it concerns;
            ``None`` for all.
        :param marker: UUID of the last one of the page before.
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
        """One time that a server was to make room.

        :param project: which reads the answer; ``None`` for that of the
            server.
        :param audience: of the reader of the answer.
        :raises UnknownPreemption: if there is none.
        """

    @abc.abstractmethod
    def border(self) -> Answer:
        """Resources and demand of both sides of the border.

        :raises UnknownHost: if no host moves here.
        """

    @abc.abstractmethod
    def hosts(self, marker: str | None, limit: int) -> Answer:
        """Hosts between batch and cloud, by name.

        :param marker: name of the last one of the page before.
        :raises UnknownHost: if no host moves here.
        """

    @abc.abstractmethod
    def host(self, name: str) -> Answer:
        """One host, with what runs there and its history.

        :raises UnknownHost: if no such host moves.
        """

    @abc.abstractmethod
    def move(self, name: str) -> Answer:
        """Send a host to the other side.

        :raises UnknownHost: if no such host moves.
        :raises IllegalStep: if it is fixed, or on its way.
        """

    @abc.abstractmethod
    def stay(self, name: str) -> Answer:
        """Let a host stay that is on its way.

        :raises UnknownHost: if no such host moves.
        :raises IllegalStep: if it is not on its way.
        """

    @abc.abstractmethod
    def aim(self, hosts: int | None) -> Answer:
        """Say how many hosts the cloud is to have.

        :param hosts: ``None`` to go by calendar and demand.
        :raises UnknownHost: if no host moves here.
        :raises IllegalStep: if there are not as many.
        """

    @abc.abstractmethod
    def tree(self, known: str) -> Answer:
        """Shares of all accounts, for agents.

        :param known: version that the caller has.
        :returns: ``version``, and ``accounts``: ``name``, ``parent``,
            ``share`` and ``fair_share`` of each; ``None`` if they are those
            of ``known``.
        """

    @abc.abstractmethod
    def preemptible(self, servers: Sequence[str]) -> Answer:
        """Say which of some servers are preemptible, for agents.

        :param servers: UUIDs.
        :returns: ``servers``: those of them that are, sorted.
        """

    @abc.abstractmethod
    def notices(self, servers: Sequence[str]) -> Answer:
        """Say what guests of some servers are told, for agents.

        :param servers: UUIDs.
        :returns: ``notices``: of those that leave or are at risk what their
            metadata say of it, by UUID.
        """


_READ = calls.answers(roles.Access.READ)
_OVERSEE = calls.answers(roles.Access.OVERSEE)
_CHANGE = calls.answers(roles.Access.CHANGE)


class RequestsEndpoint(plans.PlansEndpoint):
    """Judges calls and hands them over.

    :param operations: what the service can do.
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
        """Requests that have not ended, or others."""
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
        """Take a build back that waits."""
        return self._operations.cancel(
            arguments.name('uuid', uuid), by_operator is True
        )

    @_CHANGE
    def release(
        self, ctxt: Context, uuid: Any, without_room: Any = None
    ) -> Answer:
        """Start a request whatever the plan is."""
        asked = arguments.optional_truth('without_room', without_room)
        name = arguments.name('uuid', uuid)
        return self._operations.release(name, asked or False)

    @_CHANGE
    def first(self, ctxt: Context, uuid: Any) -> Answer:
        """Put a request before all others of its band."""
        return self._operations.first(arguments.name('uuid', uuid))

    @_CHANGE
    def unfirst(self, ctxt: Context, uuid: Any) -> Answer:
        """Let a request stand where the order puts it."""
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
        """Let a request start in its turn."""
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
        """Let servers of a request run longer."""
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
        """Tell the effect of a change."""
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
        """Times that servers were to make room."""
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
        """One time that a server was to make room."""
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
        """Let a host stay that is on its way."""
        return self._operations.stay(arguments.name('name', name))

    @_CHANGE
    def set_target(self, ctxt: Context, hosts: Any = None) -> Answer:
        """Say how many hosts the cloud is to have."""
        return self._operations.aim(
            None
            if hosts is None
            else arguments.count('hosts', hosts, protocol.MOST_NUMBERS, 0)
        )

    @_READ
    def get_tree(self, ctxt: Context, known: Any = None) -> Answer:
        """Shares of all accounts, if they are not those that are known."""
        return self._operations.tree(
            arguments.optional_name('known', known) or ''
        )

    @_READ
    def get_preemptible(self, ctxt: Context, servers: Any) -> Answer:
        """Say which of some servers are preemptible."""
        return self._operations.preemptible(arguments.names('server', servers))

    @_READ
    def get_notices(self, ctxt: Context, servers: Any) -> Answer:
        """Say what guests of some servers are told of leaving."""
        return self._operations.notices(arguments.names('server', servers))

    @_OVERSEE
    def get_status(self, ctxt: Context) -> Answer:
        """State of the whole service."""
        return self._operations.status()

    @_OVERSEE
    def get_capacity(
        self, ctxt: Context, project: Any = None, audience: Any = None
    ) -> Answer:
        """How full the cloud is."""
        whose = arguments.optional_name('project', project) or ''
        is_all = arguments.audience(audience) is OPERATOR
        return self._operations.capacity(None if is_all else whose)


_ANY = ''
"""Whichever process of the service acts, among those that are silent."""


class RequestsClient:
    """Asks the process of the cluster service that acts.

    :param rpc: of the topic :data:`protocol.REQUESTS_TOPIC`.
    :param silence: of the service, which clients share.
    """

    def __init__(
        self,
        rpc: client.FairnessClient,
        silence: silence_module.Silence | None = None,
    ) -> None:
        self._rpc = rpc
        self._silence = silence or silence_module.Silence(0.0)

    def of_request(self, request_id: str, user_id: str = '') -> Self:
        """A client whose calls belong to a request of the HTTP interface."""
        rpc = self._rpc.of_request(request_id, user_id)
        return type(self)(rpc, self._silence)

    def call(self, method: str, **given: Any) -> Any:
        """Ask.

        :raises HostNotReached: if no process answers in time.
        :raises NotLeading: if no process acts just now.
        :raises FairnessError: what the service raised, of its class.
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
