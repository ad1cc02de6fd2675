# SPDX-License-Identifier: Apache-2.0

"""Formulas of the feedback policy for steps of weights; rows are VMs."""

from collections.abc import Mapping
import dataclasses

import numpy as np

from nova_fairness.decide.policies import contest
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

Scalars = usage_model.Scalars
Mask = resources.Mask

LEAST_NOISE = 0.0003
"""Least noise, relative to the heaviness."""

NOISE_GROWTH = 1.15
"""Largest factor by which the estimated noise grows in a round. The estimate
comes from the calmest rounds, because movement looks like noise."""

ENOUGH = 1.5
"""Slope of the momentum by the remaining part of the last error. Momentum is
whole from two thirds of the way between ``fading`` and 1."""

CUT = 0.05
"""Difference between a wanted and an applied weight (natural logarithm) from
which a bound cut the step off. A smaller difference was too small to be
written, and is added to the next step."""

AT_END = 0.02
"""Distance from a bound (natural logarithm) within which a weight is at the
bound."""

_SMALLEST = 1e-9


@dataclasses.dataclass(frozen=True, eq=False)
class StepStart:
    """Logarithms of weights at the start of a round.

    :ivar applied: (n,) weights in force.
    :ivar log: (n,) the same with the changes that were too small to be
        written.
    :ivar cut: (n,) contenders whose last step a bound cut off.
    :ivar top: (n,) highest weight allowed, for VMs that have it; NaN for the
        others.
    :ivar bottom: (n,) lowest weight allowed, for VMs that have it; NaN for the
        others.
    """

    applied: Scalars
    log: Scalars
    cut: Mask
    top: Scalars
    bottom: Scalars

    @classmethod
    def of(
        cls,
        contenders: contest.Contest,
        past: Mapping[str, Scalars],
        applied: Scalars,
    ) -> 'StepStart':
        """Compare the weights wanted in the last round with those applied."""
        short = np.nan_to_num(past['wanted'] - applied)
        cut = contenders.competes & (np.abs(short) > CUT)
        return cls(
            applied=applied,
            log=applied + np.where(np.abs(short) <= CUT, short, 0.0),
            cut=cut,
            top=_find_bound(past['top'], applied, cut & (short > 0)),
            bottom=_find_bound(past['bottom'], applied, cut & (short < 0)),
        )

    @property
    def at_top(self) -> Mask:
        """VMs whose weights cannot rise, (n,)."""
        return np.isfinite(self.top)

    @property
    def at_bottom(self) -> Mask:
        """VMs whose weights cannot fall, (n,)."""
        return np.isfinite(self.bottom)


def _find_bound(past: Scalars, applied: Scalars, cut: Mask) -> Scalars:
    """Find one bound of weights; a policy does not get bounds as an input.

    :param past: (n,) bound that the last round found; NaN for none.
    :param applied: (n,) logarithms of the weights in force.
    :param cut: (n,) VMs whose last step this bound cut off.
    :returns: (n,) logarithms; NaN for weights that are not at this bound.
    """
    stays = np.abs(applied - past) <= AT_END
    return np.where(cut, applied, np.where(stays, past, np.nan))


def smaller_error(one: Scalars, other: Scalars) -> Scalars:
    """Return the smaller of two errors; 0 if their signs differ.

    Near the goal the predicted error is smaller. Noise is smaller in the
    present error.
    """
    agree = one * other > 0
    size = np.minimum(np.abs(one), np.abs(other))
    return np.asarray(np.where(agree, np.sign(one) * size, 0.0))


def error_beyond_deadband(error: Scalars, near: Scalars) -> Scalars:
    """Return errors minus the deadband; 0 within it."""
    return np.asarray(np.sign(error) * np.maximum(np.abs(error) - near, 0.0))


def step_for_error(error: Scalars) -> Scalars:
    """Return the change of a weight's logarithm that corrects an error.

    For a heavier VM it is the logarithm of its heaviness relative to the
    others. For a lighter VM it is the error itself.
    """
    return np.where(error > 0, np.log1p(error.clip(min=0.0)), error)


def momentum_need(
    past: Mapping[str, Scalars], error: Scalars, fading: float
) -> Scalars:
    """Return how much momentum each VM needs, 0..1.

    Only errors that shrink slowly need momentum, because their cause is many
    nodes away. With other errors it would move weights beyond the goal.
    """
    last = np.abs(np.nan_to_num(past['error'])).clip(min=_SMALLEST)
    ahead = (np.abs(error) / last - fading) / (1 - fading)
    return np.asarray(np.clip(ENOUGH * ahead, 0.0, 1.0))


def estimate_noise(
    contenders: contest.Contest,
    past: Scalars,
    now_error: Scalars,
    error: Scalars,
    free: Mask,
) -> Scalars:
    """Estimate the noise of the errors on each node, (m,).

    With constant load the newest interval differs from the smoothed past by
    noise alone.

    :param past: (m,) estimates of the last round; NaN in the first.
    """
    seen = contenders.mean_by_node(np.abs(error - now_error), free)
    before = np.where(np.isfinite(past), past, LEAST_NOISE)
    most = NOISE_GROWTH * np.maximum(before, LEAST_NOISE)
    return np.asarray(np.clip(seen, LEAST_NOISE, most))


def damping_factors(
    past: Mapping[str, Scalars], error: Scalars, near: Scalars
) -> Scalars:
    """Return factors of steps: halved if an error changes its sign.

    Otherwise factors rise to 1 again. So the loop is stable if weights have
    more effect than expected.
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


def count_pushes(past: Mapping[str, Scalars], along: Mask) -> Scalars:
    """Count the rounds in which errors push in the direction of the steps.

    A push in the other direction ends the momentum: the goal was passed.

    :param along: (n,) whether the push has the direction of the last step.
    """
    rounds = np.nan_to_num(past['run']).clip(0.0, 1e6)
    return np.asarray(np.where(along, rounds + 1.0, 0.0))
