# SPDX-License-Identifier: Apache-2.0

"""What flavors and pinning mean for the CPU weights of real guests."""

import contextlib
import os

import libvirt
import pytest

from fairness_lab.scenario import values as scenario_module
from fairness_lab.testbed.guests import guest as lab_guest
from fairness_lab.testbed.guests import image
from tests.fixtures import lab
from tests.functional import agent_process

pytestmark = pytest.mark.real

BOOT_S = 120.0
SPECS = (
    scenario_module.Vm('ann-1', 'ann'),
    scenario_module.Vm('ann-2', 'ann', vcpus=2, cputune={'shares': '2048'}),
    scenario_module.Vm(
        'bob-1',
        'bob',
        extra_specs={'quota:cpu_shares': '3000'},
        cputune={'shares': '3000'},
    ),
    scenario_module.Vm('cat-1', 'cat', cputune={'shares': '1500'}),
)
BASES = {'ann-1': 1024, 'ann-2': 2048, 'bob-1': 3000}
PINNED = 'cat-1'


@pytest.fixture(scope='module')
def cpu():
    return min(os.sched_getaffinity(0))


@pytest.fixture(scope='module')
def node():
    with lab.own_node('flavors') as made:
        yield made


@pytest.fixture(scope='module')
def guests(node, cpu):
    boot = image.ensure(image.default_cache())
    made = {spec.name: lab_guest.Guest(node, spec, boot) for spec in SPECS}
    with contextlib.closing(libvirt.open(node.libvirt_uri)) as connection:
        for item in made.values():
            item.start(connection)
        pinned = connection.lookupByUUIDString(made[PINNED].uuid)
        places = [number == cpu for number in range(os.cpu_count())]
        pinned.pinVcpu(0, tuple(places))
    for item in made.values():
        item.await_ready(BOOT_S)
    node.set_cpus()
    for item in made.values():
        item.command('cpu 2' if item is made['ann-2'] else 'cpu 1')
    yield made
    for item in made.values():
        item.hang_up()


def test_shares_follow_flavors_and_leave_dedicated_cpus_alone(
    node, guests, tmp_path
):
    found = {name: item.cpu_shares() for name, item in guests.items()}
    agent = agent_process.Agent(node, tmp_path)
    try:
        agent.start()
        done = agent.await_round(
            lambda done: done['changes'] > 0 and done['contended']['cpu'], 3
        )
        told = {item['name']: item for item in done['instances']}
        for name, base in BASES.items():
            weight = told[name]['weights']['cpu']
            wanted = told[name]['wanted']['cpu']
            assert wanted == pytest.approx(base * weight, abs=1), name
            assert guests[name].cpu_shares() != found[name]
        assert 'cpu' not in told[PINNED]['wanted']
        assert guests[PINNED].cpu_shares() == found[PINNED]
        assert agent.stop() == 0
    finally:
        agent.close()
    assert {n: item.cpu_shares() for n, item in guests.items()} == found
