# SPDX-License-Identifier: Apache-2.0

"""Power of hosts: hosts that are not needed are disabled, powered down, and
later enabled again.

The disable reason that this module writes begins with :data:`MARK`; only such
hosts are enabled again. A few empty hosts stay enabled.
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
"""First words of the disable reason of a host that is not needed."""

EMPTIED = 'nova-fairness plan: emptied'
"""First words of the disable reason of a host that was emptied for an
operator; such hosts stay disabled.
"""

DOWN, UP = 'down', 'up'

SETTLES_S = 60.0
"""Seconds after a host was disabled until it is powered down, if it is
still empty.
"""

AGAIN_S = 600.0
"""Seconds between two executions of the same power command for a host."""


@dataclasses.dataclass(frozen=True)
class HostPowerOptions:
    """Options for disabling and powering down hosts that are not needed.

    :ivar rests: whether empty hosts are disabled.
    :ivar after_s: seconds for which a host must have been empty before it is
        disabled.
    :ivar spare: number of empty hosts that stay enabled, >= 0.
    :ivar command: program and arguments that power a host down or up; ``down``
        or ``up`` and the name of the host are appended. Empty for no command.
    :ivar longest_s: time limit of the command, seconds; it need not wait for
        the host.
    """

    rests: bool = False
    after_s: float = 300.0
    spare: int = 1
    command: tuple[str, ...] = ()
    longest_s: float = 60.0


@dataclasses.dataclass(frozen=True)
class HostPowerInput:
    """State of the cloud for decisions on the power of hosts.

    :ivar snapshot: state of the cloud.
    :ivar at: time of the snapshot, seconds of the epoch.
    :ivar services: compute services of Nova, by name of the host.
    :ivar used: names of hosts with servers, or on which servers are to start.
    :ivar lacking: requests that wait for room.
    :ivar others: names of hosts that other controllers manage.
    """

    snapshot: cluster.ClusterSnapshot
    at: float
    services: Mapping[str, nova_module.ComputeService]
    used: Collection[str]
    lacking: Sequence[request_model.Request] = ()
    others: Collection[str] = ()


class HostPower:
    """Disables and powers down empty hosts, and brings them back when they are
    needed.

    :param nova: disables and enables hosts.
    :param rules: options of operators.
    :param clock: returns seconds of the epoch.
    :param run: executes a command within a number of seconds, and returns its
        exit status.
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
        self._run = run or _run_command
        self._empty_since: dict[str, float] = {}
        self._closing: dict[str, float] = {}
        self._rested: dict[str, float] = {}
        self._powered: dict[tuple[str, str], float] = {}

    def closing(self) -> frozenset[str]:
        """Return the names of hosts that will be disabled next: nothing
        must start on them.
        """
        return frozenset(self._closing)

    def look(self, seen: HostPowerInput) -> None:
        """Disable hosts that are not needed, and enable hosts that are needed
        again.

        :raises CloudError: if Nova fails; the next call repeats the work.
        """
        if not self._rules.rests:
            return
        empty, now = self._empty_hosts(seen), self._clock()
        ready = [host for host in empty if seen.services[host].enabled]
        ready = [host for host in ready if seen.services[host].up]
        resting = [
            host
            for host, service in sorted(seen.services.items())
            if is_resting(service) and host not in seen.others
        ]
        self._rested = {host: self._rested.get(host, now) for host in resting}
        missing = self._rules.spare - len(ready)
        # A server may have begun to start there just before the host was
        # disabled.
        wanted = [host for host in resting if host in seen.used]
        if seen.lacking or missing > 0:
            self._closing.clear()
            wanted += _needed_hosts(seen, resting)
            others = [host for host in resting if host not in wanted]
            wanted += others[: max(missing, 0)]
        else:
            self._disable_unneeded_hosts(seen, ready)
        for host in resting:
            self._wake_or_power_down(seen.services[host], host in wanted)

    def disable_emptied(
        self, service: nova_module.ComputeService, text: str
    ) -> None:
        """Disable a host that was emptied because an operator requested it.

        :raises CloudError: if it is unknown whether the host was disabled.
        """
        if service.enabled:
            self._nova.disable(service, f'{EMPTIED}: {text}')
            LOG.info('host %s is empty, and disabled', service.host)

    def _empty_hosts(self, seen: HostPowerInput) -> list[str]:
        """Return the names of empty hosts, and record the times since which
        they are empty.
        """
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

    def _disable_unneeded_hosts(
        self, seen: HostPowerInput, ready: Iterable[str]
    ) -> None:
        now = self._clock()
        # The largest hosts stay ready: they suit most requests.
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
            # The queue has made a plan since then, and starts nothing there.
            if seen.at > since:
                self._nova.disable(seen.services[host], f'{MARK}, it is empty')
                LOG.info('host %s is empty: it rests', host)
                del self._closing[host]

    def _wake_or_power_down(
        self, service: nova_module.ComputeService, is_wanted: bool
    ) -> None:
        """Enable or power up a disabled host if it is needed; otherwise
        power it down.
        """
        host, has_command = service.host, bool(self._rules.command)
        if is_wanted and (service.up or not has_command):
            self._nova.enable(service)
            LOG.info('host %s is needed: it is enabled again', host)
        elif is_wanted:
            self._run_power_command(UP, host)
        # Wait: Nova may have chosen the host just before it was disabled.
        elif (
            service.up
            and has_command
            and self._clock() - self._rested[host] >= SETTLES_S
        ):
            self._run_power_command(DOWN, host)

    def _run_power_command(self, to: str, host: str) -> None:
        """Execute the power command, unless it was executed a short time
        ago.
        """
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


def _needed_hosts(seen: HostPowerInput, resting: Collection[str]) -> list[str]:
    """Return disabled hosts that have room for requests that wait for room,
    one host for each request.
    """
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


def _run_command(command: Sequence[str], longest_s: float) -> int:
    """Execute a program without a shell, and return its exit status.

    :raises OSError: if the program cannot be started.
    :raises subprocess.TimeoutExpired: if the program exceeded the time limit;
        it was killed.
    """
    done = subprocess.run(
        list(command),
        stdin=subprocess.DEVNULL,
        timeout=longest_s,
        check=False,
    )
    return done.returncode


def is_resting(service: nova_module.ComputeService) -> bool:
    """Whether this service disabled a host because it is not needed."""
    return not service.enabled and service.reason.startswith(MARK)
