# SPDX-License-Identifier: Apache-2.0

import pytest

from nova_fairness import exception
from nova_fairness.relay import topology


class FakeChannel:
    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        def call(*arguments, **named):
            self.calls.append((name, *arguments, named))

        return call


def calls(places):
    channel = FakeChannel()
    topology.declare(channel, places)
    return channel.calls


def test_all_own_exchanges_and_queues_are_durable():
    for name, *arguments, named in calls(topology.Places()):
        if name.endswith('_declare') and arguments[0] != 'nova':
            assert named['durable'], arguments
            assert not named['auto_delete'], arguments


@pytest.mark.parametrize('durable', [True, False])
def test_the_exchange_of_nova_is_declared_as_nova_does(durable):
    found = [
        named['durable']
        for name, *arguments, named in calls(
            topology.Places(target='other', target_durable=durable)
        )
        if name == 'exchange_declare' and arguments[0] == 'other'
    ]
    assert found == [durable]


def test_the_front_exchange_is_bound_last():
    found = [arguments for _, *arguments, _ in calls(topology.Places())]
    assert found[-1] == ['nova_front.routes', 'nova_front', '#']
    for bound in (
        ['nova_front.conductor', 'nova_front.routes', 'conductor.#'],
        ['nova', 'nova_front.routes', 'compute.#'],
    ):
        assert bound in found


def test_front_and_target_differ():
    with pytest.raises(exception.RelayError, match='both are nova'):
        topology.Places(front='nova')


def test_messages_of_further_cells_are_never_held():
    found = [
        arguments for _, *arguments, _ in calls(topology.Places(holds=False))
    ]
    assert ['nova', 'nova_front.routes', 'conductor.#'] in found
    assert ['nova', 'nova_front.routes', 'compute.#'] in found
    queues = [each for each in found if len(each) == 1]
    assert queues == [['nova_front.unrouted']]
