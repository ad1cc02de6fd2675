# SPDX-License-Identifier: Apache-2.0

"""Rates of groups of servers, and charges of their owners.

Agents say how much CPU time the processes of their own VMs have had since they
began, and ask for the rates. New CPU time of a server is charged once, at the
rate of that moment, and never more than its CPUs times the time since its
agent's last answer. The store has how far each server was charged, in one row
with the sums of its project. After a restart or another takeover charging goes
on there: nothing is charged twice or left out. Rates only change after charges
at the old ones are stored.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import threading
from typing import Any

from nova_fairness import exception
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import store as store_module
from nova_fairness.cluster.usage import prices as prices_module
from nova_fairness.model import cluster
from nova_fairness.model import market
from nova_fairness.model import request as request_model
from nova_fairness.shares import spending

EVERY_S = 60.0
"""Between two writes, if no rate changes."""

MOST = 1000
"""Groups of one project."""

_MICROSECONDS = 1_000_000
_CPUS = ('VCPU', 'PCPU')

Meters = Mapping[str, tuple[str, int]]
"""Process, and microseconds of CPU that it had, by UUID of the server."""


@dataclasses.dataclass(frozen=True, slots=True)
class GroupStanding:
    """A group as it is.

    :ivar group: that was set.
    :ivar servers: that are in it.
    :ivar rate: in force of each of them; ``None`` if there are none.
    """

    group: market.SpendingGroup
    servers: int
    rate: float | None


class SpendingGroups:
    """Keeps groups, and charges; safe to be used by threads.

    :param store: where all of it is.
    :param lowest: rate of who has no other.
    :param keep_s: seconds for which prices of the past are kept.
    :param most: groups that one project may have.
    """

    def __init__(
        self,
        store: store_module.Store,
        lowest: float,
        keep_s: float,
        most: int = MOST,
    ) -> None:
        self._store = store
        self._most = most
        self._history = prices_module.PriceHistory(store, keep_s)
        self._seen_at = 0.0
        self._lowest = max(round(lowest * spending.THOUSANDTHS), 1)
        self._lock = threading.Lock()
        self._epoch = 0
        self._version = -1
        self._groups: dict[tuple[str, str], market.SpendingGroup] = {}
        self._meters: dict[str, records.ServerMeter] = {}
        self._servers: dict[str, cluster.Running] = {}
        self._snapshot: cluster.ClusterSnapshot | None = None
        self._funds = spending.Funds((), {})
        self._accounts: dict[str, str] = {}
        self._rates: dict[str, int] = {}
        self._written_at = 0.0
        self._is_new = False

    def see(
        self, snapshot: cluster.ClusterSnapshot, now: float, epoch: int
    ) -> None:
        """Compute rates again, and store charges if it is time to.

        :param epoch: of the leader.
        :raises StoreError: if it cannot be stored; all is read again then.
        """
        with self._lock:
            if epoch != self._epoch:
                # Others led meanwhile: what is stored counts.
                self._epoch, self._version = epoch, -1
            self._read()
            before = self._rates
            self._look(snapshot)
            self._seen_at = now
            self._history.see(self._prices, now, epoch)
            is_due = prices_module.is_due(self._written_at, now, EVERY_S)
            if self._is_new and (is_due or self._rates != before):
                self._write(epoch)
                self._written_at = now

    def rates(self, servers: Iterable[str]) -> dict[str, float]:
        """Tell the rates of servers.

        :returns: by UUID; servers that are not known are left out.
        """
        with self._lock:
            return {
                uuid: self._rates[uuid] / spending.THOUSANDTHS
                for uuid in servers
                if uuid in self._rates
            }

    def report(self, host: str, meters: Meters) -> list[str]:
        """Charge what the agent of a host says of its own servers.

        :returns: UUIDs of those that are not on that host, which are not
            charged.
        """
        with self._lock:
            elsewhere = []
            for uuid, (process, used) in sorted(meters.items()):
                server = self._servers.get(uuid)
                if server is None or server.host != host:
                    elsewhere.append(uuid)
                else:
                    self._charge(server, process, used)
            return elsewhere

    def change(
        self,
        project: str,
        name: str,
        group: market.SpendingGroup | None,
        epoch: int,
    ) -> None:
        """Set a group, or take it away.

        :param epoch: of the leader.
        :raises IllegalStep: if the project has too many.
        :raises StoreError: if it cannot be stored; all is read again then.
        """
        with self._lock:
            self._read()
            key = (project, name)
            if group is None:
                self._groups.pop(key, None)
            else:
                self._check_room(key)
                self._groups[key] = group
            self._write(epoch)
            if self._snapshot is not None:
                self._look(self._snapshot)

    def _check_room(self, key: tuple[str, str]) -> None:
        there = sum(project == key[0] for project, _ in self._groups)
        if key not in self._groups and there >= self._most:
            raise exception.IllegalStep(
                f'project {key[0]}: it has {there} groups, which is the'
                ' most; delete others first'
            )

    def group(self, project: str, name: str) -> market.SpendingGroup | None:
        """A group; ``None`` if there is none."""
        with self._lock:
            self._read()
            return self._groups.get((project, name))

    def standings(self, project: str | None) -> list[GroupStanding]:
        """Groups of a project or, with ``None``, of all, by name."""
        with self._lock:
            self._read()
            running = self._snapshot.running if self._snapshot else ()
            found: dict[tuple[str, str], list[str]] = {}
            for each in running:
                found.setdefault((each.project, each.pays), []).append(
                    each.uuid
                )
            return [
                self._standing(group, found.get(key, []))
                for key, group in sorted(self._groups.items())
                if project in (None, group.project)
            ]

    def all_rates(self) -> dict[str, float]:
        """Rates of servers at the last look, by UUID."""
        return {
            uuid: rate / spending.THOUSANDTHS
            for uuid, rate in self._rates.items()
        }

    def prices(self) -> list[market.Price]:
        """Prices of hosts at the last look, by name."""
        with self._lock:
            return self._prices()

    def prices_of_others(
        self, project: str, name: Callable[[str], str]
    ) -> list[market.Price]:
        """Prices as a project may read them; none where no group is set.

        :param name: gives the name of a host for this project.
        """
        with self._lock:
            self._read()
            if self._snapshot is None or not self._groups:
                return []
            return prices_module.of_others(
                self._snapshot,
                self.all_rates(),
                self._seen_at,
                project,
                self._lowest / spending.THOUSANDTHS,
                name,
            )

    def _prices(self) -> list[market.Price]:
        if self._snapshot is None:
            return []
        return prices_module.prices(
            self._snapshot, self.all_rates(), self._seen_at
        )

    def past(
        self, host: str, before: float | None, limit: int
    ) -> list[market.Price]:
        """Prices of a host, the newest first; see :meth:`.prices.Prices.of`.

        :raises UnknownHost: if there is none, nor was.
        """
        found = self._store.market.prices.of(host, before, limit)
        if not found and before is None:
            known = {each.host for each in self.prices()}
            if host not in known:
                raise exception.UnknownHost(f'there is no host {host}')
        return found

    def left(self, account: str) -> float | None:
        """Currency that an account with funds has left, >= 0."""
        with self._lock:
            units = self._funds.left.get(account)
        return None if units is None else max(units, 0) / spending.UNIT

    def _standing(
        self, group: market.SpendingGroup, uuids: list[str]
    ) -> GroupStanding:
        rates = [self._rates[uuid] for uuid in uuids if uuid in self._rates]
        # Of one whose funds are empty it is the lowest; others may have more.
        rate = max(rates) / spending.THOUSANDTHS if rates else None
        return GroupStanding(group, len(uuids), rate)

    def _charge(
        self, server: cluster.Running, process: str, used: int
    ) -> None:
        """Charge a server up to what its CPUs can have had since last time.

        More than that is charged later, or never if it is not true. If the
        clock was set back, a meter may have a time to come. It then counts
        from now, so that the time between is not charged twice.
        """
        uuid, now = server.uuid, self._seen_at
        known = self._meters.get(uuid)
        if known is not None and known[1:3] == (server.host, process):
            could = _cpus(server) * max(now - known.at, 0.0) * _MICROSECONDS
            more = max(min(used - known.used, int(could)), 0)
            if not more and known.at <= now:
                return
            account = request_model.account_of(server.project, server.user)
            self._funds.charge(account, more * self._rates[uuid])
            used = known.used + more
        # What it had before anybody asked is nobody's debt.
        self._meters[uuid] = records.ServerMeter(
            server.project, server.host, process, used, now
        )
        self._is_new = True

    def _look(self, snapshot: cluster.ClusterSnapshot) -> None:
        self._snapshot = snapshot
        self._accounts = {
            each.uuid: request_model.account_of(each.project, each.user)
            for each in snapshot.running
        }
        self._servers = {each.uuid: each for each in snapshot.running}
        self._meters = {
            uuid: meter
            for uuid, meter in self._meters.items()
            if uuid in self._servers
        }
        self._funds = spending.Funds(snapshot.accounts, self._funds.spent)
        empty = {
            account
            for account in set(self._accounts.values())
            if self._funds.is_empty(account)
        }
        self._rates = spending.in_force(
            self._groups, snapshot.running, empty, self._lowest
        )

    def _read(self) -> None:
        """Take over what is stored, if another wrote it."""
        found = self._store.market.read(self._version)
        if found is None:
            return
        self._version = found.version
        self._groups = {
            (project, name): market.SpendingGroup(project, name, rate, count)
            for project, name, rate, count in found.groups
        }
        self._meters = dict(found.meters)
        self._funds = spending.Funds(
            self._snapshot.accounts if self._snapshot else (), found.spent
        )
        self._is_new = False

    def _write(self, epoch: int) -> None:
        told = records.SpendingRecords(
            [
                (each.project, each.name, each.rate, each.count)
                for each in self._groups.values()
            ],
            self._funds.spent,
            self._meters,
            self._version,
        )
        try:
            self._store.market.write(told, epoch)
        except exception.StoreError:
            # What memory has may be what another process did meanwhile.
            self._version = -1
            raise
        self._version += 1
        self._is_new = False


def _cpus(server: cluster.Running) -> int:
    """CPUs of a server, >= 1; of a flavor without any it has one at least."""
    amounts = dict(server.amounts)
    return max(sum(amounts.get(name, 0) for name in _CPUS), 1)


def group_facts(standing: GroupStanding) -> dict[str, Any]:
    """A group as answers tell it."""
    group = standing.group
    return {
        'name': group.name,
        'project_id': group.project,
        'rate': group.rate,
        'count': group.count,
        'servers_count': standing.servers,
        'server_rate': standing.rate,
    }
