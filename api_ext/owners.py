# SPDX-License-Identifier: Apache-2.0

"""Makes one list of what hosts tell about users or projects."""

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
"""Larger numbers are not believed: sums of them might not be numbers."""

LARGEST_WHOLE = (1 << 63) - 1

Numbers = Iterable[float | None]


@dataclasses.dataclass(frozen=True)
class OwnerNumbers:
    """Numbers of one host about one owner."""

    heaviness_quotas: float | None
    instances_count: int
    usage_quotas: Mapping[str, float | None]


@dataclasses.dataclass(frozen=True)
class HostOwners:
    """Numbers of one host about all owners that it knows.

    :ivar scope: :data:`DOMAIN` if the numbers are of all hosts together,
        :data:`HOST` if they are of this one.
    """

    scope: str
    parts: Mapping[str, OwnerNumbers]


def of_users(answer: Mapping[str, Any]) -> HostOwners:
    """Read an answer of ``list_users``; empty where projects are compared."""
    # Agents before 1.2 do not say whom they compare.
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
    """Take a number of an agent; ``None`` if it cannot be true."""
    if value is None or not -LARGEST <= value <= LARGEST:
        return None
    return float(value)


def whole(value: Any) -> int:
    """Take a count of an agent.

    :raises ValueError: if it cannot be true.
    :raises OverflowError: if it is infinite.
    """
    found = int(value)
    if not 0 <= found <= LARGEST_WHOLE:
        raise ValueError(f'{value!r:.50} is no count')
    return found


def merged(
    accounts: Mapping[str, HostOwners], only: str | None = None
) -> dict[str, dict[str, Any]]:
    """Make one list.

    Numbers of the whole domain are told by every host, and differ a little
    by the age of what each knows, or much by a host that is cut off: the
    median is taken. Numbers of a host are added up.

    :param accounts: by host.
    :param only: the owner to look at; ``None`` for all.
    :returns: owners by id, each as it is answered, with ``scope``.
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
