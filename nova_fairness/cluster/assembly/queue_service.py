# SPDX-License-Identifier: Apache-2.0

"""Builder of the service with all its parts, from the configuration."""

from collections.abc import Callable
from collections.abc import Collection
import functools
import os
import socket
import time

from oslo_config import cfg

from nova_fairness.cluster import clocks
from nova_fairness.cluster import leader_election
from nova_fairness.cluster import quarantine
from nova_fairness.cluster import service
from nova_fairness.cluster.admission import dispatcher
from nova_fairness.cluster.assembly import accounts
from nova_fairness.cluster.assembly import evictions
from nova_fairness.cluster.assembly import idle_reclaim
from nova_fairness.cluster.assembly import ledger
from nova_fairness.cluster.assembly import move_plans
from nova_fairness.cluster.assembly import planner
from nova_fairness.cluster.assembly import service_parts
from nova_fairness.cluster.assembly import storage
from nova_fairness.cluster.openstack import clients
from nova_fairness.cluster.store import store as store_module


def assemble(
    conf: cfg.ConfigOpts,
    sender: dispatcher.Sender,
    closed_hosts: move_plans.ClosedHosts,
) -> tuple[service.Service, store_module.Store]:
    """Build the service and its store.

    :param sender: sends held messages to Nova.
    :param closed_hosts: hosts on which no server may start.
    :raises ConfigurationError: if an option is invalid.
    :raises StoreError: if the store cannot be opened.
    """
    options = conf.fairness_cluster
    # This comes before connections are opened: it checks the options.
    rules, chosen = _service_options(conf), build_choices(conf, closed_hosts)
    store = storage.open_store(conf)
    outside = service_parts.Surroundings(
        store,
        clients.connect(options.cloud, options.region_name),
        sender,
        _build_election(options, store),
        clocks.Clocks(time.time, clocks.uptime_s, store.database_time),
        time.monotonic,
    )
    made = service_parts.build_collaborators(outside, chosen)
    return service.Service(made, rules), store


def build_choices(
    conf: cfg.ConfigOpts, closed_hosts: Callable[[], Collection[str]] = tuple
) -> service_parts.Choices:
    """Build the parts that options choose. No connection is opened.

    :param closed_hosts: returns names of hosts on which no server may start.
    :raises ConfigurationError: if an option is invalid.
    """
    options, set_aside = conf.fairness_cluster, quarantine.Quarantine()
    # Notices of idle servers depend on the timeouts.
    timeouts, written = (
        evictions.eviction_timeouts(options),
        accounts.shares_file_accounts(conf),
    )
    return service_parts.Choices(
        plan=planner.build_planner(conf, set_aside),
        quarantine=set_aside,
        accounts=functools.partial(accounts.build_accounts, conf, written),
        charging=functools.partial(ledger.build_ledger_keeper, conf),
        chores=evictions.cycle_tasks_builder(
            options, idle_reclaim.idle_reclaim_builder(conf)
        ),
        limits=accounts.read_limits(options),
        closed_hosts=closed_hosts,
        falls_back=options.pinned_fallback,
        accepts_expired=options.expired_tokens == 'start',
        binds_hosts=options.placement_binds,
        eviction_timeouts=timeouts,
        time_limit_options=evictions.time_limit_options(options),
        preemption_options=evictions.preemption_options(options),
    )


def _build_election(
    options: cfg.ConfigOpts.GroupAttr, store: store_module.Store
) -> leader_election.Election:
    """Build the election in which this process takes part."""
    holder = f'{socket.gethostname()}:{os.getpid()}'
    return leader_election.Election(
        store, holder, options.lease, time.time, time.monotonic
    )


def _service_options(conf: cfg.ConfigOpts) -> service.ServiceOptions:
    options = conf.fairness_cluster
    passes = options.unreadable == 'pass'
    return service.ServiceOptions(
        planner.admission_options(conf), passes, options.doubt, options.history
    )
