# SPDX-License-Identifier: Apache-2.0

"""Groups of rows: their sums and their numbers."""

import numpy as np
import numpy.typing as npt

from nova_fairness.model import usage as usage_model


def sum_by(
    group: usage_model.Indices, values: npt.NDArray[np.float64], count: int
) -> npt.NDArray[np.float64]:
    """Add up the rows of each group, in row order.

    :param group: (n,) 0 <= group < ``count``.
    :param values: (n,) or (n, k).
    :param count: number of groups.
    :returns: (count,) or (count, k); zero for a group without rows.
    """
    if values.ndim == 1:
        return _sums_by_group(group, values, count)
    columns = values.shape[1]
    # One flat count instead of one per column: with few VMs, the time is
    # mostly numpy's overhead per call.
    cell = group[:, np.newaxis] * columns + np.arange(columns)
    flat = _sums_by_group(cell.ravel(), values.ravel(), count * columns)
    return flat.reshape(count, columns)


def _sums_by_group(
    group: usage_model.Indices, weights: npt.NDArray[np.float64], count: int
) -> npt.NDArray[np.float64]:
    sums = np.bincount(group, weights=weights, minlength=count)
    return sums.astype(np.float64, copy=False)


def number_present_groups(
    group: usage_model.Indices,
) -> tuple[usage_model.Indices, usage_model.Indices]:
    """Number the groups that have rows.

    :param group: (n,) group of each row, >= 0.
    :returns: (k,) groups with rows, ascending, and (n,) the number of the
        group of each row.
    """
    here = np.bincount(group) > 0
    return np.flatnonzero(here), (np.cumsum(here) - 1)[group]
