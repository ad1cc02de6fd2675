# SPDX-License-Identifier: Apache-2.0

"""Answers about hosts that move between the batch system and the cloud."""

import collections
from collections.abc import Iterable
import dataclasses
from typing import Any

from nova_fairness.cluster.border import controller
from nova_fairness.model import border as border_module
from nova_fairness.model import moments
from nova_fairness.planners.border import pledges


def border_facts(
    looked: controller.BorderObservation,
    nodes: Iterable[border_module.BorderHost],
    target: int | None,
) -> dict[str, Any]:
    """Return the state of the batch system, the cloud and the pledges of
    groups.

    :param looked: batch system and cloud as they were read last.
    :param nodes: hosts between batch system and cloud, in their present state.
    :param target: number of hosts that an operator assigned to the cloud;
        ``None`` for no such number.
    """
    states = collections.Counter(each.state.value for each in nodes)
    balances = {
        side.value: dataclasses.asdict(looked.balances[side])
        if side in looked.balances
        else None
        for side in border_module.BorderSide
    }
    return {
        'seen_at': moments.answer(looked.at),
        'target': target,
        'states': {
            each.value: states[each.value] for each in border_module.HostState
        },
        **balances,
        'groups': [_group_facts(each) for each in looked.groups],
        'faults': list(looked.faults),
    }


def _group_facts(stands: pledges.PledgeStanding) -> dict[str, Any]:
    return {
        'account': stands.group.account,
        'batch_account': stands.group.batch,
        'pledge': stands.pledge,
        'part': stands.part,
        'used': {'batch': stands.batch, 'cloud': stands.cloud},
        'batch_share': stands.share,
        'batch_share_found': stands.found,
    }


def host_facts(
    node: border_module.BorderHost, snapshot: border_module.Snapshot
) -> dict[str, Any]:
    """Return the state of a host, and its status in the batch system and in
    the cloud.
    """
    bound, last = border_module.future_system(node.state), node.history[-1:]
    return {
        'name': node.host.name,
        'batch_name': node.host.batch,
        'cloud_name': node.host.cloud,
        'cores': float(node.host.cores),
        'fixed': node.host.fixed,
        'state': node.state.value,
        'bound_for': bound.value if bound else None,
        'since': moments.answer(node.since),
        'until': moments.answer(node.until),
        'cause': last[0].cause.value if last else None,
        'explanation': last[0].text if last else '',
        'batch': _status_facts(
            snapshot.place(node, border_module.BorderSide.BATCH)
        ),
        'cloud': _status_facts(
            snapshot.place(node, border_module.BorderSide.CLOUD)
        ),
    }


def full_host_facts(
    node: border_module.BorderHost, snapshot: border_module.Snapshot
) -> dict[str, Any]:
    """Return :func:`host_facts` with the work on the host, and the history of
    the host, the oldest event first.
    """
    places = [snapshot.place(node, side) for side in border_module.BorderSide]
    return {
        **host_facts(node, snapshot),
        'work': [
            {
                'name': each.name,
                'cores': float(each.cores),
                'gone_at': moments.answer(each.gone_at),
                'way': each.way.value,
            }
            for place in places
            if place
            for each in place.work
        ],
        'history': [
            {
                'at': moments.answer(each.at),
                'event': each.event.value,
                'state': each.state.value,
                'cause': each.cause.value,
                'explanation': each.text,
            }
            for each in node.history
        ],
    }


def _status_facts(
    place: border_module.SideStatus | None,
) -> dict[str, Any] | None:
    if place is None:
        return None
    return {
        'open': place.takes,
        'up': place.up,
        'reason': place.reason,
        'work_count': len(place.work),
        'used_cores': float(sum(each.cores for each in place.work)),
    }
