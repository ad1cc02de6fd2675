# SPDX-License-Identifier: Apache-2.0

"""From two readings of counters to what each VM used in between.

Nothing here can give negative or huge usage: a counter that went backwards
or could not be read leaves the decayed past of that entry.
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

A VM's group holds QEMU's emulator and I/O threads beside the vCPUs, and what
they do for the guest is the guest's: some excess is real. More than a quarter
is taken for a fault of the counter, because one absurd reading would stay in
the smoothed usage for many rounds.
"""

_NOWHERE = -1


def between(
    before: sample.Sample,
    after: sample.Sample,
    speed_factor: float,
    past: usage_model.Usage | None,
    decay_factor: float,
) -> usage_model.Usage:
    """The usage of the interval between two readings.

    The interval is that between the beginnings of the readings; a VM that
    was read a little later or earlier is scaled to it. Time-shared entries
    are smoothed, ``old x (1 - d) + new x d`` (paper, section 5.1.2), as
    rates, so that rounds of different length weigh alike; the first known
    interval of a VM, and the one in which it ceases to be paused, is taken
    whole. Space-shared entries are the present values, or the last ones
    known.

    :param before: the earlier reading.
    :param after: the later one; its rows are the rows of the result.
    :param speed_factor: weighted seconds per second of one CPU, > 0.
    :param past: result of this function in the last round; ``None`` at first.
    :param decay_factor: weight d of the new interval, 0 < d <= 1.
    :returns: usage of the interval; VMs that are not in both readings, or
        with a counter that could not be read, are not known.
    :raises ValueError: if ``after`` is not later than ``before`` or a factor
        is out of range.
    """
    interval_s = after.time_s - before.time_s
    _check(interval_s, speed_factor, decay_factor)
    rows = _places(after.incarnations, before.incarnations)
    elapsed_s = after.read_at_s - _picked(before.read_at_s, rows)
    elapsed_s = np.where(elapsed_s > 0, elapsed_s, np.nan)
    difference = after.totals - _picked(before.totals, rows)
    new = _amounts(after, difference, interval_s / elapsed_s, speed_factor)
    new = _plausible(new, after.incarnations, interval_s * speed_factor)
    known = _known(difference, elapsed_s)
    fresh = np.isfinite(new) & known[:, np.newaxis]
    old = _remembered(after, interval_s, past)
    amounts = _smoothed(new, fresh, old, decay_factor)
    return usage_model.Usage(
        interval_s=interval_s,
        incarnations=after.incarnations,
        amounts=amounts,
        known=known,
        cpu_stall=_stall(before, after, rows, elapsed_s),
        cpu_busy=_busy(before, after, interval_s),
        unsmoothed=np.where(fresh, new, amounts),
    )


def _busy(
    before: sample.Sample, after: sample.Sample, interval_s: float
) -> usage_model.Scalars:
    """The busy part of each CPU; CPUs come and go with hotplug."""
    known = min(len(before.cpu_busy_s), len(after.cpu_busy_s))
    busy_s = after.cpu_busy_s[:known] - before.cpu_busy_s[:known]
    return np.asarray(np.clip(busy_s / interval_s, 0.0, 1.0))


def _check(
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


def _places(
    wanted: Sequence[instance.Incarnation],
    present: Sequence[instance.Incarnation],
) -> usage_model.Indices:
    """The row of each wanted incarnation, _NOWHERE if absent: (n,)."""
    if len(wanted) == len(present) and all(map(operator.is_, wanted, present)):
        return np.arange(len(wanted), dtype=np.intp)
    place = {item.key: row for row, item in enumerate(present)}
    return np.array(
        [place.get(item.key, _NOWHERE) for item in wanted], dtype=np.intp
    )


def _picked(
    values: usage_model.Scalars, rows: usage_model.Indices
) -> usage_model.Scalars:
    """Reorder rows; NaN where there is none."""
    found = rows != _NOWHERE
    result = np.full((len(rows), *values.shape[1:]), np.nan)
    result[found] = values[rows[found]]
    return result


def _amounts(
    after: sample.Sample,
    difference: resources.Vector,
    scale: usage_model.Scalars,
    speed_factor: float,
) -> resources.Vector:
    """The amounts of the interval, NaN where nothing is known."""
    registry = resources.RESOURCES
    spent = difference * scale[:, np.newaxis]
    spent[:, registry.index('cpu_time')] *= speed_factor
    new = np.where(registry.time_shared, spent, after.totals)
    return np.where(np.isfinite(new) & (new >= 0), new, np.nan)


def _plausible(
    new: resources.Vector,
    incarnations: Sequence[instance.Incarnation],
    one_cpu: float,
) -> resources.Vector:
    cpu = resources.RESOURCES.index('cpu_time')
    vcpus = np.array([item.instance.vcpus for item in incarnations])
    new[:, cpu] = np.minimum(new[:, cpu], PLAUSIBLE_CPU * one_cpu * vcpus)
    return new


def _known(
    difference: resources.Vector, elapsed_s: usage_model.Scalars
) -> resources.Mask:
    counted = difference[:, resources.RESOURCES.time_shared]
    seen = np.isfinite(counted).any(axis=1)
    return np.asarray(seen & np.isfinite(elapsed_s))


def counted(
    used: usage_model.Usage, apart: frozenset[str]
) -> usage_model.Usage:
    """Leave out the use of VMs that others must not feel.

    :param apart: keys of these VMs.
    :returns: rows as in ``used``; theirs as of VMs without known usage.
    """
    if not apart:
        return used
    kept = np.array([vm.key not in apart for vm in used.incarnations], bool)
    column = kept[:, np.newaxis]
    newest = used.unsmoothed
    return dataclasses.replace(
        used,
        amounts=np.where(column, used.amounts, 0.0),
        known=used.known & kept,
        cpu_stall=np.where(kept, used.cpu_stall, 0.0),
        unsmoothed=None if newest is None else np.where(column, newest, 0.0),
    )


def _smoothed(
    new: resources.Vector,
    fresh: resources.Mask,
    old: resources.Vector,
    decay_factor: float,
) -> resources.Vector:
    """Mix what is fresh with the old amounts, NaN where there are none."""
    registry = resources.RESOURCES
    base = np.nan_to_num(old, nan=0.0)
    spent = np.where(fresh, new, 0.0)
    mixed = base * (1 - decay_factor) + spent * decay_factor
    time_shared = np.where(fresh & np.isnan(old), spent, mixed)
    space_shared = np.where(fresh, new, base)
    return np.where(registry.time_shared, time_shared, space_shared)


def _remembered(
    after: sample.Sample, interval_s: float, past: usage_model.Usage | None
) -> resources.Vector:
    """The past at the present interval; NaN for VMs without one."""
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
    rows = _places(after.incarnations, past.incarnations)
    remembered = np.where(lasting[:, np.newaxis], rates, np.nan)
    old = _picked(remembered, rows)
    # A VM that was paused, as on arrival by live migration, begins anew: what
    # it did not do meanwhile is no past of what it does.
    paused = _paused(past.incarnations)
    if paused.any():
        was_paused = _picked(paused, rows) == 1
        old[was_paused & (_paused(after.incarnations) == 0)] = np.nan
    return old


def _paused(vms: Sequence[instance.Incarnation]) -> usage_model.Scalars:
    return np.array([vm.paused for vm in vms], dtype=np.float64)


def _stall(
    before: sample.Sample,
    after: sample.Sample,
    rows: usage_model.Indices,
    elapsed_s: usage_model.Scalars,
) -> usage_model.Scalars:
    stalled = after.cpu_stall_s - _picked(before.cpu_stall_s, rows)
    # A counter that went backwards tells nothing about the interval.
    part = np.where(stalled >= 0, stalled, np.nan) / elapsed_s
    return np.clip(part, 0.0, 1.0)
