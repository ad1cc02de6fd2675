# SPDX-License-Identifier: Apache-2.0

"""Division of units that are too large: some of their requests start without
the others.

Requests of one server group start together. If an empty cloud has no room for
all of them, or together they exceed a ceiling, the oldest requests for which
it has room start without the others. The others wait as long as they are too
many.

Running members of a group may stay for ever. So the oldest requests that fit
beside these members start without the others, too. If none fits, all requests
for which an empty cloud has room wait together until members end.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence

from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.planners.fairqueue import capacity
from nova_fairness.planners.fairqueue import order

Never = Callable[[order.Unit], reason.Why | None]
"""Returns why a unit could not start if no other server ran."""

_Reasons = dict[str, reason.Why]
"""Reasons by UUID of the request."""

_Requests = list[request_model.Request]


def divide_units(
    units: Iterable[order.Unit], never: Never, beside: Never
) -> tuple[list[order.Unit], _Reasons]:
    """Return units that could start, each followed by its requests that are
    left out.

    :param never: returns why a unit could not start in an empty cloud.
    :param beside: returns why a unit could not start if only running members
        of its group ran.
    :returns: units, and the reasons of requests that are left out.
    """
    found: list[order.Unit] = []
    out: _Reasons = {}
    for unit in units:
        left = _reasons(unit, never, beside) if len(unit.requests) > 1 else {}
        stay = tuple(each for each in unit.requests if each.uuid not in left)
        found += [order.Unit(stay)] if stay else []
        found += [
            order.Unit((each,)) for each in unit.requests if each.uuid in left
        ]
        out.update(left)
    return found, out


def _reasons(unit: order.Unit, never: Never, beside: Never) -> _Reasons:
    """Return the reasons of requests that are left out of a unit."""
    alone = _left_out(unit, never) if never(unit) else {}
    if beside(unit) is None:
        return alone
    both = _left_out(unit, lambda part: beside(part) or never(part))
    stay = [each for each in unit.requests if each.uuid not in both]
    if not stay:
        return alone
    full = capacity.full_group_reason(unit, sum(len(e.servers) for e in stay))
    return {uuid: alone.get(uuid, full) for uuid in both}


def _left_out(unit: order.Unit, never: Never) -> _Reasons:
    """Return the reasons of requests that are left out of a unit that is
    too large.
    """
    known: dict[tuple[object, ...], reason.Why | None] = {}
    for each in unit.requests:
        kind = each.user, each.demand, len(each.servers)
        if kind not in known:
            known[kind] = never(order.Unit((each,)))
    alone = {
        each.uuid: why
        for each in unit.requests
        if (why := known[each.user, each.demand, len(each.servers)])
    }
    there = order.oldest_first(
        each for each in unit.requests if each.uuid not in alone
    )
    stay = _oldest_that_fit(there, never)
    most = sum(len(each.servers) for each in stay)
    kept = {each.uuid for each in stay}
    why = never(order.Unit(tuple(there))) if there else None
    if why is None or why.reason is reason.Reason.GROUP_TOO_LARGE:
        why = capacity.too_many_servers_reason(unit, most)
    return alone | {e.uuid: why for e in there if e.uuid not in kept}


def _oldest_that_fit(there: _Requests, never: Never) -> _Requests:
    """Return the oldest requests for which an empty cloud has room together.

    If one request does not fit, all requests with the same demand and at least
    as many servers are left out, too.
    """
    stay: _Requests = []
    while there:
        fit = _longest_prefix(stay, there, never)
        stay = stay + there[:fit]
        if fit == len(there):
            break
        one = there[fit]
        there = [
            each
            for each in there[fit + 1 :]
            if each.demand != one.demand
            or len(each.servers) < len(one.servers)
        ]
    return stay


def _longest_prefix(
    stay: Sequence[request_model.Request], there: _Requests, never: Never
) -> int:
    """Return the largest number of requests, from the first one on, that
    fit beside ``stay``.
    """
    least, most = 0, len(there)
    while least < most:
        middle = (least + most + 1) // 2
        unit = order.Unit((*stay, *there[:middle]))
        if never(unit) is None:
            least = middle
        else:
            most = middle - 1
    return least
