# SPDX-License-Identifier: Apache-2.0

"""Units: requests that start together; and the contract of orders of the
queue.
"""

import abc
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools
import math
from typing import ClassVar

from nova_fairness import exception
from nova_fairness.model import cluster
from nova_fairness.model import request as request_model
from nova_fairness.model import wording


@dataclasses.dataclass(frozen=True)
class Unit:
    """Requests that start together or not at all.

    :ivar requests: one request, or all waiting requests of one server group.
    """

    requests: tuple[request_model.Request, ...]

    @functools.cached_property
    def project(self) -> str:
        """Return the project of the requests."""
        return self.requests[0].project

    @property
    def group(self) -> request_model.Group | None:
        """Return the server group of all servers of the unit."""
        return self.requests[0].group

    @functools.cached_property
    def is_preemptible(self) -> bool:
        """Whether the servers of the unit can be evicted for others."""
        return self.requests[0].is_preemptible

    @functools.cached_property
    def is_first(self) -> bool:
        """Whether an operator put a request before others of its class."""
        return any(each.first is not None for each in self.requests)

    @property
    def count(self) -> int:
        """Return the number of servers."""
        return sum(len(each.servers) for each in self.requests)


def group_into_units(arranged: Iterable[request_model.Request]) -> list[Unit]:
    """Return units of requests; a group has the position of its first request.

    :param arranged: waiting requests, the next one first.
    """
    together: dict[tuple[str, ...], list[request_model.Request]] = {}
    for each in arranged:
        key = start_key(each) if each.group else (each.uuid,)
        together.setdefault(key, []).append(each)
    return [Unit(tuple(requests)) for requests in together.values()]


def put_first_ahead(
    arranged: Iterable[request_model.Request],
) -> list[request_model.Request]:
    """Move requests that operators put first to the front.

    :param arranged: requests as an order arranged them.
    """

    def turn(each: request_model.Request) -> float:
        return math.inf if each.first is None else each.first

    return sorted(arranged, key=turn)


def start_key(each: request_model.Request) -> tuple[str, ...]:
    """Return a key that requests share if they start together."""
    if each.group is None:
        return (each.uuid,)
    return (each.project, each.group.uuid, each.band.value)


class Order(abc.ABC):
    """Order of the queue; stevedore loads subclasses.

    Arguments of the constructor are numbers that operators may set, each with
    a default. The constructor raises ``ValueError`` for a number that is out
    of its range.
    """

    description: ClassVar[str]
    """Sentence for operators."""

    @abc.abstractmethod
    def arrange(
        self,
        waiting: Sequence[request_model.Request],
        snapshot: cluster.ClusterSnapshot,
        now: float,
    ) -> Sequence[request_model.Request]:
        """Sort waiting requests, the next one first.

        The result depends on the arguments only, not on the order in which
        requests are given, and has every request once.

        :param waiting: requests to sort.
        :param snapshot: state of the cloud.
        :param now: seconds of the epoch.
        """

    def factors(
        self,
        waiting: Sequence[request_model.Request],
        snapshot: cluster.ClusterSnapshot,
        now: float,
    ) -> Mapping[str, cluster.Factors]:
        """Return numbers that explain the positions of requests in a queue
        (``sprio``).

        Owners read the factors of their own requests. So a factor is about the
        request, its user or its project, never about another project.

        :returns: finite numbers by name, by UUID of the request; a request
            without an entry has no factors.
        """
        return {}


def oldest_first(
    requests: Iterable[request_model.Request],
) -> list[request_model.Request]:
    """Return requests sorted by the time of the request, then by UUID."""
    return sorted(requests, key=lambda each: (each.asked_at, each.uuid))


class OldestFirst(Order):
    """First come, first served."""

    description = 'First come, first served; shares do not count.'

    def arrange(
        self,
        waiting: Sequence[request_model.Request],
        snapshot: cluster.ClusterSnapshot,
        now: float,
    ) -> Sequence[request_model.Request]:
        """Sort by the time of the request; see :func:`oldest_first`."""
        return oldest_first(waiting)

    def factors(
        self,
        waiting: Sequence[request_model.Request],
        snapshot: cluster.ClusterSnapshot,
        now: float,
    ) -> Mapping[str, cluster.Factors]:
        """Return the seconds that each request has waited."""
        return {
            each.uuid: {'waited_s': max(now - each.asked_at, 0.0)}
            for each in waiting
        }


def checked_factors(
    waiting: Sequence[request_model.Request],
    snapshot: cluster.ClusterSnapshot,
    now: float,
    order: Order,
) -> Mapping[str, cluster.Factors]:
    """Call :meth:`Order.checked_factors`, and check the result.

    :raises PluginMisbehaved: if the order failed, or a factor is not a finite
        number.
    """
    name = type(order).__name__
    try:
        told = order.factors(waiting, snapshot, now)
        is_sound = all(
            math.isfinite(number)
            for each in told.values()
            for number in each.values()
        )
    except exception.PluginMisbehaved:
        raise
    except Exception as error:
        raise exception.PluginMisbehaved(
            f'factors of the order {name} failed:'
            f' {type(error).__name__}: {error}'
        ) from error
    if not is_sound:
        raise exception.PluginMisbehaved(
            f'factors of the order {name} must be finite numbers'
        )
    return told


def arranged(
    waiting: Sequence[request_model.Request],
    snapshot: cluster.ClusterSnapshot,
    now: float,
    order: Order,
) -> list[request_model.Request]:
    """Call :meth:`Order.arrange`, and check the result.

    :raises PluginMisbehaved: if the order failed, or lost or duplicated a
        request.
    """
    name = type(order).__name__
    try:
        found = list(order.arrange(waiting, snapshot, now))
    except exception.PluginMisbehaved:
        raise
    except Exception as error:
        raise exception.PluginMisbehaved(
            f'the order {name} failed: {type(error).__name__}: {error}'
        ) from error
    named = {each.uuid for each in found}
    if len(found) != len(waiting) or named != {e.uuid for e in waiting}:
        raise exception.PluginMisbehaved(
            f'the order {name} must give back each of'
            f' {wording.counted(len(waiting), "request")} once, and gave'
            f' {len(found)}'
        )
    return found
