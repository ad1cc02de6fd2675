# SPDX-License-Identifier: Apache-2.0

"""What is said of the queue; brokers are looked at in integration tests."""

import time

import pytest

from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import schema
from nova_fairness.cluster.store import sealing
from nova_fairness.cmd import status_queue
from nova_fairness.cmd import status_results


@pytest.fixture
def check(tmp_path):
    """What a check says of the files of the test."""
    path = tmp_path / 'queue.conf'
    path.write_text(
        '[fairness_cluster]\n'
        f'database = sqlite:///{tmp_path}/store.sqlite\n'
        f'key_file = {tmp_path}/keys\n'
        'broker = amqp://guest:secret@127.0.0.1:9//\n'
        'cloud = none\n'
    )

    def said(name):
        nova = (str(tmp_path / name) for name in ('nova', 'nova-api'))
        bound = dict(status_queue.checks(path, *nova))[name]
        result = status_results.run(bound, None)
        return result.code.name, result.details

    return said


def test_tables_must_be_of_this_version(check, tmp_path):
    code, said = check('Database of requests')
    assert (code, 'revision none' in said) == ('FAILURE', True)
    schema.upgrade_tables(
        database.open_engine(f'sqlite:///{tmp_path}/store.sqlite')
    )
    code, said = check('Database of requests')
    assert (code, said.endswith(schema.known_revisions()[0])) == (
        'SUCCESS',
        True,
    )


def test_clocks_of_host_and_database_must_be_equal(check, monkeypatch):
    assert check('Clocks')[0] == 'SUCCESS'
    wrong = lambda _: time.time() + 86400  # noqa: E731
    monkeypatch.setattr(database.Tables, 'server_time', wrong)
    code, said = check('Clocks')
    assert (code, '86400 s behind' in said) == ('FAILURE', True)


def test_keys_must_be_for_their_owner_only(check, tmp_path):
    assert check('Keys of messages')[0] == 'FAILURE'
    sealing.add_key(tmp_path / 'keys')
    assert check('Keys of messages')[0] == 'SUCCESS'
    (tmp_path / 'keys').chmod(0o640)
    code, said = check('Keys of messages')
    assert (code, '0640' in said) == ('FAILURE', True)


def test_a_broker_and_a_cloud_that_are_not_there_are_told(check):
    code, said = check('Relay')
    assert (code, 'secret' in said) == ('FAILURE', False)
    assert 'does not answer' in said
    code, said = check('Cloud')
    assert (code, 'none' in said) == ('FAILURE', True)


API = '[DEFAULT]\ncontrol_exchange = nova_front\n'
DURABLE = '[oslo_messaging_rabbit]\namqp_durable_queues = true\n'


@pytest.mark.parametrize(
    ('nova', 'nova_api', 'code', 'part'),
    [
        (None, None, 'SUCCESS', 'no Nova on this machine'),
        ('', API + DURABLE, 'SUCCESS', 'sends to nova_front'),
        ('', None, 'WARNING', 'no request waits'),
        ('', '', 'WARNING', 'set [DEFAULT] control_exchange = nova_front'),
        ('', API, 'FAILURE', 'nova_front, not durable'),
        (API + DURABLE, '', 'FAILURE', 'the exchange nova_front, durable'),
        (DURABLE, API, 'FAILURE', 'expects the exchange nova, not durable'),
        (
            '',
            API.replace('front', 'frnot') + DURABLE,
            'FAILURE',
            'uses the exchange nova_frnot',
        ),
        ('control_exchange', '', 'FAILURE', 'nova:'),
    ],
)
def test_nova_api_alone_sends_to_the_relay(
    check, tmp_path, nova, nova_api, code, part
):
    for name, text in (('nova', nova), ('nova-api', nova_api)):
        if text is not None:
            (tmp_path / name).write_text(text)
    found, said = check('Exchanges of Nova')
    assert (found, part in said) == (code, True), said


def test_quorum_queues_are_durable(check, tmp_path):
    (tmp_path / 'nova').write_text('')
    quorum = DURABLE.replace('amqp_durable_queues', 'rabbit_quorum_queue')
    (tmp_path / 'nova-api').write_text(API + quorum)
    assert check('Exchanges of Nova')[0] == 'SUCCESS'
