# SPDX-License-Identifier: Apache-2.0


"""How far fair divisions of every resource are from the dominant ideal.

The dominant share of a user with independent wishes is the largest of the
user's parts. The least of these is largest when users specialise: one has the
CPU, another the disk. The benchmark measures how far from that each user is
who has the fair part of every resource. For resources that a VM uses together,
the others are taken as always there, so this is the least distance.
"""

import pathlib

import numpy as np

from benchmarks.policies import runs
from fairness_lab.ideal import ideal
from fairness_lab.measures import distance
from fairness_lab.measures import measures
from fairness_lab.measures import running
from fairness_lab.node_sim import engine
from fairness_lab.scenario import cloud as cloud_module
from fairness_lab.scenario import experiment
from nova_fairness.model import resources

SCENARIOS = ('cpu-and-disk', 'all-resources')


def apart(out: pathlib.Path) -> None:
    rows = [found(experiment.find(name)) for name in SCENARIOS]
    runs.write_csv(
        out / 'apart.csv',
        [
            [
                'scenario',
                'fair in every resource lacks',
                'in the ideal, least part beside the largest',
            ],
            *rows,
        ],
    )


def found(scenario: cloud_module.Experiment) -> list[str]:
    made = running.setup(scenario, running.RunOptions(policy='none'))
    moment = next(iter(engine.simulate(scenario.cloud, made)))
    wishes = measures.Measures(scenario.cloud, made).wishes(moment)
    ratio = made.max_weight_ratio
    best = ideal.ideal(wishes, ideal.DOMINANT, ratio)
    wanted = (wishes.demand > 0).any(axis=0) & resources.RESOURCES.time_shared
    parts = [
        ideal.ideal(wishes, name, ratio).share
        for name in np.array(resources.RESOURCES.names)[wanted]
    ]
    largest = np.max(parts, axis=0)
    lacking = distance.largest_lack(
        largest[np.newaxis], best.share[np.newaxis]
    )
    timed = best.parts[:, wanted]
    spread = float((timed.min(axis=1) / timed.max(axis=1)).min())
    return [
        scenario.name,
        runs.percent(float(lacking[0])),
        runs.percent(spread),
    ]
