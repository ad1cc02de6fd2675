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

"""What a look ahead costs a node."""

import dataclasses
import pathlib
import statistics
import time

import numpy as np
import policies_ahead as ahead
import policies_runs as runs
import policies_wants as wants

from nova_fairness.model import resources
from nova_fairness.sim import ideal

HOPS = (1, 2, 3, None)

TURNS = (20, ahead.AHEAD)


def cost(out: pathlib.Path) -> None:
    """Take the time of the model, of random graphs with 20 users a node."""
    rows = []
    for nodes in (10, 100, 1000):
        whole = drawn(nodes)
        for far in HOPS:
            inside = (
                np.ones(len(whole.cells.node), dtype=np.bool_)
                if far is None
                else ahead.near(whole.cells, 0, far)
            )
            part = dataclasses.replace(whole, cells=whole.cells.only(inside))
            rows.append(
                [
                    str(nodes),
                    'all' if far is None else str(far),
                    str(len(np.unique(part.cells.node))),
                    str(len(part.cells.node)),
                    *(f'{_taken_ms(part, turns):.0f}' for turns in TURNS),
                ]
            )
            print(rows[-1], flush=True)
    runs.write_csv(
        out / 'foresight-cost.csv',
        [
            [
                'nodes',
                'hops',
                'nodes in the model',
                'users of them',
                *(f'ms, {turns} rounds ahead' for turns in TURNS),
            ],
            *rows,
        ],
    )


def drawn(nodes: int, each: int = 20, degree: int = 4) -> ahead.Model:
    """Draw a cloud in which every node has 20 users, each on four nodes."""
    rng = np.random.default_rng(nodes)
    users = nodes * each // degree
    place = np.concatenate([rng.permutation(nodes) for _ in range(each)])
    user = np.arange(len(place)) // degree
    width, controls = len(resources.RESOURCES), len(resources.CONTROLS)
    wanted = np.zeros((len(place), width))
    wanted[:, wants.CPU_TIME] = rng.uniform(0.1, 5.0, len(place))
    capacity = np.zeros((nodes, width))
    capacity[:, wants.CPU_TIME] = 25.0
    quota = np.zeros((users, width))
    quota[:, wants.CPU_TIME] = 25.0 * nodes / users
    order = np.argsort(place, kind='stable')
    cells = ahead.Cells(
        node=place[order],
        user=user[order],
        wanted=wanted[order],
        used=wanted[order],
        size=np.ones((len(place), controls)),
    )
    return ahead.Model(cells, capacity, quota, np.zeros_like(quota))


def _taken_ms(given: ahead.Model, turns: int) -> float:
    """Give the CPU time of one node's look ahead, the middle of three."""
    found = []
    for _ in range(3):
        began_s = time.process_time()
        ahead.end(given, 20.0, ideal.DOMINANT, turns)
        found.append(time.process_time() - began_s)
    return 1000 * statistics.median(found)
