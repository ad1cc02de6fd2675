# SPDX-License-Identifier: Apache-2.0

"""State of the whole service in one answer of limited size."""

import collections
from collections.abc import Iterable
from collections.abc import Sequence
import heapq
import socket
from typing import Any

from nova_fairness.cluster import service as service_module
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import border
from nova_fairness.model import eviction
from nova_fairness.model import history
from nova_fairness.model import moments
from nova_fairness.model import plans
from nova_fairness.runtime import outages
from nova_fairness.shares import overview as shares_overview

MOST = 50
"""Largest number of entries of each list."""

MOST_SHARES = 10
"""Largest number of accounts in the list of shares."""

_RequestCounts = collections.Counter[tuple[str, str]]
"""Number of requests by project and reason."""


def overview(
    service: service_module.Service,
    store: store_module.Store,
    hosts: Iterable[border.BorderHost],
    checks: Sequence[str] = (),
    order: tuple[str, str] = ('', ''),
) -> dict[str, Any]:
    """Return the leader, waits, shares, evictions, plans, hosts of the border,
    and warnings.

    :param hosts: hosts that move between batch system and cloud.
    :param checks: problems that were found in the environment of the service.
    :param order: name and description of the order that is in force.
    :raises NotLeading: if this process is not the leader.
    """
    last = service.last()
    leader = store.leader()
    open_plans = [
        each
        for each in store.plans.open_plans()
        if each.state not in plans.FINAL
    ]
    leaving = collections.Counter(
        each.cause.value
        for each in store.leaves.newest_in_states(eviction.LIVE).values()
    )
    states = collections.Counter(each.state.value for each in hosts)
    return {
        'leader': leader.host or leader.holder,
        'epoch': leader.epoch,
        'leads_since': moments.answer(service.leads_since()),
        'seen_at': moments.answer(last.at),
        **dict(zip(('order', 'order_description'), order, strict=True)),
        'hosts_count': sum(each.takes for each in last.snapshot.providers),
        'waiting_count': len(last.plan.waiting),
        'waiting': _waiting_counts(service),
        'shares': _largest_users(service),
        'leaving': dict(leaving),
        'plans': [
            {
                'uuid': each.uuid,
                'goal': each.goal.value,
                'state': each.state.value,
            }
            for each in open_plans[:MOST]
        ],
        'border': dict(states),
        'warnings': [*_warnings(service), *checks][:MOST],
        'advice': _advised_commands(service, open_plans, checks)[:MOST],
    }


def _largest_users(service: service_module.Service) -> list[dict[str, Any]]:
    """Return the projects with the largest use, with their fair shares."""
    snapshot = service.last().snapshot
    projects = [
        each
        for each in shares_overview.standings(snapshot)
        if each.account.name in snapshot.used and any(each.used.values())
    ]
    most = heapq.nlargest(MOST_SHARES, projects, key=_dominant_part)
    return [
        {
            'account': each.account.name,
            'normalised_share': each.part,
            'used_part': _dominant_part(each),
            'fair_share': each.factor,
        }
        for each in most
    ]


def _dominant_part(standing: shares_overview.AccountStanding) -> float:
    """Return the part of the cloud that an account used, in the resource
    class with the largest part.
    """
    return max(standing.used.values(), default=0.0)


def _waiting_counts(service: service_module.Service) -> list[dict[str, Any]]:
    """Return the number of waiting requests, by project and reason."""
    last = service.last()
    requests: _RequestCounts = collections.Counter()
    for record in last.records:
        place = last.plan.waiting.get(record.request.uuid)
        if place is not None:
            requests[record.request.project, place.why.reason.value] += 1
    return [
        {
            'project_id': project,
            'reason': why,
            'explanation': history.purpose(why),
            'count': count,
        }
        for (project, why), count in requests.most_common(MOST)
    ]


def _warnings(service: service_module.Service) -> list[str]:
    fault = service.clocks.fault
    return [
        *([f'clocks: {fault}'] if fault else []),
        *([service.trouble] if service.trouble else []),
        *outages.SERVERS.away(),
        *(
            f'account {name}: set aside: {why}'
            for name, why in service.accounts.set_aside.items()
        ),
        *(
            f'{each.kind} {each.name}: set aside after'
            f' {each.times} failures: {each.cause}'
            for each in service.quarantine.entries()
        ),
        *(
            f'host {host}: its report of use differs from others: {why}'
            for host, why in service.charging.outliers().items()
        ),
    ]


def _advised_commands(
    service: service_module.Service,
    found: Iterable[plans.MigrationPlan],
    checks: Sequence[str],
) -> list[str]:
    """Return the commands that operators should run next."""
    told = []
    if checks:
        told.append(
            f'On host {socket.gethostname()}, correct what this names:'
            ' nova-fairness-status --controller upgrade check'
        )
    if service.clocks.fault:
        told.append('Correct the clock of this host or of the database.')
    if service.accounts.set_aside:
        told.append(
            'Correct limits: openstack fairness limit list --all-projects'
        )
    told += [
        f'Approve or stop plan {each.uuid}: openstack fairness plan show'
        f' {each.uuid}'
        for each in found
        if each.state is plans.PlanState.PROPOSED
    ]
    return told
