# SPDX-License-Identifier: Apache-2.0

"""How the feedback policy answers errors: formulas, row by row."""

from collections.abc import Mapping
import dataclasses

import numpy as np

from nova_fairness.decide.policies import contest
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

Scalars = usage_model.Scalars
Mask = resources.Mask

LEAST_NOISE = 0.0003
"""Noise below this, relative to the heaviness, is not told from none."""

NOISE_GROWTH = 1.15
"""By how much the noise may be thought to grow in a round. It is taken from
the calmest rounds, because movement looks like noise."""

ENOUGH = 1.5
"""Momentum is whole for an error that falls to two thirds of the way from
``fading`` to 1, or more."""

CUT = 0.05
"""A wanted step up or down was cut if this much of it was not applied; less
was only too small to be written, and is added to the next step."""

AT_END = 0.02
"""A weight this near to where it was cut off is still there."""

_SMALLEST = 1e-9


@dataclasses.dataclass(frozen=True, eq=False)
class StepStart:
    """From where the weights of a round start; logarithms.

    :ivar applied: (n,) of the weights in force.
    :ivar log: (n,) the same, with what was too small to be written.
    :ivar cut: (n,) contenders whose last step was cut off.
    :ivar top: (n,) the highest weight allowed, for VMs that have it; NaN for
        the others.
    :ivar bottom: (n,) the same of the lowest.
    """

    applied: Scalars
    log: Scalars
    cut: Mask
    top: Scalars
    bottom: Scalars

    @classmethod
    def of(
        cls,
        who: contest.Contest,
        past: Mapping[str, Scalars],
        applied: Scalars,
    ) -> 'StepStart':
        """Compare the weights wanted in the last round with those applied."""
        short = np.nan_to_num(past['wanted'] - applied)
        cut = who.playing & (np.abs(short) > CUT)
        return cls(
            applied=applied,
            log=applied + np.where(np.abs(short) <= CUT, short, 0.0),
            cut=cut,
            top=_end(past['top'], applied, cut & (short > 0)),
            bottom=_end(past['bottom'], applied, cut & (short < 0)),
        )

    @property
    def at_top(self) -> Mask:
        """VMs that cannot be raised, (n,)."""
        return np.isfinite(self.top)

    @property
    def at_bottom(self) -> Mask:
        """VMs that cannot be lowered, (n,)."""
        return np.isfinite(self.bottom)


def _end(past: Scalars, applied: Scalars, cut: Mask) -> Scalars:
    """Find the bounds of weights, which a policy is not told.

    :param past: (n,) bound that was found last, NaN for none.
    :param applied: (n,) logarithms of the weights in force.
    :param cut: (n,) whose last step was cut off at this end.
    :returns: (n,) logarithms, NaN for weights that are not at this end.
    """
    stays = np.abs(applied - past) <= AT_END
    return np.where(cut, applied, np.where(stays, past, np.nan))


def smaller(one: Scalars, other: Scalars) -> Scalars:
    """Smaller of two errors; 0 where they disagree on the side.

    On the way to the goal the coming error is smaller, and noise, which is
    smaller in the present one, is answered with care.
    """
    agree = one * other > 0
    size = np.minimum(np.abs(one), np.abs(other))
    return np.asarray(np.where(agree, np.sign(one) * size, 0.0))


def beyond(error: Scalars, near: Scalars) -> Scalars:
    """Make errors smaller by the deadband."""
    return np.asarray(np.sign(error) * np.maximum(np.abs(error) - near, 0.0))


def bent(error: Scalars) -> Scalars:
    """Step on logarithms that undoes an error.

    The logarithm of how many times as heavy a user is as the others; of who
    is lighter the error itself, which is less.
    """
    return np.where(error > 0, np.log1p(error.clip(min=0.0)), error)


def need(
    past: Mapping[str, Scalars], error: Scalars, fading: float
) -> Scalars:
    """Say how much momentum is needed, 0..1.

    Only errors that shrink slowly need it: their reason is far away. Where
    they shrink fast it would carry weights beyond the goal.
    """
    last = np.abs(np.nan_to_num(past['error'])).clip(min=_SMALLEST)
    ahead = (np.abs(error) / last - fading) / (1 - fading)
    return np.asarray(np.clip(ENOUGH * ahead, 0.0, 1.0))


def noise(
    who: contest.Contest,
    past: Scalars,
    now_error: Scalars,
    error: Scalars,
    free: Mask,
) -> Scalars:
    """Estimate how much of the errors is noise, (m,).

    On constant load the newest interval differs from the smoothed past by
    noise alone.

    :param past: (m,) what was thought last, NaN at first.
    """
    seen = who.mean(np.abs(error - now_error), free)
    before = np.where(np.isfinite(past), past, LEAST_NOISE)
    most = NOISE_GROWTH * np.maximum(before, LEAST_NOISE)
    return np.asarray(np.clip(seen, LEAST_NOISE, most))


def damping(
    past: Mapping[str, Scalars], error: Scalars, near: Scalars
) -> Scalars:
    """Halve the steps of a VM whose error changes sides, else recover.

    It makes the loop stable also where weights act stronger than foreseen.
    """
    before = np.nan_to_num(past['error'])
    factor = np.where(np.isfinite(past['damping']), past['damping'], 1.0)
    factor = np.where((factor > 0) & (factor <= 1), factor, 1.0)
    size, last = np.abs(error), np.abs(before)
    turned = (before * error < 0) & (size > near) & (last > near)
    # An oscillation hardly grows from one round to the next; something
    # larger came from outside and deserves the whole answer.
    turned &= size < 2 * last
    slower = np.maximum(factor / 2, 1 / 16)
    faster = np.minimum(factor * 1.25, 1.0)
    return np.asarray(np.where(turned, slower, faster))


def run(past: Mapping[str, Scalars], along: Mask) -> Scalars:
    """Count the rounds in which pushes went the way of the steps.

    One that goes against it ends the momentum: the goal is behind.
    """
    rounds = np.nan_to_num(past['run']).clip(0.0, 1e6)
    return np.asarray(np.where(along, rounds + 1.0, 0.0))
