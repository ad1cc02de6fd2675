# SPDX-License-Identifier: Apache-2.0

"""Random clouds with little room, and a judge of plans of moves.

Plain Python on plain numbers: it shares no code with the planners.
"""

import dataclasses
import random

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
        running.append(
            small_cloud.placed_server(uuid, host, vcpu, memory, **fields)
        )
    return small_cloud.cloud_of_servers(hosts, running, **more)


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
    cloud = _Cloud(snapshot)
    for wave in sorted({each.wave for each in moves}):
        if not cloud.make([each for each in moves if each.wave == wave]):
            return None
    return cloud.snapshot()


class _Cloud:
    """Servers on hosts while moves are made."""

    def __init__(self, snapshot):
        self.before = snapshot
        self.hosts = {each.name: each for each in snapshot.providers}
        capacity = snapshot.inventory.capacity.tolist()
        self.capacity = {
            name: dict(zip(snapshot.classes, row, strict=True))
            for name, row in zip(self.hosts, capacity, strict=True)
        }
        self.used = {
            name: dict.fromkeys(snapshot.classes, 0) for name in self.hosts
        }
        self.at = {each.uuid: each for each in snapshot.running}
        self.mates = {}
        for each in self.at.values():
            self.count(each, each.host, 1)

    def count(self, server, host, sign):
        _add(self.used[host], server, sign)
        _count(self.mates, server, host, sign)

    def make(self, wave):
        """Make moves that run at once; tell whether all can be."""
        if len({each.server for each in wave}) < len(wave):
            return False
        if not all(self.may(each) for each in wave):
            return False
        for each in wave:
            self.count(self.at[each.server], each.target, 1)
        if not all(self.fits(each) for each in wave):
            return False
        for each in wave:
            server = self.at[each.server]
            self.count(server, each.source, -1)
            self.at[each.server] = dataclasses.replace(
                server, host=each.target
            )
        return True

    def may(self, move):
        server, target = self.at[move.server], self.hosts[move.target]
        return (
            server.host == move.source != move.target
            and server.demand is not None
            and target.takes
            and server.demand.zone in ('', target.zone)
        )

    def fits(self, move):
        server, room = self.at[move.server], self.capacity[move.target]
        if any(self.used[move.target][c] > room[c] for c in room):
            return False
        bound = server.bound
        return not bound or (
            self.mates[bound.uuid, move.target] <= bound.per_host
        )

    def snapshot(self):
        """The cloud as it is now."""
        before = self.before
        used = before.inventory.used.copy()
        for row, name in enumerate(self.hosts):
            for c, each in enumerate(before.classes):
                used[row, c] = self.used[name][each]
        inventory = dataclasses.replace(before.inventory, used=used)
        running = tuple(self.at.values())
        return dataclasses.replace(
            before, inventory=inventory, running=running
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
