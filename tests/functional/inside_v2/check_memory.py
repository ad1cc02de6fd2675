# SPDX-License-Identifier: Apache-2.0

"""Memory of VMs on a node that is short of it: the scenario in short.

``benchmarks/agent/memory_v2.py`` is the long form. What counts here is the
part of the pages it touches for which a guest waits, since that does not
depend on how fast the machine is.
"""

import time

import pytest

from fairness_lab.testbed.nodes import processes
from tests.fixtures.v2_guest import compute
from tests.fixtures.v2_guest import scarcity
from tests.fixtures.v2_guest import vms as vms_module
from tests.functional import agent_process

SIZES = scarcity.Sizes(
    node_mib=320,
    light_mib=128,
    heavy_mib=288,
    light_rate=4000,
    heavy_rate=20000,
)
SECONDS = 5
SETTLED = 0.02
"""Part of the touched pages; less is nothing that a guest would notice."""


@pytest.fixture(scope='module')
def agent(start, tmp_path_factory):
    """An agent that looks on, on a node that has become small."""
    with scarcity.node(SIZES) as reserved:
        made = agent_process.Agent(
            compute.LocalNode(),
            tmp_path_factory.mktemp('agent'),
            interval=1,
            metric_deadline=10,
            controls='memory',
            enforce=False,
        )
        with made.config.open('a') as file:
            file.write(f'[fairness_node]\nreserved_memory = {reserved}\n')
        made.start()
        made.await_round(lambda done: not done['enforced'])
        scarcity.shrink(SIZES)
        yield made
        made.close()
        # Their memory is in the swap that goes away with the node.
        for vm in list(start.vms):
            start.end(vm)


def waited(vms, seconds=SECONDS):
    """For which part of the pages they touch VMs wait, from now on."""
    before = scarcity.count(*vms)
    time.sleep(seconds)
    after = scarcity.count(*vms)
    return {
        vm.name: scarcity.fault_fraction(before, after, vm.name) for vm in vms
    }


def spares_the_light_user(done):
    applied = {
        item['name']: item['applied'].get('memory', 0)
        for item in done['instances']
    }
    return done['enforced'] and applied.get('light', 0) > SIZES.light_mib << 20


def is_spared(parts):
    """Tell whether the light user waits for nothing, and the heavy one does.

    How much the heavy one waits for depends on how many pages the kernel
    brings back at once.
    """
    return parts['light'] < min(SETTLED, parts['heavy'] / 2)


def is_whole(read_memory_lows):
    """Tell whether the whole way to the VMs is spared what they are."""
    own = [name for name in read_memory_lows if name.endswith('.scope')]
    inner = [read_memory_lows[f'{name}/libvirt'] for name in own]
    return inner == ['max', 'max'] and read_memory_lows[
        'machine.slice'
    ] == str(sum(int(read_memory_lows[name]) for name in own))


def test_working_memory_of_a_light_user_is_protected(start, agent):
    light = SIZES.start(start, 'light')
    assert waited([light])['light'] < SETTLED
    vms = [light, SIZES.start(start, 'heavy')]
    found = scarcity.read_memory_lows(*vms)
    # The kernel goes through all memory before it finds what is old.
    assert processes.wait_until(
        lambda: waited(vms)['light'] > 2 * SETTLED, vms_module.PATIENCE_S
    )
    assert scarcity.read_memory_lows(*vms) == found
    text = agent.config.read_text()
    agent.config.write_text(text.replace('enforce = False', 'enforce = True'))
    agent.send(agent_process.signal.SIGHUP)
    agent.await_round(spares_the_light_user, count=2)
    # A round may be writing just now.
    assert processes.wait_until(
        lambda: is_whole(scarcity.read_memory_lows(*vms)), 60
    )
    # What was taken before comes back one page at a time.
    assert processes.wait_until(
        lambda: is_spared(waited(vms, 2 * SECONDS)), vms_module.PATIENCE_S
    )
    assert agent.stop() == 0
    assert scarcity.read_memory_lows(*vms) == found
