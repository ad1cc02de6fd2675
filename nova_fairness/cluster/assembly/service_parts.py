# SPDX-License-Identifier: Apache-2.0

"""Connection of the parts of the service.

The program, tests and benchmarks connect the same parts here. They differ in
the surroundings of the service, and in the chosen parts.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
import dataclasses

from nova_fairness.cluster import clocks as clocks_module
from nova_fairness.cluster import collaborators as collaborators_module
from nova_fairness.cluster import leader_election
from nova_fairness.cluster import quarantine as quarantine_module
from nova_fairness.cluster import snapshot
from nova_fairness.cluster.accounts import accounts as accounts_module
from nova_fairness.cluster.admission import dispatcher
from nova_fairness.cluster.admission import scheduler
from nova_fairness.cluster.assembly import evictions
from nova_fairness.cluster.eviction import cycle_tasks
from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.eviction import preemption
from nova_fairness.cluster.eviction import time_limits
from nova_fairness.cluster.openstack import clients
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.openstack import placement
from nova_fairness.cluster.openstack import tokens
from nova_fairness.cluster.store import store as store_module
from nova_fairness.cluster.usage import charging as charging_module
from nova_fairness.model import cluster


@dataclasses.dataclass(frozen=True)
class Surroundings:
    """Connections of a service to its surroundings; tests use fakes.

    :ivar store: store of messages and requests.
    :ivar cloud: clients of the OpenStack services; each call renews the lease
        of the leader.
    :ivar sender: sends held messages to Nova.
    :ivar election: decides whether this process is the leader.
    :ivar clocks: clocks of the host and of the database.
    :ivar monotonic: returns monotonic time, seconds.
    """

    store: store_module.Store
    cloud: clients.CloudClients
    sender: dispatcher.Sender
    election: leader_election.Election
    clocks: clocks_module.Clocks
    monotonic: Callable[[], float]


@dataclasses.dataclass(frozen=True)
class Choices:
    """Parts and values that operators choose by options.

    :ivar plan: the planner.
    :ivar quarantine: contains inputs that made a cycle fail.
    :ivar accounts: builds the share tree.
    :ivar charging: builds the ledger keeper.
    :ivar chores: builds the tasks that run beside requests in a cycle.
    :ivar limits: limits of projects, by name of the project.
    :ivar closed_hosts: returns names of hosts on which no server may start.
    :ivar falls_back: see :attr:`.CloudReader.falls_back`.
    :ivar accepts_expired: whether a waiting request may start after its token
        expired.
    :ivar binds_hosts: whether Nova must use the planned hosts.
    :ivar eviction_timeouts: times of an eviction: the notice, and the wait
        for each action.
    :ivar time_limit_options: options of evictions at a time limit.
    :ivar preemption_options: options of evictions that make room.
    """

    plan: scheduler.Planner
    quarantine: quarantine_module.Quarantine
    accounts: Callable[
        [clients.CloudClients, store_module.Store], accounts_module.Accounts
    ]
    charging: Callable[
        [store_module.Store, snapshot.CloudReader],
        charging_module.LedgerKeeper,
    ]
    chores: Callable[
        [store_module.Store, nova_module.Nova, evictor.Evictor],
        cycle_tasks.CycleTasks,
    ]
    limits: Mapping[str, cluster.Limits]
    closed_hosts: Callable[[], Collection[str]]
    falls_back: bool
    accepts_expired: bool
    binds_hosts: bool
    eviction_timeouts: evictor.EvictionTimeouts
    time_limit_options: time_limits.TimeLimitOptions
    preemption_options: preemption.PreemptionOptions


def build_collaborators(
    outside: Surroundings, chosen: Choices
) -> collaborators_module.Collaborators:
    """Build all parts of a service, and connect them."""
    store, cloud, now = outside.store, outside.cloud, outside.clocks.now
    for api in cloud:
        api.before = outside.election.renew
    room = placement.Placement(cloud.placement)
    nova = nova_module.Nova(cloud.nova)
    accounts = chosen.accounts(cloud, store)
    reader = snapshot.CloudReader(
        room, nova, chosen.limits, accounts.present, chosen.closed_hosts
    )
    reader.falls_back = chosen.falls_back
    timeouts = chosen.eviction_timeouts
    leaves = evictions.build_evictor(timeouts, store, nova, room, cloud, now)
    accepted = tokens.TokenValidator(
        cloud.keystone, accept_expired=chosen.accepts_expired
    )
    return collaborators_module.Collaborators(
        store=store,
        election=outside.election,
        accounts=accounts,
        reader=reader,
        charging=chosen.charging(store, reader),
        executor=dispatcher.RequestDispatcher(
            store,
            room,
            nova,
            accepted,
            outside.sender,
            now,
            binds=chosen.binds_hosts,
        ),
        nova=nova,
        ends=time_limits.TimeLimits(
            leaves, chosen.time_limit_options, timeouts.notice_s
        ),
        chores=chosen.chores(store, nova, leaves),
        leaving=leaves,
        making=preemption.PreemptionController(
            store, nova, leaves, now, chosen.preemption_options
        ),
        plan=chosen.plan,
        clocks=outside.clocks,
        monotonic=outside.monotonic,
        quarantine=chosen.quarantine,
    )
