# SPDX-License-Identifier: Apache-2.0

import pytest

from fairness_lab.scenario import programs
from fairness_lab.scenario import reader
from fairness_lab.testbed.nodes import hub
from fairness_lab.testbed.nodes import redis_server
from fairness_lab.testbed.nodes import wiring


def test_all_hub_interfaces_have_different_addresses():
    addresses = {hub.node_address(index) for index in range(31)}
    assert len(addresses | {hub.address(hub.SERVICE)}) == 32


@pytest.mark.parametrize('number', [0, 255])
def test_a_number_without_an_address_is_refused(number):
    with pytest.raises(ValueError, match='no address'):
        hub.address(number)


def test_agents_are_told_where_redis_is():
    assert redis_server.url() == 'zmq+redis://10.77.0.254:6379/0'


@pytest.mark.parametrize(
    ('name', 'expected'), [('spike', False), ('two-nodes-cpu', True)]
)
def test_one_node_needs_no_network(name, expected):
    assert wiring.needed(reader.find(name, programs.LABORATORY)) is expected
