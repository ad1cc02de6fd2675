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

    :ivar supply: (r,) supply of the instance stage, with overcommit.
    :ivar user_count: number of users in the instance stage, >= 1.
    :ivar user_supply: (r,) supply of the user stage, with overcommit.
    :ivar user_instance_heaviness: (u,) instance heaviness, summed over all
        known nodes.
    :ivar user_endowment: (u, r) endowment, summed over all known nodes.
    :ivar rates: (n,) rates of this node's VMs; ``None`` if not known.
    """

    supply: resources.Vector
    user_count: int
    user_supply: resources.Vector
    user_instance_heaviness: usage_model.Scalars
    user_endowment: resources.Vector
    rates: usage_model.Scalars | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class MeasuredRound:
    """Results of the packages ``measure`` and ``exchange`` for a sample.

    :ivar usage: usage of this node's VMs; its rows are the rows of all arrays.
    :ivar ownership: users of the whole cloud, owners of this node's VMs.
    :ivar endowment: (n, r) endowment of VMs, amounts of the interval.
    :ivar instance_heaviness: (n,) heaviness of VMs in the instance stage.
    :ivar heaviness: (n,) final heaviness of VMs.
    :ivar user_heaviness: (u,) heaviness in the order of ``ownership.users``.
    :ivar quota: (u, r) quotas of users, amounts of the interval.
    :ivar supply: (r,) supply of all known nodes in the interval.
    :ivar view: known reports of the nodes.
    :ivar user_usage: (u, r) usage on all known nodes, amounts of the interval;
        ``None`` if not summed.
    :ivar basis: further input of the metric; ``None`` if not kept.
    :ivar wanted: (n, r) amounts that VMs would use of a plenty in the
        interval; ``None`` if not estimated.
    :ivar waiting: VMs that wait for a CPU; ``None`` if not judged over
        intervals.
    :ivar knowledge: returns knowledge of other nodes for a policy; ``None`` if
        there is none.
    :ivar counted: the part of ``usage`` that counts for owners; ``None`` if
        all of it does.
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

    :ivar harm: loss of the user with the largest loss, as a part of what this
        user has, less the gain of others; 0 if no user loses.
    :ivar rest: number of rounds for which CPU weights stay neutral.
    :ivar returned: whether CPU weights became neutral in this round.
    """

    harm: float
    rest: int
    returned: bool


@dataclasses.dataclass(frozen=True, eq=False)
class DecidedRound:
    """Results of the package ``decide``; rows as in :class:`MeasuredRound`.

    :ivar contended: (c,) whether the node's VMs compete for each control.
    :ivar wanting: (n, c) whether each VM waits for more.
    :ivar weights: (n, c) weights within their bounds.
    :ivar wanted: wanted kernel units by knob; VMs that are not steered have
        none.
    :ivar preference: (n,) preferences of owners among their own VMs, > 0;
        ``None`` if there are none.
    :ivar best_effort: keys of incarnations that get only leftover capacity.
    :ivar safety_net: verdict of the safety net; ``None`` if it did not run.
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

    :ivar expected: (n,) part of the CPU time of all steered VMs that each VM
        should have by the weights in the kernel, 0..1; NaN for VMs that are
        not steered or not known.
    :ivar received: (n,) part of this CPU time that each VM had, 0..1; NaN for
        the same VMs.
    :ivar followed: how far VMs followed their weights in the last rounds: 1 as
        expected, 0 as without weights; ``None`` while it is not known.
    """

    expected: usage_model.Scalars
    received: usage_model.Scalars
    followed: float | None


@dataclasses.dataclass(frozen=True, slots=True)
class RoundCounters:
    """Counts of one round.

    :ivar changed: writes that the kernel took.
    :ivar failed: writes that it refused.
    :ivar drifted: values that other programs or people had changed.
    :ivar restored: controls that got back the value found before the agent.
    :ivar missed: rounds left out because the round before ran late.
    """

    changed: int = 0
    failed: int = 0
    drifted: int = 0
    restored: int = 0
    missed: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class ControlStatus:
    """Whether a control works on this node.

    :ivar works: whether VMs are steered by the control.
    :ivar why: mechanism by which it works, or why it does not.
    :ivar without_effect: why some VMs are not steered, by key of the VM.
    """

    works: bool
    why: str
    without_effect: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, eq=False)
class ShadowHeaviness:
    """Heaviness by the shadow metric, which steers nothing.

    :ivar metric: name of the shadow metric.
    :ivar round_number: number of the round whose sample was measured.
    :ivar problem: why there is no heaviness; empty if there is.
    :ivar instance_heaviness: heaviness of VMs in the instance stage, by key.
    :ivar heaviness: final heaviness of VMs, by key.
    :ivar user_heaviness: heaviness of users, by ID.
    """

    metric: str
    round_number: int
    problem: str = ''
    instance_heaviness: Mapping[str, float] = dataclasses.field(
        default_factory=dict
    )
    heaviness: Mapping[str, float] = dataclasses.field(default_factory=dict)
    user_heaviness: Mapping[str, float] = dataclasses.field(
        default_factory=dict
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Round:
    """One round, complete or up to an error.

    :ivar number: number of the round; 1 is the first of this run of the agent.
    :ivar started_s: monotonic clock, seconds.
    :ivar wall_s: seconds since the epoch.
    :ivar duration_s: seconds that the round took.
    :ivar metric: name of the metric in force.
    :ivar policy: name of the policy in force.
    :ivar enforced: whether values were written to the kernel.
    :ivar node: resources of the node.
    :ivar sample: counters that were read.
    :ivar measured: measured results; ``None`` in the first round, or if a
        metric misbehaved.
    :ivar decided: decided results; ``None`` without measured results, or if a
        policy misbehaved.
    :ivar applied: values in the kernel after the round.
    :ivar tally: counts of this round.
    :ivar quarantined: why a plugin is not run, by its name.
    :ivar errors: texts of errors, for people.
    :ivar unsaved: texts about state of the agent that is not on the disk after
        the round.
    :ivar epoch: epoch of the desired state in force; 0 if metric and policy
        are those of the configuration.
    :ivar paused: whether an operator paused enforcement.
    :ivar chosen_by: sender of the choice of metric and policy, if it was not
        the configuration.
    :ivar paused_by: sender of the last pause or resumption.
    :ivar controls: status of the controls.
    :ivar effect: effect of CPU weights; ``None`` if it is not known.
    :ivar idle_since: time from which a VM did next to nothing, seconds of the
        epoch, by UUID.
    :ivar lacks: CPUs that a VM wanted and got over a history, by key.
    :ivar shadow: newest result of the shadow metric, of this round or an
        earlier one; ``None`` without a shadow metric.
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
    shadow: ShadowHeaviness | None = None

    @property
    def incarnations(self) -> tuple[instance.Incarnation, ...]:
        """The VMs, row order of all arrays."""
        return self.sample.incarnations
