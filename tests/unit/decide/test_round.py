# SPDX-License-Identifier: Apache-2.0


"""Simulated nodes judge by the same rules as agents."""

import numpy as np
import pytest

from nova_fairness.decide import contention
from nova_fairness.decide import round as decide_round
from nova_fairness.decide.controls import disk
from nova_fairness.decide.controls import memory
from nova_fairness.decide.controls import network
from nova_fairness.model import instance
from nova_fairness.model import pressure as pressure_model
from nova_fairness.model import resources

R = resources.RESOURCES
CONTROLS = len(resources.CONTROLS)
WHOLE = 1e9
INTERVAL_S = 10.0


def column(control):
    return resources.CONTROLS.index(control)


def load_of(used, node=None, **changes):
    """Make the load of VMs that use parts of their node's capacity."""
    used = np.asarray(used, dtype=float)
    count = len(used)
    node = np.zeros(count, dtype=np.intp) if node is None else np.array(node)
    nodes = int(node.max()) + 1
    given = {
        'stall': np.zeros((count, CONTROLS)),
        'busy': np.zeros((nodes, CONTROLS)),
        'ready': np.ones(count, dtype=bool),
        **changes,
    }
    return contention.ContentionLoad(
        node=node,
        vcpus=np.ones(count, dtype=np.int64),
        used=used * WHOLE * INTERVAL_S,
        cpus=np.ones(nodes),
        supply=np.full((nodes, len(R)), WHOLE * INTERVAL_S),
        interval_s=INTERVAL_S,
        **given,
    )


def one_of(control, load, weights=None):
    """Judge one control of one node."""
    if weights is None:
        weights = np.ones((len(load.node), CONTROLS))
    contended, wanting = decide_round.judge_load(load, (control,), weights)
    place = column(control)
    return bool(contended[0, place]), wanting[:, place].tolist()


def drawn(seed, count=5):
    generator = np.random.default_rng(seed)
    used = generator.random((count, len(R))) ** 3
    return generator, used / max(1.0, used.sum(axis=0).max())


@pytest.mark.parametrize('seed', range(40))
def test_links_are_judged_as_agents_judge_them(seed):
    generator, used = drawn(seed)
    steered = R.steered_by(resources.ResourceControl.NETWORK)
    # Full links, to be judged at all.
    used[:, steered] /= used[:, steered].sum(axis=0)
    weights = np.exp(generator.normal(size=(len(used), CONTROLS)))
    own = weights[:, column(resources.ResourceControl.NETWORK)]
    load = load_of(used)
    contended, wanting = network.judge(
        network.link_traffic(load.used),
        np.round(WHOLE * own / own.sum()).astype(np.int64),
        WHOLE,
        INTERVAL_S,
    )
    found = one_of(resources.ResourceControl.NETWORK, load, weights)
    assert found == (contended, wanting.tolist())


def pressed(count, **changes):
    vms = tuple(
        instance.Incarnation(
            instance.Instance(f'uuid-{row}', f'vm-{row}', 1, 1 << 30), row, 1
        )
        for row in range(count)
    )
    given = {
        'memory_stall': np.full(count, np.nan),
        'reclaim_rate': 0.0,
        'devices': {},
        **changes,
    }
    return pressure_model.Pressure(
        interval_s=INTERVAL_S,
        incarnations=vms,
        fault_rate=np.full(count, np.nan),
        held_bytes=np.full(count, 1e9),
        disks=((pressure_model.DiskPath('vda', ('8:0',)),),) * count,
        **given,
    )


@pytest.mark.parametrize('seed', range(20))
@pytest.mark.parametrize(('busy', 'waits'), [(1, 1), (1, 0), (0.5, 1)])
def test_disks_are_judged_as_agents_judge_them(seed, busy, waits):
    _, used = drawn(seed)
    steered = R.steered_by(resources.ResourceControl.DISK)
    place = column(resources.ResourceControl.DISK)
    stall, part = np.zeros((len(used), CONTROLS)), np.zeros((1, CONTROLS))
    stall[0, place], part[0, place] = 0.4 * waits, busy
    load = load_of(used, stall=stall, busy=part)
    depth = 2 * disk.DEPTH if waits else disk.DEPTH / 2
    device = pressure_model.DeviceLoad('sda', busy, depth)
    contended, wanting = disk.judge(
        pressed(len(used), devices={'8:0': device}),
        load.used[:, steered].sum(axis=1),
    )
    assert one_of(resources.ResourceControl.DISK, load) == (
        contended,
        wanting.tolist(),
    )


@pytest.mark.parametrize('stalls', [[0.0, 0.0], [0.04, 0.0], [0.3, 0.0]])
def test_memory_is_judged_as_agents_judge_it(stalls):
    place = column(resources.ResourceControl.MEMORY)
    stall = np.zeros((2, CONTROLS))
    stall[:, place] = stalls
    load = load_of(np.full((2, len(R)), 0.5), stall=stall)
    short = 2 * memory.RECLAIM_RATE * any(stalls)
    contended, wanting = memory.judge(
        pressed(2, memory_stall=np.array(stalls), reclaim_rate=short)
    )
    assert one_of(resources.ResourceControl.MEMORY, load) == (
        contended,
        wanting.tolist(),
    )


def test_nodes_are_judged_apart_and_only_for_given_controls():
    used = np.zeros((4, len(R)))
    used[:2, R.index('net_sent')] = 0.5
    load = load_of(used, node=[0, 0, 1, 1])
    ones = np.ones((4, CONTROLS))
    network = resources.ResourceControl.NETWORK
    contended, wanting = decide_round.judge_load(
        load, resources.CONTROLS, ones
    )
    assert contended[:, column(network)].tolist() == [True, False]
    assert wanting[:, column(network)].tolist() == [True, True, False, False]
    assert contended.sum() == 1
    contended, wanting = decide_round.judge_load(load, (), ones)
    assert not contended.any()
    assert not wanting.any()
