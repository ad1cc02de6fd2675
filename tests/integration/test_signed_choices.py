# SPDX-License-Identifier: Apache-2.0

"""Whoever may write to Redis does not choose the metric of a domain."""

import contextlib
import getpass
import json

import pytest

from nova_fairness.agent.comms import peering
from nova_fairness.cmd import keys
from tests.fixtures import redis_server
from tests.fixtures.patience import wait_for_value
from tests.integration import test_agent_rpc
from tests.unit.agent import fake_host

in_force = test_agent_rpc.in_force
KEY = 'nova-fairness:desired:nova-fairness'

CHOSEN = ('AssetFairnessMetric', 'foresight', 2)


@pytest.fixture
def redis():
    with redis_server.running() as server:
        yield server


@pytest.fixture
def cloud(redis, tmp_path, monkeypatch):
    """Two nodes that were told a metric twice, and a newcomer's key."""
    monkeypatch.setattr(peering, 'POLL_S', 1.0)
    with contextlib.ExitStack() as stack:
        made = test_agent_rpc.SecureCloud(tmp_path, redis.url)
        assert keys.main(['--directory', str(made.keys), 'make', 'n3']) == 0
        stack.callback(made.stop)
        made.start('n1', fake_host.vm('a-1', 'ann'))
        made.start('n2', fake_host.vm('b-3', 'bob'))
        assert test_agent_rpc.all_hear_all(made)
        made.asked('set-metric', 'UniformMetric', '--all')
        assert in_force(made, ['n1', 'n2'], ('UniformMetric', 'foresight', 1))
        made.first = stored(redis, 1)
        made.asked('set-metric', CHOSEN[0], '--all')
        assert in_force(made, ['n1', 'n2'], CHOSEN)
        made.second = stored(redis, 2)
        yield made


def stored(redis, epoch):
    """What Redis holds, once it is of an epoch."""
    client = redis.client()
    assert wait_for_value(
        lambda: json.loads(client.get(KEY) or '{}').get('epoch') == epoch
    )
    return client.get(KEY)


def forged(cloud):
    return json.dumps(
        {**json.loads(cloud.second), 'epoch': 9, 'metric': 'UniformMetric'}
    )


def unsigned(cloud):
    return json.dumps({**json.loads(forged(cloud)), 'signature': ''})


def replayed(cloud):
    return cloud.first


def garbage(cloud):
    return '\x00{' * 2000


ATTACKS = {
    'signature': forged,
    'unsigned': unsigned,
    'older': replayed,
    'malformed': garbage,
}


def refused(node, reason):
    counts = node.agent._parts.peering.statistics()['exchange']
    return counts[f'desired_refused_{reason}']


@pytest.mark.parametrize('reason', ATTACKS)
def test_a_choice_of_an_attacker_is_refused_told_and_overwritten(
    cloud, redis, reason
):
    client = redis.client()
    for node in cloud.nodes.values():
        before = refused(node, reason)

        def is_seen(node=node, before=before):
            # The other node may have mended it already.
            client.set(KEY, ATTACKS[reason](cloud))
            return refused(node, reason) > before

        assert wait_for_value(is_seen)
    assert wait_for_value(lambda: client.get(KEY) == cloud.second)
    for node in cloud.nodes.values():
        begun = node.newest.number
        assert wait_for_value(lambda n=node, b=begun: n.newest.number > b + 1)
    assert in_force(cloud, ['n1', 'n2'], CHOSEN)


def test_a_newcomer_believes_no_forgery_and_shows_that_it_saw_one(
    cloud, redis
):
    for name in ('n1', 'n2'):
        cloud.nodes.pop(name).stop()
    redis.client().set(KEY, unsigned(cloud))
    cloud.start('n3', fake_host.vm('d-5', 'dan'))
    cloud.act_as('ctl')

    def problem():
        code, out, _ = cloud.ctl('status', '--host', 'n3')
        return code == 0 and 'Desired state of the store refused: ' in out

    assert wait_for_value(problem)
    assert cloud.nodes['n3'].newest.epoch == 0
    cloud.asked('set-metric', 'UniformMetric', '--host', 'n3')
    assert in_force(cloud, ['n3'], ('UniformMetric', 'foresight', 1))


def test_a_newcomer_takes_over_a_choice_signed_by_a_controller(cloud):
    for name in ('n1', 'n2'):
        cloud.nodes.pop(name).stop()
    node = cloud.start('n3', fake_host.vm('d-5', 'dan'))
    assert in_force(cloud, ['n3'], CHOSEN)
    by = node.newest.chosen_by
    assert by.caller == 'ctl'
    assert by.user_id.startswith(f'{getpass.getuser()}@')
    assert by.request_id.startswith('req-')
