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

"""Experiments are told what agents know."""

import numpy as np

from nova_fairness.model import resources
from nova_fairness.sim import engine
from nova_fairness.sim import model
from tests.unit.sim import build

CPU = resources.CONTROLS.index(resources.Control.CPU)


class Ear:
    def __init__(self):
        self.heard = []

    def hear(self, heard):
        self.heard.append(heard)


def listened(links=None, **more):
    ear = Ear()
    cloud = build.cloud(build.TWO_NODES, nodes=('n0', 'n1'), rounds=6)
    setup = build.setup(listener=ear, links=links, **more)
    moments = [
        moment.weights.copy() for moment in engine.simulate(cloud, setup)
    ]
    return ear.heard, moments


def lost(*, sender):
    loss = np.zeros((2, 2))
    loss[:, sender] = 1.0
    return model.Links(np.zeros((2, 2), dtype=np.int64), loss)


def test_every_act_is_told_with_usage_and_stalls():
    heard, _ = listened()
    assert [item.tick for item in heard] == list(range(6))
    first = heard[0]
    assert first.acting.tolist() == [0, 1]
    assert first.usage.shape == (4, len(resources.RESOURCES))
    waits = first.stall[:, CPU] > 0.1
    assert waits.tolist() == (first.node == 0).tolist()


def test_who_listens_changes_nothing():
    _, told = listened()
    cloud = build.cloud(build.TWO_NODES, nodes=('n0', 'n1'), rounds=6)
    alone = [
        moment.weights.copy()
        for moment in engine.simulate(cloud, build.setup())
    ]
    np.testing.assert_array_equal(told, alone)


def test_prompt_reports_are_known_everywhere():
    heard, _ = listened()
    for item in heard:
        assert (item.reports == item.tick).all()


def test_what_is_lost_is_not_known():
    heard, _ = listened(links=lost(sender=1))
    for item in heard:
        assert item.reports.tolist() == [
            [item.tick, -1],
            [item.tick, item.tick],
        ]


def test_an_old_report_counts_until_its_age():
    delay = np.array([[0, 2], [0, 0]])
    links = model.Links(delay, np.zeros((2, 2)))
    heard, _ = listened(links=links)
    newest = [int(item.reports[0, 1]) for item in heard]
    assert newest == [-1, -1, 0, 1, 2, 3]
