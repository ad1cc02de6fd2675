# SPDX-License-Identifier: Apache-2.0

"""Values of a recording in any stretch of time (no effects).

CPU and work are read off cumulative counters, demand off the offered load; the
fair parts follow from the demand.
"""

import bisect
from collections.abc import Iterable
from collections.abc import Mapping
import functools
import itertools
import math

from fairness_lab.ideal import maxmin
from fairness_lab.results import layout
from fairness_lab.results import reach
from fairness_lab.results import recording as recording_module
from nova_fairness import exception

LONGEST_GAP_S = 5.0
"""A VM that was not read for longer than this does not run."""

FREEZING = frozenset({'freeze', 'destroy', 'stop'})
"""Events after which the guest that they name can do nothing."""

THAWING = frozenset({'thaw', 'start', 'move'})
"""Events after which it can again."""


class Counter:
    """A cumulative counter that was read at some times.

    Between two readings it grows evenly; where it falls, the VM was started
    again and counts on from zero.

    :param points: time in seconds and value, in the order of time.
    """

    def __init__(self, points: Iterable[tuple[float, float]]) -> None:
        self._times: list[float] = []
        self._totals: list[float] = []
        total, last = 0.0, 0.0
        for t_s, value in points:
            if self._times and value >= last:
                total += value - last
            elif self._times:
                total += value
            last = value
            self._times.append(t_s)
            self._totals.append(total)

    def at(self, t_s: float) -> float:
        """Growth since the first reading."""
        if not self._times:
            return 0.0
        place = bisect.bisect_right(self._times, t_s)
        if place == 0:
            return 0.0
        if place == len(self._times):
            return self._totals[-1]
        before, after = self._times[place - 1], self._times[place]
        part = (t_s - before) / (after - before)
        first, second = self._totals[place - 1], self._totals[place]
        return first + part * (second - first)

    def over(self, from_s: float, to_s: float) -> float:
        """Growth between two moments."""
        return self.at(to_s) - self.at(from_s)


class Timeline:
    """Values of one recording in any period of time.

    :param recording: to ask about.
    :raises LabError: if there are no readings, or if the recorded scenario
        lacks a VM that they name.
    """

    def __init__(self, recording: recording_module.Recording) -> None:
        self.recording = recording
        scenario = layout.layout(recording.meta)
        self.duration_s = _duration_s(recording)
        self.capacity = scenario.capacity
        self.user_weight = scenario.user_weight
        self.places = scenario.places
        self._rows: dict[str, list[recording_module.Reading]] = {}
        for row in recording.readings:
            self._rows.setdefault(row.vm, []).append(row)
        unknown = sorted(set(self._rows) - set(self.places))
        if unknown:
            raise exception.LabError(
                f'the scenario has no VM {", ".join(unknown)}, '
                'but the readings have'
            )
        self._offers: dict[str, list[recording_module.Offer]] = {}
        for offer in recording.offers:
            self._offers.setdefault(offer.vm, []).append(offer)
        self.reach = reach.Reach(
            self.capacity,
            recording.events,
            agents=bool(recording.meta['options']['agents']),
        )
        self._grown: dict[tuple[str, str], Counter] = {}
        self._fair: dict[float, dict[str, float]] = {}
        self._cpu = self._counters('cpu_s')
        self._work = self._counters('work')

    def _counters(self, column: str) -> dict[str, Counter]:
        result = {}
        for vm, rows in self._rows.items():
            points = [(row.t_s, getattr(row, column)) for row in rows]
            result[vm] = Counter(
                (t_s, value) for t_s, value in points if value is not None
            )
        return result

    def growth(
        self, vm: str, column: str, from_s: float, to_s: float
    ) -> float:
        """Growth of a counter of a VM in a period."""
        if (vm, column) not in self._grown:
            self._grown[vm, column] = Counter(
                (row.t_s, row.more[column])
                for row in self._rows.get(vm, ())
                if column in row.more
            )
        return self._grown[vm, column].over(from_s, to_s)

    def last(self, vm: str, column: str) -> float | None:
        """Last value of a column of a VM."""
        found = [
            row.more[column]
            for row in self._rows.get(vm, ())
            if column in row.more
        ]
        return found[-1] if found else None

    @functools.cached_property
    def users(self) -> tuple[str, ...]:
        """Names of the users, sorted."""
        return tuple(sorted({place.user for place in self.places.values()}))

    def cpu_s(self, vm: str, from_s: float, to_s: float) -> float:
        """CPU seconds that a VM got."""
        found = self._cpu.get(vm)
        return found.over(from_s, to_s) if found else 0.0

    def work(self, vm: str, from_s: float, to_s: float) -> float:
        """Units of work that a guest did."""
        found = self._work.get(vm)
        return found.over(from_s, to_s) if found else 0.0

    def runs(self, vm: str, t_s: float) -> bool:
        """Whether a VM could use a CPU at a moment."""
        rows = self._rows.get(vm, [])
        place = bisect.bisect_right(rows, t_s, key=lambda row: row.t_s)
        if place == 0 or self._frozen_at(vm, t_s):
            return False
        last = rows[place - 1]
        return (
            last.state == recording_module.RUNNING
            and t_s - last.t_s <= LONGEST_GAP_S
        )

    def _frozen_at(self, vm: str, t_s: float) -> bool:
        frozen = False
        for event in self.recording.events:
            if event.t_s > t_s or event.subject != vm:
                continue
            if event.event in FREEZING:
                frozen = True
            elif event.event in THAWING:
                frozen = False
        return frozen

    def offered(self, vm: str, t_s: float) -> float:
        """CPUs that a guest was ordered to use at a moment."""
        offers = self._offers.get(vm, [])
        place = bisect.bisect_right(offers, t_s, key=lambda item: item.t_s)
        cpu = offers[place - 1].cpu if place else 0.0
        return min(cpu, float(self.places[vm].vcpus))

    def demand(self, t_s: float) -> dict[str, float]:
        """CPUs that each VM wanted at a moment; 0 if it cannot run."""
        return {
            vm: self.offered(vm, t_s) if self.runs(vm, t_s) else 0.0
            for vm in self.places
        }

    def demanded_s(self, vm: str, from_s: float, to_s: float) -> float:
        """CPU seconds that a VM wanted."""
        return math.fsum(
            self.demand((start_s + end_s) / 2)[vm] * (end_s - start_s)
            for start_s, end_s in self.pieces_of_constant_demand(from_s, to_s)
        )

    @functools.cached_property
    def changes(self) -> tuple[float, ...]:
        """Moments at which the demand may have changed, ascending."""
        moments = {0.0, self.duration_s}
        moments.update(offer.t_s for offer in self.recording.offers)
        moments.update(event.t_s for event in self.recording.events)
        for rows in self._rows.values():
            moments.update((rows[0].t_s, rows[-1].t_s + LONGEST_GAP_S))
            for before, after in itertools.pairwise(rows):
                if (before.state, before.node) != (after.state, after.node):
                    moments.add(after.t_s)
                if after.t_s - before.t_s > LONGEST_GAP_S:
                    moments.update((before.t_s + LONGEST_GAP_S, after.t_s))
        return tuple(sorted(t for t in moments if 0 <= t <= self.duration_s))

    def pieces_of_constant_demand(
        self, from_s: float, to_s: float
    ) -> tuple[tuple[float, float], ...]:
        """Divide a period into pieces of constant demand."""
        first = bisect.bisect_right(self.changes, from_s)
        last = bisect.bisect_left(self.changes, to_s)
        edges = [from_s, *self.changes[first:last], to_s]
        return tuple(itertools.pairwise(edges))

    def received_cpu_s(self, from_s: float, to_s: float) -> dict[str, float]:
        """CPU seconds that each VM got."""
        return {vm: self.cpu_s(vm, from_s, to_s) for vm in self.places}

    def fair_cpu_s(self, from_s: float, to_s: float) -> dict[str, float]:
        """CPU seconds of each VM under max-min fairness."""
        total = dict.fromkeys(self.places, 0.0)
        for start_s, end_s in self.pieces_of_constant_demand(from_s, to_s):
            for vm, cpus in self._fair_cpus_at((start_s + end_s) / 2).items():
                total[vm] += cpus * (end_s - start_s)
        return total

    def _fair_cpus_at(self, t_s: float) -> dict[str, float]:
        """CPUs of each VM; constant between two changes."""
        place = bisect.bisect_right(self.changes, t_s)
        since = self.changes[place - 1] if place else -1.0
        if since not in self._fair:
            divided: dict[str, float] = {}
            for cloud in self._clouds_in_reach(t_s):
                divided.update(maxmin.allocate(cloud))
            self._fair[since] = divided
        return self._fair[since]

    def _clouds_in_reach(self, t_s: float) -> tuple[maxmin.IdealCloud, ...]:
        """Each group of nodes that can know of each other."""
        demand = self.demand(t_s)
        where = {vm: self.node_of(vm, t_s) for vm in self.places}
        return tuple(
            maxmin.IdealCloud(
                {node: self.capacity[node] for node in group},
                {vm: d for vm, d in demand.items() if where[vm] in group},
                where,
                {vm: place.user for vm, place in self.places.items()},
                self.user_weight,
            )
            for group in self.reach.groups(t_s)
        )

    def bounded(
        self, from_s: float, to_s: float, ratio: float
    ) -> dict[str, float]:
        """Most CPU seconds of each user under bounded weights."""
        total = dict.fromkeys(self.users, 0.0)
        vcpus = {vm: place.vcpus for vm, place in self.places.items()}
        for start_s, end_s in self.pieces_of_constant_demand(from_s, to_s):
            middle_s = (start_s + end_s) / 2
            fair = self._fair_cpus_at(middle_s)
            for cloud in self._clouds_in_reach(middle_s):
                parts = maxmin.bounded(cloud, fair, vcpus, ratio)
                for user, part in parts.items():
                    total[user] += part * (end_s - start_s)
        return total

    def node_of(self, vm: str, t_s: float) -> str:
        """Node on which a VM was at a moment."""
        rows = self._rows.get(vm, [])
        place = bisect.bisect_right(rows, t_s, key=lambda row: row.t_s)
        return rows[place - 1].node if place else self.places[vm].node

    def nodes_over_time(self, vm: str) -> tuple[tuple[float, str], ...]:
        """Nodes of a VM, with the time since it was there, in order."""
        found = [(0.0, self.places[vm].node)]
        for row in self._rows.get(vm, ()):
            if row.node != found[-1][1]:
                found.append((row.t_s, row.node))
        return tuple(found)

    def vms_on(self, node: str, t_s: float) -> tuple[str, ...]:
        """Names of the VMs of a node at a moment."""
        return tuple(vm for vm in self.places if self.node_of(vm, t_s) == node)

    def by_user(self, amounts: Mapping[str, float]) -> dict[str, float]:
        """Add up amounts of VMs by user."""
        return {
            user: math.fsum(
                amount
                for vm, amount in amounts.items()
                if self.places[vm].user == user
            )
            for user in self.users
        }

    def node_parts(
        self, amounts: Mapping[str, float], t_s: float
    ) -> dict[str, float]:
        """Each VM's part of what all VMs of its node have, 0..1.

        :param t_s: at which moment a VM's node is meant.
        """
        result: dict[str, float] = {}
        for node in self.capacity:
            here = self.vms_on(node, t_s)
            result.update(parts({vm: amounts[vm] for vm in here}))
        return {vm: result[vm] for vm in self.places}


def _duration_s(recording: recording_module.Recording) -> float:
    """How long the load lasted: less than meant if the run was ended.

    :raises LabError: if there are no readings at all.
    """
    if not recording.readings:
        raise exception.LabError(
            f'{recording_module.INSTANCES} has no readings: '
            'the run ended before the load began'
        )
    meant_s = float(recording.meta['options']['duration_s'])
    read_s = recording.readings[-1].t_s
    return meant_s if meant_s - read_s <= LONGEST_GAP_S else read_s


def parts(amounts: Mapping[str, float]) -> dict[str, float]:
    """Divide amounts by their sum; all are 0 where the sum is."""
    whole = math.fsum(amounts.values())
    if whole <= 0:
        return dict.fromkeys(amounts, 0.0)
    return {name: amount / whole for name, amount in amounts.items()}
