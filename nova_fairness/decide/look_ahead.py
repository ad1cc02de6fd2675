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

"""Where feedback would end, from what users want on every node.

The model begins with neutral weights, not with those in force. So its end
follows from what is wanted and what nodes have alone: it does not depend on
who has how much now, and so neither on when that was reported. Nodes that
know the same see the same end.

Only the CPU is foreseen: of nothing else it is told what VMs want.
"""

import dataclasses
import functools

import numpy as np

from nova_fairness.decide import array_policy
from nova_fairness.decide import bounds
from nova_fairness.decide import contention
from nova_fairness.decide import levels
from nova_fairness.decide.policies import feedback
from nova_fairness.model import outlook as outlook_module
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

ROUNDS = 40
"""That are run on the model."""

SHORT = 1.01
"""A node is short of what is wanted so many times what it has or more ..."""

UNMET = 1.1
"""... or so many times what its users have, where they have nearly all that
there is: what the host itself needs is nobody's."""

WAITS = 0.995
"""Who gets less of what he wants than this waits. Judging by what kernels
tell takes a wider margin; the model knows what is wanted."""

LARGEST_STEP = 4.0
"""Factor of a weight in a round of the model."""

LEAST = 1e-3
"""Size of a cell whose VMs want nothing."""

SMOOTHING = 0.5
"""As agents smooth: the numbers of the policy are made for it."""

CPU = resources.CONTROLS.index(resources.Control.CPU)
CPU_TIME = resources.RESOURCES.index('cpu_time')


@dataclasses.dataclass(frozen=True, eq=False)
class End:
    """Where feedback ends.

    :ivar log: (n,) logarithms of the cells' weights.
    :ivar short: (m,) whether more is wanted of a node than it has.
    """

    log: usage_model.Scalars
    short: resources.Mask


@functools.lru_cache(maxsize=8)
def end(outlook: outlook_module.Outlook, ratio: float) -> End:
    """Run feedback on the model.

    :param outlook: the same object has the same end.
    :param ratio: largest by smallest weight of a node, >= 1.
    """
    model = _Model.of(outlook)
    weights = np.ones((len(outlook.node), len(resources.CONTROLS)))
    if model.short.any():
        weights = model.settled(ratio)
    return End(np.log(weights[:, CPU]), model.short)


@dataclasses.dataclass(frozen=True, eq=False)
class _Model:
    """The CPUs of all nodes.

    :ivar wanted: (n,) of each cell.
    :ivar size: (n,) what a kernel weighs it by: the CPUs that it wants.
    :ivar supply: (m,) what users can have of each node.
    :ivar short: (m,) nodes of which more is wanted than they have.
    """

    outlook: outlook_module.Outlook
    wanted: usage_model.Scalars
    size: usage_model.Scalars
    supply: usage_model.Scalars
    short: resources.Mask

    @classmethod
    def of(cls, outlook: outlook_module.Outlook) -> '_Model':
        wanted = outlook.wanted[:, CPU_TIME]
        whole = outlook.supply[:, CPU_TIME]
        asked = np.bincount(outlook.node, wanted, len(whole))
        given = outlook.given()[:, CPU_TIME]
        busy = contention.BUSY_WITH_STALL * whole
        unmet = (given >= busy) & (asked >= UNMET * given)
        short = (asked >= SHORT * whole) | unmet
        cpus = wanted / outlook.one_cpu[outlook.node]
        return cls(
            outlook=outlook,
            wanted=wanted,
            size=np.maximum(cpus, LEAST),
            supply=np.where(short, given.clip(busy, whole), whole),
            short=short & (asked > 0),
        )

    def divided(self, weights: usage_model.Scalars) -> usage_model.Scalars:
        """Give what each cell gets, (n,)."""
        got, _ = levels.fill(
            self.supply,
            self.outlook.node,
            self.wanted,
            self.size * weights,
        )
        return got

    def heaviness(self, got: usage_model.Scalars) -> usage_model.Scalars:
        """Weigh the cells by what they would get, (n,)."""
        used = self.outlook.wanted.copy()
        used[:, CPU_TIME] = got
        return self.outlook.weigh(used)

    def settled(self, ratio: float) -> resources.Vector:
        """Give the weights after many rounds, (n, c)."""
        policy = feedback.FeedbackPolicy()
        count, nodes = len(self.wanted), len(self.short)
        weights = np.ones((count, len(resources.CONTROLS)))
        memory = policy.nothing(count, nodes)
        got = self.divided(weights[:, CPU])
        smoothed = self.heaviness(got)
        for _ in range(ROUNDS):
            wished, memory = policy.decide(
                self._crowd(smoothed, got), weights, memory, 1.0
            )
            weights = bounds.bounded(wished, weights, ratio, LARGEST_STEP)
            got = self.divided(weights[:, CPU])
            smoothed += SMOOTHING * (self.heaviness(got) - smoothed)
        return weights

    def _crowd(
        self, heaviness: usage_model.Scalars, got: usage_model.Scalars
    ) -> array_policy.Crowd:
        shape = (len(self.wanted), len(resources.CONTROLS))
        wanting = np.zeros(shape, dtype=np.bool_)
        lacking = got < WAITS * self.wanted
        wanting[:, CPU] = lacking & self.short[self.outlook.node]
        contended = np.zeros((len(self.short), shape[1]), dtype=np.bool_)
        contended[:, CPU] = self.short
        return array_policy.Crowd(
            node=self.outlook.node,
            nodes=len(self.short),
            heaviness=heaviness,
            user=self.outlook.user,
            vcpus=self.size,
            contended=contended,
            wanting=wanting,
        )
