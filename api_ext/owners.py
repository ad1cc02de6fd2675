# SPDX-License-Identifier: Apache-2.0

"""Merges answers of hosts about users or projects into one list."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import math
import statistics
from typing import Any

HOST = 'host'
DOMAIN = 'domain'

LARGEST = 1e100
"""Larger numbers count as unknown: their sums might overflow."""

LARGEST_WHOLE = (1 << 63) - 1

Numbers = Iterable[float | None]


@dataclasses.dataclass(frozen=True)
class OwnerNumbers:
    """Numbers of one host for one owner."""

    heaviness_quotas: float | None
    instances_count: int
    usage_quotas: Mapping[str, float | None]


@dataclasses.dataclass(frozen=True)
class HostOwners:
    """Numbers of one host for all owners that it knows.

    :ivar scope: :data:`DOMAIN` if numbers are of all hosts together,
        :data:`HOST` if they are of this host.
    :ivar parts: numbers by owner.
    """

    scope: str
    parts: Mapping[str, OwnerNumbers]


def of_users(answer: Mapping[str, Any]) -> HostOwners:
    """Read an answer of ``list_users``; empty if projects are compared."""
    # Agents before 1.2 do not say which kind of owners they compare.
    is_users = answer.get('entity', 'user') == 'user'
    return HostOwners(DOMAIN, _parts(answer['users']) if is_users else {})


def of_projects(answer: Mapping[str, Any]) -> HostOwners:
    """Read an answer of ``list_projects``."""
    scope = DOMAIN if answer['scope'] == DOMAIN else HOST
    return HostOwners(scope, _parts(answer['projects']))


def _parts(owners: Mapping[str, Any]) -> Mapping[str, OwnerNumbers]:
    return {
        str(owner): OwnerNumbers(
            number(item['heaviness_quotas']),
            whole(item['instances_here_count']),
            {
                str(resource): number(value)
                for resource, value in item['usage_quotas'].items()
            },
        )
        for owner, item in owners.items()
    }


def number(value: Any) -> float | None:
    """A number in an answer of an agent; ``None`` if it is out of range."""
    if value is None or not -LARGEST <= value <= LARGEST:
        return None
    return float(value)


def whole(value: Any) -> int:
    """A count in an answer of an agent.

    :raises ValueError: if it is out of range.
    :raises OverflowError: if it is infinite.
    """
    found = int(value)
    if not 0 <= found <= LARGEST_WHOLE:
        raise ValueError(f'{value!r:.50} is no count')
    return found


def merged(
    accounts: Mapping[str, HostOwners], only: str | None = None
) -> dict[str, dict[str, Any]]:
    """Merge the answers of all hosts.

    Every host has numbers of the whole domain. They differ a little by their
    age, or much if a host is cut off: so the median is used. Numbers of single
    hosts are added up.

    :param accounts: answers by host.
    :param only: ID of a single owner; ``None`` for all.
    :returns: owners by ID, in the form of the answer, with ``scope``.
    """
    found: dict[str, dict[str, OwnerNumbers]] = {}
    scopes: dict[str, str] = {}
    for host, account in accounts.items():
        for owner in account.parts if only is None else {only}:
            if owner in account.parts:
                found.setdefault(owner, {})[host] = account.parts[owner]
                scopes[owner] = account.scope
    return {
        owner: _owner(owner, scopes[owner], parts)
        for owner, parts in sorted(found.items())
    }


def _owner(
    owner: str, scope: str, parts: Mapping[str, OwnerNumbers]
) -> dict[str, Any]:
    combine = _median if scope == DOMAIN else _sum
    resources = {
        resource: None
        for part in parts.values()
        for resource in part.usage_quotas
    }
    return {
        'id': owner,
        'heaviness_quotas': combine(
            part.heaviness_quotas for part in parts.values()
        ),
        'instances_count': sum(
            part.instances_count for part in parts.values()
        ),
        'usage_quotas': {
            resource: combine(
                part.usage_quotas.get(resource) for part in parts.values()
            )
            for resource in resources
        },
        'hosts': sorted(
            host for host, part in parts.items() if part.instances_count
        ),
        'scope': scope,
    }


def _known(numbers: Numbers) -> list[float]:
    return [value for value in numbers if value is not None]


def _combined(
    numbers: Numbers, how: Callable[[list[float]], float]
) -> float | None:
    known = _known(numbers)
    return how(known) if known else None


def _median(numbers: Numbers) -> float | None:
    return _combined(numbers, statistics.median)


def _sum(numbers: Numbers) -> float | None:
    return _combined(numbers, math.fsum)
