# SPDX-License-Identifier: Apache-2.0

"""Reads from the configuration what is believed of peers."""

from collections.abc import Mapping
import json
import pathlib
from typing import Any

import numpy as np

from nova_fairness import exception
from nova_fairness.exchange import limits
from nova_fairness.model import resources


def from_options(group: Any) -> limits.Bounds:
    """Freeze the options of ``[fairness_exchange]``.

    :param group: with an attribute for each option.
    :raises ConfigurationError: if a capacity is no positive number, its
        resource is unknown, or the file of capacities cannot be used.
    """
    capacity = _capacity(
        'max_peer_capacity', group.max_peer_capacity, limits.LARGEST_CAPACITY
    )
    return limits.Bounds(
        domain=group.domain,
        view_max_age=group.view_max_age,
        max_users=group.max_users,
        max_total_users=group.max_total_users,
        max_peers=group.max_peers,
        capacity=capacity,
        capacities=_capacities(group.peer_capacity_file, capacity),
        max_heaviness=group.max_peer_heaviness,
        forget_after_s=group.forget_peer_after,
    )


def _capacities(
    path: str, capacity: resources.Vector
) -> tuple[tuple[str, resources.Vector], ...]:
    """Read what is believed of hosts by pattern, in the file's order."""
    if not path:
        return ()
    names = resources.RESOURCES.names
    common = dict(zip(names, capacity.tolist(), strict=True))
    try:
        entries = json.loads(pathlib.Path(path).read_text('utf-8'))
        return tuple(
            (
                pattern,
                _capacity(f'{limits.CAPACITY_FILE} = {path}', given, common),
            )
            for pattern, given in entries.items()
        )
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise exception.ConfigurationError(
            f'[fairness_exchange] {limits.CAPACITY_FILE} = {path}: {error}; '
            'expected a JSON object {"host or pattern": {"resource": number}}'
        ) from error


def _capacity(
    option: str, configured: Mapping[str, Any], common: Mapping[str, float]
) -> resources.Vector:
    known = resources.RESOURCES.names
    if strange := sorted(set(configured) - set(known)):
        raise exception.ConfigurationError(
            f'[fairness_exchange] {option} names {strange}; '
            f'expected resources out of {", ".join(known)}'
        )
    given = {
        name: _positive(option, name, value)
        for name, value in configured.items()
    }
    return resources.RESOURCES.vector(**{**common, **given})


def _positive(option: str, name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not 0 < number <= np.finfo(np.float64).max:
        raise exception.ConfigurationError(
            f'[fairness_exchange] {option}: {name}:{value}; '
            'expected a number above 0'
        )
    return number
