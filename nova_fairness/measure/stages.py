# SPDX-License-Identifier: Apache-2.0

"""Runs a metric, and validates its result.

A metric may be foreign code. Each of its errors becomes
:class:`~nova_fairness.exception.PluginMisbehaved`. Its arguments are
read-only, so that it cannot change shared data. The caller enforces the
deadline.
"""

from collections.abc import Callable
import dataclasses
from typing import Any
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from nova_fairness import exception
from nova_fairness.measure import metric as metric_base
from nova_fairness.model import wording

_Array = TypeVar('_Array', bound=npt.NDArray[Any])

_NUMBERS = 'biufO'
"""Kinds of numpy types that can contain real numbers."""


def instance_stage(
    metric: metric_base.Metric, demands: metric_base.Demands
) -> metric_base.Heaviness:
    """Run the metric's first stage: the heaviness of each VM.

    :returns: (n,) finite, a new array.
    :raises PluginMisbehaved: if the metric raises or returns anything else.
    """
    guarded = dataclasses.replace(
        demands,
        usage=_read_only(demands.usage),
        endowment=_read_only(demands.endowment),
        supply=_read_only(demands.supply),
        node=_read_only(demands.node),
        rates=None if demands.rates is None else _read_only(demands.rates),
    )
    return _run_stage(
        metric,
        'instances',
        lambda: metric.instances(guarded),
        len(demands.usage),
    )


def user_stage(
    metric: metric_base.Metric, totals: metric_base.Totals
) -> metric_base.Heaviness:
    """Run the metric's second stage: the heaviness of each user.

    The metric is not called without users.

    :returns: (u,) finite, a new array.
    :raises PluginMisbehaved: if the metric raises or returns anything else.
    """
    if not totals.user_count:
        return np.zeros(0)
    guarded = metric_base.Totals(
        instance_heaviness=_read_only(totals.instance_heaviness),
        usage=_read_only(totals.usage),
        endowment=_read_only(totals.endowment),
        quota=_read_only(totals.quota),
        supply=_read_only(totals.supply),
    )
    return _run_stage(
        metric, 'users', lambda: metric.users(guarded), totals.user_count
    )


def combine_stage(
    metric: metric_base.Metric,
    user_heaviness: metric_base.Heaviness,
    instance_heaviness: metric_base.Heaviness,
) -> metric_base.Heaviness:
    """Run the metric's last stage: the heaviness that decides each VM's
    weight.

    :param user_heaviness: (n,) of each VM's user.
    :param instance_heaviness: (n,) of the instance stage.
    :returns: (n,) finite, a new array.
    :raises PluginMisbehaved: if the metric raises or returns anything else.
    """
    user = _read_only(user_heaviness)
    own = _read_only(instance_heaviness)
    return _run_stage(
        metric, 'combine', lambda: metric.combine(user, own), len(own)
    )


def _read_only(values: _Array) -> _Array:
    view = values.view()
    view.setflags(write=False)
    return view


def _run_stage(
    metric: metric_base.Metric,
    stage: str,
    run: Callable[[], object],
    rows: int,
) -> metric_base.Heaviness:
    name = f'{type(metric).__name__}.{stage}'
    try:
        # What is not finite is found below; numpy need not warn as well.
        with np.errstate(all='ignore'):
            returned = run()
    except Exception as error:
        raise exception.PluginMisbehaved(
            f'{name} raised {type(error).__name__}: {error}'
        ) from error
    return _checked_heaviness(name, returned, rows)


def _checked_heaviness(
    name: str, returned: object, rows: int
) -> metric_base.Heaviness:
    heaviness = _as_numbers(name, returned, rows)
    if heaviness.shape != (rows,):
        raise exception.PluginMisbehaved(
            f'{name} returned shape {heaviness.shape}, expected ({rows},)'
        )
    bad = np.flatnonzero(~np.isfinite(heaviness))
    if bad.size:
        raise exception.PluginMisbehaved(
            f'{name} returned {heaviness[bad[0]]} in row {bad[0]} '
            f'({bad.size} of {wording.counted(rows, "row")}), expected finite'
            ' numbers'
        )
    return heaviness


def _as_numbers(
    name: str, returned: object, rows: int
) -> metric_base.Heaviness:
    try:
        given = np.asarray(returned)
        if returned is not None and given.dtype.kind in _NUMBERS:
            return np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        given = None
    what = type(returned).__name__
    kind = '' if given is None else f' of {given.dtype}'
    raise exception.PluginMisbehaved(
        f'{name} returned {what}{kind}, expected {rows} real numbers'
    )
