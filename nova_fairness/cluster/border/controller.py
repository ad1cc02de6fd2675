# SPDX-License-Identifier: Apache-2.0

"""Controller that moves hosts between batch system and cloud: it reads both,
plans, and acts.

The store contains the state of each host. Each step is stored before its
effect. Each cycle plans the opening and closing of a host again, from the
present state, until it is done, so that the next leader continues where
another leader stopped. Immediately before an action, the stored state and the
leader are read again, so that a cancelled action is not executed.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import threading

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.batch import system
from nova_fairness.cluster import host_controller
from nova_fairness.cluster import quarantine
from nova_fairness.cluster import service as service_module
from nova_fairness.cluster.border import cloud_hosts
from nova_fairness.cluster.border import departure_notices
from nova_fairness.cluster.border import host_drain
from nova_fairness.cluster.border import hosts_file
from nova_fairness.cluster.eviction import preemption
from nova_fairness.cluster.store import nodes as nodes_module
from nova_fairness.cluster.store import store as store_module
from nova_fairness.cluster.usage import pledges as pledges_module
from nova_fairness.model import border
from nova_fairness.model import request as request_model
from nova_fairness.planners.border import demand
from nova_fairness.planners.border import planner
from nova_fairness.planners.border import pledges
from nova_fairness.runtime import watched_file

LOG = logging.getLogger(__name__)

_V, _Side = border.BorderVerb, border.BorderSide
_PART = quarantine.InputKind.PART
_STARTING = frozenset(
    {request_model.State.SENDING, request_model.State.STARTING}
)


@dataclasses.dataclass(frozen=True)
class BorderObservation:
    """Batch system and cloud as the last cycle read them, and the result of
    its plan.

    :ivar at: time of the cycle, seconds of the epoch.
    :ivar snapshot: hosts, batch system and cloud.
    :ivar balances: capacity and demand of batch system and cloud; a side that
        did not answer is missing.
    :ivar faults: sentences about why hosts do not move, or batch shares are
        not adjusted.
    :ivar groups: pledges of groups that use both batch system and cloud.
    """

    at: float
    snapshot: border.Snapshot
    balances: Mapping[border.BorderSide, demand.Balance]
    faults: tuple[str, ...]
    groups: tuple[pledges.PledgeStanding, ...] = ()


class BorderController(host_controller.HostController[BorderObservation]):
    """Moves hosts between batch system and cloud, if this process is the
    leader.

    :param store: store of the states of hosts.
    :param service: service of the queue; it may be the leader.
    :param file: file that lists the hosts.
    :param batch: the batch system.
    :param cloud: reads, opens and closes hosts in Nova.
    :param vacating: evicts servers from hosts.
    :param telling: informs jobs and servers how long their host stays.
    :param rules: options of operators; the calendar is in the file.
    :param clock: returns seconds of the epoch.
    :param stopped: event that ends the loop of the controller.
    :param interval_s: seconds between two cycles.
    :param pledging: adjusts batch shares to the pledges of groups.
    """

    name = 'partition'
    idle = 'hosts: nothing moves'

    def __init__(
        self,
        store: store_module.Store,
        service: service_module.Service,
        file: watched_file.WatchedFile[hosts_file.BorderFile],
        batch: system.BatchSystem,
        cloud: cloud_hosts.CloudSide,
        vacating: host_drain.HostDrain,
        telling: departure_notices.DepartureNotices,
        rules: demand.BorderRules,
        clock: Callable[[], float],
        stopped: threading.Event,
        interval_s: float,
        pledging: pledges_module.PledgeKeeper,
    ) -> None:
        super().__init__(service, stopped, interval_s)
        self._pledging = pledging
        self._store = store
        self._file = file
        self._batch = batch
        self._cloud = cloud
        self._vacating = vacating
        self._telling = telling
        self._rules = rules
        self._clock = clock
        self._failed: dict[str, str] = {}

    def cycle(self) -> bool:
        """Read both sides, plan, and execute the plan once.

        :returns: whether this process is the leader.
        :raises ClusterError: if the cycle cannot be done now.
        :raises NotLeading: if the queue has not read the cloud yet.
        """
        epoch = self._epoch()
        if epoch is None:
            self._last = None
            self._telling.forget()
            self._pledging.forget()
            return False
        now = self._clock()
        described = self._file.content()
        nodes, faults = self._read_hosts(described, epoch, now)
        batch, cloud, away = self._read_sides(nodes, now)
        faults += batch.faults if batch else ()
        snapshot = border.Snapshot(
            nodes, batch, cloud, self._operator_target()
        )
        rules = dataclasses.replace(self._rules, windows=described.windows)
        plan = planner.plan(snapshot, now, rules)
        self._failed = {}
        for action in plan.actions:
            self._try_action(action, snapshot, epoch)
        untold: list[str] = []
        if not away:
            self._cancel_evictions_and_remove_hosts(snapshot, plan, epoch)
            untold = self._run_part(
                'jobs told', self._write_notices, snapshot, epoch
            )
        failed = [f'{host}: {why}' for host, why in self._failed.items()]
        unshared = self._run_part(
            'shares of groups',
            self._pledging.cycle,
            described.groups,
            described.hosts,
            self._service.last().snapshot,
            now,
            epoch,
        )
        told = (*away, *faults, *plan.faults, *failed, *untold, *unshared)
        balances = {
            side: demand.side_balance(snapshot, side, now, rules.patience_s)
            for side in _Side
            if snapshot.side(side)
        }
        stands = self._pledging.standings
        self._last = BorderObservation(now, snapshot, balances, told, stands)
        self._log_new_faults(told)
        return True

    def _operator_target(self) -> border.CloudTarget | None:
        aimed = self._store.nodes.read_target().hosts
        return None if aimed is None else border.CloudTarget(aimed)

    def nodes(self) -> dict[str, border.BorderHost]:
        """Return hosts by name, with their present states.

        :raises ClusterError: if they cannot be read.
        :raises NotLeading: if this process is not the leader, or has not read
            the hosts yet.
        """
        hosts = {
            each.host.name: each.host for each in self.last().snapshot.nodes
        }
        found, _ = self._store.nodes.read_hosts()
        return {
            name: dataclasses.replace(node, host=hosts.get(name, node.host))
            for name, node in found.items()
        }

    def move(self, host: str) -> border.BorderHost:
        """Start to move a host from batch system to cloud, or back.

        :param host: name of the machine.
        :raises UnknownHost: if there is no such host.
        :raises IllegalStep: if the host is fixed, already moves, or the side
            that it belongs to is unknown.
        :raises ClusterError: if the step cannot be stored now.
        :raises NotLeading: if this process is not the leader, or has not read
            the hosts yet.
        """
        return self._apply_manual_event(host, border.HostEvent.ASK)

    def cancel(self, host: str) -> border.BorderHost:
        """Cancel the move of a host.

        :param host: see :meth:`move`.
        :raises UnknownHost: see :meth:`move`.
        :raises IllegalStep: if the host does not move.
        :raises ClusterError: see :meth:`move`.
        :raises NotLeading: see :meth:`move`.
        """
        return self._apply_manual_event(host, border.HostEvent.CANCEL)

    def aim(self, hosts: int | None) -> None:
        """Set the number of hosts that the cloud is to have.

        :param hosts: number, >= 0; ``None``: the calendar and the demand
            decide.
        :raises IllegalStep: if the number is larger than that of all hosts.
        :raises ClusterError: see :meth:`move`.
        :raises NotLeading: see :meth:`move`.
        """
        most = len(self._file.content().hosts)
        if hosts is not None and not 0 <= hosts <= most:
            raise exception.IllegalStep(
                f'the cloud can have 0 to {most} hosts of these, got {hosts}'
            )
        version = self._store.nodes.read_target().version
        self._store.nodes.write_target(
            nodes_module.HostTarget(hosts, version), self._require_epoch()
        )

    def _apply_manual_event(
        self, host: str, event: border.HostEvent
    ) -> border.BorderHost:
        epoch = self._require_epoch()
        # Raises if this process has not looked yet: it could not report the
        # result.
        self.last()
        described = {each.name: each for each in self._file.content().hosts}
        node = self._store.nodes.read_host(host)
        if host not in described or node is None:
            raise exception.UnknownHost(
                f'no host {host} may move between batch and cloud; there is'
                f' {", ".join(sorted(described)) or "none"}'
            )
        if event is border.HostEvent.ASK and described[host].fixed:
            raise exception.IllegalStep(f'host {host} is fixed')
        cause = border.HostCause.OPERATOR
        return self._store.nodes.step(node, event, epoch, self._clock(), cause)

    def _read_hosts(
        self, described: hosts_file.BorderFile, epoch: int, now: float
    ) -> tuple[tuple[border.BorderHost, ...], list[str]]:
        """Return all hosts with their states and present descriptions, and
        sentences about unreadable ones.
        """
        stored = self._store.nodes
        found, wrong = stored.read_hosts()
        hosts = {each.name: each for each in described.hosts}
        for name in hosts.keys() - found.keys() - wrong.keys():
            stored.add(hosts[name], epoch, now)
            found[name] = border.BorderHost(
                _without_description(hosts[name]), since=now
            )
        nodes = []
        for name, node in found.items():
            host = hosts.get(name)
            if host is None:
                if _has_name_conflict(node.host, hosts.values()):
                    stored.remove(node, epoch)
                    continue
                nodes.append(node)
                continue
            if _without_description(host) != node.host:
                node = stored.update_description(node, host, epoch)
            nodes.append(dataclasses.replace(node, host=host))
        return tuple(nodes), [f'{name}: {why}' for name, why in wrong.items()]

    def _read_sides(
        self, nodes: tuple[border.BorderHost, ...], now: float
    ) -> tuple[
        border.SideSnapshot | None, border.SideSnapshot | None, list[str]
    ]:
        """Return the state of batch system and cloud, each ``None`` if it
        did not answer, and sentences about faults.
        """
        away, batch, cloud = [], None, None
        try:
            batch = self._batch.read_hosts()
        except exception.BatchError as error:
            away.append(str(error))
        except Exception as error:  # noqa: BLE001 - it gives no answer
            away.append(self._quarantine_side('the batch system', error))
        try:
            cloud = self._cloud.look(nodes, self._service.last(), now)
        except exception.CloudError as error:
            away.append(str(error))
        except (exception.ClusterError, exception.NotLeading):
            raise
        except Exception as error:  # noqa: BLE001 - it gives no answer
            away.append(self._quarantine_side('the cloud', error))
        return batch, cloud, away

    def _quarantine_side(self, side: str, error: Exception) -> str:
        """Quarantine a side whose answer cannot be parsed, and return a
        sentence about it.
        """
        self._service.quarantine.put(_PART, f'{self.name} {side}', error)
        return (
            f'{side}: its answer cannot be read: {type(error).__name__}; no'
            ' host moves until it can be'
        )

    def _try_action(
        self,
        action: border.BorderAction,
        snapshot: border.Snapshot,
        epoch: int,
    ) -> None:
        """Execute one action. If it fails, the other actions are still
        executed.
        """
        try:
            self._execute_action(action, snapshot, epoch)
        except (exception.Deposed, exception.StoreAway):
            raise
        except exception.Outdated as error:
            # The host was cancelled, or sent to the other side, since both
            # sides were read.
            LOG.info('%s', error)
        except exception.ClusterError as error:
            self._failed[action.host] = str(error)
        except Exception as error:  # noqa: BLE001 - other hosts move
            self._service.quarantine.put(_PART, f'host {action.host}', error)
            self._failed[action.host] = type(error).__name__

    def _execute_action(
        self,
        action: border.BorderAction,
        snapshot: border.Snapshot,
        epoch: int,
    ) -> None:
        stored = self._store.nodes
        node = stored.check_unchanged(action.host, action.version, epoch)
        if action.step is not None:
            after = stored.step(
                node,
                action.step,
                epoch,
                self._clock(),
                action.cause,
                action.text,
                action.until,
            )
            LOG.info(
                'host %s: %s: %s',
                action.host,
                after.state.value.replace('_', ' '),
                action.text or action.cause.value.replace('_', ' '),
            )
        elif action.verb in (_V.OPEN, _V.CLOSE):
            self._execute_open_or_close(action, node)
        else:
            self._execute_clear(action, node, snapshot, epoch)

    def _execute_open_or_close(
        self, action: border.BorderAction, node: border.BorderHost
    ) -> None:
        """Open or close a host in the batch system or in the cloud."""
        is_batch = action.side is _Side.BATCH
        to: system.BatchSystem | cloud_hosts.CloudSide
        to = self._batch if is_batch else self._cloud
        name = node.host.batch if is_batch else node.host.cloud
        if action.verb is _V.OPEN:
            to.open(name)
        elif is_batch or self._has_no_pending_start(node):
            to.close(name, action.text)

    def _has_no_pending_start(self, node: border.BorderHost) -> bool:
        """Whether no request that was sent to Nova may still start on a host.

        Nova would reject such a request when the host is closed.
        """
        is_planned_without = self._service.last().at > node.since
        sent = self._store.requests(_STARTING)
        return is_planned_without and not any(
            node.host.cloud in each.hosts for each in sent
        )

    def _execute_clear(
        self,
        action: border.BorderAction,
        node: border.BorderHost,
        snapshot: border.Snapshot,
        epoch: int,
    ) -> None:
        machine = node.host.name
        if action.verb is _V.END:
            self._vacating.end(action.work, machine, epoch)
            return
        place = snapshot.place(node, _Side.CLOUD)
        work = [
            each
            for each in (place.work if place else ())
            if each.name in action.work
        ]
        asked_at = {
            server: request.asked_at
            for server, request in preemption.newest_request_by_server(
                self._service.last().records
            ).items()
        }
        self._vacating.clear(work, machine, asked_at, epoch)

    def _cancel_evictions_and_remove_hosts(
        self,
        snapshot: border.Snapshot,
        plan: border.BorderPlan,
        epoch: int,
    ) -> None:
        """Cancel evictions from hosts that stay in the cloud; remove hosts
        that are no longer in the file.
        """
        found, _ = self._store.nodes.read_hosts()
        machines = {
            name
            for name, node in found.items()
            if node.state is border.HostState.LEAVING_CLOUD
        }
        self._vacating.spare(machines, epoch)
        busy = {each.host for each in plan.actions}
        described = {each.name for each in self._file.content().hosts}
        for node in snapshot.nodes:
            name = node.host.name
            is_at_rest = name not in busy and node.state not in border.MOVING
            if name not in described and is_at_rest:
                self._store.nodes.remove(node, epoch)

    def _write_notices(
        self, snapshot: border.Snapshot, epoch: int
    ) -> list[str]:
        """Inform jobs and servers about their hosts, after the steps of
        this cycle.
        """
        if self._service.leads() != epoch:
            return []
        found, _ = self._store.nodes.read_hosts()
        nodes = [
            dataclasses.replace(found[node.host.name], host=node.host)
            for node in snapshot.nodes
            if node.host.name in found
        ]
        as_it_is = dataclasses.replace(snapshot, nodes=tuple(nodes))
        return self._telling.tell(as_it_is, self._clock())


def _without_description(host: border.SharedHost) -> border.SharedHost:
    """Return a host as the store returns it, without the attributes from
    the file.
    """
    return dataclasses.replace(host, fixed=True)


def _has_name_conflict(
    host: border.SharedHost, others: Iterable[border.SharedHost]
) -> bool:
    """Whether another host now has the batch name or the cloud name of a
    host.
    """
    return any(
        each.batch == host.batch or each.cloud == host.cloud for each in others
    )
