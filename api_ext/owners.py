# SPDX-License-Identifier: Apache-2.0

"""Combination of the answers of all hosts about users or projects."""

import collections
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
"""Larger numbers count as unknown, because their sums might overflow."""

LARGEST_WHOLE = (1 << 63) - 1

Numbers = Iterable[float | None]


@dataclasses.dataclass(frozen=True)
class OwnerNumbers:
    """Numbers that one host reports about one owner."""

    heaviness_quotas: float | None
    instances_count: int
    usage_quotas: Mapping[str, float | None]
    shadow_heaviness_quotas: float | None = None


@dataclasses.dataclass(frozen=True)
class HostOwners:
    """Numbers that one host reports about all owners.

    :ivar scope: :data:`DOMAIN` if the numbers describe all hosts together,
        :data:`HOST` if they describe this host.
    :ivar parts: numbers by owner.
    :ivar shadow_metric: name of the host's shadow metric; empty if it has
        none.
    """

    scope: str
    parts: Mapping[str, OwnerNumbers]
    shadow_metric: str = ''


def parse_users(answer: Mapping[str, Any]) -> HostOwners:
    """Parse an answer of ``list_users``; the result is empty if agents compare
    projects.
    """
    # Agents before 1.2 do not send the kind of owners that they compare.
    is_users = answer.get('entity', 'user') == 'user'
    found = _parts(answer['users']) if is_users else {}
    return HostOwners(DOMAIN, found, _shadow_metric(answer))


def parse_projects(answer: Mapping[str, Any]) -> HostOwners:
    """Parse an answer of ``list_projects``."""
    scope = DOMAIN if answer['scope'] == DOMAIN else HOST
    found = _parts(answer['projects'])
    return HostOwners(scope, found, _shadow_metric(answer))


def _shadow_metric(answer: Mapping[str, Any]) -> str:
    # Agents before 1.8 have none.
    return str(answer.get('shadow_metric', ''))


def _parts(owners: Mapping[str, Any]) -> Mapping[str, OwnerNumbers]:
    return {
        str(owner): OwnerNumbers(
            parse_number(item['heaviness_quotas']),
            parse_count(item['instances_here_count']),
            {
                str(resource): parse_number(value)
                for resource, value in item['usage_quotas'].items()
            },
            parse_number(item.get('shadow_heaviness_quotas')),
        )
        for owner, item in owners.items()
    }


def parse_number(value: Any) -> float | None:
    """Return a number in an answer of an agent; ``None`` if it is out of
    range.
    """
    if value is None or not -LARGEST <= value <= LARGEST:
        return None
    return float(value)


def parse_count(value: Any) -> int:
    """Parse a count in an answer of an agent.

    :raises ValueError: if it is out of range.
    :raises OverflowError: if it is infinite.
    """
    found = int(value)
    if not 0 <= found <= LARGEST_WHOLE:
        raise ValueError(f'{value!r:.50} is not a count')
    return found


def merge_hosts(
    answers: Mapping[str, HostOwners], only: str | None = None
) -> dict[str, dict[str, Any]]:
    """Combine the answers of all hosts.

    Every host reports numbers of the whole domain. They differ a little by
    their age, or much if a host is cut off, so the median is used. Numbers
    about single hosts are added up. Numbers of different shadow metrics are
    not comparable, so those of the most common one count.

    :param answers: answers by host.
    :param only: ID of a single owner; ``None`` for all.
    :returns: owners by ID, in the form of the API, with ``scope``.
    """
    shadow = _common_shadow(answers)
    found: dict[str, dict[str, OwnerNumbers]] = {}
    scopes: dict[str, str] = {}
    for host, account in answers.items():
        for owner in account.parts if only is None else {only}:
            if owner in account.parts:
                found.setdefault(owner, {})[host] = account.parts[owner]
                scopes[owner] = account.scope
    return {
        owner: {
            **_owner(owner, scopes[owner], parts),
            **_shadow_fields(shadow, answers, scopes[owner], parts),
        }
        for owner, parts in sorted(found.items())
    }


def _common_shadow(answers: Mapping[str, HostOwners]) -> str:
    """Return the shadow metric of most hosts that have one; the first by name
    of equals; empty if no host has one.
    """
    counts = collections.Counter(
        account.shadow_metric
        for account in answers.values()
        if account.shadow_metric
    )
    return min(counts, key=lambda name: (-counts[name], name), default='')


def _shadow_fields(
    shadow: str,
    answers: Mapping[str, HostOwners],
    scope: str,
    parts: Mapping[str, OwnerNumbers],
) -> dict[str, Any]:
    """Return the heaviness by the shadow metric; nothing if there is none."""
    if not shadow:
        return {}
    combine = _median if scope == DOMAIN else _sum
    return {
        'shadow_metric': shadow,
        'shadow_heaviness_quotas': combine(
            part.shadow_heaviness_quotas
            for host, part in parts.items()
            if answers[host].shadow_metric == shadow
        ),
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
