# SPDX-License-Identifier: Apache-2.0

"""Random clouds with little room, and a judge of plans of moves.

Plain Python on plain numbers: it shares no code with the planners.
"""

import dataclasses
import random

from nova_fairness.model import cluster
from nova_fairness.model import request
from tests.fixtures import small_cloud

MOST_REPLANS = 20


def hosts_and_servers(seed):
    """Hosts, and servers as (uuid, host, vcpu, memory, more)."""
    chance = random.Random(seed)
    is_uniform = chance.random() < 0.4
    sizes = [chance.choice([8, 12, 16]) for _ in range(chance.randint(2, 6))]
    tightness = chance.choice([0.75, 0.9, 1.0])
    hosts, servers = [], []
    groups = [
        request.Group(name, request.Rule.APART, chance.randint(1, 2))
        for name in ('g', 'h')
    ]
    for h, size in enumerate(sizes):
        size = sizes[0] if is_uniform else size
        name, zone = f'h{h}', chance.choice(['nova', 'nova', 'nova', 'z'])
        hosts.append(small_cloud.host(name, size, size * 100, zone=zone))
        left, present = int(size * tightness), {}
        while left > 0:
            vcpu = min(chance.choice([1, 2, 2, 3, 4, 6]), left)
            left -= vcpu
            group = chance.choice([None] * 8 + groups)
            if group and present.get(group.uuid, 0) >= group.per_host:
                group = None
            if group:
                present[group.uuid] = present.get(group.uuid, 0) + 1
            memory = min(chance.choice([50, 100]), 100) * vcpu
            more = {'bound': group, 'stays': chance.random() < 0.1}
            servers.append((f's{h}{len(servers)}', name, vcpu, memory, more))
            if chance.random() < 0.1:
                break
    return hosts, servers


def cloud(seed, **more):
    """The snapshot of such a cloud."""
    hosts, servers = hosts_and_servers(seed)
    running = []
    for uuid, host, vcpu, memory, own in servers:
        fields = {'bound': own['bound']}
        if own['stays']:
            fields['demand'] = None
        running.append(small_cloud.lies(uuid, host, vcpu, memory, **fields))
    return small_cloud.filled(hosts, running, **more)


def judged(snapshot, moves):
    """The cloud after moves, each of which must be one, needed, and fit.

    :raises AssertionError: if a move goes to its own host, has no room while
        its wave runs, breaks the rule of a group, moves what stays, or if a
        server goes twice although once would do.
    """
    reached = followed(snapshot, moves)
    assert reached is not None, moves
    by_server = {}
    for each in moves:
        by_server.setdefault(each.server, []).append(each)
    first = {each.uuid: each.host for each in snapshot.running}
    for server, own in by_server.items():
        if len(own) < 2:
            continue
        others = [each for each in moves if each.server != server]
        if own[-1].target == first[server]:
            assert followed(snapshot, others) is None, 'to and fro for nothing'
            continue
        for wave in {each.wave for each in own}:
            direct = dataclasses.replace(
                own[0], target=own[-1].target, wave=wave
            )
            assert followed(snapshot, [*others, direct]) is None, (
                f'{server} goes twice although once would do'
            )
    return reached


def followed(snapshot, moves):
    """The cloud after moves, wave by wave; ``None`` if one cannot be made."""
    rows = {each.name: each for each in snapshot.providers}
    capacity = {
        each.name: dict(zip(snapshot.classes, row, strict=True))
        for each, row in zip(
            snapshot.providers,
            snapshot.inventory.capacity.tolist(),
            strict=True,
        )
    }
    at = {each.uuid: each for each in snapshot.running}
    used = {name: dict.fromkeys(snapshot.classes, 0) for name in rows}
    mates = {}
    for each in at.values():
        _add(used[each.host], each, 1)
        _count(mates, each, each.host, 1)
    for wave in sorted({each.wave for each in moves}):
        now = [each for each in moves if each.wave == wave]
        if len({each.server for each in now}) < len(now):
            return None
        for each in now:
            server = at[each.server]
            if not server.host == each.source != each.target:
                return None
            if server.demand is None or not rows[each.target].takes:
                return None
            if server.demand.zone not in ('', rows[each.target].zone):
                return None
            _add(used[each.target], server, 1)
            _count(mates, server, each.target, 1)
        for each in now:
            server, room = at[each.server], capacity[each.target]
            if any(used[each.target][c] > room[c] for c in room):
                return None
            if server.bound and (
                mates[server.bound.uuid, each.target] > server.bound.per_host
            ):
                return None
        for each in now:
            server = at[each.server]
            _add(used[each.source], server, -1)
            _count(mates, server, each.source, -1)
            at[each.server] = dataclasses.replace(server, host=each.target)
    inventory = dataclasses.replace(
        snapshot.inventory, used=snapshot.inventory.used.copy()
    )
    for row, each in enumerate(snapshot.providers):
        for c, name in enumerate(snapshot.classes):
            inventory.used[row, c] = used[each.name][name]
    return dataclasses.replace(
        snapshot, inventory=inventory, running=tuple(at.values())
    )


def _add(used, server, sign):
    for name, amount in server.amounts:
        used[name] += sign * amount


def _count(mates, server, host, sign):
    if server.bound:
        key = server.bound.uuid, host
        mates[key] = mates.get(key, 0) + sign


def busy(snapshot):
    """Number of hosts on which something lies."""
    return len({each.host for each in snapshot.running})


def unevenness(snapshot):
    """Sum of the squares of the used parts of hosts, over all classes."""
    found = 0.0
    for row in range(len(snapshot.providers)):
        for c in range(len(snapshot.classes)):
            room = int(snapshot.inventory.capacity[row, c])
            if room:
                used = int(snapshot.inventory.used[row, c])
                found += (used / room) ** 2
    return found


def ends(snapshot, plan_of):
    """Follow plans until none moves anything; say how many moved something.

    :param plan_of: the moves of a plan, by the snapshot.
    """
    for count in range(MOST_REPLANS + 1):
        moves = plan_of(snapshot)
        if not moves:
            return count
        snapshot = judged(snapshot, moves)
    raise AssertionError('plans do not come to an end')


def is_vector(amounts):
    """Amounts of a server as the planner keeps them."""
    return cluster.vector(dict(amounts), small_cloud.CLASSES)
