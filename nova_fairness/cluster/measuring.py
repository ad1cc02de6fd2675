# SPDX-License-Identifier: Apache-2.0

"""Asks agents what users use, who is idle, and who lacks CPUs."""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
import math
import time
from typing import Any
from typing import Generic
from typing import TypeVar

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.model import cluster
from nova_fairness.model import tenants
from nova_fairness.runtime import lookup
from nova_fairness.shares import measured as measured_module

LOG = logging.getLogger(__name__)

UNKNOWN = 'what is allocated is charged: no agent says what is used: %s'
KNOWN_AGAIN = 'what agents measured is charged again'

Ask = Callable[[], Any]
"""Asks any agent for what is used; raises FairnessError."""


class Measuring:
    """Use that agents measured.

    :param ask: asks one of them.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._is_known = True

    def measured(self) -> measured_module.Measured | None:
        """Use of this moment; ``None`` if nobody says, or says nonsense."""
        try:
            found = _believed(self._ask())
        except exception.FairnessError as error:
            if self._is_known:
                LOG.warning(UNKNOWN, error)
            self._is_known = False
            return None
        if not self._is_known:
            LOG.info(KNOWN_AGAIN)
        self._is_known = True
        return found


def _believed(told: Any) -> measured_module.Measured:
    """The answer of an agent.

    :raises BadArgument: if it is none.
    """
    users = told.get('users') if isinstance(told, dict) else None
    if not isinstance(users, dict) or told.get('round') is None:
        raise exception.BadArgument('no round of the agent has ended yet')
    parts: dict[str, dict[str, float]] = {}
    for owner, user in users.items():
        each = user.get('usage_parts') if isinstance(user, dict) else None
        if not isinstance(each, dict):
            raise exception.BadArgument(f'use of {owner!r:.50} is no object')
        parts[owner] = {
            resource: float(part)
            for resource, part in each.items()
            if isinstance(part, int | float) and 0 <= part < math.inf
        }
    return measured_module.Measured(told.get('entity') == 'project', parts)


AGAIN_S = 600.0
"""After which the agent of a host is asked again who is idle."""

LACKING_S = 60.0
"""After which it is asked again who lacks CPUs."""

_FRESH = 3
"""For so many times that long its answer counts."""

_T = TypeVar('_T')


@dataclasses.dataclass(frozen=True, slots=True)
class _Heard(Generic[_T]):
    """What an agent said.

    :ivar at_s: when, on a clock that never goes back.
    :ivar told: by it.
    """

    at_s: float
    told: _T


class _Asked(Generic[_T]):
    """What the agents of hosts say of their own.

    They are asked on a thread that begins when somebody wants to know, and
    keeps no process from ending.

    :param what: is asked for, for people.
    :param ask: asks the agent of a host; may block, and raise anything.
    :param believed: reads its answer; raises BadArgument if it is none.
    :param again_s: after which it is asked again.
    :param clock: seconds that never go back.
    """

    def __init__(
        self,
        what: str,
        ask: Callable[[str], Any],
        believed: Callable[[str, Any], _T],
        again_s: float,
        clock: Callable[[], float],
    ) -> None:
        self._what = what
        self._ask = ask
        self._believed = believed
        self._silent: set[str] = set()
        self._fresh_s = _FRESH * again_s
        self._clock = clock
        self._lookup = lookup.Lookup(what, self._look, again_s, clock=clock)
        self._asks = False

    def stop(self) -> None:
        """Ask no more."""
        self._lookup.stop()

    def told(self, hosts: Collection[str]) -> dict[str, _T]:
        """By host, of hosts that told of late."""
        if hosts and not self._asks:
            self._asks = True
            self._lookup.start()
        now_s = self._clock()
        return {
            host: heard.told
            for host, heard in self._lookup.known(sorted(hosts)).items()
            if now_s - heard.at_s <= self._fresh_s
        }

    def _look(self, host: str) -> _Heard[_T] | None:
        try:
            told = self._believed(host, self._ask(host))
        except Exception as error:  # noqa: BLE001 - whatever others raise
            # A host that does not answer keeps no other one waiting.
            if host not in self._silent:
                self._silent.add(host)
                LOG.warning(
                    'host %s says nothing of %s: %s', host, self._what, error
                )
            return self._lookup.known([host]).get(host)
        self._silent.discard(host)
        return _Heard(self._clock(), told)


class Idle:
    """Servers that the agents of their hosts see idle.

    :param ask: asks the agent of a host; may block, and raise anything.
    :param clock: seconds that never go back.
    """

    def __init__(
        self,
        ask: Callable[[str], Any],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._asked = _Asked('idle servers', ask, _idle, AGAIN_S, clock)

    def stop(self) -> None:
        """Ask no more."""
        self._asked.stop()

    def known(self, hosts: Collection[str]) -> dict[str, Mapping[str, float]]:
        """Seconds of idleness by UUID, by host; of hosts that told of late."""
        return self._asked.told(hosts)


def _idle(host: str, told: Any) -> Mapping[str, float]:
    """Seconds by UUID.

    :raises BadArgument: if it is no answer.
    """
    idle = told.get('idle') if isinstance(told, dict) else None
    if not isinstance(idle, dict) or told.get('host') != host:
        raise exception.BadArgument(
            f'the agent of {host} does not say who is idle'
        )
    return {
        str(uuid): float(idle_s)
        for uuid, idle_s in idle.items()
        if isinstance(idle_s, int | float) and 0 <= idle_s < math.inf
    }


@dataclasses.dataclass(frozen=True, slots=True)
class _Host:
    """A host whose agent told.

    :ivar entity: who is compared there.
    :ivar cpus: that it has for VMs, > 0.
    :ivar wants: by UUID of the server.
    """

    entity: str
    cpus: float
    wants: Mapping[str, tenants.Want]


class Lacking:
    """What servers want of CPUs and get, as the agents of their hosts say.

    :param ask: asks the agent of a host; may block, and raise anything.
    :param clock: seconds that never go back.
    """

    def __init__(
        self,
        ask: Callable[[str], Any],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._asked = _Asked(
            'servers that lack CPUs', ask, _lacking, LACKING_S, clock
        )

    def stop(self) -> None:
        """Ask no more."""
        self._asked.stop()

    def tenants(
        self,
        cloud: cluster.ClusterSnapshot,
        moved_at: Mapping[str, float],
        shares: Mapping[str, float],
    ) -> tenants.Tenants:
        """The cloud with what agents said of late.

        Owners of one kind alone are compared: of hosts whose agents compare
        others than most do, nothing counts.

        :param moved_at: seconds of the epoch, by UUID of servers that moved.
        :param shares: by owner.
        """
        told = self._asked.told([each.name for each in cloud.providers])
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
                wants[each.uuid] = dataclasses.replace(want, moved_at=at)
        cpus = {host: each.cpus for host, each in counted.items()}
        return tenants.Tenants(cloud, wants, cpus, shares)


def _lacking(host: str, told: Any) -> _Host:
    """The answer of an agent.

    :raises BadArgument: if it is none.
    """
    found = told.get('instances') if isinstance(told, dict) else None
    if not isinstance(found, dict) or told.get('host') != host:
        raise exception.BadArgument(
            f'the agent of {host} does not say who lacks CPUs'
        )
    wants = {}
    for uuid, each in found.items():
        want = _want(each)
        if want is not None:
            wants[str(uuid)] = want
    cpus = told.get('cpus_count')
    known = isinstance(cpus, int) and 0 < cpus < _MOST_CPUS
    return _Host(str(told.get('entity')), float(cpus) if known else 0.0, wants)


_MOST_CPUS = 100_000


def _want(told: Any) -> tenants.Want | None:
    """One server; ``None`` if it is nonsense."""
    if not isinstance(told, dict) or not isinstance(told.get('owner'), str):
        return None
    wanted, got = told.get('wanted_cpus'), told.get('got_cpus')
    weight, seen_s = told.get('weight_units') or 1.0, told.get('seen_s')
    numbers = [
        float(each)
        for each in (wanted, got, weight, seen_s)
        if isinstance(each, int | float) and 0 <= each < math.inf
    ]
    return tenants.Want(told['owner'], *numbers) if len(numbers) == 4 else None
