# SPDX-License-Identifier: Apache-2.0

"""Attacks on the queue: their gains are those of the evaluation page."""

import json
import pathlib

import numpy as np
import pytest

from fairness_lab.queue_sim import attacks
from fairness_lab.queue_sim import engine
from fairness_lab.queue_sim import reader
from nova_fairness.planners.fairqueue import orders

RECORDED = (
    pathlib.Path(__file__).parents[4] / 'benchmarks/results/queue/attacks.json'
)
SLACK = 1.1
"""Largest part of the gain that was recorded of the same cloud."""

# The others do the same to other settings of one cloud.
QUICK = ('users', 'hoarding-with-ttl', 'resize')
THREE_AND_OTHERS = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
    for name in attacks.ATTACKS
]

DAY = {'days': '1', 'half_life_hours': '4'}


def attacked_cloud(name, **settings):
    cloud = reader.find('rivals', DAY | settings)
    return cloud, attacks.ATTACKS[name].change(cloud)


def requested_vcpu_seconds(cloud, first_project):
    """VCPU seconds that are asked for, by the first project or others."""
    stream = cloud.stream
    project = np.array(cloud.owners.project)[stream.user]
    names = np.array(cloud.owners.projects)[project]
    ours = np.char.startswith(names, cloud.owners.projects[0])
    size = stream.size
    if stream.resized is not None:
        size = np.where(stream.resized >= 0, stream.resized, size)
    vcpus = np.array([each.vcpus for each in stream.sizes])[size]
    rows = ours if first_project else ~ours
    return float((vcpus * stream.lifetime_s)[rows].sum())


@pytest.mark.parametrize('name', attacks.ATTACKS)
def test_an_attack_leaves_requests_of_others_unchanged(name):
    cloud, attacked = attacked_cloud(name)
    assert requested_vcpu_seconds(attacked, False) == pytest.approx(
        requested_vcpu_seconds(cloud, False)
    )
    assert (np.diff(attacked.stream.asked_s) >= 0).all()
    others = set(cloud.owners.users) - set(attacked.owners.users)
    assert not others


@pytest.mark.parametrize(
    'name', ['churn', 'many-small', 'users', 'projects', 'renaming', 'resize']
)
def test_an_attacker_asks_for_as_much_as_an_honest_user(name):
    cloud, attacked = attacked_cloud(name)
    assert requested_vcpu_seconds(attacked, True) == pytest.approx(
        requested_vcpu_seconds(cloud, True)
    )


def test_a_resized_server_is_charged_as_it_is_and_fits():
    cloud, attacked = attacked_cloud('resize', days='0.5')
    simulation = engine.Simulation(attacked, orders.FairTree())
    for moment in simulation.moments(1800.0):
        assert (moment.used.sum(axis=0) <= cloud.capacity).all()
        assert (moment.used >= 0).all()
        assert (moment.wanted >= 0).all()
    # The first user never asked for more than one VCPU at a time.
    assert moment.area[0, 1] > 2 * simulation.started_s.size


@pytest.mark.repeated
@pytest.mark.parametrize('name', THREE_AND_OTHERS)
def test_an_attack_gains_no_more_than_was_recorded(name):
    cloud = reader.find('rivals', {})
    [recorded] = [
        each['gain']
        for each in json.loads(RECORDED.read_text('utf-8'))['attacks']
        if (each['attack'], each['seed']) == (name, cloud.seed)
    ]
    found = attacks.simulate_attack(
        cloud, attacks.ATTACKS[name], orders.FairTree()
    )
    assert found.honest > 0
    assert found.gain <= SLACK * recorded
