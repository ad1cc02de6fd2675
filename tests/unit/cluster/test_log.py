# SPDX-License-Identifier: Apache-2.0

"""The log of the cluster service: what operators read without its tables."""

import ast
import json
import logging
import pathlib

from keystoneauth1 import exceptions as keystone_exceptions
from oslo_db import exception as db_exception
import pytest

import nova_fairness
from nova_fairness import exception
from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.openstack import clients
from nova_fairness.cluster.store import database
from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.relay import hints
from nova_fairness.relay import jobs
from nova_fairness.relay import link
from nova_fairness.relay import topology
from nova_fairness.runtime import outages
from nova_fairness.runtime import supervision
from tests.fixtures import fake_cloud
from tests.unit.cluster import test_service
from tests.unit.cluster.eviction import test_preemption as preempting

world = test_service.world

NAMED = {'named', '_named', 'log_name', '_log_name', '_server_names'}
"""Expressions that give the name of a server beside its UUID."""

LOGS = {f'LOG.{name}' for name in ('info', 'warning', 'error', 'exception')}
WITH_SERVERS = ('message %s', 'request %s')
"""Beginnings of lines about things that have servers."""
UNREAD = {'message %s has no request yet: %s; the next cycle tries again'}
"""Lines about what was not read: its servers are not known."""


@pytest.fixture(autouse=True)
def servers(monkeypatch):
    """A process that knows of no outage yet."""
    log = outages.OutageLog()
    monkeypatch.setattr(outages, 'SERVERS', log)
    return log


@pytest.fixture(autouse=True)
def _everything(caplog):
    caplog.set_level(logging.INFO, 'nova_fairness')


class FakeStop:
    """Ends a loop after some turns."""

    def __init__(self, turns):
        self.left = turns

    def is_set(self):
        return self.left <= 0

    def wait(self, _timeout_s=None):
        self.left -= 1
        return self.is_set()


def messages_with(caplog, *words):
    return [each for each in caplog.messages if all(w in each for w in words)]


def run(service, turns=1):
    service.run(FakeStop(turns), 0.0001, supervision.ServiceManager())


def test_leadership_and_readiness_are_logged_once(world, caplog):
    run(world.process(), 3)
    assert len(messages_with(caplog, 'process one: leads since epoch 1')) == 1
    assert len(messages_with(caplog, 'ready: the first cycle took')) == 1


def test_a_process_that_waits_for_the_lease_names_the_leader(world, caplog):
    world.process('vm1:7').cycle()
    second = world.process('vm2:8')
    for _ in range(3):
        second.cycle()
    [told] = messages_with(caplog, 'waits')
    assert told.startswith('process vm2:8: waits: vm1 leads since epoch 1')


def test_a_start_names_server_and_host(world, caplog):
    server = world.post('r1')
    world.cloud.servers[server]['name'] = 'web-1'
    world.process().cycle()
    [told] = messages_with(caplog, 'was sent')
    assert told.endswith(f'was sent to h1: server web-1 ({server})')


def test_a_request_of_a_deleted_server_is_not_told_to_be_sent(world, caplog):
    server, process = world.post('r1', vcpu=99), world.process()
    world.cloud.servers[server]['name'] = 'web-1'
    process.cycle()
    world.cloud.remove(server)
    process.cycle()
    assert world.conductor.sent == ['cast-r1']
    assert messages_with(caplog, 'was sent') == []
    [told] = messages_with(caplog, 'was deleted')
    assert told.startswith(f'request {server} ends: server web-1 ({server})')
    assert world.reason(server) is reason.Reason.SERVER_DELETED


def test_the_log_shows_the_life_of_a_preemptible_server(world, caplog):
    process = preempting.process_of(world, 'one')
    spot = preempting.run_server(world, process, 'r1', 'h1')
    world.cloud.servers[spot]['name'] = 'spot-1'
    world.post('r2', project='rich')
    for_s = preempting.LEAST_S + preempting.NOTICE_S + 300
    preempting.run_cycles(world, process, for_s)
    begin = f'server spot-1 ({spot})'
    told = [each for each in caplog.messages if each.startswith(begin)]
    for words in (
        ' will be evicted: ',
        ': its owner was notified of its eviction',
        ': Nova was asked to shelve it',
        ': it has left its host, and its room is free',
    ):
        assert len([each for each in told if words in each]) == 1, told


def test_a_request_that_expires_names_its_server(world, caplog):
    world.accounts = (cluster.Account('the-project', longest_wait_s=60.0),)
    process = world.process()
    process.cycle()
    server = world.post('r1', vcpu=99)
    world.cloud.servers[server]['name'] = 'web-1'
    process.cycle()
    world.go(61)
    process.cycle()
    [told] = messages_with(caplog, 'expires')
    assert told.startswith(f'request {server} expires: server web-1')


def test_a_late_cycle_is_logged_with_its_duration(world, caplog):
    process = world.process()
    times = iter(range(0, 1000, 7))
    process._monotonic = lambda: float(next(times))
    run(process)
    [told] = messages_with(caplog, 'late')
    assert 'this one took 7.0 s, longer than' in told


def failing_with(error):
    def fail():
        raise error

    return fail


def test_a_repeatedly_aborted_cycle_is_logged_once(world, caplog):
    process = world.process()
    cycle = process.cycle
    process.cycle = failing_with(exception.CloudUnreadable('odd answer'))
    run(process, 5)
    process.cycle = cycle
    run(process, 2)
    assert len(messages_with(caplog, 'cycles: aborted: odd answer')) == 1
    assert len(messages_with(caplog, 'cycles: complete again')) == 1
    assert process.cycles_failed == 5


def test_an_outage_of_the_database_and_its_end_are_logged_once(caplog):
    for _ in range(4):
        with (
            pytest.raises(exception.StoreAway),
            database.translate_errors(),
        ):
            raise db_exception.DBConnectionError
    for _ in range(2):
        with database.translate_errors():
            pass
    assert len(messages_with(caplog, 'database: connection lost')) == 1
    assert len(messages_with(caplog, 'database: connection restored')) == 1


class FakeAdapter:
    """Answers with a code, or raises; the page of a proxy is its body."""

    def __init__(self):
        self.answer = None

    def request(self, *_given, **_more):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self

    @property
    def status_code(self):
        return self.answer

    def json(self):
        return {'servers': []}


@pytest.mark.parametrize('make', [clients.nova_api, clients.placement_api])
@pytest.mark.parametrize(
    'away', [503, 502, keystone_exceptions.ConnectFailure('x')]
)
def test_an_outage_of_a_service_and_its_end_are_logged_once(
    make, away, caplog
):
    adapter = FakeAdapter()
    api = make(adapter)
    adapter.answer = away
    for _ in range(4):
        with pytest.raises(exception.CloudAway):
            api.get('/servers')
    adapter.answer = 200
    api.get('/servers')
    api.get('/servers')
    assert len(messages_with(caplog, 'connection lost')) == 1
    assert len(messages_with(caplog, 'connection restored')) == 1
    assert '<' not in caplog.text


def test_an_outage_of_the_broker_is_logged_once_for_all_queues(
    monkeypatch, caplog
):
    def refuse(*_):
        raise exception.BrokerAway('the broker does not answer: refused')

    monkeypatch.setattr(link, 'Link', refuse)
    monkeypatch.setattr(jobs, '_FIRST_PAUSE_S', 0.001)
    places = topology.Places()
    for made in jobs.of_broker('', places, FakeStop(3), lambda _: []):
        made._stopped = FakeStop(3)
        made.run()
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith('message broker: connection lost')


def test_retries_of_the_notification_listener_are_not_logged(
    monkeypatch, caplog
):
    def refuse(*_):
        raise exception.BrokerAway('the broker does not answer: refused')

    monkeypatch.setattr(link, 'Link', refuse)
    places = topology.Places()
    hints.HintListener('', places, FakeStop(3), lambda: None).run()
    assert len([each for each in caplog.messages if 'broker' in each]) <= 1


def words_of(node):
    return {
        getattr(each, 'attr', getattr(each, 'id', ''))
        for each in ast.walk(node)
    }


def names_no_server(tree):
    """Lines of the log that have a UUID where a name is to be, too."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not call.args:
            continue
        called, first = ast.unparse(call.func), call.args[0]
        if called in ('attempt_for_server', 'evictor.attempt_for_server'):
            text, given = 'server %s', first
        elif called in LOGS and isinstance(first, ast.Constant):
            text, _, _ = str(first.value).partition('server %s')
            is_bare = text.startswith(WITH_SERVERS) and text not in UNREAD
            if text == first.value and not is_bare:
                continue
            given = call.args[1 + text.count('%') :] or [first]
            given = given[0] if text != first.value else first
        else:
            continue
        if not words_of(given) & NAMED:
            yield f'line {call.lineno}: {ast.unparse(first)}'


def test_each_line_of_the_log_names_its_server():
    root = pathlib.Path(nova_fairness.__file__).parent
    found = {
        str(path.relative_to(root)): list(
            names_no_server(ast.parse(path.read_text('utf-8')))
        )
        for part in ('cluster', 'relay')
        for path in sorted((root / part).rglob('*.py'))
    }
    assert {path: each for path, each in found.items() if each} == {}


@pytest.mark.parametrize(
    'line',
    [
        "LOG.info('plan %s: server %s moves', plan, move.server)",
        "LOG.warning('server %s: %s', uuid, error)",
        "evictor.attempt_for_server(leave.server, self._judge, leave)",
        "LOG.info('message %s waits', cast.uuid)",
        "LOG.warning('request %s: %s', request.uuid, error)",
    ],
)
def test_the_check_finds_a_log_line_without_a_server_name(line):
    assert list(names_no_server(ast.parse(line))) != []


@pytest.mark.parametrize(
    'line',
    [
        "LOG.info('server %s moves', self._nova.named(uuid))",
        "evictor.attempt(server.named, self._judge, leave)",
        "LOG.info('message %s waits: server %s', cast.uuid, named)",
        "LOG.info('another process leads')",
    ],
)
def test_the_check_accepts_a_log_line_with_a_server_name(line):
    assert list(names_no_server(ast.parse(line))) == []


def test_a_message_that_waits_names_its_server(caplog):
    server = {'uuid': 'u', 'display_name': 'web-1'}
    arguments = {'instance': {'nova_object.data': server}}
    message = {
        'method': 'unshelve_instance',
        '_unique_id': 'm',
        'args': arguments,
    }
    body = json.dumps(
        {'oslo.version': '2.0', 'oslo.message': json.dumps(message)}
    )
    keeper = jobs.Keeper(
        '', topology.Places(), FakeStop(1), lambda casts: [True for _ in casts]
    )
    came = link.Delivery('held', 'conductor', body.encode(), {}, 1)
    keeper.process(None, came)
    keeper._store(keeper._came)
    assert caplog.messages == ['message m waits: server web-1 (u)']


def test_an_error_of_one_server_names_the_server(world, caplog):
    def fail():
        raise exception.CloudRefused('409')

    assert evictor.attempt_for_server('web-1 (u)', fail)
    assert caplog.messages == ['server web-1 (u): 409']


def test_a_server_without_a_name_is_logged_by_uuid(world):
    nova = world.process().nova
    uuid = fake_cloud.name_uuid('x')
    assert nova.log_name(uuid) == uuid
