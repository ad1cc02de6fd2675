# SPDX-License-Identifier: Apache-2.0

"""What the jobs do with one message, beside a link that is none."""

import contextlib
import dataclasses
import json
import threading

import pytest

from nova_fairness import exception
from nova_fairness.model import cast
from nova_fairness.relay import jobs
from nova_fairness.relay import link
from nova_fairness.relay import topology
from tests.fixtures import patience

PLACES = topology.Places()


class FakeLink:
    def __init__(self, heard=True):
        self.heard = heard
        self.sent = []

    def publish(self, exchange, delivery, properties=None):
        self.sent.append((exchange, delivery.key, properties))

    def settle(self):
        return [] if self.heard else [each[:2] for each in self.sent]


class FakeStore:
    def __init__(self, answer=True):
        self.answer = answer
        self.held = []

    def __call__(self, casts):
        self.held += casts
        if isinstance(self.answer, Exception):
            raise self.answer
        return [self.answer] * len(casts)


def delivery(method='schedule_and_build_instances', **message):
    message = {'method': method, '_unique_id': 'u1', **message}
    body = json.dumps(
        {'oslo.version': '2.0', 'oslo.message': json.dumps(message)}
    )
    return link.Delivery(
        'q', 'conductor', body.encode(), {'content_type': 'x'}, 1
    )


def sorted_by(delivered, heard=True):
    found = FakeLink(heard)
    job = jobs.Sorter('', PLACES, threading.Event())
    job.process(found, delivered)
    job.settle(found)
    return found.sent


def kept_by(store, *delivered):
    found = FakeLink()
    job = jobs.Keeper('', PLACES, threading.Event(), store, clock=lambda: 7.0)
    for each in delivered:
        job.process(found, each)
    job.settle(found)
    return found.sent


def test_a_message_that_is_to_wait_goes_to_disk():
    expected = ('nova_front.held', 'conductor', {'delivery_mode': 2})
    assert sorted_by(delivery()) == [expected]


@pytest.mark.parametrize(
    'delivered',
    [
        # Evacuation; resize and cold migration; live migration, two ways.
        delivery('rebuild_instance'),
        delivery('migrate_server'),
        delivery('migrate_server', _msg_id='m'),
        delivery('live_migrate_instance'),
        delivery(_msg_id='m'),
    ],
)
def test_other_messages_go_to_conductor_unchanged(delivered):
    assert sorted_by(delivered) == [('nova', 'conductor', None)]


def test_an_unreadable_message_goes_to_conductor():
    assert sorted_by(delivery(_unique_id=3))[0][0] == 'nova'


def test_a_message_that_is_to_wait_is_not_lost_when_its_queue_is_gone():
    with pytest.raises(exception.BrokerAway, match='held is gone'):
        sorted_by(delivery(), heard=False)


@pytest.mark.parametrize('away', [False, True])
def test_a_forged_hint_of_nova_reaches_neither_queue_nor_conductor(
    away, caplog
):
    hints = {'_nova_check_type': ['rebuild'], 'group': ['g']}
    spec = {'nova_object.data': {'scheduler_hints': hints}}
    bodies = []
    found = FakeLink()
    found.publish = lambda _, given, *_more: bodies.append(given.body)
    job = jobs.Sorter('', PLACES, threading.Event(), is_open=lambda: away)
    job.process(found, delivery(args={'request_specs': [spec]}))
    assert '_nova_check_type' not in bodies[0].decode()
    assert '"group' in json.loads(bodies[0])['oslo.message']
    assert 'message u1: server' in caplog.text


def test_a_message_without_a_listener_is_dropped_as_without_the_relay():
    assert len(sorted_by(delivery('rebuild_instance'), heard=False)) == 1


def test_builds_pass_while_the_service_is_away():
    found, away = FakeLink(), [False, True, False]
    job = jobs.Sorter(
        '', PLACES, threading.Event(), is_open=lambda: away.pop(0)
    )
    for _ in range(3):
        job.process(found, delivery())
    went = [exchange for exchange, *_ in found.sent]
    assert went == [PLACES.held, PLACES.target, PLACES.held]
    assert job.counts == {'unheld': 1}


@pytest.mark.parametrize('away', [True, False])
def test_a_build_that_may_have_passed_waits_with_a_mark(away):
    found = FakeLink()
    job = jobs.Sorter('', PLACES, threading.Event(), is_open=lambda: away)
    again = dataclasses.replace(delivery(), again=True)
    job.process(found, again)
    ((exchange, _, properties),) = found.sent
    assert exchange == PLACES.held
    assert cast.DOUBTFUL in properties['application_headers']
    # Who never lets builds pass knows which way it went.
    assert cast.DOUBTFUL not in str(sorted_by(again))


def test_messages_are_counted_by_their_outcome():
    stopped, found = threading.Event(), FakeLink(heard=False)
    sorter = jobs.Sorter('', PLACES, stopped)
    sorter.process(found, delivery('build_instances'))
    sorter.process(found, delivery(_unique_id=7))
    sorter.settle(found)
    keeper = jobs.Keeper('', PLACES, stopped, FakeStore(False))
    keeper.process(found, delivery())
    with contextlib.suppress(exception.BrokerAway):
        keeper.settle(FakeLink())
    counts = jobs.count_outcomes([sorter, keeper])
    assert counts.keys() == set(jobs.OUTCOMES)
    seen = {name: count for name, count in counts.items() if count}
    assert seen == {
        'passed': 2, 'unreadable': 1, 'unroutable': 2, 'known': 1,
    }  # fmt: skip


@pytest.mark.parametrize('new', [True, False])
def test_the_store_gets_the_message_as_it_came(new):
    store, came = FakeStore(new), delivery()
    assert kept_by(store, came) == []
    cast = store.held[0]
    assert (cast.uuid, cast.key, cast.body) == ('u1', 'conductor', came.body)
    assert cast.properties == came.properties
    assert cast.received_at == 7.0


def test_messages_that_came_together_are_stored_together():
    calls = []

    def hold(casts):
        calls.append([each.uuid for each in casts])
        return [True] * len(casts)

    assert kept_by(hold, delivery(), delivery(_unique_id='u2')) == []
    assert calls == [['u1', 'u2']]


def test_of_messages_that_came_together_only_one_that_is_refused_starts():
    def hold(casts):
        if any(each.uuid == 'u2' for each in casts):
            raise exception.StoreError('too large')
        return [True] * len(casts)

    came = [delivery(_unique_id=f'u{n}') for n in range(4)]
    sent = kept_by(hold, *came)
    assert [exchange for exchange, _, _ in sent] == ['nova']


def test_a_refused_message_goes_on_once_if_the_store_goes_away_meanwhile():
    """All of them come again then, also the one that was refused."""

    def hold(casts):
        if len(casts) == 1 and casts[0].uuid == 'u1':
            raise exception.StoreAway('down')
        if any(each.uuid == 'u0' for each in casts):
            raise exception.StoreError('too large')
        return [True] * len(casts)

    found = FakeLink()
    job = jobs.Keeper('', PLACES, threading.Event(), hold)
    for n in range(2):
        job.process(found, delivery(_unique_id=f'u{n}'))
    with pytest.raises(exception.StoreAway):
        job.settle(found)
    assert found.sent == []


def test_a_message_waits_for_a_store_that_is_away():
    store = FakeStore(exception.StoreAway('down'))
    with pytest.raises(exception.StoreAway):
        kept_by(store, delivery())


def test_a_message_that_the_store_refuses_starts_at_once():
    store = FakeStore(exception.StoreError('too large'))
    assert kept_by(store, delivery())[0][0] == 'nova'


def test_an_unexpected_message_goes_to_conductor():
    store = FakeStore()
    assert kept_by(store, delivery('rebuild_instance'))[0][0] == 'nova'
    assert store.held == []


def test_nothing_of_a_message_is_shown():
    assert 'unique' not in repr(delivery())


@pytest.mark.parametrize('error', [KeyError('x'), MemoryError()])
def test_a_message_that_a_job_fails_on_passes_and_others_are_done(
    monkeypatch, error
):
    found = FakeLink()
    job = jobs.Sorter('', PLACES, threading.Event())
    identity = job._held_cast

    def fails(delivered, methods):
        if delivered.key == 'odd':
            raise error
        return identity(delivered, methods)

    monkeypatch.setattr(job, '_held_cast', fails)
    odd = dataclasses.replace(delivery(), key='odd')
    for each in (odd, delivery()):
        job.process_or_forward(found, each)
    assert [each[:2] for each in found.sent] == [
        (PLACES.target, 'odd'), (PLACES.held, 'conductor')
    ]  # fmt: skip
    assert job.counts['unreadable'] == 1


def test_a_message_that_cannot_be_stored_for_any_reason_starts_at_once():
    sent = kept_by(
        FakeStore(UnicodeEncodeError('x', 'x', 0, 1, 'x')), delivery()
    )
    assert [each[0] for each in sent] == [PLACES.target]


def test_a_broker_that_is_away_is_not_blamed_on_a_message(monkeypatch):
    job = jobs.Sorter('', PLACES, threading.Event())

    def away(*_):
        raise exception.BrokerAway('x')

    monkeypatch.setattr(job, 'process', away)
    with pytest.raises(exception.BrokerAway):
        job.process_or_forward(FakeLink(), delivery())


class FakeConnection:
    """A link without messages, which stops the job after some looks."""

    def __init__(self, stopped, looks):
        self._stopped, self._left = stopped, looks

    def consume(self, queue, prefetch):
        """Nothing comes."""

    def receive(self, timeout_s):
        self._left -= 1
        if not self._left:
            self._stopped.set()
        return []

    def settle(self):
        return []

    def close(self):
        """Nothing to close."""


def test_a_consumer_reports_progress_without_messages(monkeypatch):
    stopped, beats = threading.Event(), []
    job = jobs.Sorter('', PLACES, stopped)
    job.beat = lambda: beats.append(1)
    monkeypatch.setattr(
        jobs.link_module, 'Link', lambda *_: FakeConnection(stopped, 5)
    )
    job.run()
    assert len(beats) >= 5


def test_an_unavailable_broker_does_not_count_as_a_hang(monkeypatch):
    beats = []

    class Waits(threading.Event):
        def wait(self, timeout=None):
            if len(beats) >= 100:
                self.set()
            return self.is_set()

    def away(*_):
        raise exception.BrokerAway('gone')

    job = jobs.Sorter('', PLACES, Waits())
    job.beat = lambda: beats.append(1)
    monkeypatch.setattr(jobs.link_module, 'Link', away)
    job.run()
    assert len(beats) == 100


def test_a_consumer_that_hangs_reports_nothing(monkeypatch):
    stopped, beats = threading.Event(), []
    hangs, ends = threading.Event(), threading.Event()
    job = jobs.Sorter('', PLACES, stopped)
    job.beat = lambda: beats.append(1)

    class Hanging(FakeConnection):
        def receive(self, timeout_s):
            hangs.set()
            assert ends.wait(patience.PATIENCE_S)
            return super().receive(timeout_s)

    monkeypatch.setattr(
        jobs.link_module, 'Link', lambda *_: Hanging(stopped, 1)
    )
    with jobs.running([job], stopped):
        assert hangs.wait(patience.PATIENCE_S)
        before = len(beats)
        assert not stopped.wait(0.1)
        assert len(beats) == before
        ends.set()
        assert stopped.wait(patience.PATIENCE_S)
