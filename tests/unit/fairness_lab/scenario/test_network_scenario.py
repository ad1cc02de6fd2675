# SPDX-License-Identifier: Apache-2.0

"""Network load in scenarios: read, and handed to guests and the far end."""

import pytest

from fairness_lab.results import checks
from fairness_lab.scenario import demand
from fairness_lab.scenario import programs
from fairness_lab.scenario import reader
from fairness_lab.testbed.guests import fleet
from fairness_lab.testbed.nodes import agent
from fairness_lab.testbed.nodes import namespace
from nova_fairness import exception

FAR = namespace.FAR_ADDRESS


@pytest.mark.parametrize(
    'name', ['one-node-network', 'one-node-network-weighted']
)
def test_the_scenarios_load_the_link_both_ways_and_are_judged(name):
    found = reader.find(name, programs.LABORATORY)
    assert found.nodes['node1'].uplink
    steps = [step for steps in found.load.values() for step in steps]
    assert {8, 1} <= {step.tcp_send_flows for step in steps}
    assert {8, 1} <= {step.tcp_receive_flows for step in steps}
    assert any(step.net_send_mbit_s for step in steps)
    assert any(step.net_receive_mbit_s for step in steps)
    times = found.to_json()['network_changes_s']
    assert times == sorted({step.at_s for step in steps})
    empty = {
        'agents': True,
        'metric': 'any',
        'policy': 'any',
        'interval_s': 2.0,
        'network': [],
    }
    made = checks.evaluate(empty, found.expect)
    assert not all(item.passed for item in made)


def test_the_weighted_network_scenario_has_unequal_users():
    users = reader.find('one-node-network-weighted', programs.LABORATORY).users
    assert users['user2'].weight == 3 * users['user1'].weight


@pytest.mark.parametrize(
    ('step', 'expected'),
    [
        (demand.DemandStep(0, tcp_send_flows=8), [f'tcp-send {FAR} 9 8']),
        (demand.DemandStep(0, tcp_send_flows=0), [f'tcp-send {FAR} 9 0']),
        (
            demand.DemandStep(0, tcp_receive_flows=1),
            [f'tcp-receive {FAR} 19 1'],
        ),
        (
            demand.DemandStep(0, net_send_mbit_s=8),
            [f'net {FAR} 9 1000000.000000'],
        ),
        (demand.DemandStep(0, net_receive_mbit_s=8), []),
    ],
)
def test_over_an_uplink_guests_talk_to_the_far_end(step, expected):
    assert fleet.load_commands(0, step, uplink=True) == expected


SCENARIO = """
description: x
duration: 10
nodes: {n: {cpus: [0], uplink: true}}
vms: {a: {user: u, nics: NICS}}
load: {a: [{at: 0, STEP}]}
"""


@pytest.mark.parametrize(
    ('nics', 'step', 'expected'),
    [
        (0, 'tcp_send_flows: 1', 'a has no NIC'),
        (0, 'net_receive_mbit_s: 1', 'a has no NIC'),
        (1, 'tcp_send_flows: 17', '16'),
        (1, 'tcp_receive_flows: max', 'tcp_receive_flows'),
    ],
)
def test_an_impossible_network_load_is_refused(tmp_path, nics, step, expected):
    path = tmp_path / 'x.yaml'
    path.write_text(SCENARIO.replace('NICS', str(nics)).replace('STEP', step))
    with pytest.raises(exception.BadScenario, match=expected):
        reader.read(path, programs.LABORATORY)


def test_the_agent_of_a_node_with_an_uplink_is_told_of_it(tmp_path):
    found = reader.find('one-node-network', programs.LABORATORY)
    options = agent.configuration(found, 'node1', tmp_path)
    assert options['fairness_network']['uplink'] == 'uplink0'
    assert float(options['fairness_node']['network_bandwidth']) == 2.5e6
    other = reader.find('one-node-cpu', programs.LABORATORY)
    assert 'fairness_network' not in agent.configuration(
        other, 'node1', tmp_path
    )


def test_no_guest_has_the_address_of_the_far_end():
    last = [
        address.split('/')[0]
        for number in (0, 2000)
        for address in namespace.addresses(30, 0, number)
    ]
    assert FAR not in last
    assert namespace.FAR_ADDRESS_SIX not in last
