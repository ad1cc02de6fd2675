# SPDX-License-Identifier: Apache-2.0

"""Agents over real sockets and a real Redis, steered by the real command."""

import contextlib
import functools
import getpass
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

from oslo_config import cfg
import oslo_messaging
import pytest

from nova_fairness import plugins
from nova_fairness.cmd import keys
from nova_fairness.conf import transport as transport_conf
from nova_fairness.observe import notifications
from tests.fixtures import redis_server
from tests.fixtures.patience import wait_for_value
from tests.integration import fake_ends
from tests.unit.agent import fake_host


class Cloud:
    """Nodes, a Redis, and the command that steers them."""

    def __init__(self, directory, url):
        self.directory = directory
        self.url = f'{url}?bind_address=127.0.0.1'
        self.config = directory / 'ctl.conf'
        self.nodes = {}
        self.act_as('ctl')

    def url_of(self, name):
        """Transport URL of a node or an operator."""
        return f'{self.url}&insecure=true'

    def act_as(self, name):
        """Let later commands connect as the node or operator ``name``."""
        self.config.write_text(
            f'[DEFAULT]\ntransport_url = {self.url_of(name)}\n'
        )

    def start(self, name, *vms, **options):
        """Start a node, or start it again."""
        self.nodes[name] = fake_ends.Node(
            self.url_of(name), self.directory, name, *vms, **options
        )
        return self.nodes[name]

    def stop(self):
        for node in self.nodes.values():
            node.stop()

    def popen(self, *words):
        return subprocess.Popen(
            [
                *(sys.executable, '-m', 'nova_fairness.cmd.ctl'),
                *('--config-file', str(self.config), *words),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A shell lets what it starts in the background ignore Ctrl-C.
            preexec_fn=functools.partial(
                signal.signal, signal.SIGINT, signal.SIG_DFL
            ),
        )

    def ctl(self, *words):
        """Run the command; give code, output and complaints."""
        process = self.popen(*words)
        out, err = process.communicate(timeout=fake_ends.PATIENCE_S)
        assert 'Traceback' not in err
        return process.returncode, out, err

    def asked(self, *words):
        """Run a command that must do it everywhere; give its answers."""
        code, out, err = self.ctl(*words, '--json')
        assert code == 0, err
        return json.loads(out)['by_host']


class SecureCloud(Cloud):
    """The same with a key for everybody."""

    def __init__(self, directory, url):
        self.keys = directory / 'keys'
        for name, role in [
            ('n1', 'node'),
            ('n2', 'node'),
            ('evil', 'node'),
            ('ctl', 'controller'),
        ]:
            words = ['--directory', str(self.keys)]
            assert keys.main([*words, 'make', name, '--role', role]) == 0
        super().__init__(directory, url)

    def url_of(self, name):
        return f'{self.url}&keys_path={self.keys}/{name}.secret'


@pytest.fixture
def secure(tmp_path):
    with redis_server.running() as server, contextlib.ExitStack() as stack:
        made = SecureCloud(tmp_path, server.url)
        stack.callback(made.stop)
        made.start('n1', fake_host.vm('a-1', 'ann'))
        made.start('n2', fake_host.vm('b-3', 'bob'))
        yield made


def test_with_keys_nodes_look_and_controllers_change(secure):
    assert all_hear_all(secure)
    secure.act_as('n2')
    assert secure.asked('status', '--host', 'n1')['n1']['paused'] is False
    code, out, err = secure.ctl('set-metric', 'UniformMetric', '--host', 'n1')
    assert (code, out) == (1, '')
    assert 'the key of n2 cannot sign' in err
    for change in ('pause', 'reset'):
        code, out, err = secure.ctl(change, '--host', 'n1')
        assert (code, out) == (1, '')
        assert 'needs a key with the role controller; the key of n2' in err
    secure.act_as('ctl')
    assert secure.asked('pause', '--host', 'n1')['n1']['paused']
    assert secure.asked('set-metric', 'UniformMetric', '--all')
    chosen = ('UniformMetric', 'foresight', 1)
    assert in_force(secure, ['n1', 'n2'], chosen)


@pytest.fixture
def impostor(secure, tmp_path):
    """An agent with a good key of its own that says it is n1."""
    assert all_hear_all(secure)
    made = fake_ends.Node(
        secure.url_of('evil'),
        tmp_path / 'evil',
        'n1',
        fake_host.vm('e-9', 'eve'),
    )
    yield made
    made.stop()


def test_a_pause_of_a_host_does_not_go_to_an_impostor(secure, impostor):
    assert wait_for_value(lambda: impostor.newest is not None)
    assert secure.asked('pause', '--host', 'n1')['n1']['paused']
    assert paused(secure.nodes['n1'])
    assert not paused(impostor)
    secure.nodes.pop('n1').stop()
    code, out, err = secure.ctl('resume', '--host', 'n1', '--timeout', '2')
    assert (code, out) == (1, '')
    assert 'the key of evil may not answer for n1' in err
    assert 'n1: not reached: no answer within 2 s' in err
    assert not paused(impostor)


def test_a_report_about_a_host_is_that_of_its_key(secure, impostor):
    hearing = secure.nodes['n2'].agent
    assert wait_for_value(
        lambda: refusals(hearing).get('refused_identity', 0) > 2
    )
    hosts = secure.asked('users', '--host', 'n2')['n2']['users']
    assert list(hosts) == ['ann', 'bob']


def paused(node):
    return node.agent._parts.orders.paused


def refusals(agent):
    return agent._parts.peering.statistics()['exchange']


@pytest.fixture
def cloud(tmp_path):
    with redis_server.running() as server, contextlib.ExitStack() as stack:
        made = Cloud(tmp_path, server.url)
        stack.callback(made.stop)
        made.start(
            'n1', fake_host.vm('a-1', 'ann'), fake_host.vm('b-2', 'bob')
        )
        made.start(
            'n2', fake_host.vm('b-3', 'bob'), fake_host.vm('c-4', 'cid')
        )
        yield made


def all_hear_all(cloud):
    return wait_for_value(
        lambda: all(
            node.newest is not None
            and node.newest.measured is not None
            and len(node.newest.measured.view.reports) == len(cloud.nodes)
            for node in cloud.nodes.values()
        )
    )


def test_the_status_of_all_hosts_is_known_to_each(cloud):
    assert all_hear_all(cloud)
    told = cloud.asked('status', '--all')
    assert list(told) == ['n1', 'n2']
    assert list(told['n1']['peers']) == ['n2']
    assert told['n1']['peers']['n2']['left_out'] is None
    assert told['n1']['peers']['n2']['age_s'] < fake_ends.PATIENCE_S
    assert told['n2']['round']['users_count'] == 3
    assert told['n2']['exchange']['accepted'] > 0
    assert told['n2']['transport']
    code, out, _ = cloud.ctl('status', '--host', 'n1')
    assert code == 0
    line = ' '.join(out.splitlines()[1].split())
    assert line.startswith('n1 enforces DominantShareMetric foresight 0 ')
    assert ' 1/1' in line


def test_instances_and_users_are_listed(cloud):
    assert all_hear_all(cloud)
    vms = cloud.asked('instances', '--all')
    assert [vm['uuid'] for vm in vms['n1']['instances']] == ['a-1', 'b-2']
    users = cloud.asked('users', '--host', 'n2')['n2']['users']
    assert list(users) == ['ann', 'bob', 'cid']
    assert users['ann']['instances_here_count'] == 0
    assert users['bob']['usage_quotas']['cpu_time'] > 0


def test_the_why_command_is_answered_by_the_host_of_the_vm(cloud):
    assert all_hear_all(cloud)
    # The default does not add up what VMs weigh.
    chosen = cloud.asked('set-metric', 'GreedinessMetric', '--all')
    assert {
        told['warning'].endswith('policy thesis suits it')
        for told in chosen.values()
    } == {True}

    def asked():
        told = cloud.asked('why', 'b-3', '--all')
        assert list(told) == ['n2']
        return told['n2']['instance']

    assert wait_for_value(lambda: asked()['heaviness']['elsewhere'])
    why = asked()
    assert why['user_id'] == 'bob'
    # Bob's VM on the other node counts too, and has no parts here.
    assert why['owner_usage']['cpu_time'] > why['usage']['cpu_time']
    heaviness = why['heaviness']
    assert heaviness['additive'] is True
    assert heaviness['elsewhere'] != 0
    assert sum(
        [*heaviness['by_resource'].values(), heaviness['elsewhere']]
    ) == pytest.approx(heaviness['total'])
    assert why['advice']
    code, out, _ = cloud.ctl('why', 'b-3', '--all')
    assert code == 0
    named, *words = out.splitlines()
    assert named.endswith(' of bob in project-bob, on n2:')
    assert words
    assert all(line.endswith('.') for line in words)
    code, out, _ = cloud.ctl('why', 'b-3', '--all', '--long')
    assert any(line.startswith('n2    cpu_time') for line in out.splitlines())
    code, _, err = cloud.ctl('why', 'x-9', '--host', 'n1')
    assert code == 1
    assert (
        'n1: refused: VM x-9: unknown: it was not in the newest round of node'
        in err
    )


def test_projects_and_plugins_of_all_hosts_are_listed(cloud):
    assert all_hear_all(cloud)
    told = cloud.asked('projects', '--all')
    assert {name: list(said['projects']) for name, said in told.items()} == {
        'n1': ['project-ann', 'project-bob'],
        'n2': ['project-bob', 'project-cid'],
    }
    told = cloud.asked('plugins', '--all')
    assert told['n1']['metrics'] == told['n2']['metrics']


def test_the_agent_logs_the_request_that_changed_it(cloud, caplog):
    assert all_hear_all(cloud)
    caplog.set_level('INFO')
    code, out, _ = cloud.ctl('pause', '--host', 'n1', '--json')
    assert code == 0
    request_id = json.loads(out)['request_id']
    assert f"{request_id}: pause: host='n1', from_round=" in caplog.text
    user = f'{getpass.getuser()}@{socket.gethostname()}'
    assert f' for user {user} in {request_id}' in caplog.text


class Listener:
    """Hears notifications."""

    def __init__(self):
        self.heard = []

    def info(self, ctxt, publisher_id, event_type, payload, metadata):
        self.heard.append((publisher_id, event_type, payload))

    warn = info

    def of(self, event):
        return [said for said in self.heard if said[1] == event]


@contextlib.contextmanager
def listening(url):
    conf = cfg.ConfigOpts()
    transport_conf.register_opts(conf)
    listener = Listener()
    transport = oslo_messaging.get_notification_transport(conf, url)
    server = oslo_messaging.get_notification_listener(
        transport, [oslo_messaging.Target(topic='notifications')], [listener]
    )
    server.start()
    try:
        yield listener
    finally:
        server.stop()
        server.wait()
        transport.cleanup()


def test_every_listener_gets_notifications_of_changes(cloud):
    driver = {'oslo_messaging_notifications.driver': ['messagingv2']}
    with listening(cloud.url_of('listener')) as listener:
        node = cloud.start('n3', fake_host.vm('d-5', 'dan'), **driver)
        assert all_hear_all(cloud)
        assert cloud.asked('set-metric', 'UniformMetric', '--all')
        assert cloud.asked('pause', '--host', 'n3')
        user = f'{getpass.getuser()}@{socket.gethostname()}'
        cloud.nodes.pop('n2').stop()
        assert wait_for_value(lambda: listener.of('fairness.peer.lost'))
        (chosen,) = listener.of('fairness.metric.set')
        assert chosen[0] == 'nova-fairness.n3'
        assert chosen[2]['metric'] == 'UniformMetric'
        assert chosen[2]['previous'] == 'DominantShareMetric'
        assert chosen[2]['epoch'] == 1
        (paused,) = listener.of('fairness.host.pause')
        for said in (chosen, paused):
            assert said[2]['user_id'] == user
            assert said[2]['request_id'].startswith('req-')
        lost = [
            peer
            for said in listener.of('fairness.peer.lost')
            for peer in said[2]['peers']
        ]
        assert 'n2' in {peer['host'] for peer in lost}
        assert node.agent._notifying.statistics()['dropped'] == 0


def test_rounds_go_on_while_notifications_cannot_be_sent(cloud, monkeypatch):
    """The Redis of the notifications is away; the one of the domain is not."""
    monkeypatch.setattr(notifications, 'MOST_WAITING', 2)
    with redis_server.running() as other:
        gone = other.url
    node = cloud.start(
        'n3',
        fake_host.vm('d-5', 'dan'),
        **{
            'oslo_messaging_notifications.driver': ['messagingv2'],
            'oslo_messaging_notifications.transport_url': gone,
        },
    )
    assert all_hear_all(cloud)
    for word in ('pause', 'resume') * 4:
        told = cloud.asked(word, '--host', 'n3')['n3']
        assert wait_for_value(
            lambda: node.newest.number >= told['from_round']  # noqa: B023
        )
    counts = node.agent._notifying.statistics()
    # One is being sent for ever, two wait.
    assert counts == {'sent': 0, 'dropped': counts['dropped']}
    assert counts['dropped'] >= 5


def in_force(cloud, names, expected):
    return wait_for_value(
        lambda: (
            {
                done and (done.metric, done.policy, done.epoch)
                for done in (cloud.nodes[name].newest for name in names)
            }
            == {expected}
        )
    )


def test_a_metric_is_set_once_for_all_hosts_and_later_agents(cloud):
    assert all_hear_all(cloud)
    told = cloud.asked('set-metric', 'UniformMetric', '--all')
    assert {item['epoch'] for item in told.values()} == {1}
    chosen = ('UniformMetric', 'foresight', 1)
    assert in_force(cloud, ['n1', 'n2'], chosen)
    for name, node in cloud.nodes.items():
        # At the latest: the round that began after the answer was made.
        assert node.newest.number >= told[name]['from_round']
    cloud.start('n3', fake_host.vm('d-5', 'dan'))
    assert in_force(cloud, ['n3'], chosen)
    cloud.nodes.pop('n2').stop()
    assert cloud.asked('set-policy', 'thesis', '--host', 'n1')
    chosen = ('UniformMetric', 'thesis', 2)
    assert in_force(cloud, ['n1', 'n3'], chosen)
    cloud.start('n2', fake_host.vm('b-3', 'bob'))
    assert in_force(cloud, ['n2'], chosen)


class Slow(plugins.metric.Metric):
    description = 'Waits until the test is over.'
    is_over = threading.Event()

    def instances(self, demands):
        self.is_over.wait(fake_ends.PATIENCE_S)
        return demands.usage.sum(axis=1)


def test_a_shadow_metric_is_reported_and_changes_no_round(cloud):
    node = cloud.start(
        'n3',
        *(fake_host.vm('b-5', 'bob'), fake_host.vm('d-6', 'dan')),
        shadow_metric='AssetFairnessMetric',
    )
    assert all_hear_all(cloud)

    def is_measured():
        shadow = node.newest.shadow
        return len(shadow.user_heaviness) == 4 and not shadow.problem

    assert wait_for_value(is_measured)
    told = cloud.asked('users', '--all')
    assert told['n3']['shadow_metric'] == 'AssetFairnessMetric'
    key = 'shadow_heaviness_quotas'
    assert all(user[key] > 0 for user in told['n3']['users'].values())
    assert told['n1']['users']['ann'][key] is None
    assert cloud.asked('set-metric', 'UniformMetric', '--all')
    assert in_force(cloud, [*cloud.nodes], ('UniformMetric', 'foresight', 1))
    assert wait_for_value(is_measured)
    # It becomes slow: its numbers go, and all else goes on.
    node.agent._shadow._load = lambda name: Slow()
    node.agent._shadow.retry()
    try:
        assert wait_for_value(lambda: 'longer' in node.newest.shadow.problem)
        number = node.newest.number
        assert wait_for_value(lambda: node.newest.number > number + 2)
        assert node.newest.decided is not None
        assert (node.newest.quarantined, node.newest.errors) == ({}, ())
        _, out, _ = cloud.ctl('status', '--host', 'n3')
        assert 'shadow metric AssetFairnessMetric: ' in out
    finally:
        Slow.is_over.set()


def test_an_unknown_metric_is_refused_and_named(cloud):
    assert all_hear_all(cloud)
    code, out, err = cloud.ctl('set-metric', 'NoSuchMetric', '--all')
    assert (code, out) == (1, '')
    assert "n1: refused: no metric 'NoSuchMetric'; installed:" in err
    assert 'UniformMetric' in err
    assert {node.newest.epoch for node in cloud.nodes.values()} == {0}


FOUND = {'a-1': 1024, 'b-2': 1024}


def steers(node):
    return wait_for_value(
        lambda: (
            node.newest is not None
            and node.newest.enforced
            and set(node.shares()) == set(FOUND)
            and node.shares() != FOUND
        )
    )


def test_a_pause_restores_values_survives_a_restart_and_can_be_ended(cloud):
    # Bob has two VMs: so his are slowed down on the first node.
    assert steers(cloud.nodes['n1'])
    told = cloud.asked('pause', '--host', 'n1')['n1']
    assert (told['paused'], told['persistent']) == (True, True)
    assert wait_for_value(lambda: cloud.nodes['n1'].newest.paused)
    assert cloud.nodes['n1'].shares() == FOUND
    assert not cloud.nodes['n2'].newest.paused
    cloud.nodes['n1'].stop()
    again = cloud.start(
        'n1', fake_host.vm('a-1', 'ann'), fake_host.vm('b-2', 'bob')
    )
    assert wait_for_value(lambda: again.newest and again.newest.measured)
    assert again.newest.paused
    assert again.shares() == FOUND
    # It is heard again under its new boot id, and hears.
    assert all_hear_all(cloud)
    assert not cloud.asked('resume', '--host', 'n1')['n1']['paused']
    assert steers(again)


def test_a_reset_begins_with_neutral_weights(cloud):
    node = cloud.nodes['n1']
    assert steers(node)
    writes = []
    real = node.agent._parts.node_cycle.reset

    def reset():
        real()
        writes.append(node.shares())

    node.agent._parts.node_cycle.reset = reset
    assert cloud.asked('reset', '--host', 'n1')
    assert wait_for_value(lambda: writes)
    assert writes == [FOUND]


def test_an_absent_host_is_named_and_delays_no_other(cloud):
    assert all_hear_all(cloud)
    cloud.nodes.pop('n2').stop()
    code, out, err = cloud.ctl(
        *('status', '--host', 'n1', '--host', 'n2', '--timeout', '1')
    )
    assert code == 1
    assert out.splitlines()[1].startswith('n1 ')
    assert 'n2: not reached: no answer within 1 s' in err


def test_an_interrupted_command_ends_at_once(cloud):
    process = cloud.popen('status', '--host', 'nobody', '--timeout', '3000')
    status = f'/proc/{process.pid}/status'
    # Until it waits for the answer, it has one thread and is loading.
    assert wait_for_value(lambda: threads_of(status) > 3)
    time.sleep(0.2)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=fake_ends.PATIENCE_S)
    assert (process.returncode, out) == (130, '')
    assert err.splitlines()[-1] == 'nova-fairness-ctl: interrupted'
    assert 'Traceback' not in err


def threads_of(status):
    lines = pathlib.Path(status).read_text('utf-8').splitlines()
    counts = [line.split()[1] for line in lines if line[:8] == 'Threads:']
    return int(counts[0])
