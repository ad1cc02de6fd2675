# SPDX-License-Identifier: Apache-2.0

"""The whole cloud at one moment, and the actions that change it.

Amounts are int64. ``(p, c)`` has a row per provider and a column per entry of
``classes``. A provider is a whole tree of Placement (one host): inventories
of its children are summed, and what one child gives at most to one server is
the largest unit.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import datetime as dt
import enum
import functools
import types
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nova_fairness import exception
from nova_fairness.model import reason
from nova_fairness.model import request

Amounts = npt.NDArray[np.int64]


def vector(amounts: Mapping[str, int], classes: tuple[str, ...]) -> Amounts:
    """Amounts in the order of classes, (c,); 0 of what is not named."""
    return np.array([amounts.get(name, 0) for name in classes], np.int64)


def _nothing() -> Mapping[str, int]:
    return types.MappingProxyType({})


@dataclasses.dataclass(frozen=True, slots=True)
class Provider:
    """A host as Placement and Nova know it.

    :ivar uuid: of the root provider.
    :ivar name: of the host.
    :ivar zone: availability zone.
    :ivar traits: of the whole tree.
    :ivar aggregates: UUIDs.
    :ivar takes: ``False`` if nothing may start there: it is disabled, down or
        being emptied.
    """

    uuid: str
    name: str
    zone: str = 'nova'
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    takes: bool = True


@dataclasses.dataclass(frozen=True, eq=False)
class Inventory:
    """Capacity and allocations of providers by resource class.

    :ivar capacity: (p, c) what can be allocated: (total - reserved) times
        allocation ratio; 0 where a provider has none of a class.
    :ivar used: (p, c) what is allocated, with what is kept for requests; may
        be more than ``capacity``.
    :ivar unit: (p, c) most that one server gets.
    :ivar step: (p, c) what one server gets is a multiple of it, >= 1.
    """

    capacity: Amounts
    used: Amounts
    unit: Amounts
    step: Amounts


@dataclasses.dataclass(frozen=True)
class Limits:
    """Amounts that a project may have.

    :ivar guaranteed: by class, >= 0; a class that is not named is 0.
    :ivar ceiling: by class, >= 0; a class that is not named has none.
        Preemptible servers do not count.
    :ivar preemptible: by class, >= 0, of preemptible servers; a class that is
        not named has no limit.
    """

    guaranteed: Mapping[str, int] = dataclasses.field(default_factory=_nothing)
    ceiling: Mapping[str, int] = dataclasses.field(default_factory=_nothing)
    preemptible: Mapping[str, int] = dataclasses.field(
        default_factory=_nothing
    )


NO_LIMITS = Limits()
"""The limits of a project that is not named: no guarantee, no ceiling."""


@dataclasses.dataclass(frozen=True, slots=True)
class Window:
    """A time that comes again and again.

    :ivar begins: cron line of its begins: minute, hour, day of the month,
        month, day of the week.
    :ivar lasts_s: seconds, > 0.
    :ivar zone: of the times in ``begins``.
    """

    begins: str
    lasts_s: float
    zone: dt.tzinfo = dt.UTC


@dataclasses.dataclass(frozen=True, slots=True)
class Account:
    """A node of the share tree: a domain, a project, a group or a user.

    :ivar name: unique in the tree.
    :ivar parent: name of the account above; ``None`` at the top.
    :ivar share: counts beside the shares of its siblings, >= 0.
    :ivar time_limit_s: seconds that servers below it may run, > 0; ``None``
        for no limit of its own.
    :ivar longest_wait_s: seconds that requests below it may wait, > 0;
        ``None`` for no limit of its own.
    :ivar budget_hours: unit-hours that it and all below may use in a period,
        >= 0; ``None`` for no budget of its own.
    :ivar funds: currency that it and all below it may ever spend for their
        servers, >= 0; ``None`` for as much as they like.
    :ivar windows: in which requests below it may start; without any they may
        at all times.
    :ivar ceiling: most that it and all below it may have at once, by resource
        class; sorted, each class once.
    :ivar nominal: what it owns beside what those below it own, by resource
        class; sorted, each class once; a class that is not named is 0.
    :ivar borrowing_limit: most that it and all below it may use beyond what
        they own, by resource class; sorted, each class once; a class that is
        not named has no limit.
    :ivar lending_limit: most that others may use of what they own, by resource
        class; sorted, each class once; a class that is not named has no limit.
    :ivar vanished: whether it is there only for what it used.
    :ivar fault: why something that was set of it cannot be used; ''
        if all can. Nothing below it starts until it is set again.
    """

    name: str
    parent: str | None = None
    share: float = 1.0
    time_limit_s: float | None = None
    longest_wait_s: float | None = None
    budget_hours: float | None = None
    funds: float | None = None
    windows: tuple[Window, ...] = ()
    ceiling: tuple[tuple[str, int], ...] = ()
    nominal: tuple[tuple[str, int], ...] = ()
    borrowing_limit: tuple[tuple[str, int], ...] = ()
    lending_limit: tuple[tuple[str, int], ...] = ()
    vanished: bool = False
    fault: str = ''

    @property
    def has_quota(self) -> bool:
        """Whether it owns, borrows or lends otherwise than others."""
        return bool(self.nominal or self.borrowing_limit or self.lending_limit)


@dataclasses.dataclass(frozen=True)
class Budgets:
    """The use that accounts have left, in this period and the next.

    :ivar weights: units that one of a resource class counts as.
    :ivar preemptible: part of what preemptible servers have that counts, 0
        to 1.
    :ivar at: seconds of the epoch; later use is still to be paid.
    :ivar ends: of both periods, seconds of the epoch.
    :ivar left: unit-seconds of both periods that are not used yet and not
        taken by running servers until the end of the period, by account that
        has a budget; below 0 if an account has more servers than the budget
        lasts for.
    :ivar used: unit-seconds of this period that were used up to ``at``, by
        the same accounts.
    """

    weights: Mapping[str, float]
    preemptible: float
    at: float
    ends: tuple[float, float]
    left: Mapping[str, tuple[float, float]]
    used: Mapping[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Running:
    """A server that has room on a host.

    :ivar host: its name.
    :ivar project: who pays.
    :ivar amounts: resource class of Placement and how much of it.
    :ivar since: when it began, seconds of the epoch.
    :ivar user: who asked for it.
    :ivar uuid: of the server.
    :ivar ends_at: when it is ended at the latest, seconds of the epoch;
        ``None`` if that is not known.
    :ivar band: of priority.
    :ivar group: UUID of its server group, if the rule of that binds; ''
        without.
    :ivar demand: what a host must have to hold it, with ``amounts``; ``None``
        if it may not be moved: it is locked, it is being moved already, or its
        needs are not known.
    :ivar bound: server group whose rule a move must keep; ``None`` without.
    :ivar pays: name of the group with a spending rate that it is in; ''
        without.
    :ivar sends: memory that moving it sends, in times of what it has, >= 0.
    """

    host: str
    project: str
    amounts: tuple[tuple[str, int], ...]
    since: float
    user: str = ''
    uuid: str = ''
    ends_at: float | None = None
    band: request.Band = request.Band.NORMAL
    group: str = ''
    demand: request.Demand | None = None
    bound: request.Group | None = None
    pays: str = ''
    sends: float = 1.0


Kind = tuple[str, int, int]
"""Project, CPUs and MB of memory: such servers are expected to last alike."""


def kind_of(project: str, amounts: tuple[tuple[str, int], ...]) -> Kind:
    """The kind of a server; shared and dedicated CPUs count alike."""
    named = dict(amounts)
    cpus = named.get('VCPU', 0) + named.get('PCPU', 0)
    return project, cpus, named.get('MEMORY_MB', 0)


@dataclasses.dataclass(frozen=True, eq=False)
class ClusterSnapshot:
    """The cloud at one moment.

    :ivar classes: resource classes of Placement, the columns.
    :ivar providers: the rows.
    :ivar inventory: what they have.
    :ivar requests: that have not ended; ``used`` of inventory and projects
        count those whose state is ``reserved`` or later.
    :ivar limits: by project; those not named have :data:`NO_LIMITS`.
    :ivar used: (c,) allocated by project; those not named use nothing.
        Preemptible servers are not counted.
    :ivar members: names of the hosts of its running servers, one per server,
        by UUID of the server group.
    :ivar accounts: the share tree. A user of a project is called as
        :attr:`.request.Request.account` says; those not named are there with
        a share of 1.
    :ivar history: (c,) decayed use by account, with all below it, as a part
        of the cloud, >= 0; those not named used nothing.
    :ivar granted: (c,) what accounts have now and ``history`` does not count
        yet, as parts of the cloud, >= 0; those not named have nothing.
    :ivar running: servers on hosts.
    :ivar lifetimes: seconds that servers of a kind lasted which ended, the
        shortest first.
    :ivar promised: names of hosts, one per server, by UUID of a request that
        others leave for: no other request starts there.
    :ivar leaving: UUIDs of servers that were told to leave.
    :ivar evicted: number of servers that were told so in the last hour, or
        that count as if they were since too many were at once.
    :ivar in_vain: until when no servers leave for requests of a project,
        seconds of the epoch, by project: others left for it in vain.
    :ivar budgets: ``None`` if no account has one.
    :ivar weights: that the use of a resource class counts with beside that of
        the others, >= 0; those not named count for nothing. Empty: all alike.
    :ivar wanting: project, user and band of requests that wait beside those
        in ``requests``: they do not start now, and their shares count.
    :ivar belongs: UUID of the server group by UUID of its running servers, as
        far as they are known.
    :ivar falls_back: whether Nova asks for :attr:`.request.Demand.fallbacks`.
    :ivar knows_classes: whether no host has a class that is not in
        ``classes``; else it may be missing for a moment.
    :raises BadSnapshot: if shapes do not fit or amounts are negative.
    """

    classes: tuple[str, ...]
    providers: tuple[Provider, ...]
    inventory: Inventory
    requests: tuple[request.Request, ...] = ()
    limits: Mapping[str, Limits] = dataclasses.field(default_factory=dict)
    used: Mapping[str, Amounts] = dataclasses.field(default_factory=dict)
    members: Mapping[str, tuple[str, ...]] = dataclasses.field(
        default_factory=dict
    )
    accounts: tuple[Account, ...] = ()
    history: Mapping[str, npt.NDArray[np.float64]] = dataclasses.field(
        default_factory=dict
    )
    granted: Mapping[str, npt.NDArray[np.float64]] = dataclasses.field(
        default_factory=dict
    )
    running: tuple[Running, ...] = ()
    lifetimes: Mapping[Kind, tuple[float, ...]] = dataclasses.field(
        default_factory=dict
    )
    promised: Mapping[str, tuple[str, ...]] = dataclasses.field(
        default_factory=dict
    )
    leaving: frozenset[str] = frozenset()
    evicted: int = 0
    in_vain: Mapping[str, float] = dataclasses.field(default_factory=dict)
    budgets: Budgets | None = None
    weights: Mapping[str, float] = dataclasses.field(default_factory=dict)
    wanting: frozenset[tuple[str, str, request.Band]] = frozenset()
    belongs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    falls_back: bool = True
    knows_classes: bool = False

    @functools.cached_property
    def counts(self) -> npt.NDArray[np.float64]:
        """Weights of the classes, (c,)."""
        others = 0.0 if self.weights else 1.0
        return np.array(
            [self.weights.get(name, others) for name in self.classes]
        )

    @functools.cached_property
    def preemptible(self) -> Mapping[tuple[str, str], Amounts]:
        """Amounts of preemptible servers, (c,), by project and user."""
        found: dict[tuple[str, str], Amounts] = {}
        for each in self.running:
            if each.band is request.Band.PREEMPTIBLE:
                one = vector(dict(each.amounts), self.classes)
                owner = (each.project, each.user)
                found[owner] = found.get(owner, 0) + one
        return found

    def __post_init__(self) -> None:
        shape = (len(self.providers), len(self.classes))
        for field in dataclasses.fields(self.inventory):
            _check(
                f'inventory.{field.name}',
                getattr(self.inventory, field.name),
                shape,
            )
        if not _are_sound(self.used.values(), shape[1:]):
            for project, amounts in self.used.items():
                _check(f'used of project {project}', amounts, shape[1:])
        if (self.inventory.step < 1).any():
            raise exception.BadSnapshot('inventory.step must be at least 1')


def _are_sound(found: Iterable[Amounts], shape: tuple[int, ...]) -> bool:
    """Look at many at once, which is quick."""
    try:
        amounts = np.array(list(found))
    except ValueError:
        return False
    return amounts.shape[1:] == shape and bool((amounts >= 0).all())


def _check(name: str, amounts: Amounts, shape: tuple[int, ...]) -> None:
    if amounts.shape != shape:
        raise exception.BadSnapshot(
            f'{name} must have the shape {shape}, got {amounts.shape}'
        )
    if (amounts < 0).any():
        raise exception.BadSnapshot(f'{name} must not be negative')


class Verb(enum.Enum):
    """The kind of an action."""

    START = 'start'
    """Keep room on the hosts, then send the request to Nova."""

    MAKE_ROOM = 'make_room'
    """Promise hosts to the request, and let servers leave them."""

    EXPIRE = 'expire'
    """End a request that waited longer than it may."""

    PASS = 'pass'  # noqa: S105 - a verb, opens nothing
    """Send the request to Nova without room, as Nova alone can judge it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Action:
    """Something to be done once, if its request is still as it was.

    :ivar verb: what.
    :ivar request: UUID.
    :ivar version: of the request that it was decided on.
    :ivar hosts: name of the host of each server, in their order; empty
        unless it starts something, or promises room.
    :ivar why: what its owner is told.
    :ivar leaving: UUIDs of servers that leave for it.
    """

    verb: Verb
    request: str
    version: int
    hosts: tuple[str, ...]
    why: reason.Why
    leaving: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """A key that is the same for all tries of a decision."""
        return f'{self.verb.value}/{self.request}/{self.version}'


Factors = Mapping[str, float]
"""Numbers by which an order put a request where it stands, by name."""

PROJECT_USE = 'project_use'
"""Factor: what its project used, in times of its share; 1 is the share."""

USER_USE = 'user_use'
"""Factor: the same of who asked."""


@dataclasses.dataclass(frozen=True, slots=True)
class Reservation:
    """Room that is kept for the first that does not fit.

    :ivar hosts: names of those where it is kept.
    :ivar at: when it is expected to be free, seconds of the epoch; ``None`` if
        that is not known: then no other request starts on these hosts.
    """

    hosts: tuple[str, ...]
    at: float | None = None


class Waiting(NamedTuple):
    """Where a request stands that does not start now.

    :ivar position: 1 is next.
    :ivar why: what it waits for.
    :ivar factors: that its order goes by.
    :ivar reserved: room that is kept for it; ``None`` for most.
    """

    position: int
    why: reason.Why
    factors: Factors = types.MappingProxyType({})
    reserved: Reservation | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Estimate:
    """When a request is expected to start, seconds of the epoch.

    :ivar p50: as likely before as after.
    :ivar p90: by then nine times of ten; not before ``p50``.
    """

    p50: float
    p90: float


@dataclasses.dataclass(frozen=True, slots=True)
class EstimateQuality:
    """How good past estimates of starts were.

    :ivar count: of estimates whose outcome is known.
    :ivar by_p50: part of these requests that started by ``p50``, 0 to 1.
    :ivar by_p90: the same by ``p90``.
    :ivar off_s: median of how long after ``p50`` they started, seconds; below
        0 if before.
    :ivar late_s: ninth decile of how long after ``p90`` they started, seconds;
        below 0 if before.
    """

    count: int
    by_p50: float
    by_p90: float
    off_s: float
    late_s: float


@dataclasses.dataclass(frozen=True)
class Plan:
    """The decisions of a planner.

    :ivar actions: in the order in which they are to be done.
    :ivar waiting: by UUID of every request that goes on waiting, in order.
    """

    actions: tuple[Action, ...] = ()
    waiting: Mapping[str, Waiting] = dataclasses.field(default_factory=dict)
