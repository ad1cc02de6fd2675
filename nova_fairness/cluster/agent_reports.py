# SPDX-License-Identifier: Apache-2.0

"""Queries to agents: the measured use of each owner, idle servers, and
servers that lack CPUs.
"""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import math
import statistics
import time
from typing import Any
from typing import Generic
from typing import TypeVar

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.model import cluster
from nova_fairness.model import tenants
from nova_fairness.model import wording
from nova_fairness.runtime import lookup
from nova_fairness.shares import measured as measured_module

LOG = logging.getLogger(__name__)

UNKNOWN = 'what is allocated is charged: what is used is not known: %s'
KNOWN_AGAIN = 'what agents measured is charged again'

OUTLIER = (
    'agent of host %s: what it says of use is not what others say: %s; the'
    ' median of all that answer counts'
)

NEEDED = 3
"""Number of agents whose reports must agree: among three reports, a wrong
one does not change the median.
"""

ASKED = 5
"""Number of agents that are queried: some may not answer, or run on the
same host.
"""

_FAR_PART, _FAR_FACTOR = 0.05, 1.5
"""A report deviates from the median if it differs by more than this part of
the cloud, and by more than this factor. Agents measure at different times.
"""

_LONGEST_NAME = 511
_MOST_OWNERS = 100_000

Ask = Callable[[], Any]
"""Queries agents for the measured use. Returns the report of one agent, or
a list of reports of several agents; raises FairnessError.
"""


class ReportedUse:
    """Measured use of the cloud: the median of the reports of several agents,
    for each owner and resource.

    :param ask: queries some agents.
    :ivar outliers: by host of the agent: how its last report differs from the
        reports of other agents.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._is_known = True
        self.outliers: dict[str, str] = {}

    def measured(self, hosts: int) -> measured_module.MeasuredUse | None:
        """Return the use on which most agents agree; ``None`` if too few
        agents agree.

        :param hosts: number of hosts of the cloud; with one or two hosts, all
            agents must agree.
        """
        try:
            found = self._median_of_reports(self._ask(), min(NEEDED, hosts))
        except Exception as error:  # noqa: BLE001 - whatever a transport raises
            # Allocated amounts are known without agents.
            if self._is_known:
                LOG.warning(UNKNOWN, error)
            self._is_known = False
            return None
        if not self._is_known:
            LOG.info(KNOWN_AGAIN)
        self._is_known = True
        return found

    def _median_of_reports(
        self, told: Any, needed: int
    ) -> measured_module.MeasuredUse:
        """Return the median of the reports, and log those that deviate.

        :param told: report of one agent, or a list of reports.
        :param needed: number of agents that must agree.
        :raises BadArgument: if no report is valid, or too few agents agree.
        """
        answers = told if isinstance(told, list) else [told]
        said, wrong = _parse_reports(answers)
        if not said:
            why = next(iter(wrong.values()), 'no agent answers')
            raise exception.BadArgument(why)
        kinds = collections.Counter(each.by_project for each in said.values())
        usual = kinds[True] > kinds[False]
        alike = {
            host: each
            for host, each in said.items()
            if each.by_project == usual
        }
        for host in said.keys() - alike.keys():
            wrong[host] = 'it compares others than most do'
        found = measured_module.MeasuredUse(
            usual, _median_report(alike.values())
        )
        if len(alike) >= NEEDED:
            for host, each in alike.items():
                if far := _deviating_number(each, found):
                    wrong[host] = far
        self._log_outliers(wrong if len(answers) > 1 else {})
        if len(alike) < needed:
            raise exception.BadArgument(
                f'agents of {wording.counted(len(alike), "host")} agree,'
                f' expected {needed}: fewer could say anything'
            )
        return found

    def _log_outliers(self, wrong: dict[str, str]) -> None:
        for host in sorted(wrong.keys() - self.outliers.keys()):
            LOG.warning(OUTLIER, host, wrong[host])
        self.outliers = wrong


def _parse_reports(
    answers: list[Any],
) -> tuple[dict[str, measured_module.MeasuredUse], dict[str, str]]:
    """Return the valid reports and the faults of the others, by host."""
    said: dict[str, measured_module.MeasuredUse] = {}
    wrong: dict[str, str] = {}
    disputed: dict[str, str] = {}
    for number, answer in enumerate(answers):
        host = _reporting_host(answer, number)
        try:
            one = _parse_report(answer)
        except exception.BadArgument as error:
            wrong[host] = str(error)
            continue
        other = said.setdefault(host, one)
        if far := _deviating_number(one, other) or _deviating_number(
            other, one
        ):
            # One of two agents uses the host name of the other.
            disputed[host] = f'two answers have its name: {far}'
    valid = {host: said[host] for host in said if host not in disputed}
    return valid, wrong | disputed


def _reporting_host(answer: Any, number: int) -> str:
    """Return the name of the host of a report; ``#`` and the number of the
    report if it has no name.
    """
    host = answer.get('host') if isinstance(answer, dict) else None
    return host[:255] if isinstance(host, str) else f'#{number}'


def _median_report(
    several: Iterable[measured_module.MeasuredUse],
) -> dict[str, dict[str, float]]:
    """Return the median of each number, by owner and resource. Of two middle
    values, the lower one.

    A number that is missing in most reports is left out.
    """
    parts = [each.parts for each in several]
    found: dict[str, dict[str, float]] = {}
    for owner in sorted({owner for each in parts for owner in each}):
        numbers: dict[str, list[float]] = {}
        for each in parts:
            for resource, part in each.get(owner, {}).items():
                numbers.setdefault(resource, []).append(part)
        found[owner] = {
            resource: statistics.median_low(known)
            for resource, known in numbers.items()
            if 2 * len(known) > len(parts)
        }
    return found


def _deviating_number(
    one: measured_module.MeasuredUse, median: measured_module.MeasuredUse
) -> str | None:
    """Describe the first number of a report that deviates from the median;
    ``None`` if none deviates.
    """
    for owner, parts in sorted(one.parts.items()):
        for resource, part in parts.items():
            usual = median.parts.get(owner, {}).get(resource, 0.0)
            less, more = sorted((part, usual))
            if more - less > _FAR_PART and more > _FAR_FACTOR * less:
                return (
                    f'{resource} of {owner:.80} is {part:.3g} of the cloud,'
                    f' others say {usual:.3g}'
                )
    return None


def _parse_report(told: Any) -> measured_module.MeasuredUse:
    """Check the report of an agent, and convert it.

    :raises BadArgument: if the report is invalid.
    """
    users = told.get('users') if isinstance(told, dict) else None
    if not isinstance(users, dict) or told.get('round') is None:
        raise exception.BadArgument('no round of the agent has ended yet')
    if len(users) > _MOST_OWNERS:
        raise exception.BadArgument(f'{len(users)} users are too many')
    parts: dict[str, dict[str, float]] = {}
    for owner, user in users.items():
        each = user.get('usage_parts') if isinstance(user, dict) else None
        if not isinstance(each, dict):
            raise exception.BadArgument(f'use of {owner!r:.50} is no object')
        if not isinstance(owner, str) or len(owner) > _LONGEST_NAME:
            continue
        numbers = {
            resource: number(each.get(resource))
            for resource in measured_module.RESOURCES.values()
        }
        # No owner can use more than the nodes have.
        parts[owner] = {
            resource: min(part, 1.0)
            for resource, part in numbers.items()
            if part is not None
        }
    return measured_module.MeasuredUse(told.get('entity') == 'project', parts)


def number(told: object) -> float | None:
    """Return a value as a float if it is a finite number >= 0; otherwise
    ``None``.
    """
    if not isinstance(told, int | float) or isinstance(told, bool):
        return None
    try:
        found = float(told)
    except OverflowError:
        return None
    return found if 0 <= found < math.inf else None


AGAIN_S = 600.0
"""Seconds between two queries to the agent of a host about its idle
servers.
"""

LACKING_S = 60.0
"""Seconds between two queries to the agent of a host about servers that
lack CPUs.
"""

_FRESH = 3
"""Number of query intervals for which an answer is used."""

_T = TypeVar('_T')


@dataclasses.dataclass(frozen=True, slots=True)
class _TimedAnswer(Generic[_T]):
    """Answer of an agent, with the time at which it arrived.

    :ivar at_s: monotonic time of the answer, seconds.
    :ivar told: the checked answer.
    """

    at_s: float
    told: _T


class _HostAnswers(Generic[_T]):
    """Newest answers of agents about their own hosts.

    A daemon thread queries the agents. It starts with the first call of
    :meth:`told`.

    :param what: subject of the query, for the log.
    :param ask: queries the agent of a host; may block, and may raise any
        error.
    :param parse_answer: checks and converts an answer; raises BadArgument if
        it is invalid.
    :param again_s: seconds between two queries to the same agent.
    :param clock: monotonic time, seconds.
    """

    def __init__(
        self,
        what: str,
        ask: Callable[[str], Any],
        parse_answer: Callable[[str, Any], _T],
        again_s: float,
        clock: Callable[[], float],
    ) -> None:
        self._what = what
        self._ask = ask
        self._parse_answer = parse_answer
        self._silent: set[str] = set()
        self._fresh_s = _FRESH * again_s
        self._clock = clock
        self._lookup = lookup.Lookup(
            what, self._query_agent, again_s, clock=clock
        )
        self._asks = False

    def stop(self) -> None:
        """Stop the thread that queries agents."""
        self._lookup.stop()

    def told(self, hosts: Collection[str]) -> dict[str, _T]:
        """Return the answers that are recent enough, by host; start the
        queries at the first call.
        """
        if hosts and not self._asks:
            self._asks = True
            self._lookup.start()
        now_s = self._clock()
        return {
            host: heard.told
            for host, heard in self._lookup.known(sorted(hosts)).items()
            if now_s - heard.at_s <= self._fresh_s
        }

    def _query_agent(self, host: str) -> _TimedAnswer[_T] | None:
        try:
            told = self._parse_answer(host, self._ask(host))
        except Exception as error:  # noqa: BLE001 - whatever others raise
            # A host that does not answer does not delay other hosts.
            if host not in self._silent:
                self._silent.add(host)
                LOG.warning(
                    'host %s says nothing of %s: %s', host, self._what, error
                )
            return self._lookup.known([host]).get(host)
        self._silent.discard(host)
        return _TimedAnswer(self._clock(), told)


class Idle(_HostAnswers[Mapping[str, float]]):
    """Idle servers, as the agents of their hosts measured.

    :param ask: queries the agent of a host; may block, and may raise any
        error.
    :param clock: monotonic time, seconds.
    """

    def __init__(
        self,
        ask: Callable[[str], Any],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__('idle servers', ask, _idle_seconds, AGAIN_S, clock)

    def known(self, hosts: Collection[str]) -> dict[str, Mapping[str, float]]:
        """Return the seconds for which each server has been idle, by host
        and UUID. Hosts without a recent answer are left out.
        """
        return self.told(hosts)


def _idle_seconds(host: str, answer: Any) -> Mapping[str, float]:
    """Return the seconds for which each server has been idle, by its UUID.

    :raises BadArgument: if the answer is invalid.
    """
    idle = answer.get('idle') if isinstance(answer, dict) else None
    if not isinstance(idle, dict) or answer.get('host') != host:
        raise exception.BadArgument(
            f'the agent of {host} does not say who is idle'
        )
    known = {uuid: number(idle_s) for uuid, idle_s in idle.items()}
    return {
        str(uuid): idle_s
        for uuid, idle_s in known.items()
        if idle_s is not None
    }


@dataclasses.dataclass(frozen=True, slots=True)
class _Host:
    """CPU that the servers of one host want and get.

    :ivar entity: kind of the owners that the agent compares: ``user`` or
        ``project``.
    :ivar cpus: CPUs that the host has for VMs; 0 if unknown.
    :ivar wants: CPU that each server wants and gets, by UUID.
    """

    entity: str
    cpus: float
    wants: Mapping[str, tenants.ServerWant]


class ServerShortfall(_HostAnswers[_Host]):
    """CPU that servers want and get, as the agents of their hosts measured.

    :param ask: queries the agent of a host; may block, and may raise any
        error.
    :param clock: monotonic time, seconds.
    """

    def __init__(
        self,
        ask: Callable[[str], Any],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(
            'servers that lack CPUs', ask, _parse_wants, LACKING_S, clock
        )

    def tenants(
        self,
        cloud: cluster.ClusterSnapshot,
        moved_at: Mapping[str, float],
        shares: Mapping[str, float],
    ) -> tenants.Tenants:
        """Return the cloud with the CPU that each server wants and gets.

        Only owners of one kind are compared: answers of agents that compare
        another kind of owner than most agents are ignored.

        :param moved_at: time of the last move of a server, seconds of the
            epoch, by its UUID.
        :param shares: share of each owner, by its name.
        """
        told = self.told([each.name for each in cloud.providers])
        kinds = collections.Counter(each.entity for each in told.values())
        usual = min(kinds, key=lambda kind: (-kinds[kind], kind), default='')
        counted = {
            host: each
            for host, each in told.items()
            if each.entity == usual and each.cpus > 0
        }
        wants = {}
        for each in cloud.running:
            there = counted.get(each.host)
            want = there.wants.get(each.uuid) if there else None
            if want is not None:
                at = moved_at.get(each.uuid, -math.inf)
                # No server can use more CPUs than it has, whatever its agent
                # says.
                most = _cpu_count(each) or counted[each.host].cpus
                wants[each.uuid] = dataclasses.replace(
                    want,
                    moved_at=at,
                    wanted_cpus=min(want.wanted_cpus, most),
                    used_cpus=min(want.used_cpus, most),
                )
        cpus = {host: each.cpus for host, each in counted.items()}
        return tenants.Tenants(cloud, wants, cpus, shares)


def _parse_wants(host: str, told: Any) -> _Host:
    """Check the answer of an agent about its servers, and convert it.

    :raises BadArgument: if the answer is invalid.
    """
    found = told.get('instances') if isinstance(told, dict) else None
    if not isinstance(found, dict) or told.get('host') != host:
        raise exception.BadArgument(
            f'the agent of {host} does not say who lacks CPUs'
        )
    wants = {}
    for uuid, each in found.items():
        want = _parse_want(each)
        if want is not None:
            wants[str(uuid)] = want
    cpus = told.get('cpus_count')
    known = isinstance(cpus, int) and 0 < cpus < _MOST_CPUS
    return _Host(str(told.get('entity')), float(cpus) if known else 0.0, wants)


_MOST_CPUS = 100_000


def _cpu_count(server: cluster.Running) -> int:
    amounts = dict(server.amounts)
    return amounts.get('VCPU', 0) + amounts.get('PCPU', 0)


def _parse_want(told: Any) -> tenants.ServerWant | None:
    """Return the CPU that one server wants and gets; ``None`` if the entry
    is invalid.
    """
    if not isinstance(told, dict) or not isinstance(told.get('owner'), str):
        return None
    wanted, got = told.get('wanted_cpus'), told.get('got_cpus')
    weight, seen_s = told.get('weight_units') or 1.0, told.get('seen_s')
    numbers = [number(each) for each in (wanted, got, weight, seen_s)]
    known = [each for each in numbers if each is not None]
    if len(known) < len(numbers):
        return None
    try:
        return tenants.ServerWant(told['owner'], *known)
    except exception.BadSnapshot:
        return None
