# SPDX-License-Identifier: Apache-2.0

"""Computes the use of each VM between two readings of counters.

The result is never negative or huge: an entry whose counter was reset or could
not be read has its decayed past value.
"""

from collections.abc import Sequence
import dataclasses
import operator

import numpy as np

from nova_fairness.model import instance
from nova_fairness.model import resources
from nova_fairness.model import sample
from nova_fairness.model import usage as usage_model

PLAUSIBLE_CPU = 1.25
"""Largest CPU time of a VM, as a multiple of what its vCPUs can use.

A VM's group also contains QEMU's emulator and I/O threads, so some excess is
real. More than a quarter counts as a fault of the counter, because one absurd
reading would stay in the smoothed usage for many rounds.
"""

_ABSENT = -1


def usage_between(
    before: sample.Sample,
    after: sample.Sample,
    speed_factor: float,
    past: usage_model.Usage | None,
    decay_factor: float,
) -> usage_model.Usage:
    """Return the usage of the interval between two readings.

    The interval is that between the beginnings of the readings; a VM that was
    read a little later or earlier is scaled to it. Time-shared entries are
    smoothed as rates, ``old x (1 - d) + new x d`` (paper, section 5.1.2), so
    that rounds of different length count alike. The first known interval of a
    VM, and the one in which its pause ends, counts in full. Space-shared
    entries are the present values, or the last known ones.

    :param before: the earlier reading.
    :param after: the later one; its rows are the rows of the result.
    :param speed_factor: weighted seconds per second of one CPU, > 0.
    :param past: result of this function in the last round; ``None`` at first.
    :param decay_factor: weight d of the new interval, 0 < d <= 1.
    :returns: usage of the interval; VMs that are missing in a reading, or have
        an unreadable counter, are not known.
    :raises ValueError: if ``after`` is not later than ``before`` or a factor
        is out of range.
    """
    interval_s = after.time_s - before.time_s
    _check_factors(interval_s, speed_factor, decay_factor)
    rows = _find_rows(after.incarnations, before.incarnations)
    elapsed_s = after.read_at_s - _select_rows(before.read_at_s, rows)
    elapsed_s = np.where(elapsed_s > 0, elapsed_s, np.nan)
    difference = after.totals - _select_rows(before.totals, rows)
    new = _amounts_of_interval(
        after, difference, interval_s / elapsed_s, speed_factor
    )
    new = _limit_cpu_time(new, after.incarnations, interval_s * speed_factor)
    known = _known_rows(difference, elapsed_s)
    fresh = np.isfinite(new) & known[:, np.newaxis]
    old = _past_amounts(after, interval_s, past)
    amounts = _smooth(new, fresh, old, decay_factor)
    return usage_model.Usage(
        interval_s=interval_s,
        incarnations=after.incarnations,
        amounts=amounts,
        known=known,
        cpu_stall=_stall_parts(before, after, rows, elapsed_s),
        cpu_busy=_busy_parts(before, after, interval_s),
        unsmoothed=np.where(fresh, new, amounts),
    )


def _busy_parts(
    before: sample.Sample, after: sample.Sample, interval_s: float
) -> usage_model.Scalars:
    """Return the busy part of each CPU that exists in both readings."""
    known = min(len(before.cpu_busy_s), len(after.cpu_busy_s))
    busy_s = after.cpu_busy_s[:known] - before.cpu_busy_s[:known]
    return np.asarray(np.clip(busy_s / interval_s, 0.0, 1.0))


def _check_factors(
    interval_s: float, speed_factor: float, decay_factor: float
) -> None:
    if not interval_s > 0:
        raise ValueError(
            f'the later reading must be after the earlier one, '
            f'but the interval is {interval_s} s'
        )
    if not (np.isfinite(speed_factor) and speed_factor > 0):
        raise ValueError(f'speed_factor must be > 0, got {speed_factor}')
    if not 0 < decay_factor <= 1:
        raise ValueError(
            f'decay_factor must be > 0 and <= 1, got {decay_factor}'
        )


def _find_rows(
    wanted: Sequence[instance.Incarnation],
    present: Sequence[instance.Incarnation],
) -> usage_model.Indices:
    """Return the row of each wanted incarnation, _ABSENT if missing: (n,)."""
    if len(wanted) == len(present) and all(map(operator.is_, wanted, present)):
        return np.arange(len(wanted), dtype=np.intp)
    place = {item.key: row for row, item in enumerate(present)}
    return np.array(
        [place.get(item.key, _ABSENT) for item in wanted], dtype=np.intp
    )


def _select_rows(
    values: usage_model.Scalars, rows: usage_model.Indices
) -> usage_model.Scalars:
    """Return the values at these rows; NaN for absent rows."""
    found = rows != _ABSENT
    result = np.full((len(rows), *values.shape[1:]), np.nan)
    result[found] = values[rows[found]]
    return result


def _amounts_of_interval(
    after: sample.Sample,
    difference: resources.Vector,
    scale: usage_model.Scalars,
    speed_factor: float,
) -> resources.Vector:
    """Return the amounts of the interval; NaN where they are unknown."""
    registry = resources.RESOURCES
    spent = difference * scale[:, np.newaxis]
    spent[:, registry.index('cpu_time')] *= speed_factor
    new = np.where(registry.time_shared, spent, after.totals)
    return np.where(np.isfinite(new) & (new >= 0), new, np.nan)


def _limit_cpu_time(
    new: resources.Vector,
    incarnations: Sequence[instance.Incarnation],
    one_cpu: float,
) -> resources.Vector:
    cpu = resources.RESOURCES.index('cpu_time')
    vcpus = np.array([item.instance.vcpus for item in incarnations])
    new[:, cpu] = np.minimum(new[:, cpu], PLAUSIBLE_CPU * one_cpu * vcpus)
    return new


def _known_rows(
    difference: resources.Vector, elapsed_s: usage_model.Scalars
) -> resources.Mask:
    counted = difference[:, resources.RESOURCES.time_shared]
    seen = np.isfinite(counted).any(axis=1)
    return np.asarray(seen & np.isfinite(elapsed_s))


def without_vms(
    used: usage_model.Usage, excluded: frozenset[str]
) -> usage_model.Usage:
    """Return the usage with the use of some VMs set to 0.

    :param excluded: keys of these VMs.
    :returns: rows as in ``used``; the usage of these VMs counts as unknown.
    """
    if not excluded:
        return used
    kept = np.array([vm.key not in excluded for vm in used.incarnations], bool)
    column = kept[:, np.newaxis]
    newest = used.unsmoothed
    return dataclasses.replace(
        used,
        amounts=np.where(column, used.amounts, 0.0),
        known=used.known & kept,
        cpu_stall=np.where(kept, used.cpu_stall, 0.0),
        unsmoothed=None if newest is None else np.where(column, newest, 0.0),
    )


def _smooth(
    new: resources.Vector,
    fresh: resources.Mask,
    old: resources.Vector,
    decay_factor: float,
) -> resources.Vector:
    """Combine new amounts with the old ones; NaN in the old ones means
    none.
    """
    registry = resources.RESOURCES
    base = np.nan_to_num(old, nan=0.0)
    spent = np.where(fresh, new, 0.0)
    mixed = base * (1 - decay_factor) + spent * decay_factor
    time_shared = np.where(fresh & np.isnan(old), spent, mixed)
    space_shared = np.where(fresh, new, base)
    return np.where(registry.time_shared, time_shared, space_shared)


def _past_amounts(
    after: sample.Sample, interval_s: float, past: usage_model.Usage | None
) -> resources.Vector:
    """Return the past amounts, scaled to the interval; NaN for new VMs."""
    if past is None:
        return np.full(after.totals.shape, np.nan)
    # A row that is not known but not zero is the decayed past of a VM that
    # could not be read for a while: smoothing goes on from there.
    lasting = past.known | (past.amounts > 0).any(axis=1)
    rates = np.where(
        resources.RESOURCES.time_shared,
        past.amounts * (interval_s / past.interval_s),
        past.amounts,
    )
    rows = _find_rows(after.incarnations, past.incarnations)
    remembered = np.where(lasting[:, np.newaxis], rates, np.nan)
    old = _select_rows(remembered, rows)
    # A VM that was paused, as on arrival by live migration, begins anew: what
    # it did not do meanwhile is no past of what it does.
    paused = _paused_flags(past.incarnations)
    if paused.any():
        was_paused = _select_rows(paused, rows) == 1
        old[was_paused & (_paused_flags(after.incarnations) == 0)] = np.nan
    return old


def _paused_flags(vms: Sequence[instance.Incarnation]) -> usage_model.Scalars:
    return np.array([vm.paused for vm in vms], dtype=np.float64)


def _stall_parts(
    before: sample.Sample,
    after: sample.Sample,
    rows: usage_model.Indices,
    elapsed_s: usage_model.Scalars,
) -> usage_model.Scalars:
    stalled = after.cpu_stall_s - _select_rows(before.cpu_stall_s, rows)
    # A counter that went backwards tells nothing about the interval.
    part = np.where(stalled >= 0, stalled, np.nan) / elapsed_s
    return np.clip(part, 0.0, 1.0)
