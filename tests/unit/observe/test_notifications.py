# SPDX-License-Identifier: Apache-2.0

"""Notifications over oslo.messaging: off by default, real when on."""

import threading

import numpy as np
from oslo_config import cfg
import oslo_messaging
import pytest

from nova_fairness import exception
from nova_fairness.conf import opts
from nova_fairness.model import resources
from nova_fairness.observe import notices
from nova_fairness.observe import notifications
from tests.unit.agent import fake_host

ENOUGH_S = 60  # for broken code only
RATIOS = np.full(len(resources.CONTROLS), 20.0)


@pytest.fixture
def conf(tmp_path):
    def configured(text=''):
        path = tmp_path / 'agent.conf'
        path.write_text(text)
        made = cfg.ConfigOpts()
        opts.register_opts(made)
        made(['--config-file', str(path)], default_config_dirs=[])
        made.set_override('host', 'n1', group='fairness')
        return made

    return configured


@pytest.fixture
def host(tmp_path):
    return fake_host.FakeHost(tmp_path, fake_host.vm('a-1', 'ann'))


ON = '[oslo_messaging_notifications]\ndriver = {}\n'


@pytest.mark.parametrize('text', ['', ON.format('noop'), ON.format('')])
def test_no_notifications_are_sent_without_a_driver(conf, host, text):
    made = notifications.configured_notifications(conf(text))
    assert type(made) is notifications.NoNotifications
    made.start()
    made.add(host.rounds(1), RATIOS)
    made.stop()
    assert made.statistics() == {'sent': 0, 'dropped': 0}


def test_a_driver_without_a_transport_is_named(conf):
    with pytest.raises(
        exception.ConfigurationError, match='messagingv2 needs a transport_url'
    ):
        notifications.configured_notifications(conf(ON.format('messagingv2')))


def test_a_transport_that_does_not_exist_is_named(conf):
    text = ON.format('messagingv2') + 'transport_url = nosuch://x\n'
    with pytest.raises(exception.ConfigurationError, match='nosuch'):
        notifications.configured_notifications(conf(text))


def test_the_log_needs_no_transport(conf, host, caplog):
    caplog.set_level('INFO')
    made = notifications.configured_notifications(conf(ON.format('log')))
    made.start()
    made.add(host.rounds(3), RATIOS)
    host.change(metric='UniformMetric')
    made.add(host.rounds(1), RATIOS)
    made.stop()
    assert 'fairness.metric.set' in caplog.text
    assert made.statistics() == {'sent': 1, 'dropped': 0}


class FakeListener:
    """Keeps what it hears."""

    def __init__(self):
        self.heard = []
        self.came = threading.Event()

    def info(self, ctxt, publisher_id, event_type, payload, metadata):
        self.heard.append((publisher_id, event_type, payload))
        self.came.set()


def test_a_listener_hears_a_notification(conf, host):
    made_conf = conf(
        '[DEFAULT]\ntransport_url = fake://\n' + ON.format('messagingv2')
    )
    listener = FakeListener()
    server = oslo_messaging.get_notification_listener(
        oslo_messaging.get_notification_transport(made_conf),
        [oslo_messaging.Target(topic='notifications')],
        [listener],
    )
    server.start()
    made = notifications.configured_notifications(made_conf)
    made.start()
    made.add(host.rounds(3), RATIOS)
    host.cycle.paused = True
    made.add(host.rounds(1), RATIOS)
    try:
        assert listener.came.wait(ENOUGH_S)
    finally:
        made.stop()
        threading.Thread(target=server.stop, daemon=True).start()
    publisher, event, payload = listener.heard[0]
    assert (publisher, event) == ('nova-fairness.n1', 'fairness.host.pause')
    assert payload['version'] == notices.VERSION
    assert payload['round'] == 4


def some(count):
    return [notices.Notice(f'e{n}', 'info', {}) for n in range(count)]


class FakeBroker:
    """Takes what it is given when it is let."""

    def __init__(self):
        self.got = []
        self.open = threading.Event()
        self.asked = threading.Event()
        self.fails = set()

    def send(self, item):
        self.asked.set()
        assert self.open.wait(ENOUGH_S)
        if item.event in self.fails:
            raise OSError(111, 'Connection refused')
        self.got.append(item.event)


@pytest.fixture
def broker():
    made = FakeBroker()
    yield made
    made.open.set()


def test_posted_events_are_sent_in_order(broker):
    broker.open.set()
    made = notifications.Postman(broker.send, 10)
    made.start()
    made.post(some(5))
    made.stop(ENOUGH_S)
    assert broker.got == ['e0', 'e1', 'e2', 'e3', 'e4']
    assert made.statistics() == {'sent': 5, 'dropped': 0}


def test_a_silent_broker_costs_only_surplus_notifications(broker, caplog):
    made = notifications.Postman(broker.send, 3)
    made.start()
    made.post(some(1))
    assert broker.asked.wait(ENOUGH_S)
    made.post(some(5))
    made.post(some(1))
    assert made.statistics() == {'sent': 0, 'dropped': 3}
    assert caplog.text.count('some are dropped') == 1
    # There is no room for the end either; it is not waited for.
    made.stop(ENOUGH_S)
    broker.open.set()


def test_an_unsendable_notification_does_not_block_others(broker, caplog):
    broker.open.set()
    broker.fails = {'e1'}
    made = notifications.Postman(broker.send, 10)
    made.start()
    made.post(some(3))
    made.stop(ENOUGH_S)
    assert broker.got == ['e0', 'e2']
    assert made.statistics() == {'sent': 2, 'dropped': 1}
    assert 'Notification e1: not sent' in caplog.text


def test_stop_before_start_ends_the_notifier(broker):
    notifications.Postman(broker.send, 1).stop(ENOUGH_S)
    assert broker.got == []
