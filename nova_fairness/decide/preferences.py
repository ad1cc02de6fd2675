# SPDX-License-Identifier: Apache-2.0

"""Preferences of an owner among its own VMs.

The policy sets the service of all VMs of a user on a node together. The owner
decides how much of it each of them gets: in proportion to its size times the
preference that the owner states. The total of the user stays the same, so
preferences of one owner change nothing for another.
"""

from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from nova_fairness.model import allocation
from nova_fairness.model import instance
from nova_fairness.model import usage as usage_model

SMALLEST = 0.01
"""Least preference; a VM without one has 1."""

LARGEST = 100.0
"""Greatest preference."""

_ROUNDS = 60


def preferences_of_vms(
    incarnations: Sequence[instance.Incarnation],
    stated: Mapping[str, float],
) -> usage_model.Scalars:
    """Return the preference of each VM, (n,).

    :param stated: preference by UUID, from :data:`SMALLEST` to
        :data:`LARGEST`.
    :returns: (n,); 1 for VMs without a preference.
    """
    return np.array(
        [stated.get(item.instance.uuid, 1.0) for item in incarnations],
        dtype=np.float64,
    )


def has_unequal_preferences(
    preference: usage_model.Scalars, user: usage_model.Indices
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which VMs belong to a user with different preferences, (n,).

    :param preference: (n,) > 0.
    :param user: (n,) index of each VM's user.
    :returns: (n,); equal for all VMs of a user.
    """
    count = int(user.max(initial=-1)) + 1
    least = np.full(count, np.inf)
    most = np.zeros(count)
    np.minimum.at(least, user, preference)
    np.maximum.at(most, user, preference)
    return np.asarray((most > least)[user])


def means_of_users(
    values: usage_model.Scalars,
    sizes: usage_model.Scalars,
    user: usage_model.Indices,
    chosen: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> usage_model.Scalars:
    """Replace the values of chosen users' VMs by the mean of the user, (n,).

    :param values: (n,) weights or heaviness.
    :param sizes: (n,) > 0, by which VMs count in the mean.
    :param chosen: (n,) VMs of chosen users, by
        :func:`has_unequal_preferences`.
    :returns: a new array; the sum of ``sizes x values`` of each user stays.
    """
    result = values.copy()
    if not chosen.any():
        return result
    sums = np.bincount(user[chosen], (sizes * values)[chosen])
    whole = np.bincount(user[chosen], sizes[chosen])
    safe = np.where(whole > 0, whole, 1.0)
    result[chosen] = (sums / safe)[user[chosen]]
    return result


def divide_by_preference(
    weights: allocation.Weights,
    preference: usage_model.Scalars,
    sizes: allocation.Weights,
    user: usage_model.Indices,
    max_weight_ratio: usage_model.Scalars,
) -> allocation.Weights:
    """Divide the weights of each user's VMs by the owner's preferences.

    For every control the sum of ``sizes x weights`` of a user stays the same,
    and every weight is from ``1 / sqrt(ratio)`` to ``sqrt(ratio)``. If a
    preference would exceed this range, the weight is at the end of the range,
    and the user's other VMs share the difference.

    :param weights: (n, c) finite, within the bounds above.
    :param preference: (n,) > 0.
    :param sizes: (n, c) > 0, kernel units of a weight of 1.
    :param user: (n,) index of each VM's user.
    :param max_weight_ratio: (c,) largest / smallest weight, >= 1.
    :returns: (n, c), a new array; VMs of users with equal preferences keep
        their weights.
    """
    result = weights.copy()
    reach = np.sqrt(max_weight_ratio)
    chosen = has_unequal_preferences(preference, user)
    for number in np.unique(user[chosen]):
        rows = np.flatnonzero(user == number)
        for column in range(weights.shape[1]):
            result[rows, column] = _divide_control(
                weights[rows, column],
                preference[rows],
                sizes[rows, column],
                float(reach[column]),
            )
    return result


def _divide_control(
    weights: usage_model.Scalars,
    preference: usage_model.Scalars,
    sizes: usage_model.Scalars,
    reach: float,
) -> usage_model.Scalars:
    """Divide the weights of one user for one control, by preference."""
    whole = float((sizes * weights).sum())
    low, high = 1 / reach, reach
    plain = preference * whole / float((sizes * preference).sum())
    if plain.min() >= low and plain.max() <= high:
        return np.asarray(plain)
    # The sum grows with the level, so its level is found by halving.
    below = low / float(preference.max())
    above = high / float(preference.min())
    for _ in range(_ROUNDS):
        level = float(np.sqrt(below * above))
        given = (sizes * np.clip(level * preference, low, high)).sum()
        below, above = (level, above) if given < whole else (below, level)
    return np.asarray(np.clip(above * preference, low, high))
