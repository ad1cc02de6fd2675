# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The default policy: move weights until contenders are equally heavy.

Every round each contender's weight moves against its error, the distance of
its heaviness from that of the others. Kernels share in proportion to
weights, so steps are factors and all arithmetic is on logarithms. There is
no integrator besides the weights themselves: a step starts from what was
really applied.
"""

import dataclasses
from typing import ClassVar

import numpy as np

from nova_fairness.decide import policy
from nova_fairness.decide.policies import feedback_memory
from nova_fairness.model import allocation
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

Scalars = usage_model.Scalars

GAIN = 0.5
"""Step (natural logarithm) per unit of error. Two equal users on one CPU
answer a step by an equal change of their difference, so half of the error is
gone after each round, and three times that answer is still stable."""

LEAD = 1.0
"""How far heaviness is carried on along its last change. Usage is smoothed
with a factor of 0.5 unless configured, so the last change is half of the way
to what is coming; without this the loop would overshoot."""

FINEST_SCALE = 0.25
"""Errors are relative to the contenders' mean absolute heaviness, which
makes the loop as fast in a cloud of a thousand users as in one of two; not
below this, because a metric with credits can be near zero for everybody."""

SETTLED = 0.03
"""Errors up to this end the steps ..."""

UNSETTLED = 0.05
"""... and one above this, in the smoothed heaviness, begins them again."""

LARGEST_STEP = float(np.log(2.0))
"""A weight at most doubles or halves in a round."""

CUT = 0.05
"""A wanted step up or down of which this much was not applied was cut."""

SIBLING_PULL = 0.5
"""Part of their distance by which VMs that the metric treats as one
approach each other in a round ..."""

SIBLING_SNAP = 0.05
"""... and the distance that they close at once, because steps that become
ever smaller would end at what is too small to be written."""

OFF_CENTRE = 0.1
"""How far the middle of the contenders' weights may be from neutral."""

_FARTHEST = 1e12
_WIDEST = 20.0


@dataclasses.dataclass(frozen=True, eq=False)
class _Round:
    """One control in one round; rows sorted by key.

    :ivar log: (n,) logarithms of the applied weights.
    :ivar user: (n,) index of each VM's user.
    :ivar heaviness: (n,) as measured, smoothed.
    :ivar coming: (n,) where it is heading.
    :ivar playing: (n,) who contends.
    :ivar cut: (n,) contenders whose last step was not applied, because they
        are at a bound.
    :ivar past: what was remembered of the control.
    """

    log: Scalars
    user: usage_model.Indices
    heaviness: Scalars
    coming: Scalars
    playing: resources.Mask
    cut: resources.Mask
    past: feedback_memory.ControlMemory


class FeedbackPolicy(policy.Policy):
    """Multiplicative feedback with contention gate and anti-windup."""

    description: ClassVar[str] = (
        'Moves the weights of VMs that wait for the same resource, round by'
        ' round, until they are equally heavy; leaves all others alone.'
    )

    def __call__(
        self,
        situation: policy.Situation,
        previous: allocation.Weights,
        memory: policy.Memory,
        elapsed_s: float,
    ) -> tuple[allocation.Weights, policy.Memory]:
        """Decide from the heaviness, its last change and what was applied.

        Steps count rounds, not seconds, because so does the smoothing.
        """
        # One order of summation, so that the order of rows changes nothing.
        order = np.argsort(np.array(situation.keys, dtype=np.str_))
        keys = tuple(situation.keys[row] for row in order)
        heaviness = situation.heaviness[order].clip(-_FARTHEST, _FARTHEST)
        last = feedback_memory.heaviness_of(memory, keys)
        coming = heaviness + LEAD * np.where(
            np.isfinite(last), heaviness - last, 0.0
        )
        weights = np.array(previous, dtype=np.float64)
        kept: dict[str, feedback_memory.ControlMemory] = {}
        for column, control in enumerate(resources.CONTROLS):
            if not situation.contended[column]:
                continue
            past = feedback_memory.control_of(memory, control, keys)
            log = _log(previous[order, column])
            playing = situation.wanting[order, column]
            rows = _Round(
                log=log,
                user=situation.user[order],
                heaviness=heaviness,
                coming=coming,
                playing=playing,
                cut=playing & (np.abs(past.wanted - log) > CUT),
                past=past,
            )
            wanted, kept[control.value] = _decide(rows)
            moved = wanted != log
            weights[order[moved], column] = np.exp(wanted[moved])
        return weights, feedback_memory.freeze(keys, heaviness, kept)


def _log(weights: Scalars) -> Scalars:
    return np.asarray(np.log(weights).clip(-_WIDEST, _WIDEST))


def _decide(rows: _Round) -> tuple[Scalars, feedback_memory.ControlMemory]:
    """Give the new logarithms of one contended control."""
    playing = rows.playing
    if not playing.any():
        return rows.log, feedback_memory.nothing(len(rows.log))
    error = _error(rows, rows.heaviness)
    coming = _error(rows, rows.coming)
    damping = _damping(rows, coming)
    settled = _is_settled(rows, error, coming)
    steps = -GAIN * damping * _smaller(error, coming)
    # Beside the contenders only a heavier VM that has all it wants moves:
    # down, until it waits too. Raising one that does not wait moves nothing.
    rivals = ~playing & (np.minimum(error, coming) > UNSETTLED)
    apart = np.abs(coming) > SETTLED
    moving = rivals | (playing & (rows.cut | (apart & (not settled))))
    steps = np.where(moving, steps, 0.0)
    steps += _centring(rows, settled) + _pull(rows)
    wanted = rows.log + steps.clip(-LARGEST_STEP, LARGEST_STEP)
    return wanted, feedback_memory.ControlMemory(
        settled=settled, wanted=wanted, error=coming, damping=damping
    )


def _error(rows: _Round, heaviness: Scalars) -> Scalars:
    """Give how much heavier each VM is than the free contenders, relative.

    Each user counts once, however many VMs it has. A VM at a bound cannot
    answer, so that the others become equal among themselves.
    """
    free = rows.playing & ~rows.cut
    chosen = free if free.any() else rows.playing
    users, place = np.unique(rows.user[chosen], return_inverse=True)
    counts = np.bincount(place, minlength=len(users))
    means = np.bincount(place, heaviness[chosen], len(users)) / counts
    sizes = np.bincount(place, np.abs(heaviness[chosen]), len(users)) / counts
    scale = max(FINEST_SCALE, float(sizes.mean()))
    return np.asarray((heaviness - means.mean()) / scale)


def _smaller(one: Scalars, other: Scalars) -> Scalars:
    """Give the smaller of two errors; 0 where they disagree on the side.

    On the way to the goal the coming error is smaller, and noise, which is
    smaller in the present one, is answered with care.
    """
    agree = one * other > 0
    size = np.minimum(np.abs(one), np.abs(other))
    return np.asarray(np.where(agree, np.sign(one) * size, 0.0))


def _damping(rows: _Round, error: Scalars) -> Scalars:
    """Halve the steps of a VM whose error changes sides, else recover.

    It makes the loop stable also where weights act stronger than foreseen.
    """
    past, present = np.abs(rows.past.error), np.abs(error)
    turned = (rows.past.error * error < 0) & (present > SETTLED)
    # An oscillation hardly grows from one round to the next; something
    # larger came from outside and deserves the whole answer.
    turned &= (past > SETTLED) & (present < 2 * past)
    slower = np.maximum(rows.past.damping / 2, 1 / 16)
    faster = np.minimum(rows.past.damping * 1.25, 1.0)
    return np.asarray(np.where(turned, slower, faster))


def _is_settled(rows: _Round, error: Scalars, coming: Scalars) -> bool:
    free = rows.playing & ~rows.cut
    now = float(np.abs(error[free]).max(initial=0.0))
    if rows.past.settled:
        return not (_lasting(rows, error) & free).any()
    next_round = float(np.abs(coming[free]).max(initial=0.0))
    return max(now, next_round) <= SETTLED


def _lasting(rows: _Round, error: Scalars) -> resources.Mask:
    """Tell errors from noise: large, or of the same side as the last."""
    past = rows.past.error * np.sign(error)
    size = np.abs(error)
    twice = (size > UNSETTLED) & (past > UNSETTLED)
    return np.asarray(twice | (size > 2 * UNSETTLED))


def _centring(rows: _Round, settled: bool) -> Scalars:
    """Shift the contenders so that the middle of their range is neutral.

    A common factor changes no share. Bounds lie symmetrically around
    neutral, so a centred range uses all of what they allow.
    """
    log = rows.log[rows.playing]
    if len(log) < 2 or (settled and not rows.cut.any()):
        return np.zeros(len(rows.log))
    middle = (float(log.max()) + float(log.min())) / 2
    if abs(middle) <= OFF_CENTRE and not rows.cut.any():
        middle = 0.0
    return np.where(rows.playing, -middle, 0.0)


def _pull(rows: _Round) -> Scalars:
    """Draw VMs together that the metric does not tell apart.

    Exactly equal heaviness within a user says that the metric weighs users
    and not VMs; then only history made their weights differ. Exactly equal
    heaviness of all VMs of the node says that it weighs nothing.
    """
    if len(rows.log) > 1 and np.ptp(rows.heaviness) == 0.0:
        return np.where(rows.playing, _part_of(-rows.log), 0.0)
    pull = np.zeros(len(rows.log))
    same = np.stack([rows.user.astype(np.float64), rows.heaviness])
    playing = np.flatnonzero(rows.playing)
    _, place = np.unique(same[:, playing], axis=1, return_inverse=True)
    group = place.reshape(-1)
    means = np.bincount(group, rows.log[playing]) / np.bincount(group)
    pull[playing] = _part_of(means[group] - rows.log[playing])
    return pull


def _part_of(distance: Scalars) -> Scalars:
    near = np.abs(distance) <= SIBLING_SNAP
    return np.asarray(np.where(near, distance, SIBLING_PULL * distance))
