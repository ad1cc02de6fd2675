# SPDX-License-Identifier: Apache-2.0

"""Kernels that do not divide quite as weights ask."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import pathlib
from typing import Any

import numpy as np

from benchmarks.policies import graphs
from benchmarks.policies import runs
from fairness_lab.measures import measures
from fairness_lab.measures import running
from fairness_lab.node_sim import model
from fairness_lab.scenario import chance
from fairness_lab.scenario import cloud as cloud_module
from fairness_lab.scenario import recipes
from fairness_lab.scenario import values as scenario_module
from nova_fairness.decide import array_policy
from nova_fairness.decide import foresight as decide_foresight
from nova_fairness.decide import round as decide_round
from nova_fairness.model import allocation
from nova_fairness.model import foresight as foresight_model
from nova_fairness.model import resources

OFF = 0.5
"""VMs get up to so much more or less (natural logarithm) than their weights
ask for."""

NODES = 5

TRIED: Sequence[tuple[str, str, Mapping[str, float]]] = (
    ('feedback', 'feedback', {}),
    ('foresight', 'foresight', {}),
    ('foresight, uncorrected', 'foresight', {'correction': 0.0}),
)
"""Name, policy and its parameters."""


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
        self.uses_foresight = policy.uses_foresight

    def initial_memory(self, vms: int, nodes: int) -> array_policy.Memories:
        return self._policy.initial_memory(vms, nodes)

    def decide(
        self,
        crowd: array_policy.SituationArrays,
        previous: allocation.Weights,
        memory: array_policy.Memories,
        elapsed_s: float,
    ) -> tuple[allocation.Weights, array_policy.Memories]:
        off = factors(len(previous))
        told = dataclasses.replace(
            crowd, foresight=self._bounded(crowd.foresight)
        )
        weights, kept = self._policy.decide(
            told, previous / off, memory, elapsed_s
        )
        asked = decide_round.bound_weights(
            weights,
            previous / off,
            self._setup.max_weight_ratio,
            self._setup.largest_step,
        )
        return asked * off, kept

    def _bounded(
        self, foresight: foresight_model.Foresight | None
    ) -> foresight_model.Foresight | None:
        """Tell of the bounds of what is asked for, not of what comes of it."""
        if foresight is None:
            return None
        ratio = self._setup.max_weight_ratio
        views = tuple(
            dataclasses.replace(
                view,
                end=decide_foresight.search_division(
                    view.knowledge, ratio
                ).end,
            )
            for view in foresight.views
        )
        ratios = np.full(len(resources.CONTROLS), ratio)
        return dataclasses.replace(foresight, ratio=ratios, views=views)


def factors(vms: int) -> allocation.Weights:
    """Draw what kernels give of what is asked for, (n, 1)."""
    drawn = chance.uniform(1, np.arange(vms))
    return np.asarray(np.exp(OFF * (2 * drawn - 1))[:, np.newaxis])


def inexact(setup: model.Setup) -> model.Setup:
    """The same agents before kernels that are not exact."""
    policy = setup.policy_plugin
    assert isinstance(policy, array_policy.ArrayPolicy)
    return dataclasses.replace(
        setup,
        policy_plugin=Inexact(policy, setup),
        # Or else the product would be cut to what may be asked for.
        max_weight_ratio=setup.max_weight_ratio * np.exp(2 * OFF),
    )


def kernels(out: pathlib.Path) -> None:
    """Run small clouds with such kernels."""
    rows = []
    for label, policy, parameters in TRIED:
        for graph in recipes.Graph:
            found = [
                judged(
                    graphs.grown(graph, NODES, seed=seed),
                    policy,
                    parameters,
                )
                for seed in graphs.SEEDS
            ]
            rounds, settled, *overshoots = runs.of_many(found)
            rows.append([label, graph.value, rounds, *overshoots, settled])
            print(rows[-1], flush=True)
    head = [
        'policy',
        'graph',
        'most rounds',
        'median overshoot %',
        'largest overshoot %',
        'largest settled %',
    ]
    runs.write_csv(out / 'kernels.csv', [head, *rows])


def judged(
    cloud: cloud_module.Cloud, policy: str, parameters: Mapping[str, float]
) -> Mapping[str, Any]:
    """Compare a run with what exact kernels could divide at best."""
    made = running.setup(
        cloud_module.Experiment(cloud, scenario_module.AgentSpec()),
        running.RunOptions(
            metric=runs.METRICS[0], policy=policy, parameters=parameters
        ),
    )
    judge = measures.Measures(cloud, made, 'cpu_time')
    running.observe(cloud, inexact(made), [judge])
    return judge.result()
