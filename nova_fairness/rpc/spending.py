# SPDX-License-Identifier: Apache-2.0

"""Calls about groups of servers and their spending."""

import abc
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from nova_fairness import exception
from nova_fairness.model import market
from nova_fairness.model import reason
from nova_fairness.rpc import arguments
from nova_fairness.rpc import calls
from nova_fairness.rpc import protocol
from nova_fairness.rpc import roles

Answer = calls.Answer
Context = calls.Context


class SpendingCalls(abc.ABC):
    """The operations on spending rates and prices."""

    @abc.abstractmethod
    def groups(
        self, project: str | None, marker: str | None, limit: int
    ) -> Answer:
        """Groups with spending rates, by project and name.

        :param project: only groups of this project; ``None`` for all.
        :param marker: ``id`` of the last group of the page before.
        """

    @abc.abstractmethod
    def create_group(
        self, project: str, name: str, rate: float, count: int
    ) -> Answer:
        """Create a group with a rate.

        :raises BadArgument: if a number is out of its range.
        :raises IllegalStep: if the group exists.
        """

    @abc.abstractmethod
    def set_group(
        self, project: str, name: str, rate: float | None, count: int | None
    ) -> Answer:
        """Change a group.

        :param rate: ``None`` keeps the rate.
        :param count: ``None`` keeps the count.
        :raises BadArgument: if a number is out of its range.
        :raises UnknownGroup: if there is no such group.
        """

    @abc.abstractmethod
    def delete_group(self, project: str, name: str) -> Answer:
        """Delete a group; its servers get the lowest rate.

        :raises UnknownGroup: if there is no such group.
        """

    @abc.abstractmethod
    def prices(
        self,
        host: str | None,
        marker: str | None,
        limit: int,
        project: str | None = None,
    ) -> Answer:
        """Prices of hosts.

        :param host: host whose past prices are listed, the newest first;
            ``None`` for the present prices of all hosts, by ``id``.
        :param marker: ``id`` of the last entry of the page before.
        :param project: project of the reader, who gets its own spending, but
            no names of hosts and no spending of others. '' for a reader
            without a project, ``None`` for operators.
        :raises BadArgument: if the marker is not valid.
        :raises UnknownHost: if there is no such host.
        """

    @abc.abstractmethod
    def report_meters(
        self, host: str, meters: Mapping[str, tuple[str, int]]
    ) -> Answer:
        """Charge the CPU use of the servers of a host.

        :param host: host of the agent that reports.
        :param meters: by UUID of the server: a name of its process, and
            microseconds of CPU that the process has used since it began.
        :returns: ``elsewhere``: UUIDs of servers that are not on this host;
            nothing is charged for them.
        """

    @abc.abstractmethod
    def rates(self, servers: Sequence[str], known: str) -> Answer:
        """Rates of servers, for agents.

        :param servers: UUIDs.
        :param known: version that the caller has.
        :returns: ``version``, and ``rates`` by UUID of known servers; ``None``
            if version ``known`` is still valid.
        """


_READ = calls.answers(roles.Access.READ)
_OVERSEE = calls.answers(roles.Access.OVERSEE)
_CHANGE = calls.answers(roles.Access.CHANGE)
_REPORT = calls.answers(roles.Access.REPORT)


class SpendingEndpoint:
    """Checks calls and passes them to the operations.

    :param operations: operations of the service.
    """

    def __init__(self, operations: SpendingCalls) -> None:
        self._operations = operations

    @_OVERSEE
    def list_groups(
        self,
        ctxt: Context,
        project: Any = None,
        marker: Any = None,
        limit: Any = protocol.MOST_REQUESTS,
    ) -> Answer:
        """Groups with spending rates."""
        return self._operations.groups(*arguments.page(project, marker, limit))

    @_CHANGE
    def create_group(
        self,
        ctxt: Context,
        project: Any,
        group: Any,
        rate: Any,
        count: Any = 1,
    ) -> Answer:
        """Create a group with a rate."""
        number = arguments.optional_number('rate', rate)
        if number is None:
            raise exception.BadArgument('rate must be a finite number')
        return self._operations.create_group(
            *_group(project, group),
            number,
            arguments.count('count', count, market.MOST_SERVERS),
        )

    @_CHANGE
    def set_group(
        self,
        ctxt: Context,
        project: Any,
        group: Any,
        rate: Any = None,
        count: Any = None,
    ) -> Answer:
        """Change a group."""
        most = market.MOST_SERVERS
        return self._operations.set_group(
            *_group(project, group),
            arguments.optional_number('rate', rate),
            None if count is None else arguments.count('count', count, most),
        )

    @_CHANGE
    def delete_group(self, ctxt: Context, project: Any, group: Any) -> Answer:
        """Delete a group."""
        return self._operations.delete_group(*_group(project, group))

    @_OVERSEE
    def list_prices(
        self,
        ctxt: Context,
        name: Any = None,
        marker: Any = None,
        limit: Any = protocol.MOST_REQUESTS,
        project: Any = None,
        audience: Any = None,
    ) -> Answer:
        """Present prices of hosts, or past prices of one host."""
        whose = arguments.optional_name('project', project) or ''
        is_all = arguments.audience(audience) is reason.Audience.OPERATOR
        return self._operations.prices(
            arguments.optional_name('name', name),
            *arguments.page(None, marker, limit)[1:],
            None if is_all else whose,
        )

    @_READ
    def get_rates(
        self,
        ctxt: Context,
        servers: Any = None,
        known: Any = None,
        meters: Any = None,
    ) -> Answer:
        """Rates of servers.

        Agents of the release before send ``meters`` by process; only the
        servers in them are read.
        """
        asked = arguments.names('server', servers or [])
        if meters is not None:
            asked += [uuid for uuid, _ in _meters(meters, 0).values()]
        return self._operations.rates(
            asked, arguments.optional_name('known', known) or ''
        )

    @_REPORT
    def report_meters(self, ctxt: Context, node: Any, meters: Any) -> Answer:
        """Report the CPU use of the servers of the caller's own host."""
        named = roles.reporter(ctxt, arguments.name('node', node))
        return self._operations.report_meters(named, _meters(meters, 1))


def _group(project: Any, group: Any) -> tuple[str, str]:
    return arguments.name('project', project), arguments.name('group', group)


def _meters(value: Any, of: int) -> dict[str, tuple[str, int]]:
    """Check and return the meters of processes; there may be none.

    :param of: 1 if the keys are servers, 0 if the keys are processes.
    """
    if value == {}:
        return {}
    found = {}
    other = ('server', 'process')[of]
    for name, meter in arguments.by_name(value).items():
        is_pair = isinstance(meter, list | tuple) and len(meter) == 2
        used = meter[1] if is_pair else None
        if type(used) is not int or not 0 <= used <= protocol.LARGEST_EPOCH:
            raise exception.BadArgument(
                f'meter of {name:.50} must be a {other} and a whole number of'
                ' microseconds'
            )
        found[name] = (arguments.name(other, meter[0]), used)
    return found
