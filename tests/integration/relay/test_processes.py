# SPDX-License-Identifier: Apache-2.0

"""The commands as processes, on real brokers and a real database."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys

from oslo_config import cfg
import pytest

from nova_fairness import exception
from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import schema
from nova_fairness.cluster.store import sealing
from nova_fairness.cluster.store import store as store_module
from nova_fairness.conf import transport as transport_conf
from nova_fairness.model import request
from nova_fairness.relay import link
from nova_fairness.rpc import client
from nova_fairness.rpc import protocol
from nova_fairness.rpc import requests
from nova_fairness.runtime import transport
from tests.fixtures import database_server
from tests.fixtures import rabbitmq_server
from tests.fixtures.patience import wait_for_value
from tests.integration.relay import test_relay as ends

broker, places = ends.broker, ends.places

ROOT = pathlib.Path(__file__).parents[3]


class Files:
    """Keys, tables and configuration of one test."""

    def __init__(self, directory, places, **options):
        self._directory = directory
        self._keys = directory / 'keys'
        sealing.add_key(self._keys)
        self.url = options.pop(
            'database', f'sqlite:///{directory}/store.sqlite'
        )
        given = {
            'database': self.url, 'key_file': self._keys,
            'front_exchange': places.front, 'nova_exchange': places.target,
            'interval': 0.2, 'cloud': 'away', **options,
        }  # fmt: skip
        lines = [f'{name} = {value}' for name, value in given.items()]
        self.configuration = directory / 'service.conf'
        self.configuration.write_text(
            '\n'.join(['[fairness_cluster]', *lines])
        )
        (directory / 'clouds.yaml').write_text(
            'clouds: {away: {auth_type: none,'
            ' auth: {endpoint: "http://127.0.0.1:9"}}}'
        )

    def upgrade(self):
        engine = database.open_engine(self.url)
        schema.upgrade_tables(engine)
        engine.dispose()

    @contextlib.contextmanager
    def store(self):
        engine = database.open_engine(self.url)
        yield store_module.Store(engine, sealing.read_key_file(self._keys))
        engine.dispose()

    @contextlib.contextmanager
    def process(self, program, *arguments, code=0):
        """A command that must end by itself when it is told to."""
        text = (
            f'from nova_fairness.cmd import {program}\n'
            f'raise SystemExit({program}.main())'
        )
        given = ['--config-file', str(self.configuration), *arguments]
        log = self._directory / f'{program}.log'
        with log.open('wb') as written:
            process = subprocess.Popen(
                [sys.executable, '-c', text, *given],
                cwd=self._directory,
                env={**os.environ, 'PYTHONPATH': str(ROOT)},
                stdout=written,
                stderr=written,
            )
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == code, log.read_text()
        finally:
            process.kill()
            process.wait()
        assert 'Traceback' not in log.read_text()

    def log(self, program):
        return (self._directory / f'{program}.log').read_text()


def declared(broker, places):
    """Wait until nova-api can be switched."""
    link.Link(broker.url, places).close()


@pytest.mark.parametrize(
    ('program', 'arguments'),
    [('relay', ()), ('relay', ('run',)), ('cluster', ('run', '--with-relay'))],
)
def test_the_relay_process_holds_builds_and_passes_other_messages(
    tmp_path, broker, places, program, arguments
):
    files = Files(tmp_path, places, broker=broker.url)
    files.upgrade()
    declared(broker, places)
    with (
        ends.conductor(broker, places),
        files.process(program, *arguments),
        ends.nova_api(broker, places) as client,
        files.store() as store,
    ):
        client.cast({}, ends.BUILD, number=1)
        assert client.call({}, 'migrate_server', number=2) == 3
        wait_for_value(
            lambda: (
                store.messages_without_request(9)
                or store.requests(set(request.State))
            )
        )
        if program == 'cluster':
            wait_for_value(
                lambda: 'does not answer: Connect' in files.log(program)
            )


# A minute is the least that an operator may wait for the service.
@pytest.mark.slow
def test_builds_pass_when_no_service_has_led_for_a_minute(
    tmp_path, broker, places
):
    options = {'fail_mode': 'pass', 'lease': 5}
    files = Files(tmp_path, places, broker=broker.url, **options)
    files.upgrade()
    declared(broker, places)
    with (
        ends.conductor(broker, places) as conductor,
        files.process('relay'),
        ends.nova_api(broker, places) as client,
        files.store() as store,
    ):
        client.cast({}, ends.BUILD, number=1)
        wait_for_value(lambda: store.messages_without_request(9))
        wait_for_value(lambda: 'builds pass unheld' in files.log('relay'))
        client.cast({}, ends.BUILD, number=2)
        assert ends.take(conductor.told, 1) == [2]
        # What waited goes on waiting.
        assert len(store.messages_without_request(9)) == 1


def test_messages_stay_with_the_broker_until_there_is_a_database(
    tmp_path, broker, places
):
    declared(broker, places)
    with database_server.running(database_server.MARIADB) as server:
        url = server.new_database()
        files = Files(tmp_path, places, broker=broker.url, database=url)
        files.upgrade()
        server.kill()
        with (
            ends.conductor(broker, places),
            files.process('relay'),
            ends.nova_api(broker, places) as client,
        ):
            client.cast({}, ends.BUILD, number=1)
            assert client.call({}, 'migrate_server', number=2) == 3
            wait_for_value(lambda: 'stay in the broker' in files.log('relay'))
            server.start()
            with files.store() as store:
                wait_for_value(lambda: store.messages_without_request(9))


def test_a_process_answers_over_the_broker_of_nova(tmp_path, broker, places):
    url = broker.url.replace('amqp://', 'rabbit://').rstrip('/') + '/'
    files = Files(tmp_path, places, broker=broker.url)
    files.upgrade()
    with files.configuration.open('a') as written:
        written.write(
            f'\n[fairness_exchange]\ndomain = {places.front}\n'
            f'[DEFAULT]\ntransport_url = {url}\n'
        )
    conf = cfg.ConfigOpts()
    transport_conf.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override('transport_url', url)
    opened = transport.open_transport(conf, client.ALLOWED_REMOTE_MODULES)
    asking = requests.RequestsClient(
        client.FairnessClient(
            opened,
            2.0,
            places.front,
            topic=protocol.REQUESTS_TOPIC,
        )
    )

    def told():
        try:
            return asking.call('get_request', uuid='x')
        except exception.HostNotReached:
            return ''
        except exception.FairnessError as error:
            return type(error).__name__

    with files.process('cluster'):
        # Its cloud is away, so that it has seen nothing to tell of.
        wait_for_value(
            lambda: 'NotLeading' in told() or 'UnknownRequest' in told()
        )
    opened.cleanup()


def test_services_of_further_cells_are_reached(tmp_path, broker, places):
    with rabbitmq_server.running() as cell:
        files = Files(
            tmp_path, places, broker=broker.url, cell_broker=cell.url
        )
        files.upgrade()
        # What is sent while all is declared for the first time can be lost.
        with files.process('relay', 'declare') as process:
            assert process.wait(ends.PATIENCE_S) == 0
        with (
            files.process('relay'),
            ends.conductor(cell, places) as conductor,
            ends.nova_api(cell, places) as client,
        ):
            client.cast({}, ends.BUILD, number=5)
            assert ends.take(conductor.told, 1) == [5]
            assert client.call({}, 'migrate_server', number=2) == 3
            # All of that goes by what is declared, with no relay up yet.
            wait_for_value(lambda: 'held: ready' in files.log('relay'))


def test_queues_are_declared_before_nova_api_is_switched(
    tmp_path, broker, places
):
    files = Files(tmp_path, places, broker=broker.url)
    with files.process('relay', 'declare') as process:
        assert process.wait(ends.PATIENCE_S) == 0
    assert f'{places.front}: exchange created' in files.log('relay')


def test_nothing_is_left_after_the_documented_removal(
    tmp_path, broker, places
):
    files = Files(tmp_path, places, broker=broker.url)
    files.upgrade()
    declared(broker, places)
    with files.process('relay'), ends.nova_api(broker, places) as client:
        client.cast({}, ends.BUILD, number=1)
        with files.store() as store:
            wait_for_value(lambda: store.messages_without_request(9))
    # What nova-api sends while it is switched back is not lost.
    with ends.nova_api(broker, places) as client:
        client.cast({}, 'rebuild_instance', number=2)
    with files.process('relay', 'remove', code=1) as process:
        process.wait(ends.PATIENCE_S)
    assert 'not empty' in files.log('relay')
    with ends.conductor(broker, places) as conductor, files.process('relay'):
        assert ends.take(conductor.told, 1) == [2]
    with files.process('relay', 'remove') as process:
        process.wait(ends.PATIENCE_S)
    assert f'{places.front}: exchange and queues removed' in files.log('relay')
    assert ends.names_on(broker, places) == []
    # What waits is in the database still.
    with files.store() as store:
        assert len(store.messages_without_request(9)) == 1


def test_a_queue_that_nova_declared_otherwise_names_the_option(
    tmp_path, broker, places
):
    declared(broker, places)
    files = Files(
        tmp_path, places, broker=broker.url, nova_exchange_durable=True
    )
    files.upgrade()
    with files.process('relay', code=2) as process:
        process.wait(ends.PATIENCE_S)
    said = files.log('relay')
    assert 'nova_exchange_durable: it differs from Nova' in said
    assert "inequivalent arg 'durable'" in said
