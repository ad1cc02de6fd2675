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

"""What foresight from what users want would give, and what it costs."""

from collections.abc import Mapping
import dataclasses
import pathlib

import numpy as np
import policies_foresight as foresight
import policies_graphs
import policies_joined as joined
import policies_runs as runs
import policies_tried as tried
import policies_wants as wants

from nova_fairness.decide import array_policy
from nova_fairness.decide import bounds
from nova_fairness.model import allocation
from nova_fairness.sim import chance
from nova_fairness.sim import model
from nova_fairness.sim import recipes
from nova_fairness.sim import scenario_file

Make = joined.Make

CPU_ONLY = ('chain', 'star', 'idle', 'bursty')
"""Of the standard set, some on which forms of reports are compared."""

SIZES = (10, 30, 100)

FAR = (30,)

HOPS = (1, 2, 3, None)

OFF = 0.5
"""Kernels give VMs up to so much more or less (natural logarithm) than their
weights ask for, where they are not exact."""


def made(
    form: wants.Form | None = None,
    way: foresight.Way | None = None,
    decay: float | None = None,
) -> Make:
    """Give agents that have foresight."""

    def make(cloud: model.Cloud, setup: model.Setup) -> model.Setup:
        if decay is not None:
            setup = dataclasses.replace(setup, decay_factor=decay)
        return foresight.make(cloud, setup, form, way)

    return make


def default(_cloud: model.Cloud, setup: model.Setup) -> model.Setup:
    return setup


WAYS: Mapping[str, Make] = {
    'default': default,
    'foresight': made(),
    'foresight, uncorrected': made(way=foresight.Way(gain=0.0)),
    'foresight, whole way': made(way=foresight.Way(part=1.0)),
    'foresight, decay 0.25': made(decay=0.25),
    'foresight, decay 1': made(decay=1.0),
}
"""How weights go to where the policy would end."""

GROWN = ('default', 'foresight', 'foresight, uncorrected')
"""Of these, on larger graphs and kernels that are not exact."""

FORMS: Mapping[str, Make] = {
    'wanted and sizes': made(),
    'wanted, half the excess': made(wants.Form(excess=0.5)),
    'wanted, twice the excess': made(wants.Form(excess=2.0)),
    'wanted, 10 % noise': made(wants.Form(noise=0.1)),
    'wanted alone': made(wants.Form(size=wants.Size.WANTED)),
    'wanted, sizes of all VMs': made(wants.Form(size=wants.Size.ALL)),
    'flag': made(wants.Form(told=wants.Told.FLAG)),
}
"""What reports say."""


MANY = (*joined.MANY, 'largest settled %')


def _many(found: list[joined.Judged]) -> list[str]:
    settled = max(item.settled for item in found)
    return [*joined.of_many(found), runs.percent(settled)]


def small(out: pathlib.Path) -> None:
    """Run all ways on small clouds."""
    clouds = joined.small()
    rows = []
    for name, make in WAYS.items():
        for graph, item in clouds.items():
            rows.append([name, graph.value, *_many(item.judged(make))])
            print(rows[-1], flush=True)
    head = ['policy', 'graph', *MANY]
    runs.write_csv(out / 'foresight-small.csv', [head, *rows])


def graphs(out: pathlib.Path) -> None:
    """Let graphs grow."""
    rows = []
    for graph in recipes.Graph:
        clouds = joined.Joined(
            [policies_graphs.grown(graph, nodes) for nodes in SIZES]
        )
        for name in GROWN:
            found = clouds.judged(WAYS[name])
            rows.append([graph.value, name, *_each(found)])
            print(rows[-1], flush=True)
    head = ['graph', 'policy', *_heads(SIZES)]
    runs.write_csv(out / 'foresight-graphs.csv', [head, *rows])


def hops(out: pathlib.Path) -> None:
    """Let nodes look less far."""
    rows = []
    # In a star, all are one hop away.
    for graph in (recipes.Graph.CHAIN, recipes.Graph.RANDOM):
        clouds = joined.Joined(
            [policies_graphs.grown(graph, nodes) for nodes in FAR]
        )
        for far in HOPS:
            found = clouds.judged(made(wants.Form(hops=far)))
            name = 'all' if far is None else str(far)
            rows.append([graph.value, name, *_each(found)])
            print(rows[-1], flush=True)
    head = ['graph', 'hops', *_heads(FAR)]
    runs.write_csv(out / 'foresight-hops.csv', [head, *rows])


def _each(found: list[joined.Judged]) -> list[str]:
    return [
        *(runs.late(item.rounds) for item in found),
        *(runs.percent(item.overshoot) for item in found),
        *(runs.percent(item.settled) for item in found),
    ]


def _heads(sizes: tuple[int, ...]) -> list[str]:
    return [
        f'{what} of {nodes} nodes'
        for what in ('rounds', 'overshoot %', 'settled %')
        for nodes in sizes
    ]


def forms(out: pathlib.Path) -> None:
    """Let reports say less, or what is not quite so."""
    clouds = joined.small()
    scenarios = [scenario_file.find(name) for name in CPU_ONLY]
    rows = []
    for name, make in FORMS.items():
        found = [one for item in clouds.values() for one in item.judged(make)]
        lacking = [tried.worst(item, make)['settled'] for item in scenarios]
        rows.append(
            [
                name,
                *joined.of_many(found)[:3],
                *map(runs.percent, lacking),
            ]
        )
        print(rows[-1], flush=True)
    head = ['reports say', *joined.MANY[:3]]
    runs.write_csv(
        out / 'foresight-reports.csv',
        [[*head, *(f'{name}, settled %' for name in CPU_ONLY)], *rows],
    )


class Inexact(array_policy.ArrayPolicy):
    """Has a policy steer kernels that do not divide quite as weights ask.

    :param policy: that steers; all VMs are there in every round.
    :param setup: whose bounds count for the weights that it asks for.
    """

    description = 'Another policy, before kernels that are not exact.'

    def __init__(
        self, policy: array_policy.ArrayPolicy, setup: model.Setup
    ) -> None:
        self._policy = policy
        self._setup = setup
        self.FIELDS = policy.FIELDS

    def nothing(self, vms: int, nodes: int) -> array_policy.Memories:
        return self._policy.nothing(vms, nodes)

    def decide(
        self,
        crowd: array_policy.Crowd,
        previous: allocation.Weights,
        memory: array_policy.Memories,
        elapsed_s: float,
    ) -> tuple[allocation.Weights, array_policy.Memories]:
        drawn = chance.uniform(1, np.arange(len(previous)))
        off = np.exp(OFF * (2 * drawn - 1))[:, np.newaxis]
        weights, kept = self._policy.decide(
            crowd, previous / off, memory, elapsed_s
        )
        asked = bounds.bounded(
            weights,
            previous / off,
            self._setup.max_weight_ratio,
            self._setup.largest_step,
        )
        return asked * off, kept


def inexact(exact: Make) -> Make:
    """Give the same agents before kernels that are not exact."""

    def make(cloud: model.Cloud, setup: model.Setup) -> model.Setup:
        given = exact(cloud, setup)
        policy = given.policy_plugin
        assert isinstance(policy, array_policy.ArrayPolicy)
        return dataclasses.replace(
            given,
            policy_plugin=Inexact(policy, given),
            max_weight_ratio=given.max_weight_ratio * np.exp(2 * OFF),
        )

    return make


def kernels(out: pathlib.Path) -> None:
    """Let kernels divide otherwise than the model thinks."""
    clouds = joined.small()
    rows = []
    for name in GROWN:
        for graph, item in clouds.items():
            found = item.judged(inexact(WAYS[name]))
            rows.append([name, graph.value, *_many(found)])
            print(rows[-1], flush=True)
    head = ['policy', 'graph', *MANY]
    runs.write_csv(out / 'foresight-kernels.csv', [head, *rows])
