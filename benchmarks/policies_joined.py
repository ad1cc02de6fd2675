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

"""Many clouds that are simulated as one, and judged one by one."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools
import statistics

import numpy as np
import numpy.typing as npt
import policies_graphs
import policies_informed
import policies_runs as runs

from nova_fairness.sim import distance
from nova_fairness.sim import engine
from nova_fairness.sim import ideal
from nova_fairness.sim import measures
from nova_fairness.sim import model
from nova_fairness.sim import recipes
from nova_fairness.sim import running
from nova_fairness.sim import scenario as scenario_module

Floats = npt.NDArray[np.float64]
Make = Callable[[model.Cloud, model.Setup], model.Setup]

ROUNDS = 60

MANY = (
    'most rounds',
    'median overshoot %',
    'largest overshoot %',
    'above, of who began below %',
    'below, of who began above %',
)
"""What :func:`of_many` gives."""


@dataclasses.dataclass(frozen=True)
class Judged:
    """How one cloud went.

    :ivar rounds: until within 5 %; ``None`` if never.
    :ivar overshoot: the larger of the next two.
    :ivar above: beyond the ideal, of users who began below it.
    :ivar below: the same of users who began above.
    :ivar settled: what the worst user lacks in the second half, mean.
    """

    rounds: int | None
    overshoot: float
    above: float
    below: float
    settled: float

    @classmethod
    def of(cls, share: Floats, best: Floats) -> 'Judged':
        best = np.tile(best, (len(share), 1))
        low = share[0] < best[0]
        above = distance.overshoot(share[:, low], best[:, low])
        below = distance.overshoot(share[:, ~low], best[:, ~low])
        lacking = distance.worst(share, best)
        return cls(
            rounds=distance.rounds_until(lacking),
            overshoot=max(above, below),
            above=above,
            below=below,
            settled=float(lacking[len(lacking) // 2 :].mean()),
        )


class Joined:
    """Many clouds that are simulated as one, and judged one by one.

    Quotas are those of each cloud: they know nothing of each other.
    """

    def __init__(self, clouds: Sequence[model.Cloud]) -> None:
        self._joined = _joined(clouds)
        ends = np.cumsum([len(cloud.users) for cloud in clouds])
        self._users = [
            slice(begin, end)
            for begin, end in itertools.pairwise([0, *map(int, ends)])
        ]
        plain = self._setup()
        moment = next(iter(engine.simulate(self._joined, plain)))
        wishes = measures.Measures(self._joined, plain).wishes(moment)
        self._quota = wishes.quota[:, policies_informed.CPU_TIME]
        self._best = ideal.ideal(
            wishes, 'cpu_time', plain.max_weight_ratio
        ).share

    def _setup(self) -> model.Setup:
        scenario = scenario_module.Scenario(
            self._joined, scenario_module.AgentSpec()
        )
        return running.setup(scenario, running.Choice(metric=runs.METRICS[0]))

    def judged(self, make: Make) -> list[Judged]:
        """Run a policy."""
        setup = make(self._joined, self._setup())
        share = np.array(
            [
                np.bincount(
                    self._joined.user_of_vm,
                    moment.received[:, policies_informed.CPU_TIME],
                    len(self._quota),
                )
                / self._quota
                for moment in engine.simulate(self._joined, setup)
            ]
        )
        return [
            Judged.of(share[:, mine], self._best[mine]) for mine in self._users
        ]


def _joined(clouds: Sequence[model.Cloud]) -> model.Cloud:
    """Put clouds of steady VMs side by side."""
    nodes = np.cumsum([0, *(len(cloud.nodes) for cloud in clouds)])
    users = np.cumsum([0, *(len(cloud.users) for cloud in clouds)])
    vms = np.cumsum([0, *(len(cloud.vms) for cloud in clouds)])
    plain = ('cpus', 'speed', 'capacity', 'vcpus', 'memory_bytes', 'coupled')
    whole = {
        name: np.concatenate([getattr(cloud, name) for cloud in clouds])
        for name in plain
    }
    places = range(len(clouds))
    changes = [cloud.changes for cloud in clouds]
    place = policies_informed.CPU_TIME
    return dataclasses.replace(
        clouds[0],
        rounds=ROUNDS,
        nodes=_names('node', nodes[-1]),
        users=_names('user', users[-1]),
        vms=_names('vm', vms[-1]),
        user_of_vm=np.concatenate(
            [clouds[k].user_of_vm + users[k] for k in places]
        ),
        # A quota is the part of the supply of one's own cloud.
        user_weight=np.concatenate(
            [
                np.full(
                    len(cloud.users),
                    cloud.capacity[:, place].sum() / len(cloud.users),
                )
                for cloud in clouds
            ]
        ),
        changes=model.Changes(
            round=np.concatenate([item.round for item in changes]),
            vm=np.concatenate([changes[k].vm + vms[k] for k in places]),
            node=np.concatenate([changes[k].node + nodes[k] for k in places]),
            demand=np.concatenate([item.demand for item in changes]),
        ),
        **whole,
    )


def _names(word: str, count: int) -> tuple[str, ...]:
    return tuple(f'{word}{place:05d}' for place in range(count))


def small() -> Mapping[recipes.Graph, Joined]:
    """Draw clouds of up to five nodes."""
    return {
        graph: Joined(
            [
                policies_graphs.grown(graph, nodes, seed=seed)
                for nodes in range(2, 6)
                for seed in policies_graphs.SEEDS
            ]
        )
        for graph in recipes.Graph
    }


def of_many(found: Sequence[Judged]) -> list[str]:
    rounds = [item.rounds for item in found if item.rounds is not None]
    every = len(rounds) == len(found)
    overshoot = statistics.median(item.overshoot for item in found)
    return [
        runs.late(max(rounds) if every else None),
        runs.percent(overshoot),
        runs.percent(max(item.overshoot for item in found)),
        runs.percent(max(item.above for item in found)),
        runs.percent(max(item.below for item in found)),
    ]
