# SPDX-License-Identifier: Apache-2.0

"""Simulated agents have the safety net of real ones."""

import dataclasses

import numpy as np
import pytest

from fairness_lab.node_sim import engine
from nova_fairness.decide import safety_net
from nova_fairness.model import foresight as foresight_model
from tests.unit.decide import inverted
from tests.unit.fairness_lab.node_sim import build

NODES = ('n0', 'n1')
VMS = (
    ('heavy-1', 'user1', 'n0', np.inf),
    ('heavy-2', 'user1', 'n0', np.inf),
    ('light', 'user2', 'n0', np.inf),
    ('alone', 'user3', 'n1', np.inf),
)


def simulated(cloud, made):
    """Which nodes rest, and what users have, round by round."""
    return [
        (moment.resting.copy(), build.by_user(cloud, moment))
        for moment in engine.simulate(cloud, made)
    ]


@pytest.mark.parametrize('metric', ['DominantShareMetric', 'GreedinessMetric'])
def test_users_are_no_worse_off_than_without_agents(metric):
    cloud = build.cloud(VMS, nodes=NODES, rounds=30)
    made = build.setup(metric=metric, policy_plugin=inverted.Inverted())
    found = simulated(cloud, made)
    assert [rests.tolist() for rests, _ in found[4:7]] == [[False] * 2] * 3
    assert found[-1][0].tolist() == [True, False]
    without = simulated(cloud, build.setup(policy='none'))[-1][1]
    assert found[5][1][1] < 0.8 * without[1]
    assert found[-1][1] == pytest.approx(without, rel=0.01)


def test_harm_lasts_without_the_safety_net():
    cloud = build.cloud(VMS, nodes=NODES, rounds=30)
    made = build.setup(policy_plugin=inverted.Inverted(), safety_net=False)
    assert not any(rests.any() for rests, _ in simulated(cloud, made))


def test_foresight_that_sees_no_change_is_caught(monkeypatch):
    """A user stops the VM on one node, and keeps the weight of a heavy one
    on the other."""
    vms = (
        ('here', 'user1', 'n0', 0.2),
        ('gone', 'user1', 'n1', 1.0),
        *((f'other-{n}', f'user{2 + n}', 'n0', 1.0) for n in range(2)),
    )
    same = foresight_model.CpuKnowledge.has_cells_of
    monkeypatch.setattr(foresight_model.CpuKnowledge, 'is_like', same)
    cloud = stopping(build.cloud(vms, nodes=NODES, rounds=40), 'gone', 8)
    rests = [
        rests for rests, _ in simulated(cloud, build.setup(policy='foresight'))
    ]
    assert rests[-1][0]
    assert not any(each.any() for each in rests[: 8 + safety_net.LASTING])


def stopping(cloud, name, round_):
    """Let a VM want nothing from a round on."""
    every, vm = cloud.changes, cloud.vms.index(name)
    node = every.node[list(every.vm).index(vm)]
    stopped = dataclasses.replace(
        every,
        round=np.append(every.round, round_),
        vm=np.append(every.vm, vm),
        node=np.append(every.node, node),
        demand=np.vstack([every.demand, np.zeros(build.WIDTH)]),
    )
    return dataclasses.replace(cloud, changes=stopped)
