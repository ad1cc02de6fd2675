# SPDX-License-Identifier: Apache-2.0

"""Spending rates of groups of servers, and charges of their owners.

Agents report the CPU time of VM processes since the start of the process, and
ask for rates. New CPU time of a server is charged once, at the present rate,
and never more than its CPUs multiplied by the time since the last report of
its agent. The store contains the charged CPU time of each server, in one row
with the sums of its project. After a restart or a change of the leader,
charging continues there: nothing is charged twice or left out. A rate changes
only after charges at the old rate are stored.
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
"""Seconds between two writes of charges, if no rate changes."""

MOST = 1000
"""Largest number of spending groups of one project."""

_MICROSECONDS = 1_000_000
_CPUS = ('VCPU', 'PCPU')

Meters = Mapping[str, tuple[str, int]]
"""ID of the VM process, and the microseconds of CPU that it has used, by
UUID of the server.
"""


@dataclasses.dataclass(frozen=True, slots=True)
class GroupStanding:
    """State of a spending group.

    :ivar group: the stored group.
    :ivar servers: number of servers of the group.
    :ivar rate: rate of each server that is in force; ``None`` without servers.
    """

    group: market.SpendingGroup
    servers: int
    rate: float | None


class SpendingGroups:
    """Spending groups with their rates and charges. Several threads may use
    it.

    :param store: store of groups and charges.
    :param lowest: rate of servers without a group.
    :param keep_s: seconds for which past prices are stored.
    :param most: largest number of groups of a project.
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
        """Compute the rates again, and store charges if the interval has
        passed.

        :param epoch: epoch of the leader.
        :raises StoreError: if the charges cannot be stored; the next call
            reads the whole state again.
        """
        with self._lock:
            if epoch != self._epoch:
                # Another process led meanwhile: the stored state counts.
                self._epoch, self._version = epoch, -1
            self._read_if_changed()
            before = self._rates
            self._update_from_snapshot(snapshot)
            self._seen_at = now
            self._history.see(self._current_prices, now, epoch)
            is_due = prices_module.is_due(self._written_at, now, EVERY_S)
            if self._is_new and (is_due or self._rates != before):
                self._write_state(epoch)
                self._written_at = now

    def rates(self, servers: Iterable[str]) -> dict[str, float]:
        """Return the rates of servers.

        :returns: rates by UUID; unknown servers are left out.
        """
        with self._lock:
            return {
                uuid: self._rates[uuid] / spending.THOUSANDTHS
                for uuid in servers
                if uuid in self._rates
            }

    def report(self, host: str, meters: Meters) -> list[str]:
        """Charge the CPU time that the agent of a host reports.

        :returns: UUIDs of servers that are not on that host; they are not
            charged.
        """
        with self._lock:
            elsewhere = []
            for uuid, (process, used) in sorted(meters.items()):
                server = self._servers.get(uuid)
                if server is None or server.host != host:
                    elsewhere.append(uuid)
                else:
                    self._charge_server(server, process, used)
            return elsewhere

    def change(
        self,
        project: str,
        name: str,
        group: market.SpendingGroup | None,
        epoch: int,
    ) -> None:
        """Store or delete a group.

        :param group: the new group; ``None`` deletes it.
        :param epoch: epoch of the leader.
        :raises IllegalStep: if the project has too many groups.
        :raises StoreError: if the group cannot be stored; the next call reads
            the whole state again.
        """
        with self._lock:
            self._read_if_changed()
            key = (project, name)
            if group is None:
                self._groups.pop(key, None)
            else:
                self._check_group_count(key)
                self._groups[key] = group
            self._write_state(epoch)
            if self._snapshot is not None:
                self._update_from_snapshot(self._snapshot)

    def _check_group_count(self, key: tuple[str, str]) -> None:
        there = sum(project == key[0] for project, _ in self._groups)
        if key not in self._groups and there >= self._most:
            raise exception.IllegalStep(
                f'project {key[0]}: it has {there} groups, which is the'
                ' most; delete others first'
            )

    def group(self, project: str, name: str) -> market.SpendingGroup | None:
        """Return a group; ``None`` if it does not exist."""
        with self._lock:
            self._read_if_changed()
            return self._groups.get((project, name))

    def standings(self, project: str | None) -> list[GroupStanding]:
        """Return the states of the groups of a project, or of all projects
        with ``None``, sorted by project and name.
        """
        with self._lock:
            self._read_if_changed()
            running = self._snapshot.running if self._snapshot else ()
            found: dict[tuple[str, str], list[str]] = {}
            for each in running:
                found.setdefault((each.project, each.pays), []).append(
                    each.uuid
                )
            return [
                self._group_standing(group, found.get(key, []))
                for key, group in sorted(self._groups.items())
                if project in (None, group.project)
            ]

    def all_rates(self) -> dict[str, float]:
        """Return the rates of all servers in the last snapshot, by UUID."""
        return {
            uuid: rate / spending.THOUSANDTHS
            for uuid, rate in self._rates.items()
        }

    def prices(self) -> list[market.Price]:
        """Return the prices of hosts in the last snapshot, sorted by name."""
        with self._lock:
            return self._current_prices()

    def prices_of_others(
        self, project: str, name: Callable[[str], str]
    ) -> list[market.Price]:
        """Return the prices that a project may read; none if no group exists.

        :param name: returns the name of a host for this project.
        """
        with self._lock:
            self._read_if_changed()
            if self._snapshot is None or not self._groups:
                return []
            return prices_module.prices_for_project(
                self._snapshot,
                self.all_rates(),
                self._seen_at,
                project,
                self._lowest / spending.THOUSANDTHS,
                name,
            )

    def _current_prices(self) -> list[market.Price]:
        if self._snapshot is None:
            return []
        return prices_module.host_prices(
            self._snapshot, self.all_rates(), self._seen_at
        )

    def past(
        self, host: str, before: float | None, limit: int
    ) -> list[market.Price]:
        """Return past prices of a host, the newest first; see
        :meth:`.prices.Prices.of`.

        :raises UnknownHost: if the host has no present or past price.
        """
        found = self._store.market.prices.newest_prices(host, before, limit)
        if not found and before is None:
            known = {each.host for each in self.prices()}
            if host not in known:
                raise exception.UnknownHost(f'there is no host {host}')
        return found

    def left(self, account: str) -> float | None:
        """Return the remaining currency of an account, >= 0; ``None`` if
        the account has no funds.
        """
        with self._lock:
            units = self._funds.left.get(account)
        return None if units is None else max(units, 0) / spending.UNIT

    def _group_standing(
        self, group: market.SpendingGroup, uuids: list[str]
    ) -> GroupStanding:
        rates = [self._rates[uuid] for uuid in uuids if uuid in self._rates]
        # A server with empty funds has the lowest rate; others may have more.
        rate = max(rates) / spending.THOUSANDTHS if rates else None
        return GroupStanding(group, len(uuids), rate)

    def _charge_server(
        self, server: cluster.Running, process: str, used: int
    ) -> None:
        """Charge a server for new CPU time, up to the time that was possible
        since the last charge.

        Reported time beyond that is charged later, or never if the report is
        wrong. If the clock was set back, the time of a meter may be in the
        future. Then the meter restarts now, so that the time in between is not
        charged twice.
        """
        uuid, now = server.uuid, self._seen_at
        known = self._meters.get(uuid)
        if known is not None and known[1:3] == (server.host, process):
            could = (
                _cpu_count(server) * max(now - known.at, 0.0) * _MICROSECONDS
            )
            more = max(min(used - known.used, int(could)), 0)
            if not more and known.at <= now:
                return
            account = request_model.account_of(server.project, server.user)
            self._funds.charge(account, more * self._rates[uuid])
            used = known.used + more
        # CPU time before the first report is not charged.
        self._meters[uuid] = records.ServerMeter(
            server.project, server.host, process, used, now
        )
        self._is_new = True

    def _update_from_snapshot(self, snapshot: cluster.ClusterSnapshot) -> None:
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
        self._rates = spending.rates_in_force(
            self._groups, snapshot.running, empty, self._lowest
        )

    def _read_if_changed(self) -> None:
        """Read the stored state, if another process changed it."""
        found = self._store.market.read_if_changed(self._version)
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

    def _write_state(self, epoch: int) -> None:
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
            # The state in memory may lack changes of another process.
            self._version = -1
            raise
        self._version += 1
        self._is_new = False


def _cpu_count(server: cluster.Running) -> int:
    """Return the number of CPUs of a server, >= 1; a flavor without CPUs
    counts as one.
    """
    amounts = dict(server.amounts)
    return max(sum(amounts.get(name, 0) for name in _CPUS), 1)


def group_facts(standing: GroupStanding) -> dict[str, Any]:
    """Return the state of a spending group, as an answer."""
    group = standing.group
    return {
        'name': group.name,
        'project_id': group.project,
        'rate': group.rate,
        'count': group.count,
        'servers_count': standing.servers,
        'server_rate': standing.rate,
    }
