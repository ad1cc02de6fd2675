# SPDX-License-Identifier: Apache-2.0

"""The rooms of the agent and the reference evaluation say the same."""

import itertools
import math
import random

import numpy as np
import pytest

from fairness_lab.results import reference
from nova_fairness.decide import policy
from nova_fairness.decide.controls import cpu
from nova_fairness.decide.policies import thesis
from nova_fairness.measure import endowment
from nova_fairness.measure import metric
from nova_fairness.measure import quota
from nova_fairness.measure import usage
from nova_fairness.measure.metrics import greediness
from nova_fairness.model import instance
from nova_fairness.model import resources
from nova_fairness.model import sample

RESOURCES = resources.RESOURCES
SPEED = 4800.0
CAPACITY = RESOURCES.vector(
    cpu_time=2 * SPEED,
    disk_read=1e8,
    disk_written=1e8,
    net_received=5e7,
    net_sent=5e7,
    memory=2**31,
)


def machines(chance):
    return tuple(
        instance.Incarnation(
            instance.Instance(
                uuid=f'vm{number}',
                domain_name=f'd{number}',
                vcpus=chance.choice([1, 2, 4]),
                memory_bytes=chance.choice([2**28, 2**29, 2**30]),
                user_id=chance.choice('xyz'),
            ),
            pid=number + 1,
            start_ticks=7,
        )
        for number in range(chance.randint(2, 6))
    )


def readings(chance, vms, count=6):
    """Yield samples whose counters grow unevenly, in uneven intervals."""
    totals = np.zeros((len(vms), len(RESOURCES)))
    memory = RESOURCES.index('memory')
    now_s = 50.0
    for _ in range(count):
        elapsed_s = chance.uniform(8.0, 12.0)
        now_s += elapsed_s
        for row in range(len(vms)):
            for column in range(len(RESOURCES)):
                rate = chance.random() * CAPACITY[column] / SPEED / 2
                totals[row, column] += rate * elapsed_s
            totals[row, memory] = chance.random() * 2**29
        late = np.array([chance.random() / 10 for _ in vms])
        nothing = np.full(len(vms), math.nan)
        yield sample.Sample(now_s, vms, totals.copy(), nothing, now_s + late)


def recording_line(number, taken):
    return {
        'round': number,
        'time_s': taken.time_s,
        'node': {
            'speed_factor': SPEED,
            'capacity': dict(
                zip(RESOURCES.names, CAPACITY.tolist(), strict=True)
            ),
        },
        'instances': [
            {
                'uuid': item.instance.uuid,
                'incarnation': item.key,
                'user': item.instance.user_id,
                'vcpus': item.instance.vcpus,
                'memory_bytes': item.instance.memory_bytes,
                'read_at_s': taken.read_at_s[row],
                'counters': dict(
                    zip(
                        RESOURCES.names,
                        taken.totals[row].tolist(),
                        strict=True,
                    )
                ),
            }
            for row, item in enumerate(taken.incarnations)
        ],
    }


def by_the_rooms(samples):
    """CPU shares of each round as the agent comes by them."""
    past = None
    for before, after in itertools.pairwise(samples):
        past = usage.usage_between(before, after, SPEED, past, 0.5)
        heaviness, owner = heaviness_of_rows(past)
        weights, _ = thesis.ThesisPolicy()(
            situation(past, heaviness, owner),
            np.ones((len(owner), len(resources.CONTROLS))),
            {},
            past.interval_s,
        )
        column = resources.CONTROLS.index(resources.ResourceControl.CPU)
        vms = [item.instance for item in past.incarnations]
        units = cpu.to_units(
            weights[:, column],
            vms,
            policy.Preset.THESIS,
            cpu.RANGES[cpu.CgroupVersion.V2],
        )
        yield dict(zip([vm.uuid for vm in vms], units, strict=True))


def situation(used, heaviness, owner):
    shape = (len(owner), len(resources.CONTROLS))
    return policy.Situation(
        keys=tuple(item.key for item in used.incarnations),
        heaviness=heaviness,
        user=owner,
        vcpus=np.array([vm.instance.vcpus for vm in used.incarnations]),
        contended=np.ones(shape[1], dtype=bool),
        wanting=np.ones(shape, dtype=bool),
    )


def heaviness_of_rows(used):
    vms = [item.instance for item in used.incarnations]
    users, owner = np.unique([vm.user_id for vm in vms], return_inverse=True)
    supply = RESOURCES.over(CAPACITY, used.interval_s)
    owned = endowment.endowments(
        np.array([vm.vcpus for vm in vms]),
        np.array([vm.memory_bytes for vm in vms]),
        np.zeros(len(vms), dtype=np.intp),
        supply[np.newaxis, :],
    )
    chosen = greediness.GreedinessMetric()
    own = chosen.instances(
        metric.Demands(
            used.amounts,
            owned,
            supply,
            np.zeros(len(vms), dtype=np.intp),
            len(users),
        )
    )
    member = np.eye(len(users))[owner].T
    of_users = chosen.users(
        metric.Totals(
            member @ own,
            member @ used.amounts,
            member @ owned,
            quota.divide_by_weights(supply, np.ones(len(users))),
            supply,
        )
    )
    return chosen.combine(of_users[owner], own), owner


@pytest.mark.parametrize('seed', range(20))
def test_the_rooms_and_the_reference_give_the_same_shares(seed):
    chance = random.Random(seed)
    samples = list(readings(chance, machines(chance)))
    lines = [
        recording_line(n, taken) for n, taken in enumerate(samples, start=1)
    ]
    expected = reference.cpu_shares(lines)[1:]
    found = list(by_the_rooms(samples))
    assert len({value for shares in found for value in shares.values()}) > 3
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.keys() == theirs.keys()
        for uuid, shares in theirs.items():
            assert abs(ours[uuid] - shares) <= 1
