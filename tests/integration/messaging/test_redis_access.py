# SPDX-License-Identifier: Apache-2.0

"""A Redis that only knows users may reach, over TLS with an own authority."""

import logging
import pathlib
import urllib.parse

from oslo_config import cfg
import oslo_messaging
import pytest
import redis

from nova_fairness.cmd import status_cloud
from nova_fairness.conf import transport as transport_conf
from nova_fairness.exchange import desired as desired_module
from nova_fairness.exchange import desired_store
from oslo_messaging_zmq import options as zmq_options
from oslo_messaging_zmq.matchmaker import redis as redis_matchmaker
from oslo_messaging_zmq.redis import client as redis_client
from oslo_messaging_zmq.redis import url as transport_url
from tests.fixtures import redis_server
from tests.fixtures import zmq_cloud
from tests.fixtures.patience import wait_for_value

USER, PASSWORD = 'fairness', 's@cr:et/ %'
PLACE = redis_server.HOST
TOP = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture
def certificates(tmp_path):
    return redis_server.make_certificates(tmp_path)


@pytest.fixture
def server(certificates):
    """A Redis of whose users one is ours, with the documented rights."""
    with redis_server.running(
        password='of the operator', certificates=certificates
    ) as running:
        rights = [
            word.replace('PASSWORD', PASSWORD)
            for word in acl_line().split()[1:]
        ]
        with running.client() as operator:
            operator.execute_command('ACL', 'SETUSER', *rights)
        yield running


def acl_line():
    """The line of a Redis user that the documentation shows."""
    page = TOP / 'doc/source/admin/keys.rst'
    (line,) = (
        line.strip()
        for line in page.read_text().splitlines()
        if line.strip().startswith(f'user {USER} ')
    )
    return line


def url(server, user=USER, password=PASSWORD, scheme='rediss', **query):
    quoted = urllib.parse.quote(password, safe='')
    ca = {'ca': server.certificates.authority} if scheme == 'rediss' else {}
    given = urllib.parse.urlencode(ca | query)
    return f'zmq+{scheme}://{user}:{quoted}@{PLACE}:{server.port}/0?{given}'


def place_of(text):
    parsed = oslo_messaging.TransportURL.parse(cfg.ConfigOpts(), text)
    return transport_url.parse(parsed)


class Endpoint(zmq_cloud.Endpoint):
    """One that takes notifications, too."""

    def info(self, ctxt, publisher_id, event_type, payload, metadata):
        self.got.append(payload)


def test_a_user_with_the_documented_rights_can_do_all_that_the_driver_does(
    server, caplog
):
    text = url(server, insecure='true', bind_address=PLACE)
    transport = oslo_messaging.get_rpc_transport(cfg.CONF, text)
    endpoint = Endpoint()
    target = oslo_messaging.Target(topic='t', server='s')
    serving = oslo_messaging.get_rpc_server(
        transport, target, [endpoint], executor='threading'
    )
    serving.start()
    hearing = oslo_messaging.get_notification_listener(
        oslo_messaging.get_notification_transport(cfg.CONF, text),
        [oslo_messaging.Target(topic='n')],
        [endpoint],
        executor='threading',
    )
    hearing.start()
    client = oslo_messaging.get_rpc_client(transport, target)
    assert client.call({}, 'note', value=1) == 1
    client.prepare(fanout=True, server=None).cast({}, 'note', value=2)
    oslo_messaging.Notifier(
        hearing.transport, 'me', driver='messaging', topics=['n']
    ).info({}, 'happened', 3)
    wait_for_value(lambda: sorted(endpoint.got) == [1, 2, 3])
    for server_of in (serving, hearing):
        zmq_cloud.end(server_of)
    hearing.transport.cleanup()
    transport.cleanup()
    assert 'NOPERM' not in caplog.text


def test_the_desired_state_and_the_status_need_no_further_rights(server):
    text = url(server)
    with redis_client.connect(place_of(text), timeout_s=5.0) as client:
        store = desired_store.RedisStore(client, 'cell1')
        wanted = desired_module.DesiredChoice(1, 'm', 'p', 'n1')
        assert store.change(lambda _: wanted) == wanted
        assert store.load() == wanted
    conf = cfg.ConfigOpts()
    transport_conf.register_opts(conf)
    zmq_options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override('transport_url', text)
    assert (
        'answers, version'
        in status_cloud.check_message_transport(conf).details
    )


@pytest.mark.parametrize(
    'command',
    [
        ('GET', 'of:others'),
        ('SET', 'of:others', '1'),
        ('FLUSHALL',),
        ('KEYS', '*'),
        ('CONFIG', 'GET', 'requirepass'),
        ('ACL', 'LIST'),
        ('EVAL', "return redis.call('GET', 'of:others')", '0'),
        ('SHUTDOWN',),
    ],
    ids=lambda words: words[0],
)
def test_that_user_may_do_nothing_else(server, command):
    with (
        redis_client.connect(place_of(url(server)), timeout_s=5.0) as client,
        pytest.raises(redis.RedisError, match=r'(?i)permission|access'),
    ):
        client.execute_command(*command)


@pytest.mark.parametrize(
    ('changes', 'said'),
    [
        ({'password': 'wrong'}, 'refused the password'),
        ({'user': 'somebody'}, 'refused the password'),
        ({'user': ''}, 'refused the password'),
        ({'scheme': 'redis'}, 'Redis at 127.0.0.1'),
        ({'ca': 'other'}, 'certificate verify failed'),
        ({'ca': None}, 'certificate verify failed'),
    ],
    ids=['password', 'user', 'default user', 'no TLS', 'other CA', 'no CA'],
)
def test_a_wrong_user_or_a_wrong_redis_is_refused_and_named(
    server, tmp_path, caplog, changes, said
):
    caplog.set_level(logging.WARNING)
    if changes.get('ca'):
        (tmp_path / 'other').mkdir()
        other = redis_server.make_certificates(tmp_path / 'other')
        changes = {'ca': other.authority}
    elif 'ca' in changes:
        changes = {'ca': ''}
    matches = redis_matchmaker.RedisMatchmaker(
        place_of(url(server, **changes)), timeout_s=1.0
    )
    assert matches.peers('e', 't') == ()
    assert matches.statistics()['outages'] == 1
    matches.stop()
    assert said in caplog.text
    assert PASSWORD not in caplog.text


def test_a_redis_whose_certificate_names_another_host_is_not_believed(
    tmp_path,
):
    certificates = redis_server.make_certificates(tmp_path, 'DNS:elsewhere')
    query = f'ca={certificates.authority}'
    with redis_server.running(certificates=certificates) as server:
        bare = f'zmq+rediss://{PLACE}:{server.port}/0?{query}'
        client = redis_client.connect(place_of(bare), timeout_s=5.0)
        with client, pytest.raises(redis.ConnectionError, match='mismatch'):
            client.ping()
        careless = place_of(f'{bare}&check_hostname=false')
        with redis_client.connect(careless, timeout_s=5.0) as client:
            assert client.ping()
