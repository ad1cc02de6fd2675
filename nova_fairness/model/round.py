# SPDX-License-Identifier: Apache-2.0

"""Results of one round of the node cycle."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses

from nova_fairness.model import allocation
from nova_fairness.model import caller
from nova_fairness.model import foresight as foresight_model
from nova_fairness.model import instance
from nova_fairness.model import lack
from nova_fairness.model import node
from nova_fairness.model import report
from nova_fairness.model import resources
from nova_fairness.model import sample
from nova_fairness.model import usage as usage_model


@dataclasses.dataclass(frozen=True, eq=False)
class Basis:
    """Input of a metric besides the fields of :class:`MeasuredRound`.

    With it, the heaviness of a round can be computed again.

    :ivar supply: (r,) of the instance stage, with overcommit.
    :ivar user_count: of the instance stage, >= 1.
    :ivar user_supply: (r,) of the user stage, with overcommit.
    :ivar user_instance_heaviness: (u,) sums over all known nodes.
    :ivar user_endowment: (u, r) sums over all known nodes.
    :ivar rates: (n,) of this node's VMs; ``None`` if not known.
    """

    supply: resources.Vector
    user_count: int
    user_supply: resources.Vector
    user_instance_heaviness: usage_model.Scalars
    user_endowment: resources.Vector
    rates: usage_model.Scalars | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class MeasuredRound:
    """Results of the measure and exchange rooms from a sample.

    :ivar usage: of this node's VMs; its rows are the rows of all arrays.
    :ivar ownership: users of the whole cloud, owners of this node's VMs.
    :ivar endowment: (n, r) amounts of the interval.
    :ivar instance_heaviness: (n,) of the instance stage.
    :ivar heaviness: (n,) by which each VM is treated.
    :ivar user_heaviness: (u,) in the order of ``ownership.users``.
    :ivar quota: (u, r) amounts of the interval.
    :ivar supply: (r,) of all known nodes in the interval.
    :ivar view: what was known of the nodes.
    :ivar user_usage: (u, r) of all known nodes, amounts of the interval;
        ``None`` if not summed.
    :ivar basis: ``None`` if not kept.
    :ivar wanted: (n, r) what VMs would use of a plenty, amounts of the
        interval; ``None`` if not estimated.
    :ivar waiting: who waits for a CPU; ``None`` if not judged over intervals.
    :ivar knowledge: gives what a policy may know of other nodes; ``None`` if
        nothing can.
    :ivar counted: of ``usage`` what counts for owners; ``None`` if all does.
    """

    usage: usage_model.Usage
    ownership: usage_model.Ownership
    endowment: resources.Vector
    instance_heaviness: usage_model.Scalars
    heaviness: usage_model.Scalars
    user_heaviness: usage_model.Scalars
    quota: resources.Vector
    supply: resources.Vector
    view: report.View
    user_usage: resources.Vector | None = None
    basis: Basis | None = None
    wanted: resources.Vector | None = None
    waiting: usage_model.CpuWaits | None = None
    knowledge: Callable[[], foresight_model.NodeKnowledge] | None = None
    counted: usage_model.Usage | None = None

    @property
    def weighed(self) -> usage_model.Usage:
        """Use of VMs as far as it counts for their owners."""
        return self.usage if self.counted is None else self.counted


@dataclasses.dataclass(frozen=True, slots=True)
class SafetyVerdict:
    """Whether users are worse off with CPU weights than without.

    :ivar harm: part of what they have that the user lacks who is harmed most,
        beyond what others gain; 0 if none is.
    :ivar rest: rounds for which CPU weights are still neutral.
    :ivar returned: whether that began in this round.
    """

    harm: float
    rest: int
    returned: bool


@dataclasses.dataclass(frozen=True, eq=False)
class DecidedRound:
    """Results of the decide room; rows as in :class:`MeasuredRound`.

    :ivar contended: (c,) whether the node's VMs compete.
    :ivar wanting: (n, c) whether each VM waits for more.
    :ivar weights: (n, c) after bounds.
    :ivar wanted: kernel units; nothing for VMs that are not steered.
    :ivar preference: (n,) of owners among their own VMs, > 0; ``None`` if not
        asked for.
    :ivar best_effort: keys of incarnations that get only what is left over.
    :ivar safety_net: ``None`` if it did not run.
    """

    contended: resources.Mask
    wanting: resources.Mask
    weights: allocation.Weights
    wanted: allocation.Allocation
    preference: usage_model.Scalars | None = None
    best_effort: frozenset[str] = frozenset()
    safety_net: SafetyVerdict | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Effect:
    """Effect of CPU weights; rows as in :class:`MeasuredRound`.

    :ivar expected: (n,) part of the CPU time that the steered VMs had which
        each should have by the weights that the kernel holds, 0..1; NaN of
        those that are not steered or not known.
    :ivar received: (n,) the part that each had, 0..1; NaN as above.
    :ivar followed: how far VMs follow their weights, as lately seen: 1 as
        expected, 0 as if there were no weights; ``None`` until there was
        something to see.
    """

    expected: usage_model.Scalars
    received: usage_model.Scalars
    followed: float | None


@dataclasses.dataclass(frozen=True, slots=True)
class RoundCounters:
    """Counts of one round.

    :ivar changed: writes that the kernel took.
    :ivar failed: writes that it refused.
    :ivar drifted: values that other hands had changed.
    :ivar restored: controls that got back what they were found with.
    :ivar missed: rounds left out because the one before ran late.
    """

    changed: int = 0
    failed: int = 0
    drifted: int = 0
    restored: int = 0
    missed: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class ControlStatus:
    """Whether a control works on this node.

    :ivar works: whether VMs are steered by it.
    :ivar why: by what it works, or why it does not.
    :ivar without_effect: why some VMs are not steered, by key.
    """

    works: bool
    why: str
    without_effect: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, eq=False)
class Round:
    """One round, whole or as far as it came.

    :ivar number: 1 for the first of this run of the agent.
    :ivar started_s: monotonic clock, seconds.
    :ivar wall_s: seconds since the epoch.
    :ivar duration_s: seconds that the round took.
    :ivar metric: name of the metric in force.
    :ivar policy: name of the policy in force.
    :ivar enforced: whether the kernel was written.
    :ivar node: what the node has.
    :ivar sample: what was read.
    :ivar measured: ``None`` in a first round and when a metric misbehaved.
    :ivar decided: ``None`` as above and when a policy misbehaved.
    :ivar applied: what the kernel holds after the round.
    :ivar tally: counts of this round.
    :ivar quarantined: why a plugin is not run, by its name.
    :ivar errors: what went wrong, for people.
    :ivar unsaved: what of the agent's state is not on the disk after the
        round, and why, for people.
    :ivar epoch: of the desired state in force; 0 if metric and policy are
        those of the configuration.
    :ivar paused: whether an operator paused enforcement.
    :ivar chosen_by: who chose metric and policy, if it was not the
        configuration.
    :ivar paused_by: who paused or resumed last.
    :ivar controls: which of them work.
    :ivar effect: of CPU weights; ``None`` if it is not known.
    :ivar idle_since: seconds of the epoch from which on VMs did next to
        nothing, by UUID.
    :ivar lacks: what VMs wanted and got of CPUs over a history, by key.
    """

    number: int
    started_s: float
    wall_s: float
    duration_s: float
    metric: str
    policy: str
    enforced: bool
    node: node.NodeResources
    sample: sample.Sample
    measured: MeasuredRound | None
    decided: DecidedRound | None
    applied: allocation.Allocation
    tally: RoundCounters
    quarantined: Mapping[str, str]
    errors: tuple[str, ...]
    epoch: int = 0
    paused: bool = False
    chosen_by: caller.Asker = caller.UNKNOWN
    paused_by: caller.Asker = caller.UNKNOWN
    controls: Mapping[resources.ResourceControl, ControlStatus] = (
        dataclasses.field(default_factory=dict)
    )
    unsaved: tuple[str, ...] = ()
    effect: Effect | None = None
    idle_since: Mapping[str, float] = dataclasses.field(default_factory=dict)
    lacks: Mapping[str, lack.MeanLack] = dataclasses.field(
        default_factory=dict
    )

    @property
    def incarnations(self) -> tuple[instance.Incarnation, ...]:
        """The VMs, row order of all arrays."""
        return self.sample.incarnations
