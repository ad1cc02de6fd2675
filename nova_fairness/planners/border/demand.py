# SPDX-License-Identifier: Apache-2.0

"""Demand: which side lacks hosts, and which hosts cost least to move to it.

A side lacks the cores in use, plus the cores of work that waits longer than
the patience, minus the cores of its hosts. It also lacks the cores of a large
job or request that fits on all its hosts together, but on no single host. A
side can spare the cores that remain free when all its waiting work has room,
including work that has just begun to wait. Therefore hosts do not move back
and forth: a side gives away only hosts that it does not need, and gets hosts
only when it needs them.
"""

import bisect
import collections
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import math

from nova_fairness.model import border
from nova_fairness.model import wording
from nova_fairness.planners.border import calendars

DAY_S = 86400.0

_ROUNDING = 1e-9
"""Tolerated rounding error of cores."""


@dataclasses.dataclass(frozen=True, slots=True)
class BorderRules:
    """Limits of the moves of hosts, set by an operator.

    :ivar patience_s: seconds that work waits before hosts move for it, >= 0.
    :ivar spare_cores: cores that a side keeps free beyond its waiting demand,
        >= 0.
    :ivar stay_s: smallest number of seconds that a host stays on a side, >= 0.
    :ivar most_moving: largest number of hosts that move at the same time, >=
        0.
    :ivar most_per_day: largest number of moves of one host within a day, >= 0.
    :ivar ttl_s: time to live of work on a host that is drained, seconds, > 0.
    :ivar end_vms: whether VMs that are still there after ``ttl_s`` are
        deleted. Otherwise their host stays in the cloud. Jobs are never ended.
    :ivar contended: number of hosts of the cloud while both sides lack hosts;
        ``None`` for no change.
    :ivar windows: windows of the calendar.
    """

    patience_s: float = 300.0
    spare_cores: float = 0.0
    stay_s: float = 3600.0
    most_moving: int = 2
    most_per_day: int = 3
    ttl_s: float = DAY_S
    end_vms: bool = False
    contended: int | None = None
    windows: tuple[calendars.CalendarWindow, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class BorderGoal:
    """Hosts or cores that one side is to receive from the other side.

    :ivar to: side that receives the hosts.
    :ivar lacks: amount that this side lacks, > 0; cores, or hosts if
        ``counts_hosts``.
    :ivar spare: amount that the other side can give away, in the unit of
        ``lacks``.
    :ivar counts_hosts: whether each host counts as 1, and not as its cores.
    :ivar cause: cause of the goal.
    :ivar text: description of the cause for people.
    """

    to: border.BorderSide
    lacks: float
    spare: float
    counts_hosts: bool
    cause: border.HostCause
    text: str

    def worth(self, node: border.BorderHost) -> float:
        """Return the amount that a host adds, in the unit of ``lacks``."""
        return 1.0 if self.counts_hosts else node.host.cores


@dataclasses.dataclass(frozen=True, slots=True)
class Balance:
    """Capacity and demand of one side, in cores.

    :ivar capacity: cores of hosts that belong to the side, or are moving to
        it.
    :ivar used: cores of work that runs on these hosts, or will be moved to
        them.
    :ivar wanted: cores of all waiting work.
    :ivar overdue: cores of work that waits longer than the patience.
    :ivar unplaced: cores of overdue work that no single host has room for.
    """

    capacity: float
    used: float
    wanted: float
    overdue: float
    unplaced: float = 0.0

    @property
    def lacks(self) -> float:
        """Return the cores that overdue work lacks; 0 if no work is
        overdue.
        """
        short = min(self.overdue, self.used + self.overdue - self.capacity)
        return max(short, self.unplaced, 0.0)

    def spare(self, kept: float) -> float:
        """Return the free cores beyond all demand and ``kept``; may be
        negative.
        """
        return self.capacity - self.used - self.wanted - kept


def side_balance(
    snapshot: border.Snapshot,
    side: border.BorderSide,
    now: float,
    patience_s: float,
) -> Balance:
    """Return the capacity, use and demand of a side.

    Hosts that another program or person closed, or whose service is down, add
    no capacity. Work that ends after a notice is not counted as use: it runs
    on cores that are otherwise free. Waiting work that does not fit on all
    hosts together is not counted, because no move would help it.

    :param now: seconds of the epoch.
    :param patience_s: see :class:`BorderRules`.
    """
    capacity = used = 0.0
    free: list[float] = []
    for node in snapshot.nodes:
        place = snapshot.place(node, side)
        if place is None:
            continue
        if border.future_system(node.state) is side:
            busy = _cores_of_work(
                place, border.WorkEnd.ENDS, border.WorkEnd.MOVES
            )
            used += busy
            if place.up and (place.takes or place.ours):
                capacity += node.host.cores
                free.append(node.host.cores - busy)
        elif border.only_user(node.state) is side:
            used += _cores_of_work(place, border.WorkEnd.MOVES)
    seen = snapshot.side(side)
    most = sum(node.host.cores for node in snapshot.nodes)
    wants = [
        each
        for each in (seen.wants if seen else ())
        if each.cores <= most and each.since <= now
    ]
    overdue = [each for each in wants if now - each.since >= patience_s]
    largest = max((node.host.cores for node in snapshot.nodes), default=0.0)
    return Balance(
        capacity,
        used,
        sum(each.cores for each in wants),
        sum(each.cores for each in overdue),
        _unplaced_cores(free, overdue, largest),
    )


def _unplaced_cores(
    free: list[float], wants: list[border.PendingWork], largest: float
) -> float:
    """Return the cores of parts of waiting work that no single host has room
    for.

    The largest parts are placed first, each on the host with the smallest
    sufficient room. Parts that are larger than every host do not count.

    :param free: free cores of each host; negative where the work has more
        cores than the host.
    :param largest: cores of the largest host.
    """
    counts = collections.Counter[float]()
    for each in wants:
        if each.part and each.part <= largest:
            counts[each.part] += round(each.cores / each.part)
    left, missing = sorted(free), 0.0
    for part in sorted(counts, reverse=True):
        # The number of parts comes from users and has no bound, so each host
        # takes many in one step.
        count = counts[part]
        while count > 0:
            at = bisect.bisect_left(left, part - _ROUNDING)
            if at == len(left):
                missing += part * count
                break
            fit = int(min(count, max((left[at] + _ROUNDING) / part, 1.0)))
            bisect.insort(left, left.pop(at) - part * fit)
            count -= fit
    return missing


def _cores_of_work(place: border.SideStatus, *ways: border.WorkEnd) -> float:
    return sum(work.cores for work in place.work if work.way in ways)


def current_goal(
    snapshot: border.Snapshot, now: float, rules: BorderRules
) -> BorderGoal | None:
    """Return the goal that applies now.

    A target that an operator set has precedence over the calendar, and the
    calendar over demand.

    :param now: seconds of the epoch.
    :returns: ``None`` if no host should move.
    """
    target = snapshot.target or calendars.calendar_target(rules.windows, now)
    if target:
        return _target_goal(snapshot, target)
    batch, cloud = (
        side_balance(snapshot, side, now, rules.patience_s)
        for side in border.BorderSide
    )
    if batch.lacks and cloud.lacks:
        if rules.contended is None:
            return None
        return _target_goal(
            snapshot,
            border.CloudTarget(rules.contended, border.HostCause.DEMAND),
        )
    if cloud.lacks:
        return _demand_goal(border.BorderSide.CLOUD, cloud, batch, rules)
    if batch.lacks:
        return _demand_goal(border.BorderSide.BATCH, batch, cloud, rules)
    return None


def _demand_goal(
    to: border.BorderSide,
    taker: Balance,
    giver: Balance,
    rules: BorderRules,
) -> BorderGoal:
    spare = giver.spare(rules.spare_cores)
    return BorderGoal(
        to,
        taker.lacks,
        spare,
        False,
        border.HostCause.DEMAND,
        f'{to.value} lacks {wording.counted(taker.lacks, "core")},'
        f' {to.other.value} can spare {max(spare, 0):g}',
    )


def _target_goal(
    snapshot: border.Snapshot, target: border.CloudTarget
) -> BorderGoal | None:
    has = sum(
        border.future_system(node.state) is border.BorderSide.CLOUD
        for node in snapshot.nodes
    )
    lacks = target.hosts - has
    if not lacks:
        return None
    return BorderGoal(
        border.BorderSide.CLOUD if lacks > 0 else border.BorderSide.BATCH,
        abs(lacks),
        math.inf,
        True,
        target.cause,
        f'the cloud has {wording.counted(has, "host")} and is to have'
        f' {target.hosts}',
    )


@dataclasses.dataclass(frozen=True, slots=True)
class DrainCost:
    """Cost of draining a host.

    :ivar lasts_s: seconds until all its work has ended or left.
    :ivar idle: core-seconds that are unused until then.
    :ivar moved: number of VMs that are moved or receive a notice.
    :ivar sure: whether the end of all its work is known.
    """

    lasts_s: float
    idle: float
    moved: int
    sure: bool


def drain_cost(
    node: border.BorderHost,
    place: border.SideStatus,
    now: float,
    rules: BorderRules,
) -> DrainCost:
    """Compute the cost of draining a host.

    :param place: status of the host on the side that it leaves.
    :param now: seconds of the epoch.
    """
    at = [each.gone_at for each in place.work]
    latest = now + rules.ttl_s
    stays = [max((latest if t is None else t) - now, 0.0) for t in at]
    lasts = max(stays, default=0.0)
    worked = sum(
        work.cores * stay for work, stay in zip(place.work, stays, strict=True)
    )
    return DrainCost(
        lasts,
        max(node.host.cores * lasts - worked, 0.0),
        sum(work.way is not border.WorkEnd.ENDS for work in place.work),
        None not in at,
    )


Chosen = tuple[border.BorderHost, border.HostEvent]


def chosen_hosts(
    snapshot: border.Snapshot,
    free: Sequence[border.BorderHost],
    wanted: BorderGoal,
    now: float,
    rules: BorderRules,
) -> Iterator[Chosen]:
    """Yield hosts that start to move, and moves of hosts that are cancelled.

    First, hosts that are leaving the side are kept; the host with the longest
    time to drain is the first. Then hosts of the other side move, sorted by
    idle core-seconds, time to drain, number of VMs to move, and name.

    :param free: hosts that can move and have no other step now.
    :param wanted: goal that the moves serve.
    :param now: seconds of the epoch.
    """
    lacks, spare = wanted.lacks, wanted.spare
    moving = sum(node.state in border.MOVING for node in snapshot.nodes)
    for node in _hosts_to_turn_back(snapshot, free, wanted, now, rules):
        if lacks <= 0:
            return
        lacks -= wanted.worth(node)
        yield node, border.HostEvent.CANCEL
    for node in _hosts_to_move(snapshot, free, wanted, now, rules):
        worth = wanted.worth(node)
        if lacks <= 0 or moving >= rules.most_moving:
            return
        if worth <= spare:
            lacks, spare, moving = lacks - worth, spare - worth, moving + 1
            yield node, border.HostEvent.ASK


def _hosts_to_turn_back(
    snapshot: border.Snapshot,
    free: Sequence[border.BorderHost],
    wanted: BorderGoal,
    now: float,
    rules: BorderRules,
) -> list[border.BorderHost]:
    found = []
    for node in free:
        place = snapshot.place(node, wanted.to)
        if (
            node.state in border.MOVING
            and border.only_user(node.state) is wanted.to
            and place is not None
            and not _is_manual_move(node)
        ):
            left = drain_cost(node, place, now, rules)
            found.append(((-left.lasts_s, node.host.name), node))
    return [node for _, node in sorted(found, key=lambda each: each[0])]


def _is_manual_move(node: border.BorderHost) -> bool:
    """Whether an operator requested the present move of a host."""
    asked = [
        step.cause
        for step in node.history
        if step.event is border.HostEvent.ASK
    ]
    return asked[-1:] == [border.HostCause.OPERATOR]


def _hosts_to_move(
    snapshot: border.Snapshot,
    free: Sequence[border.BorderHost],
    wanted: BorderGoal,
    now: float,
    rules: BorderRules,
) -> list[border.BorderHost]:
    found = []
    for node in free:
        place = snapshot.place(node, wanted.to.other)
        if (
            node.state in border.MOVING
            or border.only_user(node.state) is not wanted.to.other
            or place is None
            or now - node.since < rules.stay_s
            or moves_within(node, now, DAY_S) >= rules.most_per_day
        ):
            continue
        cost = drain_cost(node, place, now, rules)
        in_time = cost.sure and cost.lasts_s <= rules.ttl_s
        if in_time or wanted.counts_hosts or _ends_vms(wanted, rules):
            key = cost.idle, cost.lasts_s, cost.moved, node.host.name
            found.append((key, node))
    return [node for _, node in sorted(found, key=lambda each: each[0])]


def _ends_vms(wanted: BorderGoal, rules: BorderRules) -> bool:
    return rules.end_vms and wanted.to is border.BorderSide.BATCH


def moves_within(node: border.BorderHost, now: float, seconds: float) -> int:
    """Return the number of moves of a host that were requested in the last
    seconds.
    """
    return sum(
        step.event is border.HostEvent.ASK and now - step.at < seconds
        for step in node.history
    )
