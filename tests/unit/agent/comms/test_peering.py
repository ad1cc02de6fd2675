# SPDX-License-Identifier: Apache-2.0

"""How a node is connected, by what the configuration says."""

import pytest

from nova_fairness import exception
from nova_fairness.agent.comms import peering
from nova_fairness.exchange import base
from nova_fairness.exchange import mesh
from nova_fairness.runtime import transport
from tests.fixtures import ports
from tests.integration import fake_ends

NOBODY = f'127.0.0.1:{ports.free()}'


@pytest.fixture
def configured(tmp_path):
    def make(url):
        return fake_ends.configuration(url, tmp_path, 'n1', {})

    return make


def test_without_a_transport_a_node_knows_only_itself_and_logs_it(
    configured, tmp_path, caplog
):
    caplog.set_level('INFO')
    alone = peering.connect(configured(''), 'boot', tmp_path)
    assert isinstance(alone.exchange, base.LoopbackExchange)
    assert alone.newest() is None
    assert 'transport_url is not set' in caplog.text
    alone.start(None)
    alone.stop()


@pytest.mark.parametrize(
    'url',
    ['fake://', f'zmq+redis://{NOBODY}/0?insecure=true'],
    ids=['fake', 'zmq'],
)
def test_a_node_starts_and_stops_without_peers(configured, tmp_path, url):
    made = peering.connect(configured(url), 'boot', tmp_path)
    assert isinstance(made.exchange, mesh.MeshExchange)
    made.start(None)
    assert set(made.statistics()) == {'exchange', 'transport'}
    made.stop()


UNUSABLE = {
    'no such driver': ('nosuch://', 'nosuch'),
    'no URL': ('what', 'scheme'),
    'neither keys nor insecure': (f'zmq+redis://{NOBODY}', 'keys_path'),
    'keys that are not there': (
        f'zmq+redis://{NOBODY}/?keys_path=/nonexistent',
        '/nonexistent',
    ),
    'no number as database': (
        f'zmq+redis://{NOBODY}/x?insecure=true',
        'database|number',
    ),
}


@pytest.mark.parametrize(
    ('url', 'said'), UNUSABLE.values(), ids=list(UNUSABLE)
)
def test_an_unusable_transport_is_named_before_anything_starts(
    configured, tmp_path, url, said
):
    with pytest.raises(exception.ConfigurationError, match=said):
        peering.connect(configured(url), 'boot', tmp_path)


@pytest.mark.parametrize(
    ('url', 'place'),
    [
        ('rabbit://127.0.0.1:5672//', None),
        ('fake://', None),
        ('zmq+redis://10.0.0.1/2?insecure=1', 'Redis at 10.0.0.1:6379'),
    ],
)
def test_the_redis_of_the_transport_keeps_the_choice_of_the_domain(
    configured, url, place
):
    found = transport.redis_of(configured(url))
    assert (found and found.place) == place
