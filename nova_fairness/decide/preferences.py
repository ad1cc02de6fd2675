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


def of_instances(
    incarnations: Sequence[instance.Incarnation],
    stated: Mapping[str, float],
) -> usage_model.Scalars:
    """Preference of each VM.

    :param stated: by UUID, from :data:`SMALLEST` to :data:`LARGEST`.
    :returns: (n,) 1 where nothing is stated.
    """
    return np.array(
        [stated.get(item.instance.uuid, 1.0) for item in incarnations],
        dtype=np.float64,
    )


def concerned(
    preference: usage_model.Scalars, user: usage_model.Indices
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Tell whose owners told any of their VMs from the others.

    :param preference: (n,) > 0.
    :param user: (n,) index of each VM's user.
    :returns: (n,) the same for all VMs of a user.
    """
    count = int(user.max(initial=-1)) + 1
    least = np.full(count, np.inf)
    most = np.zeros(count)
    np.minimum.at(least, user, preference)
    np.maximum.at(most, user, preference)
    return np.asarray((most > least)[user])


def together(
    values: usage_model.Scalars,
    sizes: usage_model.Scalars,
    user: usage_model.Indices,
    chosen: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> usage_model.Scalars:
    """Means of the chosen users, for each of their VMs.

    :param values: (n,) weights or heaviness.
    :param sizes: (n,) > 0: how much each VM counts.
    :param chosen: (n,) of :func:`concerned`.
    :returns: (n,) new; the sum of ``sizes x values`` of each user is kept.
    """
    result = values.copy()
    if not chosen.any():
        return result
    sums = np.bincount(user[chosen], (sizes * values)[chosen])
    whole = np.bincount(user[chosen], sizes[chosen])
    safe = np.where(whole > 0, whole, 1.0)
    result[chosen] = (sums / safe)[user[chosen]]
    return result


def divided(
    weights: allocation.Weights,
    preference: usage_model.Scalars,
    sizes: allocation.Weights,
    user: usage_model.Indices,
    max_weight_ratio: usage_model.Scalars,
) -> allocation.Weights:
    """Divide what each user's VMs have together by the owner's preference.

    Of every control for itself, the sum of ``sizes x weights`` of a user
    stays what it is, and no weight leaves ``1 / sqrt(ratio) ..
    sqrt(ratio)``: where a preference reaches farther, it is cut there, and
    the user's other VMs share the rest.

    :param weights: (n, c) finite, within the bounds above.
    :param preference: (n,) > 0.
    :param sizes: (n, c) > 0: kernel units of a weight of 1.
    :param user: (n,) index of each VM's user.
    :param max_weight_ratio: (c,) largest / smallest weight, >= 1.
    :returns: (n, c) new; users whose VMs have one preference keep what they
        have.
    """
    result = weights.copy()
    reach = np.sqrt(max_weight_ratio)
    chosen = concerned(preference, user)
    for number in np.unique(user[chosen]):
        rows = np.flatnonzero(user == number)
        for column in range(weights.shape[1]):
            result[rows, column] = _parts(
                weights[rows, column],
                preference[rows],
                sizes[rows, column],
                float(reach[column]),
            )
    return result


def _parts(
    weights: usage_model.Scalars,
    preference: usage_model.Scalars,
    sizes: usage_model.Scalars,
    reach: float,
) -> usage_model.Scalars:
    """Divide one user's part of one control."""
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
