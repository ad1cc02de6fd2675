# SPDX-License-Identifier: Apache-2.0

"""The whole cloud at one time, and the actions of the queue.

Amounts are int64. ``(p, c)`` has a row per provider and a column per entry of
``classes``. A provider is a whole tree of Placement (one host). Inventories of
its children are summed. ``unit`` is the largest amount that one child gives to
one server.
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


def amounts_vector(
    amounts: Mapping[str, int], classes: tuple[str, ...]
) -> Amounts:
    """Return (c,) amounts in the order of classes; 0 for classes without an
    entry.
    """
    return np.array([amounts.get(name, 0) for name in classes], np.int64)


def _empty_mapping() -> Mapping[str, int]:
    return types.MappingProxyType({})


@dataclasses.dataclass(frozen=True, slots=True)
class Provider:
    """A host in Placement and Nova.

    :ivar uuid: UUID of the root provider.
    :ivar name: name of the host.
    :ivar zone: availability zone.
    :ivar traits: traits of the whole tree.
    :ivar aggregates: UUIDs of its aggregates.
    :ivar takes: ``False`` if no server may start there: it is disabled, down
        or being emptied.
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

    :ivar capacity: (p, c) amounts that can be allocated: (total - reserved)
        times allocation ratio; 0 where a provider lacks a class.
    :ivar used: (p, c) allocated amounts, including room kept for requests;
        they may exceed ``capacity``.
    :ivar unit: (p, c) largest amount for one server.
    :ivar step: (p, c) the amount of one server is a multiple of it, >= 1.
    """

    capacity: Amounts
    used: Amounts
    unit: Amounts
    step: Amounts


@dataclasses.dataclass(frozen=True)
class Limits:
    """Amounts that a project may have.

    :ivar guaranteed: guaranteed amounts by class, >= 0; 0 for a class without
        an entry.
    :ivar ceiling: ceilings by class, >= 0; a class without an entry has no
        ceiling. Preemptible servers do not count.
    :ivar preemptible: ceilings of preemptible servers by class, >= 0; a class
        without an entry has no ceiling.
    """

    guaranteed: Mapping[str, int] = dataclasses.field(
        default_factory=_empty_mapping
    )
    ceiling: Mapping[str, int] = dataclasses.field(
        default_factory=_empty_mapping
    )
    preemptible: Mapping[str, int] = dataclasses.field(
        default_factory=_empty_mapping
    )


NO_LIMITS = Limits()
"""Limits of a project without an entry: no guarantee, no ceiling."""


@dataclasses.dataclass(frozen=True, slots=True)
class Window:
    """A window of time that repeats.

    :ivar begins: cron line of the starts of the window: minute, hour, day of
        the month, month, day of the week.
    :ivar lasts_s: length of the window, seconds, > 0.
    :ivar zone: time zone of ``begins``.
    """

    begins: str
    lasts_s: float
    zone: dt.tzinfo = dt.UTC


@dataclasses.dataclass(frozen=True, slots=True)
class Account:
    """A node of the share tree: a domain, a project, a group or a user.

    :ivar name: unique in the tree.
    :ivar parent: name of the account above; ``None`` at the top.
    :ivar share: share relative to the shares of its siblings, >= 0.
    :ivar time_limit_s: seconds that servers below it may run, > 0; ``None``
        for no limit of its own.
    :ivar longest_wait_s: seconds that requests below it may wait, > 0;
        ``None`` for no limit of its own.
    :ivar budget_hours: unit-hours that it and all below may use in a period,
        >= 0; ``None`` for no budget of its own.
    :ivar funds: currency that it and all below it may ever spend for their
        servers, >= 0; ``None`` for no bound.
    :ivar windows: windows in which requests below it may start; if there are
        none, requests may start at all times.
    :ivar ceiling: largest amounts that it and all below it may have at the
        same time, by resource class; sorted, each class once.
    :ivar nominal: amounts that it owns in addition to those of the accounts
        below it, by resource class; sorted, each class once; 0 for a class
        without an entry.
    :ivar borrowing_limit: largest amounts that it and all below it may use
        beyond their own, by resource class; sorted, each class once; a class
        without an entry has no limit.
    :ivar lending_limit: largest amounts of its own and of those below it that
        others may use, by resource class; sorted, each class once; a class
        without an entry has no limit.
    :ivar vanished: whether it exists only because of its past use.
    :ivar fault: why a setting of it cannot be used; '' if all can be used.
        No request below it starts until this is set again.
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
        """Whether a quota, a borrowing limit or a lending limit is set."""
        return bool(self.nominal or self.borrowing_limit or self.lending_limit)


@dataclasses.dataclass(frozen=True)
class Budgets:
    """Unused budgets of accounts, in this period and the next.

    :ivar weights: units per amount of each resource class.
    :ivar preemptible: part of the amounts of preemptible servers that counts,
        0 to 1.
    :ivar at: seconds of the epoch; later use is not charged yet.
    :ivar ends: ends of both periods, seconds of the epoch.
    :ivar left: unit-seconds of both periods that are neither used nor
        committed to running servers, by account with a budget; below 0 if the
        budget is too small for the servers of the account.
    :ivar used: unit-seconds of this period that were used up to ``at``, by
        account with a budget.
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

    :ivar host: name of the host.
    :ivar project: project that pays.
    :ivar amounts: pairs of a resource class of Placement and an amount.
    :ivar since: start of the server, seconds of the epoch.
    :ivar user: user who asked for it.
    :ivar uuid: UUID of the server.
    :ivar ends_at: latest time at which it is ended, seconds of the epoch;
        ``None`` if that is not known.
    :ivar band: priority class.
    :ivar group: UUID of its server group, if the rule of the group binds; ''
        without one.
    :ivar demand: properties that a host must have for it, in addition to
        ``amounts``; ``None`` if it may not be moved: it is locked, it is being
        moved already, or its needs are not known.
    :ivar bound: server group whose rule a move must keep; ``None`` if there
        is none.
    :ivar pays: name of its group with a spending rate; '' without one.
    :ivar sends: memory that a move sends, as a multiple of the memory of the
        server, >= 0.
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
"""Project, CPUs and MB of memory. Servers of one kind are expected to have
similar lifetimes.
"""


def kind_of(project: str, amounts: tuple[tuple[str, int], ...]) -> Kind:
    """Return the kind of a server; shared and dedicated CPUs are added."""
    named = dict(amounts)
    cpus = named.get('VCPU', 0) + named.get('PCPU', 0)
    return project, cpus, named.get('MEMORY_MB', 0)


@dataclasses.dataclass(frozen=True, eq=False)
class ClusterSnapshot:
    """The cloud at one time.

    :ivar classes: (c,) resource classes of Placement, the columns.
    :ivar providers: (p,) providers, the rows.
    :ivar inventory: capacity and allocations of the providers.
    :ivar requests: requests that have not ended. ``used`` of the inventory
        and of projects includes requests that are ``reserved`` or later.
    :ivar limits: limits by project; a project without an entry has
        :data:`NO_LIMITS`.
    :ivar used: (c,) allocated amounts by project, without preemptible
        servers; a project without an entry uses nothing.
    :ivar member_hosts: names of the hosts of the running members of a server
        group, one per member, by UUID of the group.
    :ivar accounts: the share tree. :attr:`.request.Request.account` has the
        name of a user's account. Missing accounts count with a share of 1.
    :ivar history: (c,) decayed use of an account and all below it, as a part
        of the cloud, >= 0, by account; an account without an entry used
        nothing.
    :ivar granted: (c,) amounts that an account has now and that ``history``
        does not include yet, as parts of the cloud, >= 0, by account; an
        account without an entry has none.
    :ivar running: servers on hosts.
    :ivar lifetimes: lifetimes of ended servers, seconds, the shortest first,
        by kind.
    :ivar promised: names of hosts, one per server, by UUID of a preemptor: no
        other request starts there.
    :ivar leaving: UUIDs of servers that got notice.
    :ivar evicted: number of servers that got notice in the last hour. After
        more than the hourly limit got notice together, it stays higher for
        longer.
    :ivar in_vain: time until which no servers leave for requests of a project,
        because servers left for it in vain, seconds of the epoch, by project.
    :ivar budgets: budgets; ``None`` if no account has one.
    :ivar weights: relative weights of the use of resource classes, >= 0; 0
        for a class without an entry. If it is empty, all classes count alike.
    :ivar wanting: project, user and priority class of waiting requests that
        are not in ``requests``: they do not start now, but their shares count.
    :ivar belongs: UUID of the server group of running servers, as far as it
        is known, by UUID of the server.
    :ivar falls_back: whether Nova asks for :attr:`.request.Demand.fallbacks`.
    :ivar knows_classes: whether ``classes`` certainly has all classes of
        hosts; otherwise a class may be missing for a short time.
    :raises BadSnapshot: if shapes do not fit or amounts are negative.
    """

    classes: tuple[str, ...]
    providers: tuple[Provider, ...]
    inventory: Inventory
    requests: tuple[request.Request, ...] = ()
    limits: Mapping[str, Limits] = dataclasses.field(default_factory=dict)
    used: Mapping[str, Amounts] = dataclasses.field(default_factory=dict)
    member_hosts: Mapping[str, tuple[str, ...]] = dataclasses.field(
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
        """(c,) Weights of the classes."""
        others = 0.0 if self.weights else 1.0
        return np.array(
            [self.weights.get(name, others) for name in self.classes]
        )

    @functools.cached_property
    def preemptible(self) -> Mapping[tuple[str, str], Amounts]:
        """(c,) Amounts of preemptible servers, by project and user."""
        found: dict[tuple[str, str], Amounts] = {}
        for each in self.running:
            if each.band is request.Band.PREEMPTIBLE:
                one = amounts_vector(dict(each.amounts), self.classes)
                owner = (each.project, each.user)
                found[owner] = found.get(owner, 0) + one
        return found

    def __post_init__(self) -> None:
        shape = (len(self.providers), len(self.classes))
        for field in dataclasses.fields(self.inventory):
            _check_amounts(
                f'inventory.{field.name}',
                getattr(self.inventory, field.name),
                shape,
            )
        if not _are_sound(self.used.values(), shape[1:]):
            for project, amounts in self.used.items():
                _check_amounts(
                    f'used of project {project}', amounts, shape[1:]
                )
        if (self.inventory.step < 1).any():
            raise exception.BadSnapshot('inventory.step must be at least 1')


def _are_sound(found: Iterable[Amounts], shape: tuple[int, ...]) -> bool:
    """Return whether all amounts have the shape and are >= 0; fast for
    many.
    """
    try:
        amounts = np.array(list(found))
    except ValueError:
        return False
    return amounts.shape[1:] == shape and bool((amounts >= 0).all())


def _check_amounts(
    name: str, amounts: Amounts, shape: tuple[int, ...]
) -> None:
    if amounts.shape != shape:
        raise exception.BadSnapshot(
            f'{name} must have the shape {shape}, got {amounts.shape}'
        )
    if (amounts < 0).any():
        raise exception.BadSnapshot(f'{name} must not be negative')


class Verb(enum.Enum):
    """Kind of an action on a request."""

    START = 'start'
    """Reserve room on the hosts, then send the request to Nova."""

    MAKE_ROOM = 'make_room'
    """Reserve hosts for the request, and evict servers from them."""

    EXPIRE = 'expire'
    """End a request that waited longer than allowed."""

    PASS = 'pass'  # noqa: S105 - a verb, opens nothing
    """Send the request to Nova without a reservation, because only Nova can
    decide about it.
    """


@dataclasses.dataclass(frozen=True, slots=True)
class Action:
    """An action to be done once, unless its request has changed since.

    :ivar verb: kind of the action.
    :ivar request: UUID of the request.
    :ivar version: version of the request for which the action was decided.
    :ivar hosts: name of the host of each server, in the order of servers;
        empty unless the action starts servers or promises room.
    :ivar why: reason for the owner of the request.
    :ivar leaving: UUIDs of servers that leave for the request.
    """

    verb: Verb
    request: str
    version: int
    hosts: tuple[str, ...]
    why: reason.Why
    leaving: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Key that is equal for all attempts of one decision."""
        return f'{self.verb.value}/{self.request}/{self.version}'


Factors = Mapping[str, float]
"""Numbers from which an order computed the position of a request, by name."""

PROJECT_USE = 'project_use'
"""Factor: use of its project divided by the project's share."""

USER_USE = 'user_use'
"""Factor: use of its user divided by the user's share."""


@dataclasses.dataclass(frozen=True, slots=True)
class Reservation:
    """Room that is reserved for a request.

    :ivar hosts: names of the hosts with reserved room.
    :ivar at: expected time at which the room is free, seconds of the epoch;
        ``None`` if unknown: then no other request starts on these hosts.
    """

    hosts: tuple[str, ...]
    at: float | None = None


class Waiting(NamedTuple):
    """Position and reason of a request that does not start now.

    :ivar position: position in the queue; 1 is next.
    :ivar why: reason for which it waits.
    :ivar factors: factors of its position.
    :ivar reserved: room that is kept for it; ``None`` for most requests.
    """

    position: int
    why: reason.Why
    factors: Factors = types.MappingProxyType({})
    reserved: Reservation | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Estimate:
    """Expected start of a request, seconds of the epoch.

    :ivar p50: median: the start is as likely before as after.
    :ivar p90: ninth decile: it starts by then nine times of ten; not before
        ``p50``.
    """

    p50: float
    p90: float


@dataclasses.dataclass(frozen=True, slots=True)
class EstimateQuality:
    """Quality of past estimates of starts.

    :ivar count: number of estimates whose outcome is known.
    :ivar by_p50: part of these requests that started by ``p50``, 0 to 1.
    :ivar by_p90: part of these requests that started by ``p90``, 0 to 1.
    :ivar off_s: median of the time from ``p50`` to the start, seconds; below
        0 if most started earlier.
    :ivar late_s: ninth decile of the time from ``p90`` to the start, seconds;
        below 0 if these started earlier.
    """

    count: int
    by_p50: float
    by_p90: float
    off_s: float
    late_s: float


@dataclasses.dataclass(frozen=True)
class Plan:
    """The decisions of a planner.

    :ivar actions: actions in the order in which they are to be executed. :ivar
    waiting: position and reason of every request that still waits, by UUID, in
    order.
    """

    actions: tuple[Action, ...] = ()
    waiting: Mapping[str, Waiting] = dataclasses.field(default_factory=dict)
