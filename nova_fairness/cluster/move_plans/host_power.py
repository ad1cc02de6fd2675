# SPDX-License-Identifier: Apache-2.0

"""Hosts that are not needed are disabled, powered down, and brought back.

The reason of a host that this module disabled begins with :data:`MARK`: only
such hosts are ever enabled again. A few that are empty stay ready.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import subprocess

from oslo_log import log as logging

from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.model import cluster
from nova_fairness.model import request as request_model
from nova_fairness.planners import hosts as hosts_module

LOG = logging.getLogger(__name__)

MARK = 'nova-fairness plan: rests'
"""Reasons of hosts that rest begin with it."""

EMPTIED = 'nova-fairness plan: emptied'
"""Reasons of hosts that an operator had emptied: they stay disabled."""

DOWN, UP = 'down', 'up'

SETTLES_S = 60.0
"""From disabling a host until it is powered down, if it still is empty."""

AGAIN_S = 600.0
"""Between two times that the command is run for the same."""


@dataclasses.dataclass(frozen=True)
class HostPowerOptions:
    """Options that operators set.

    :ivar rests: whether empty hosts are disabled.
    :ivar after_s: for which a host must have been empty.
    :ivar spare: empty hosts that stay enabled, >= 0.
    :ivar command: program and arguments that power a host down or up, to
        which ``down`` or ``up`` and its name are added; empty for none.
    :ivar longest_s: in which the command must have ended; it need not wait
        for the host.
    """

    rests: bool = False
    after_s: float = 300.0
    spare: int = 1
    command: tuple[str, ...] = ()
    longest_s: float = 60.0


@dataclasses.dataclass(frozen=True)
class HostPowerInput:
    """The cloud at one moment.

    :ivar snapshot: of the cloud.
    :ivar at: when it was seen, seconds of the epoch.
    :ivar services: of Nova, by name of the host.
    :ivar used: names of hosts on which servers lie, or are to start.
    :ivar lacking: requests that lack room.
    :ivar others: names of hosts that others see to.
    """

    snapshot: cluster.ClusterSnapshot
    at: float
    services: Mapping[str, nova_module.ComputeService]
    used: Collection[str]
    lacking: Sequence[request_model.Request] = ()
    others: Collection[str] = ()


class HostPower:
    """Lets hosts rest, and brings them back.

    :param nova: whose hosts they are.
    :param rules: what operators choose.
    :param clock: seconds of the epoch.
    :param run: runs a command and gives its exit status, within a time.
    """

    def __init__(
        self,
        nova: nova_module.Nova,
        rules: HostPowerOptions,
        clock: Callable[[], float],
        run: Callable[[Sequence[str], float], int] | None = None,
    ) -> None:
        self._nova = nova
        self._rules = rules
        self._clock = clock
        self._run = run or _run
        self._empty_since: dict[str, float] = {}
        self._closing: dict[str, float] = {}
        self._rested: dict[str, float] = {}
        self._powered: dict[tuple[str, str], float] = {}

    def closing(self) -> frozenset[str]:
        """Names of hosts on which nothing is to start: they rest next."""
        return frozenset(self._closing)

    def look(self, seen: HostPowerInput) -> None:
        """Disable hosts that are not needed, and bring back those that are.

        :raises CloudError: if Nova does not do it; it is tried again then.
        """
        if not self._rules.rests:
            return
        empty, now = self._empty(seen), self._clock()
        ready = [host for host in empty if seen.services[host].enabled]
        ready = [host for host in ready if seen.services[host].up]
        resting = [
            host
            for host, service in sorted(seen.services.items())
            if is_resting(service) and host not in seen.others
        ]
        self._rested = {host: self._rested.get(host, now) for host in resting}
        missing = self._rules.spare - len(ready)
        # What began there just before is not left alone.
        wanted = [host for host in resting if host in seen.used]
        if seen.lacking or missing > 0:
            self._closing.clear()
            wanted += _needed(seen, resting)
            others = [host for host in resting if host not in wanted]
            wanted += others[: max(missing, 0)]
        else:
            self._rest(seen, ready)
        for host in resting:
            self._turn(seen.services[host], host in wanted)

    def disable_emptied(
        self, service: nova_module.ComputeService, text: str
    ) -> None:
        """Disable a host that an operator had emptied.

        :raises CloudError: if it is not known that it was done.
        """
        if service.enabled:
            self._nova.disable(service, f'{EMPTIED}: {text}')
            LOG.info('host %s is empty, and disabled', service.host)

    def _empty(self, seen: HostPowerInput) -> list[str]:
        """Names of hosts that have nothing on them, and for how long."""
        now, used = self._clock(), seen.snapshot.inventory.used
        empty = [
            each.name
            for row, each in enumerate(seen.snapshot.providers)
            if each.name in seen.services
            and each.name not in seen.used
            and each.name not in seen.others
            and not used[row].any()
        ]
        self._empty_since = {
            host: self._empty_since.get(host, now) for host in empty
        }
        return empty

    def _rest(self, seen: HostPowerInput, ready: Iterable[str]) -> None:
        now = self._clock()
        # The largest stay ready: they suit most requests.
        size = {
            each.name: int(seen.snapshot.inventory.capacity[row].sum())
            for row, each in enumerate(seen.snapshot.providers)
        }
        order = sorted(ready, key=lambda host: (-size[host], host))
        chosen = [
            host
            for host in order[self._rules.spare :]
            if now - self._empty_since[host] >= self._rules.after_s
        ]
        self._closing = {host: self._closing.get(host, now) for host in chosen}
        for host, since in list(self._closing.items()):
            # The queue has looked since, and starts nothing there.
            if seen.at > since:
                self._nova.disable(seen.services[host], f'{MARK}, it is empty')
                LOG.info('host %s is empty: it rests', host)
                del self._closing[host]

    def _turn(
        self, service: nova_module.ComputeService, is_wanted: bool
    ) -> None:
        """Bring a host back that rests, or power it down."""
        host, has_command = service.host, bool(self._rules.command)
        if is_wanted and (service.up or not has_command):
            self._nova.enable(service)
            LOG.info('host %s is needed: it is enabled again', host)
        elif is_wanted:
            self._power(UP, host)
        # Nova may have chosen it just before it was disabled.
        elif (
            service.up
            and has_command
            and self._clock() - self._rested[host] >= SETTLES_S
        ):
            self._power(DOWN, host)

    def _power(self, to: str, host: str) -> None:
        """Run the command; not again before it can have had an effect."""
        now, key = self._clock(), (to, host)
        if now - self._powered.get(key, -AGAIN_S) < AGAIN_S:
            return
        self._powered[key] = now
        command = [*self._rules.command, to, host]
        LOG.info('%s', ' '.join(command))
        try:
            status = self._run(command, self._rules.longest_s)
        except (OSError, subprocess.SubprocessError) as error:
            LOG.error('%s: %s', ' '.join(command), error)
            return
        if status:
            LOG.error('%s ended with status %d', ' '.join(command), status)


def _needed(seen: HostPowerInput, resting: Collection[str]) -> list[str]:
    """Hosts that rest and would hold requests that lack room, one for each."""
    opened = tuple(
        dataclasses.replace(each, takes=True)
        for each in seen.snapshot.providers
    )
    hosts = hosts_module.Hosts(
        dataclasses.replace(seen.snapshot, providers=opened)
    )
    found: list[str] = []
    for request in seen.lacking:
        rows = hosts.shape(request.demand).rows
        fits = sorted(hosts.names[row] for row in rows)
        for host in fits:
            if host in resting and host not in found:
                found.append(host)
                break
    return found


def _run(command: Sequence[str], longest_s: float) -> int:
    """Run a program without a shell.

    :raises OSError: if it cannot be run.
    :raises subprocess.TimeoutExpired: if it took too long; it was killed.
    """
    done = subprocess.run(
        list(command),
        stdin=subprocess.DEVNULL,
        timeout=longest_s,
        check=False,
    )
    return done.returncode


def is_resting(service: nova_module.ComputeService) -> bool:
    """Whether a host was disabled because it is not needed."""
    return not service.enabled and service.reason.startswith(MARK)
