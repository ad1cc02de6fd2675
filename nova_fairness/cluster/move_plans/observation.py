# SPDX-License-Identifier: Apache-2.0

"""State of the cloud for migration plans, from the queue and from Nova."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import threading

from nova_fairness.cluster.admission import start_estimates
from nova_fairness.cluster.move_plans import candidates
from nova_fairness.cluster.move_plans import outcome
from nova_fairness.cluster.move_plans import registry
from nova_fairness.cluster.openstack import live_migrations
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import border

PINS_S = 3600.0
"""Seconds between two reads of the zone pins of all servers. Nova does not
list a server as changed when its pin changes.
"""

_LATELY_S = 86400.0

Shared = Callable[[], Collection[border.BorderHost]]
"""Returns the states of hosts that the batch system and the cloud share."""


@dataclasses.dataclass(frozen=True)
class PlanObservation:
    """State of the cloud in one cycle of migration plans.

    :ivar at: seconds of the epoch.
    :ivar last: state and plan of the queue's last cycle.
    :ivar known: facts about servers that are not in the snapshot.
    :ivar services: compute services of Nova, by name of the host.
    :ivar moved_at: time at which the last moved server arrived on its new
        host, seconds of the epoch.
    :ivar shared: names of hosts that the batch system and the cloud share.
    """

    at: float
    last: start_estimates.LastCycle
    known: candidates.ServerFacts
    services: Mapping[str, nova_module.ComputeService]
    moved_at: float
    shared: Collection[str]


class PlanObserver:
    """Reads the state of servers and hosts for migration plans.

    :param store: store of plans, and of hosts between batch system and cloud.
    :param nova: lists services and servers; no other object uses it.
    :param mobility: reads server groups, and the zones to which servers are
        pinned.
    :param rest_s: seconds after a move, or a failed move, during which its
        server is not moved again.
    :param shared: returns the states of hosts that the batch system and the
        cloud share.
    """

    def __init__(
        self,
        store: store_module.Store,
        nova: nova_module.Nova,
        mobility: live_migrations.LiveMigrations,
        rest_s: float,
        shared: Shared,
    ) -> None:
        self._store = store
        self._shared = shared
        self._nova = nova
        self._mobility = mobility
        self._rest_s = rest_s
        self._pins = _NewerPins()
        self._pins_at: float | None = None

    def look(
        self, last: start_estimates.LastCycle, now: float
    ) -> PlanObservation:
        """Read the state of the cloud once.

        :param last: state and plan of the queue's last cycle.
        :param now: seconds of the epoch.
        :raises CloudError: if Nova cannot be read.
        :raises StoreError: if the store cannot be read.
        """
        services = self._nova.services()
        servers = self._with_pins(self._nova.servers(now), now)
        groups = self._mobility.strict_group_by_member()
        shared = self._shared()
        closed = {
            each.host
            for each in services.values()
            if not (each.enabled and each.up)
        }
        crossing = {
            each.host.cloud
            for each in shared
            if each.state is not border.HostState.CLOUD
        }
        moved = self._store.plans.open_or_changed_since(
            now - max(self._rest_s, _LATELY_S)
        )
        known = candidates.ServerFacts(
            servers,
            groups,
            outcome.servers_moved_since(moved, now - self._rest_s),
            closed
            | crossing
            | self._store.plans.hosts_in_use_by_plans(registry.HOLDING),
            outcome.sent_memory_factors(moved, last.snapshot.running),
        )
        at = outcome.last_arrival_time(moved)
        names = frozenset(each.host.cloud for each in shared)
        return PlanObservation(now, last, known, services, at, names)

    def pinned(
        self, looked: PlanObservation, servers: Iterable[str]
    ) -> candidates.ServerFacts:
        """Return the facts about servers, after the pins of some servers were
        read again.

        :param servers: UUIDs of servers whose pins are read.
        :returns: the same object if no pin changed.
        :raises CloudError: if the pins cannot be read.
        """
        known = looked.known
        if len({each.zone for each in looked.last.snapshot.providers}) < 2:
            return known
        read = {
            uuid: self._mobility.pinned_zone(uuid)
            for uuid in servers
            if uuid in known.servers
        }
        changed = self._pins.note(read, known.servers)
        if not changed:
            return known
        return dataclasses.replace(known, servers={**known.servers, **changed})

    def _with_pins(
        self, servers: Mapping[str, nova_module.Server], now: float
    ) -> Mapping[str, nova_module.Server]:
        """Return the servers with their newest known pins; read all pins
        again at intervals.
        """
        if self._pins_at is None:
            self._pins_at = now
        found = self._pins.over(servers)
        if now - self._pins_at < PINS_S:
            return found
        self._pins_at = now
        return {
            **found,
            **self._pins.note(self._mobility.pinned_zones(), found),
        }


class _NewerPins:
    """Zone pins that were read after Nova listed the servers.

    A pin is removed from the cache when Nova lists its server again, with a
    newer pin.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read: dict[
            str, tuple[nova_module.Server, nova_module.Server]
        ] = {}

    def note(
        self,
        read: Mapping[str, str | None],
        servers: Mapping[str, nova_module.Server],
    ) -> dict[str, nova_module.Server]:
        """Store pins that were read, and return the servers whose pin changed.

        :param servers: servers as :meth:`over` returned them.
        """
        changed = {
            uuid: dataclasses.replace(servers[uuid], pinned=pin)
            for uuid, pin in read.items()
            if uuid in servers and servers[uuid].pinned != pin
        }
        with self._lock:
            for uuid, server in changed.items():
                seen = servers[uuid]
                before, now = self._read.get(uuid, (seen, seen))
                self._read[uuid] = before if now is seen else seen, server
        return changed

    def over(
        self, servers: Mapping[str, nova_module.Server]
    ) -> Mapping[str, nova_module.Server]:
        """Return the servers as Nova lists them, with newer pins from the
        cache.
        """
        found = dict(servers)
        with self._lock:
            for uuid, (seen, server) in list(self._read.items()):
                if found.get(uuid) is seen:
                    found[uuid] = server
                else:
                    del self._read[uuid]
        return found
