# SPDX-License-Identifier: Apache-2.0

"""Container of all parts that a service uses.

``assembly.service_parts`` builds them. A new part needs a field here and a
line there.
"""

from collections.abc import Callable
import dataclasses

from nova_fairness.cluster import clocks as clocks_module
from nova_fairness.cluster import leader_election
from nova_fairness.cluster import quarantine as quarantine_module
from nova_fairness.cluster import snapshot
from nova_fairness.cluster.accounts import accounts as accounts_module
from nova_fairness.cluster.admission import dispatcher
from nova_fairness.cluster.admission import scheduler
from nova_fairness.cluster.eviction import cycle_tasks
from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.eviction import preemption
from nova_fairness.cluster.eviction import time_limits
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.store import store as store_module
from nova_fairness.cluster.usage import charging as charging_module


@dataclasses.dataclass(frozen=True)
class Collaborators:
    """Parts of one service. They do not refer to the service.

    :ivar store: store of messages and requests.
    :ivar election: decides whether this process is the leader.
    :ivar accounts: the present share tree.
    :ivar reader: reads the state of the cloud.
    :ivar charging: records the use of accounts.
    :ivar executor: applies plans.
    :ivar nova: reads servers from Nova.
    :ivar ends: evicts servers whose time limit has ended.
    :ivar chores: tasks that run beside requests in a cycle.
    :ivar leaving: evicts servers.
    :ivar making: evicts servers to make room for requests.
    :ivar plan: the planner.
    :ivar clocks: the present time, and whether it may be wrong.
    :ivar monotonic: returns monotonic time, seconds.
    :ivar quarantine: contains inputs that made a cycle fail.
    """

    store: store_module.Store
    election: leader_election.Election
    accounts: accounts_module.Accounts
    reader: snapshot.CloudReader
    charging: charging_module.LedgerKeeper
    executor: dispatcher.RequestDispatcher
    nova: nova_module.Nova
    ends: time_limits.TimeLimits
    chores: cycle_tasks.CycleTasks
    leaving: evictor.Evictor
    making: preemption.PreemptionController
    plan: scheduler.Planner
    clocks: clocks_module.Clocks
    monotonic: Callable[[], float]
    quarantine: quarantine_module.Quarantine
