# SPDX-License-Identifier: Apache-2.0

"""The parts of the service, each given those that it works with.

The program, tests and benchmarks wire the same parts here. They differ in
what surrounds the service, and in what is chosen.
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
    """Surroundings of a service; a test has fakes.

    :ivar store: of messages and requests.
    :ivar cloud: clients of its services; their calls renew the lease.
    :ivar sender: of held messages.
    :ivar election: says whether this process acts.
    :ivar clocks: say the time.
    :ivar monotonic: seconds that never go back.
    """

    store: store_module.Store
    cloud: clients.CloudClients
    sender: dispatcher.Sender
    election: leader_election.Election
    clocks: clocks_module.Clocks
    monotonic: Callable[[], float]


@dataclasses.dataclass(frozen=True)
class Choices:
    """Choices of operators for the parts.

    :ivar plan: the planner.
    :ivar quarantine: of what makes a cycle fail.
    :ivar accounts: makes the share tree.
    :ivar charging: makes the keeper of the ledger.
    :ivar chores: makes what is done beside requests.
    :ivar limits: of projects, by name.
    :ivar closing: names hosts on which nothing may start.
    :ivar falls_back: see :attr:`.CloudReader.falls_back`.
    :ivar past_end: whether what waits may start after its token has expired.
    :ivar binds: whether servers lie where they were planned, and nowhere
        else.
    :ivar patience: with servers that leave.
    :ivar ends: how servers leave whose time is up.
    :ivar making: how servers make room.
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
    closing: Callable[[], Collection[str]]
    falls_back: bool
    past_end: bool
    binds: bool
    patience: evictor.Patience
    ends: time_limits.TimeLimitOptions
    making: preemption.PreemptionOptions


def collaborators(
    outside: Surroundings, chosen: Choices
) -> collaborators_module.Collaborators:
    """Make all parts of a service."""
    store, cloud, now = outside.store, outside.cloud, outside.clocks.now
    for api in cloud:
        api.before = outside.election.renew
    room = placement.Placement(cloud.placement)
    nova = nova_module.Nova(cloud.nova)
    accounts = chosen.accounts(cloud, store)
    reader = snapshot.CloudReader(
        room, nova, chosen.limits, accounts.present, chosen.closing
    )
    reader.falls_back = chosen.falls_back
    leaves = evictions.leaving(chosen.patience, store, nova, room, cloud, now)
    accepted = tokens.Tokens(cloud.keystone, past_end=chosen.past_end)
    return collaborators_module.Collaborators(
        store=store,
        election=outside.election,
        accounts=accounts,
        reader=reader,
        charging=chosen.charging(store, reader),
        executor=dispatcher.Executor(
            store,
            room,
            nova,
            accepted,
            outside.sender,
            now,
            binds=chosen.binds,
        ),
        nova=nova,
        ends=time_limits.TimeLimits(
            leaves, chosen.ends, chosen.patience.notice_s
        ),
        chores=chosen.chores(store, nova, leaves),
        leaving=leaves,
        making=preemption.PreemptionController(
            store, nova, leaves, now, chosen.making
        ),
        plan=chosen.plan,
        clocks=outside.clocks,
        monotonic=outside.monotonic,
        quarantine=chosen.quarantine,
    )
