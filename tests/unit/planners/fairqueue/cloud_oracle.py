# SPDX-License-Identifier: Apache-2.0

"""Random clouds that go on in time, and a judge of what a planner does there.

The judge shares no code with the planner: it counts in whole numbers of plain
Python, and tries all layouts. Only the values of :mod:`nova_fairness.model`
go in and out.

A cloud has few hosts, so that all layouts can be tried. Requests come, start
where the planner says, and end when their time is over; some of them say when
that is, others are only known by how long others like them lasted, or not at
all.
"""

import dataclasses
import functools
import random

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import request as model

CLASSES = ('VCPU', 'MEMORY_MB')
ZONES = ('z1', 'z2')
TOGETHER, APART = model.Rule.TOGETHER, model.Rule.APART


@dataclasses.dataclass(frozen=True)
class Host:
    """A host; servers find it by its zone and its trait."""

    name: str
    room: tuple[int, int]
    zone: str
    trait: str = ''
    takes: bool = True


@dataclasses.dataclass
class Server:
    """A server that runs.

    :ivar limit: when it is known to end at the latest; ``None``: not known.
    :ivar ends: when it does end.
    """

    uuid: str
    host: str
    project: str
    needs: tuple[int, int]
    since: float
    limit: float | None
    ends: float
    group: str = ''
    band: model.Band = model.Band.NORMAL


@dataclasses.dataclass(frozen=True)
class Case:
    """A random cloud before anything happens.

    :ivar asked: requests and when they come.
    :ivar lasts: seconds that servers of each request really last.
    :ivar there: servers at the begin.
    :ivar promised: hosts of requests that have a promise, and when those
        servers leave that are in the way.
    :ivar tells: whether it is told which servers are members of groups.
    :ivar ranks: of requests, by UUID, that count before their age.
    """

    hosts: tuple[Host, ...]
    asked: tuple[model.Request, ...]
    lasts: dict
    there: tuple[Server, ...]
    learned: dict
    promised: dict
    patience_s: float
    depth: int
    tells: bool
    ranks: dict = dataclasses.field(default_factory=dict)

    def order(self, each):
        """What a request stands by within its band."""
        return self.ranks.get(each.uuid, 0), each.asked_at, each.uuid


def needs_of(demand):
    amounts = dict(demand.amounts)
    return tuple(amounts.get(name, 0) for name in CLASSES)


def draw(seed):
    """Draw a cloud."""
    chance = random.Random(seed)
    hosts = _hosts(chance)
    projects = 'pqr'[: chance.randint(1, 3)]
    groups = _groups(chance, projects)
    asked, lasts = [], {}
    limited = chance.choice([0.0, 0.5, 1.0])
    for number in range(chance.randint(3, 14)):
        each = _request(chance, number, projects, groups, limited)
        asked.append(each)
        lasts[each.uuid] = _lasts(chance, each)
    there = _there(chance, hosts, projects, limited)
    learned = _learned(chance, projects)
    case = Case(
        hosts,
        tuple(asked),
        lasts,
        there,
        learned,
        {},
        chance.choice([0.0, 50.0, 1e9]),
        chance.choice([0, 3, 1000, 1000]),
        chance.random() < 0.7,
    )
    promised = _promised(chance, case)
    ranks = {each.uuid: chance.randint(0, 9) for each in asked}
    return dataclasses.replace(
        case,
        promised=promised,
        there=_in_the_way(there, promised),
        ranks=ranks if chance.random() < 0.3 else {},
    )


def _in_the_way(there, promised):
    """What has to leave for a promise is preemptible."""
    names = {name for names in promised.values() for name in names}
    lent = model.Band.PREEMPTIBLE
    return tuple(
        dataclasses.replace(each, band=lent) if each.host in names else each
        for each in there
    )


def _hosts(chance):
    alike = chance.random() < 0.3
    room = (chance.randint(2, 8), chance.randint(2, 8))
    found = []
    for number in range(chance.randint(1, 5)):
        if not alike:
            room = (chance.randint(1, 8), chance.randint(1, 8))
        found.append(
            Host(
                f'h{number}',
                room,
                chance.choice(ZONES),
                chance.choice(['', '', 'GPU']),
                chance.random() < 0.9,
            )
        )
    return tuple(found)


def _groups(chance, projects):
    found = []
    for number in range(chance.randint(0, 3)):
        rule = chance.choice([TOGETHER, APART, APART])
        most = chance.choice([1, 1, 2, 3, 2**31 - 1]) if rule is APART else 1
        owner = chance.choice(projects)
        found.append((owner, model.Group(f'g{number}', rule, most)))
    return found


def _request(chance, number, projects, groups, limited):
    project, group = chance.choice(projects), None
    if groups and chance.random() < 0.6:
        project, group = chance.choice(groups)
    amounts = (
        ('MEMORY_MB', chance.randint(1, 6)),
        ('VCPU', chance.randint(1, 6)),
    )
    if chance.random() < 0.3:
        amounts = (('MEMORY_MB', 1), ('VCPU', 1))
    demand = model.Demand(
        amounts,
        required=frozenset(['GPU']) if chance.random() < 0.1 else frozenset(),
        zone=chance.choice(['', '', '', *ZONES]),
    )
    count = chance.choice([1, 1, 1, 2, 3])
    uuid = f'r{number:02}'
    return model.Request(
        uuid,
        project,
        'u',
        tuple(f'{uuid}-{n}' for n in range(count)),
        demand,
        float(chance.choice([0, 0, chance.randint(0, 200)])),
        group=group,
        band=chance.choice([model.Band.NORMAL] * 4 + [model.Band.PREEMPTIBLE]),
        time_limit_s=(
            float(chance.randint(10, 300))
            if chance.random() < limited
            else None
        ),
    )


def _lasts(chance, each):
    """Nobody lasts longer than its limit."""
    if each.time_limit_s is not None and chance.random() < 0.5:
        return each.time_limit_s
    most = each.time_limit_s or 300.0
    return float(chance.randint(1, int(most)))


def _there(chance, hosts, projects, limited):
    """Servers that run from the begin."""
    found = []
    for host in hosts:
        free = list(host.room)
        for number in range(chance.randint(0, 3)):
            needs = (chance.randint(0, 4), chance.randint(1, 4))
            if any(n > left for n, left in zip(needs, free, strict=True)):
                continue
            free = [left - n for n, left in zip(needs, free, strict=True)]
            limit = float(chance.randint(1, 400))
            is_known = chance.random() < limited
            ends = limit if chance.random() < 0.5 else chance.uniform(1, limit)
            found.append(
                Server(
                    f'{host.name}-{number}',
                    host.name,
                    chance.choice(projects),
                    needs,
                    -float(chance.randint(0, 100)),
                    limit if is_known else None,
                    ends,
                )
            )
    return tuple(found)


def _learned(chance, projects):
    """Lifetimes of others; they need not be right."""
    found = {}
    for project in projects:
        if chance.random() < 0.5:
            continue
        for vcpu in range(7):
            for memory in range(7):
                lasted = sorted(
                    float(chance.randint(1, 200)) for _ in range(6)
                )
                found[project, vcpu, memory] = tuple(lasted)
    return found


def _promised(chance, case):
    """Hosts of some that are there from the begin.

    Whoever is in the way leaves at some time: that is what a promise is.
    """
    found = {}
    room = {each.name: list(each.room) for each in case.hosts}
    for each in case.asked:
        if each.asked_at or chance.random() < 0.8 or len(found) == 2:
            continue
        unit = [each]
        others = [e for e in case.asked if e.group and e.group == each.group]
        if any(e.uuid in found for e in others):
            continue
        layout = layouts(case.hosts, unit, lambda h: tuple(room[h.name]), {})
        if layout is None:
            continue
        for name in layout[each.uuid]:
            room[name] = [
                left - n
                for left, n in zip(
                    room[name], needs_of(each.demand), strict=True
                )
            ]
        found[each.uuid] = layout[each.uuid]
    return found


def matches(host, demand):
    return (
        host.takes
        and (not demand.zone or demand.zone == host.zone)
        and all(trait == host.trait for trait in demand.required)
    )


def layouts(hosts, unit, room_of, present):
    """Hosts for every server of some requests; ``None`` if there are none.

    All of a group are in one unit. It tries everything: a server after the
    other, on every host.

    :param room_of: says what a host has left.
    :param present: number of members of its group by name of the host.
    """
    group = unit[0].group
    servers = sorted(
        ((each.demand, each.uuid) for each in unit for _ in each.servers),
        key=lambda pair: (
            tuple(-n for n in needs_of(pair[0])),
            sorted(pair[0].required),
            pair[0].zone,
        ),
    )
    if group and group.rule is TOGETHER:
        return _on_one(hosts, unit, servers, room_of, present)
    most = group.per_host if group else len(servers)
    limits = tuple(
        min(max(most - present.get(each.name, 0), 0), len(servers))
        for each in hosts
    )
    wanted = [needs_of(demand) for demand, _ in servers]
    may_be = [tuple(matches(host, d) for host in hosts) for d, _ in servers]
    free = tuple(room_of(each) for each in hosts)
    found = _tried(wanted, may_be, free, limits)
    if found is None:
        return None
    chosen = {}
    for (_, uuid), n in zip(servers, found, strict=True):
        chosen.setdefault(uuid, []).append(hosts[n].name)
    return {uuid: tuple(names) for uuid, names in chosen.items()}


def _lacks(needs, rest):
    """Whether it would have less than nothing left of what is asked for."""
    return any(n and left < 0 for n, left in zip(needs, rest, strict=True))


def _tried(wanted, may_be, free, limits):
    """Places of hosts for all, one after the other; ``None``: there are none.

    :param may_be: for each, which hosts match.
    """
    hosts = range(len(free))

    @functools.cache
    def place(at, free, left):
        if at == len(wanted):
            return ()
        seen = set()
        for n in hosts:
            rest = tuple(
                b - a for a, b in zip(wanted[at], free[n], strict=True)
            )
            same = (free[n], left[n], tuple(m[n] for m in may_be))
            if (
                not may_be[at][n]
                or not left[n]
                or _lacks(wanted[at], rest)
                or same in seen
            ):
                continue
            seen.add(same)
            found = place(
                at + 1,
                (*free[:n], rest, *free[n + 1 :]),
                (*left[:n], left[n] - 1, *left[n + 1 :]),
            )
            if found is not None:
                return (n, *found)
        return None

    return place(0, free, limits)


def _on_one(hosts, unit, servers, room_of, present):
    """All on one host; on that of a member if there is any."""
    there = {name for name, count in present.items() if count}
    for host in hosts:
        if there and host.name not in there:
            continue
        if not all(matches(host, demand) for demand, _ in servers):
            continue
        total = [sum(needs_of(d)[c] for d, _ in servers) for c in (0, 1)]
        if all(a <= b for a, b in zip(total, room_of(host), strict=True)):
            return {e.uuid: (host.name,) * len(e.servers) for e in unit}
    return None


def units_of(requests, order=lambda each: (each.asked_at, each.uuid)):
    """Requests that start together, the oldest first."""
    found = {}
    for each in sorted(requests, key=order):
        key = (each.uuid,)
        if each.group:
            key = (each.project, each.group.uuid, each.band)
        found.setdefault(key, []).append(each)
    return list(found.values())


@dataclasses.dataclass(frozen=True)
class Due:
    """A moment that was promised.

    :ivar ahead: UUIDs of those that stood before it then.
    :ivar unit: UUIDs of those that start with it.
    """

    at: float
    ahead: tuple
    unit: tuple


class CloudRun:
    """A cloud that goes on.

    :param case: the cloud.
    :param plan: the planner.
    """

    def __init__(self, case, plan):
        self.case, self._plan = case, plan
        self.now = 0.0
        self.running = list(case.there)
        self.waiting = {}
        self.began = {}
        self.promised = dict(case.promised)
        self.due = {}
        self.kept = 0
        self.faults = []

    def run(self, most=400):
        """Go on until nothing happens any more."""
        coming = sorted(self.case.asked, key=lambda each: each.asked_at)
        for _ in range(most):
            while coming and coming[0].asked_at <= self.now:
                each = coming.pop(0)
                self.waiting[each.uuid] = each
            self._cycle()
            moments = [each.ends for each in self.running]
            moments += [each.asked_at for each in coming[:1]]
            if not moments:
                return self
            self.now = max(min(moments), self.now)
            self.running = [e for e in self.running if e.ends > self.now]
        self._fault('it goes on and on')
        return self

    def _fault(self, text):
        self.faults.append(f'at {self.now:g}: {text}')

    def room_of(self, host):
        left = list(host.room)
        for each in self.running:
            if each.host == host.name:
                left = [a - b for a, b in zip(left, each.needs, strict=True)]
        return tuple(left)

    def members(self, group):
        found = {}
        for each in self.running:
            if group and each.group == group.uuid:
                found[each.host] = found.get(each.host, 0) + 1
        return found

    def snapshot(self):
        hosts, case = self.case.hosts, self.case
        capacity = np.array([each.room for each in hosts], np.int64)
        free = np.array([self.room_of(each) for each in hosts], np.int64)
        used, members = {}, {}
        for each in self.running:
            if each.band is model.Band.NORMAL:
                before = used.get(each.project, np.zeros(2, np.int64))
                used[each.project] = before + np.array(each.needs)
            if each.group:
                members.setdefault(each.group, []).append(each.host)
        return cluster.ClusterSnapshot(
            CLASSES,
            tuple(
                cluster.Provider(
                    f'u{each.name}',
                    each.name,
                    each.zone,
                    frozenset([each.trait] if each.trait else []),
                    takes=each.takes,
                )
                for each in hosts
            ),
            cluster.Inventory(
                capacity, capacity - free, capacity, np.ones_like(capacity)
            ),
            (*self.waiting.values(), *self._sent()),
            used=used,
            member_hosts={
                name: tuple(those) for name, those in members.items()
            },
            running=tuple(self._told(each) for each in self.running),
            lifetimes=case.learned,
            promised={
                uuid: names
                for uuid, names in self.promised.items()
                if uuid in self.waiting
            },
        )

    def _sent(self):
        """Requests whose room is held while Nova builds their servers."""
        return [
            dataclasses.replace(each, state=model.State.SENDING)
            for each in self.case.asked
            if self.began.get(each.uuid) == self.now
        ]

    def _told(self, each):
        return cluster.Running(
            each.host,
            each.project,
            tuple(zip(CLASSES[::-1], each.needs[::-1], strict=True)),
            each.since,
            'u',
            each.uuid,
            each.limit,
            each.band,
            each.group if self.case.tells else '',
        )

    def _cycle(self):
        before = dict(self.waiting)
        ahead = {uuid: self._ahead(uuid, before) for uuid in self.due}
        found = self._plan(self.snapshot(), self.now)
        self._check_units(found, before)
        starts = {each.request: each.hosts for each in found.actions}
        for uuid, names in starts.items():
            self._start(uuid, names)
        answered = sorted([*starts, *found.waiting])
        if answered != sorted(before):
            self._fault(f'{sorted(before)} asked, {answered} answered')
        self._check_hosts()
        self._check_promises()
        self._check_idle(found)
        self._check_reservations(found, ahead)
        # What it just started in a group it knows; of servers that run it may
        # not be told, and then knows less the second time.
        if self.case.tells:
            self._check_second_plan()

    def _check_second_plan(self):
        """Planned again, nothing starts, and reasons are true as before."""
        again = self._plan(self.snapshot(), self.now)
        if again.actions:
            names = [each.request for each in again.actions]
            self._fault(f'planned again it starts {names}')
        self._check_units(again, self.waiting)

    def _start(self, uuid, names):
        asked = self.waiting.pop(uuid, None)
        if asked is None or len(names) != len(asked.servers):
            self._fault(f'{uuid} starts on {names}')
            return
        self.began[uuid] = self.now
        limit = asked.time_limit_s
        for server, name in zip(asked.servers, names, strict=True):
            host = next(e for e in self.case.hosts if e.name == name)
            if not matches(host, asked.demand):
                self._fault(f'{uuid} starts on {name}, which does not match')
            self.running.append(
                Server(
                    server,
                    name,
                    asked.project,
                    needs_of(asked.demand),
                    self.now,
                    None if limit is None else self.now + limit,
                    self.now + self.case.lasts[uuid],
                    asked.group.uuid if asked.group else '',
                    asked.band,
                )
            )

    def _check_hosts(self):
        for host in self.case.hosts:
            if min(self.room_of(host)) < 0:
                self._fault(f'{host.name} has more than it can hold')
        groups = {e.group for e in self.case.asked if e.group}
        for group in sorted(groups, key=lambda each: each.uuid):
            found = self.members(group)
            if group.rule is APART:
                if any(n > group.per_host for n in found.values()):
                    self._fault(f'{group.uuid} is not apart: {found}')
            elif len(found) > 1:
                self._fault(f'{group.uuid} is not together: {found}')

    def _check_idle(self, found):
        """Nobody waits for room that nobody else is to have."""
        left = [
            e for e in self.waiting.values() if e.uuid not in self.promised
        ]
        places = [found.waiting.get(each.uuid) for each in left]
        if any(place and place.reserved for place in places):
            return
        taken = self._promised_room()

        def room(host):
            return _without(self.room_of(host), taken, host.name)

        for unit in units_of(left):
            part = self.part_of(unit)
            there = self._members_with_promises(unit[0].group)
            if part and layouts(self.case.hosts, part, room, there):
                self._fault(f'{[e.uuid for e in part]} have room and wait')

    def _promised_room(self):
        """Hosts of promised servers that do not run yet, and their needs."""
        return [
            (name, needs_of(self.waiting[uuid].demand))
            for uuid, names in self.promised.items()
            if uuid in self.waiting
            for name in names
        ]

    def _members_with_promises(self, group):
        there = self.members(group)
        for uuid, names in self.promised.items():
            asked = self.waiting.get(uuid)
            if group and asked and asked.group == group:
                for name in names:
                    there[name] = there.get(name, 0) + 1
        return there

    def _check_promises(self):
        """Whoever has the room that it was promised starts."""
        for uuid in sorted(self.promised):
            if uuid not in self.waiting:
                continue
            names = self.promised[uuid]
            asked = self.waiting[uuid]
            needs = needs_of(asked.demand)
            left = {e.name: list(self.room_of(e)) for e in self.case.hosts}
            for name in names:
                left[name] = [
                    a - b for a, b in zip(left[name], needs, strict=True)
                ]
            free = all(min(left[name]) >= 0 for name in names)
            others = [u for u in self.promised if u in self.waiting]
            if free and others == [uuid] and self._may_lie(asked, names):
                self._fault(f'{uuid} has its promised room and waits')

    def _may_lie(self, asked, names):
        there = self.members(asked.group)
        if asked.group is None:
            return True
        if asked.group.rule is TOGETHER:
            return not there or set(names) <= set(there)
        return all(
            there.get(name, 0) + names.count(name) <= asked.group.per_host
            for name in names
        )

    def _check_units(self, found, before):
        """Who does not fit an empty cloud is told so, and reserves nothing."""
        alone = [e for e in before.values() if e.uuid not in self.promised]
        for unit in units_of(alone):
            part = self.part_of(unit)
            kept = {each.uuid for each in part}
            if self._is_divided_by_others(unit, found, before):
                continue
            could = {each.uuid for each in _oldest(unit, self._fits)}
            for each in unit:
                place = found.waiting.get(each.uuid)
                if each.uuid in kept:
                    if place and place.why.reason.value in NEVER:
                        self._fault(
                            f'{each.uuid} fits an empty cloud and is told'
                            f' {place.why.sentence}'
                        )
                    continue
                # Once the others start it only waits for these to end.
                is_next = kept and kept.isdisjoint(found.waiting)
                if place is None:
                    self._fault(f'{each.uuid} starts, and does not fit')
                elif place.reserved and (
                    not is_next
                    or place.reserved.at is None
                    or not self._fits([each])
                ):
                    self._fault(f'{each.uuid} never fits, and reserves')
                elif not (is_next or place.reserved) and (
                    place.why.reason.value
                    not in (FULL if each.uuid in could else NEVER)
                ):
                    self._fault(
                        f'{each.uuid} is left out of {sorted(kept)}, and is'
                        f' told {place.why.sentence}'
                    )
            states = {each.uuid in found.waiting for each in part}
            if len(states) > 1:
                self._fault(f'{sorted(kept)} do not start together')

    def _is_divided_by_others(self, unit, found, before):
        """Whether members of its group start that are not of a unit.

        Which of it fit beside these is judged when it is planned again.
        """
        group, own = unit[0].group, {each.uuid for each in unit}
        return group and any(
            each.request not in own and before[each.request].group == group
            for each in found.actions
        )

    def part_of(self, unit):
        """Those of a unit that start together, the oldest first.

        An empty cloud holds them. If some of them fit beside those of their
        group that run, which may stay for ever, these are all.
        """
        beside = _oldest(
            unit, lambda part: self._fits(part) and self._fits_beside(part)
        )
        return beside or _oldest(unit, self._fits)

    def _fits(self, unit):
        return layouts(self.case.hosts, unit, lambda e: e.room, {}) is not None

    def _fits_beside(self, unit):
        group = unit[0].group
        there = self._members_with_promises(group)
        mine = [
            (each.host, each.needs)
            for each in self.running
            if group and each.group == group.uuid and self.case.tells
        ]
        mine += [
            (name, needs_of(self.waiting[uuid].demand))
            for uuid, names in self.promised.items()
            if uuid in self.waiting and self.waiting[uuid].group == group
            for name in names
        ]

        def beside(host):
            return _without(host.room, mine, host.name)

        return not group or layouts(self.case.hosts, unit, beside, there)

    def _check_reservations(self, found, ahead):
        """Who was told a moment that is known starts by then.

        Unless who comes before it in the order asks, or starts, or reserves:
        that is no backfill.
        """
        held = [
            uuid
            for uuid, place in found.waiting.items()
            if place.reserved is not None and uuid not in self.promised
        ]
        keys = {self._key(u) for u in held}
        if len(keys) > 1:
            self._fault(f'{held} reserve at once')
        for uuid, due in list(self.due.items()):
            if uuid not in self.waiting:
                self.kept += 1
            elif (
                ahead[uuid] == due.ahead
                and not set(held) & set(due.ahead) - set(due.unit)
                and set(due.ahead) <= set(self.waiting)
            ):
                if self.now >= due.at:
                    self._fault(f'{uuid} was promised {due.at:g} and waits')
                else:
                    continue
            del self.due[uuid]
        for uuid in held:
            reserved = found.waiting[uuid].reserved
            if reserved.at is None:
                self._judge_kept(uuid, reserved.hosts)
            elif uuid not in self.due and self._is_known(uuid, reserved.at):
                unit = tuple(e.uuid for e in self._unit(uuid))
                ahead = self._ahead(uuid, self.waiting)
                self.due[uuid] = Due(reserved.at, ahead, unit)

    def _key(self, uuid):
        group = self.waiting[uuid].group
        return group.uuid if group else uuid

    def _ahead(self, uuid, waiting):
        """UUIDs of those that stand before a request, and of its own unit.

        Those with a promise are, if they are of a band before it: they may
        start elsewhere before its turn. A unit stands where the first of its
        part that can start does.
        """
        left = [
            each
            for unit in units_of(
                e for e in waiting.values() if e.uuid not in self.promised
            )
            for each in self.part_of(unit)
        ]
        found = []
        if waiting[uuid].is_preemptible:
            found += sorted(
                each.uuid
                for each in waiting.values()
                if each.uuid in self.promised and not each.is_preemptible
            )
        for unit in sorted(
            units_of(left, self.case.order),
            key=lambda unit: unit[0].is_preemptible,
        ):
            found += [each.uuid for each in unit]
            if any(each.uuid == uuid for each in unit):
                break
        return tuple(found)

    def _judge_kept(self, uuid, names):
        """Hosts are closed for nobody who could not have them."""
        unit = [e for e in self._unit(uuid) if e.uuid in self.waiting]
        hosts = [e for e in self.case.hosts if e.name in names]
        part = self.part_of(unit)
        group = self.waiting[uuid].group

        mine = [
            (each.host, each.needs)
            for each in self.running
            if group and each.group == group.uuid
        ]

        def beside(host):
            return _without(host.room, mine, host.name)

        if self.case.tells and (
            layouts(tuple(hosts), part, beside, self.members(group)) is None
        ):
            self._fault(f'{names} are kept for {uuid} and never hold it')

    def _unit(self, uuid):
        for unit in units_of(
            e for e in self.waiting.values() if e.uuid not in self.promised
        ):
            if any(each.uuid == uuid for each in unit):
                return unit
        return []

    def _is_known(self, uuid, at):
        """Whether there is room by then if servers end when they are known to.

        Promised room is taken. Which of a project's servers are members of a
        group is not always told; then it is not known when these end.
        """
        if not self.case.tells and self.members(self.waiting[uuid].group):
            return False
        part = self.part_of(self._unit(uuid))
        stay = [e for e in self.running if e.limit is None or e.limit > at]
        group = self.waiting[uuid].group
        there = self._members_with_promises(group)
        for each in self.running:
            if group and each.group == group.uuid and each not in stay:
                there[each.host] -= 1
        taken = [(each.host, each.needs) for each in stay]
        taken += self._promised_room()

        def later(host):
            return _without(host.room, taken, host.name)

        return layouts(self.case.hosts, part, later, there) is not None


def _oldest(unit, fits):
    """All of a unit if they fit, or else those that do, the oldest first."""
    if not unit or fits([*unit]):
        return unit
    kept = []
    for each in unit:
        if fits([*kept, each]):
            kept.append(each)
    return kept


def _without(room, taken, name):
    """What is left of a host without what some have on it."""
    left = list(room)
    for host, needs in taken:
        if host == name:
            left = [a - b for a, b in zip(left, needs, strict=True)]
    return tuple(left)


FULL = ('group_is_full',)
NEVER = ('no_host_matches', 'too_large', 'group_too_large')


def judged(seed, plan_with):
    """Judge a planner in the cloud of a seed.

    :param plan_with: makes a planner of the case.
    :returns: its faults in words, and the course that it took.
    """
    case = draw(seed)
    course = CloudRun(case, plan_with(case)).run()
    never = [
        each.uuid
        for each in course.waiting.values()
        if layouts(case.hosts, [each], lambda host: host.room, {})
    ]
    if never:
        course.faults.append(f'{never} fit an empty cloud and never start')
    return course.faults, course
