# SPDX-License-Identifier: Apache-2.0

"""Policy that moves weights until contenders are equally heavy.

In every round the weight of each contender changes against its error: the
distance of its heaviness from that of the others. Kernels share in proportion
to weights, so steps are factors, and all arithmetic is on logarithms. A step
starts from the weight that was really applied, so only weights accumulate
errors.

Users with VMs on several nodes connect these nodes, and the cause of an error
may be many nodes away. Steps that only follow the error need as many rounds as
the square of that distance. Steps with momentum need about as many rounds as
the distance.
"""

from collections.abc import Mapping
import dataclasses
from typing import ClassVar

import numpy as np

from nova_fairness.decide import array_policy
from nova_fairness.decide.policies import contest
from nova_fairness.decide.policies import steps
from nova_fairness.model import allocation
from nova_fairness.model import pairing
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

Scalars = usage_model.Scalars
Mask = resources.Mask

LEAD = 1.0
"""Multiple of the last change of heaviness that is added to predict the next
heaviness. Usage is smoothed with a factor of 0.5 by default, so the last
change is half of the way to the final value. Without prediction the loop would
overshoot."""

NOISE_MARGIN = 4.0
"""Multiple of the noise up to which errors have no effect (deadband). Larger
errors have the effect of the error minus the deadband."""

LARGEST_DEADBAND = 0.05
"""Largest deadband. A larger error has an effect whatever the noise is."""

LARGEST_STEP = float(np.log(2.0))
"""Largest change of a weight in a round (natural logarithm): a factor of 2."""

_FARTHEST = 1e12
_WIDEST = 20.0
_PER_VM = array_policy.MemoryScope.VM_CONTROL


class FeedbackPolicy(array_policy.ArrayPolicy):
    """Multiplicative feedback with momentum, for contenders, with anti-windup.

    The numbers were chosen by sweeps; see the contributors' page on evidence.
    """

    description: ClassVar[str] = (
        'Moves the weights of VMs that wait for the same resource, round by'
        ' round, until they are equally heavy; leaves all others alone.'
    )

    kind: ClassVar[pairing.PolicyKind | None] = pairing.PolicyKind.EQUALISES

    FIELDS: ClassVar[Mapping[str, array_policy.MemoryField]] = {
        'heaviness': array_policy.MemoryField(array_policy.MemoryScope.VM),
        'wanted': array_policy.MemoryField(_PER_VM),
        'error': array_policy.MemoryField(_PER_VM),
        'step': array_policy.MemoryField(_PER_VM),
        'run': array_policy.MemoryField(_PER_VM),
        'damping': array_policy.MemoryField(_PER_VM),
        'top': array_policy.MemoryField(_PER_VM),
        'bottom': array_policy.MemoryField(_PER_VM),
        'noise': array_policy.MemoryField(
            array_policy.MemoryScope.NODE_CONTROL
        ),
    }

    gain: float = 0.85
    """Step (natural logarithm) per unit of error."""

    momentum: float = 0.95
    """Largest part of the last step that is added to a step, 0..1."""

    patience: float = 1.0
    """Rounds in one direction until half of ``momentum`` is used."""

    fading: float = 0.3
    """Part of the last error. If an error is smaller than that after one
    round, it needs no momentum."""

    def decide(
        self,
        crowd: array_policy.SituationArrays,
        previous: allocation.Weights,
        memory: array_policy.Memories,
        elapsed_s: float,
    ) -> tuple[allocation.Weights, array_policy.Memories]:
        """Decide from heaviness, its last change and the applied weights.

        Steps are per round, not per second, because usage is smoothed per
        round.
        """
        heaviness = crowd.heaviness.clip(-_FARTHEST, _FARTHEST)
        last = memory['heaviness']
        change = np.where(np.isfinite(last), heaviness - last, 0.0)
        kept = dict(self.initial_memory(len(heaviness), crowd.nodes))
        kept['heaviness'] = heaviness
        weights = previous.copy()
        for column in range(len(resources.CONTROLS)):
            rows = np.flatnonzero(crowd.contended[crowd.node, column])
            if not rows.size:
                continue
            found = _ContendedControl.of(crowd, memory, rows, column)
            wanted = self._decide_control(
                found,
                heaviness[rows],
                (heaviness + LEAD * change)[rows],
                np.log(previous[rows, column]).clip(-_WIDEST, _WIDEST),
            )
            moved = wanted.log != wanted.start.applied
            weights[rows[moved], column] = np.exp(wanted.log[moved])
            wanted.store(kept, rows, column, found.contest)
        return weights, kept

    def _continued_step(
        self,
        past: Mapping[str, Scalars],
        error: Scalars,
        damping: Scalars,
        push: Scalars,
        cut: Mask,
    ) -> tuple[Scalars, Scalars]:
        """Return the counts of pushes and the part of the last step that goes
        on, (n,) each.

        The part that a bound cut off was no movement, and does not go on.
        """
        moved = np.where(cut, 0.0, np.nan_to_num(past['step']))
        run = steps.count_pushes(past, moved * push > 0)
        kept = self.momentum * damping * run / (run + self.patience)
        kept = kept * steps.momentum_need(past, error, self.fading)
        return run, kept * moved

    def _decide_control(
        self,
        rows: '_ContendedControl',
        heaviness: Scalars,
        coming: Scalars,
        applied: Scalars,
    ) -> '_RoundResult':
        """Return new weights of one control on contended nodes.

        :param coming: (n,) predicted heaviness.
        :param applied: (n,) logarithms of the weights in force.
        """
        who, past = rows.contest, rows.history
        start = steps.StepStart.of(who, past, applied)
        cut, log = start.cut, start.log
        free = who.movable(cut)
        now_error = who.relative_error(heaviness, log, start.at_top)
        error = who.relative_error(coming, log, start.at_top)
        noise = steps.estimate_noise(
            who, past['noise'], now_error, error, free
        )
        near = (NOISE_MARGIN * noise).clip(max=LARGEST_DEADBAND)[who.node]
        damping = steps.damping_factors(past, error, near)
        answered = steps.step_for_error(
            steps.error_beyond_deadband(
                steps.smaller_error(now_error, error), near
            )
        )
        push = -self.gain * damping * answered
        run, kept = self._continued_step(past, error, damping, push, cut)
        step = push + kept
        # Beside the contenders only a heavier VM that has all it wants
        # moves: down, until it waits too. Raising one moves nothing.
        rivals = ~who.competes & (answered > 0)
        step = np.where(who.competes | rivals, step, 0.0)
        step = step.clip(-LARGEST_STEP, LARGEST_STEP)
        still = ~who.nodes_with_any(free & (step != 0.0))
        full = who.nodes_with_any(who.competes & start.at_top)
        full &= who.nodes_with_any(who.competes & start.at_bottom)
        shift = who.centring_shifts(log + step, still, cut, full)
        shift += who.equalizing_shifts(log, heaviness)
        return _RoundResult(
            start=start,
            log=log + (step + shift).clip(-LARGEST_STEP, LARGEST_STEP),
            error=error,
            step=step,
            run=run,
            damping=damping,
            noise=noise,
        )


@dataclasses.dataclass(frozen=True, eq=False)
class _ContendedControl:
    """One control in one round, on the nodes on which it is contended.

    :ivar contest: VMs of these nodes.
    :ivar history: values of earlier rounds of these VMs and nodes.
    """

    contest: contest.Contest
    history: Mapping[str, Scalars]

    @classmethod
    def of(
        cls,
        crowd: array_policy.SituationArrays,
        memory: array_policy.Memories,
        rows: usage_model.Indices,
        column: int,
    ) -> '_ContendedControl':
        """Return some VMs with their memory.

        :param rows: indices of the VMs of contended nodes.
        :param column: index of the control.
        """
        names, node = np.unique(crowd.node[rows], return_inverse=True)
        past = {
            name: memory[name][rows if field.per is _PER_VM else names, column]
            for name, field in FeedbackPolicy.FIELDS.items()
            if field.per is not array_policy.MemoryScope.VM
        }
        found = contest.Contest(
            node_indices=names,
            node=node.reshape(-1),
            user=crowd.user[rows],
            competes=crowd.wanting[rows, column],
            size=_sizes(crowd, rows, column),
        )
        return cls(found, past)


def _sizes(
    crowd: array_policy.SituationArrays, rows: usage_model.Indices, column: int
) -> Scalars:
    """Return sizes by which the kernel weighs VMs: vCPUs for CPUs, else 1."""
    if resources.CONTROLS[column] is resources.ResourceControl.CPU:
        return crowd.vcpus[rows].astype(np.float64)
    return np.ones(len(rows))


@dataclasses.dataclass(frozen=True, eq=False)
class _RoundResult:
    """Result of a round.

    :ivar start: weights at the start of the round.
    :ivar log: (n,) logarithms of the new weights.
    :ivar error: (n,) errors by the predicted heaviness.
    :ivar step: (n,) changes of the logarithms, without centring.
    :ivar run: (n,) rounds in which steps had the same direction.
    :ivar damping: (n,) factor of the steps, in (0, 1].
    :ivar noise: (m,) noise of the errors on each node.
    """

    start: steps.StepStart
    log: Scalars
    error: Scalars
    step: Scalars
    run: Scalars
    damping: Scalars
    noise: Scalars

    def store(
        self,
        kept: Mapping[str, Scalars],
        rows: usage_model.Indices,
        column: int,
        who: contest.Contest,
    ) -> None:
        """Write the result into the memory of all VMs and nodes.

        :param kept: that memory.
        :param rows: indices of the VMs of this result.
        :param column: index of the control.
        :param who: VMs of this result, with their nodes.
        """
        kept['wanted'][rows, column] = self.log
        kept['error'][rows, column] = self.error
        kept['step'][rows, column] = self.step
        kept['run'][rows, column] = self.run
        kept['damping'][rows, column] = self.damping
        kept['top'][rows, column] = self.start.top
        kept['bottom'][rows, column] = self.start.bottom
        kept['noise'][who.node_indices, column] = self.noise
