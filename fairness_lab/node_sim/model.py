# SPDX-License-Identifier: Apache-2.0

"""Settings of simulated agents, and observations of a simulation.

n VMs that ever exist, m nodes, u users, r resources, c controls; the cloud is
:class:`fairness_lab.scenario.cloud.Cloud`. Rates are per second.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any
from typing import Protocol

import numpy as np

from fairness_lab.scenario import cloud as cloud_module
from nova_fairness.decide import policy as policy_base
from nova_fairness.measure import metric as metric_base
from nova_fairness.model import allocation
from nova_fairness.model import defaults
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

Scalars = usage_model.Scalars
Indices = usage_model.Indices


class Allocator(Protocol):
    """A reference that divides resources itself, without weights."""

    description: str

    def __call__(self, request: 'RoundDemand') -> resources.Vector:
        """Divide the nodes.

        :returns: (n, r) what each VM receives; never more than it wants, nor
            all VMs of a node together more than the node has.
        """


@dataclasses.dataclass(frozen=True, eq=False)
class RoundDemand:
    """Demands and supply of a round; rows are the VMs that exist.

    :ivar node: (n,) index of each VM's node.
    :ivar user: (n,) index of each VM's user.
    :ivar demand: (n, r) finite: weighted CPU seconds and bytes per second,
        bytes of memory.
    :ivar coupled: (n, r) as in :class:`Cloud`.
    :ivar endowment: (n, r) per second, part of its node of each VM.
    :ivar capacity: (m, r).
    :ivar users: number of users u.
    """

    node: Indices
    user: Indices
    demand: resources.Vector
    coupled: resources.Mask
    endowment: resources.Vector
    capacity: resources.Vector
    users: int


@dataclasses.dataclass(frozen=True, eq=False)
class Setup:
    """The agents.

    :ivar metric: name of the metric.
    :ivar policy: name of the policy or reference; ``none`` for no agents.
    :ivar metric_plugin: the metric.
    :ivar policy_plugin: the policy; ``None`` if weights are not steered.
    :ivar allocator: a reference instead of weights.
    :ivar decay_factor: part of the newest interval in the usage, in (0, 1].
    :ivar max_weight_ratio: largest to smallest weight of a node, >= 1.
    :ivar largest_step: factor per round, >= 1.
    :ivar weight_tolerance: smaller relative changes are not written.
    :ivar overcommit: (r,) factors of the supply in the norm, > 0.
    :ivar controls: that are judged and steered.
    :ivar ticks: parts of a round at which agents can act, >= 1.
    :ivar phase: (m,) tick at which each node's agent acts; ``None``: all at
        the last.
    :ivar links: how reports travel; ``None``: all know all at once.
    :ivar view_max_age: rounds after which a report does not count, > 0.
    :ivar equal_vms: VMs weigh the same with any number of vCPUs.
    :ivar safety_net: whether nodes whose weights do harm return to neutral.
    :ivar stands_for: rows of the demand for which each one counts in the time
        that a step of the search takes: a small cloud that searches as slowly
        as a large one.
    """

    metric: str
    policy: str
    metric_plugin: metric_base.Metric
    policy_plugin: policy_base.Policy | None = None
    allocator: Allocator | None = None
    decay_factor: float = 0.5
    max_weight_ratio: float = defaults.MAX_WEIGHT_RATIO
    largest_step: float = 4.0
    weight_tolerance: float = 0.01
    overcommit: resources.Vector = dataclasses.field(
        default_factory=lambda: np.ones(len(resources.RESOURCES))
    )
    controls: tuple[resources.ResourceControl, ...] = resources.CONTROLS
    ticks: int = 1
    phase: Indices | None = None
    links: cloud_module.Links | None = None
    view_max_age: float = 3.0
    equal_vms: bool = False
    safety_net: bool = True
    stands_for: float = 1.0


@dataclasses.dataclass(frozen=True, eq=False)
class RoundMoment:
    """One round; the arrays are good until the next one.

    :ivar round: its number, 0 for the first.
    :ivar time_s: its end, seconds since the begin.
    :ivar changed: whether demand or place of any VM is new in this round.
    :ivar node: (n,) index, :data:`ABSENT` for VMs that do not exist.
    :ivar demand: (n, r) finite, what each VM wants: weighted CPU seconds and
        bytes per second, bytes; zero for VMs that do not exist.
    :ivar received: (n, r) mean over the round, same units.
    :ivar weights: (n, c) in force at its end; 1 for VMs that do not exist.
    :ivar shares: (n, r) in proportion to which its node's kernel divided each
        resource at its end.
    :ivar neutral: (n, r) the same if all weights were 1.
    :ivar heaviness: (n,) by which each VM was treated; NaN if it was not yet.
    :ivar user_heaviness: (u,) of what is really used, known at once.
    :ivar contended: (m, c) as the agents judged.
    :ivar wanting: (n, c) as the agents judged.
    :ivar capacity: (m, r).
    :ivar resting: (m,) whether the node is neutral by its safety net.
    """

    round: int
    time_s: float
    changed: bool
    node: Indices
    demand: resources.Vector
    received: resources.Vector
    weights: allocation.Weights
    shares: resources.Vector
    neutral: resources.Vector
    heaviness: Scalars
    user_heaviness: Scalars
    contended: resources.Mask
    wanting: resources.Mask
    capacity: resources.Vector
    resting: resources.Mask


class Observer(Protocol):
    """Observes every round, and gives a result at the end."""

    def see(self, moment: RoundMoment) -> None:
        """Look at a round; copy what is kept."""

    def result(self) -> Mapping[str, Any]:
        """Content of ``result.json``: JSON types."""
