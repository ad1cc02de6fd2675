# SPDX-License-Identifier: Apache-2.0

"""Calls to many agents over the transport of tests."""

import threading

import oslo_messaging
import pytest

from nova_fairness import exception
from nova_fairness.rpc import client as client_module
from nova_fairness.rpc import endpoint
from nova_fairness.rpc import protocol
from nova_fairness.rpc import rollout
from tests.unit.rpc import fake_cloud

HOSTS = ('n1', 'n2', 'n3')


@pytest.fixture
def cloud():
    made = fake_cloud.FakeCloud(*HOSTS)
    yield made
    made.stop()


def test_one_host_is_called_by_its_name(cloud):
    assert cloud.client().call('n2', 'pause')['host'] == 'n2'
    assert cloud.agents['n1'].asked == []


def test_a_refusal_keeps_its_class_and_has_no_traceback(cloud):
    with pytest.raises(exception.UnknownPlugin) as caught:
        cloud.client().call('n1', 'set_metric', name='M9')
    assert str(caught.value) == "no metric 'M9'; installed: M0, M1"


def test_a_bug_of_an_agent_is_told_in_one_line(cloud):
    answers = cloud.client().call_all(['n1'], 'list_instances')
    assert answers.refused == {'n1': 'RuntimeError: a bug of the agent'}


@pytest.mark.parametrize('method', ['target', '_set_choice', 'no_such_method'])
def test_only_documented_methods_can_be_called(cloud, method):
    with pytest.raises(exception.RpcError, match=method):
        cloud.client().call('n1', method)


def test_hosts_that_do_not_answer_are_listed_with_the_reason(cloud):
    client = cloud.client(fake_cloud.SOON_S)
    answers = client.call_all(['n3', 'gone', 'n1', 'n1'], 'get_status')
    assert list(answers.by_host) == ['n1', 'n3']
    assert answers.not_reached == {'gone': 'no answer within 0.3 s'}
    assert not answers.is_complete


def test_another_domain_does_not_answer(cloud):
    other = client_module.FairnessClient(
        cloud.transport, fake_cloud.SOON_S, 'elsewhere'
    )
    assert other.call_all(HOSTS, 'pause').by_host == {}
    assert [item.asked for item in cloud.agents.values()] == [[], [], []]


def test_all_hosts_are_known_from_those_that_answer(cloud):
    for name, agent in cloud.agents.items():
        # Who answers is chance, and nobody counts among its own peers.
        agent.peers = tuple({'far', *HOSTS} - {name})
    assert cloud.client().known_hosts() == ('far', 'n1', 'n2', 'n3')


def test_no_agent_is_known_where_none_answers(cloud):
    other = client_module.FairnessClient(
        cloud.transport, fake_cloud.SOON_S, 'elsewhere'
    )
    with pytest.raises(exception.HostNotReached, match=r'within 0\.3 s'):
        other.known_hosts()


def test_a_vm_is_found_wherever_it_is(cloud):
    cloud.agents['n2'].vms = ('a-1',)
    answers = cloud.client().find_instance(HOSTS, 'a-1')
    assert list(answers.by_host) == ['n2']
    assert answers.is_complete


def test_an_unknown_vm_is_refused_by_all(cloud):
    answers = cloud.client().find_instance(HOSTS, 'x-9')
    assert answers.refused == {name: f'no VM x-9 on {name}' for name in HOSTS}


def test_a_vm_that_was_found_hides_no_host_that_is_down(cloud):
    cloud.agents['n2'].vms = ('a-1',)
    client = cloud.client(fake_cloud.SOON_S)
    answers = client.find_instance([*HOSTS, 'gone'], 'a-1')
    assert list(answers.by_host) == ['n2']
    assert list(answers.not_reached) == ['gone']
    assert answers.refused == {}


def test_calls_carry_the_request_that_they_belong_to(cloud, caplog):
    caplog.set_level('INFO')
    plain = cloud.client()
    plain.for_request('req-of-mine', 'u-9').call('n1', 'pause')
    assert caplog.messages == [
        (
            'pause() was asked for by a caller without a key for user u-9 in '
            'req-of-mine'
        ),
        "req-of-mine: pause: host='n1', paused=True",
    ]
    caplog.clear()
    plain.call('n1', 'resume')
    assert 'req-of-mine' not in caplog.text


class FakeOldEndpoint:
    """An agent of an older release."""

    target = oslo_messaging.Target(version='1.1')

    @oslo_messaging.expose
    def get_status(self, ctxt):
        return {'host': 'old'}

    @oslo_messaging.expose
    def set_preferences(self, ctxt, preferences):
        return {'host': 'old'}


def test_an_older_agent_answers_all_that_it_knows(cloud):
    server = oslo_messaging.get_rpc_server(
        cloud.transport,
        oslo_messaging.Target(
            exchange=cloud.domain, topic=protocol.TOPIC, server='old'
        ),
        [FakeOldEndpoint()],
        access_policy=oslo_messaging.ExplicitRPCAccessPolicy,
    )
    server.start()
    client = cloud.client()
    try:
        assert client.call('old', 'get_status') == {'host': 'old'}
        assert client.call('old', 'set_preferences', preferences={'a': 1})
        with pytest.raises(exception.RpcError, match='UnsupportedVersion'):
            client.call('old', 'get_plugins')
    finally:
        threading.Thread(target=server.stop, daemon=True).start()


def test_every_call_is_asked_for_with_the_version_in_which_it_appeared():
    known = {
        name
        for name in dir(endpoint.FairnessEndpoint)
        if not name.startswith('_') and name != 'target'
    }
    assert set(protocol.SINCE) <= known
    assert max(protocol.SINCE.values()) <= protocol.VERSION


def desired(cloud):
    return {
        (item.epoch, item.metric, item.policy, item.origin)
        for item in cloud.agents.values()
    }


def test_a_new_choice_gets_one_epoch_above_the_newest(cloud):
    cloud.agents['n2'].epoch = 4
    answers = rollout.set_for_all(cloud.client(), HOSTS, 'set_metric', 'M1')
    assert answers.is_complete
    assert desired(cloud) == {(5, 'M1', 'P0', 'n2')}
    answers = rollout.set_for_all(cloud.client(), HOSTS, 'set_policy', 'P1')
    assert desired(cloud) == {(6, 'M1', 'P1', 'n1')}
    assert [item['epoch'] for item in answers.by_host.values()] == [6, 6, 6]


def test_a_host_that_is_down_does_not_block_a_choice_on_others(cloud):
    answers = rollout.set_for_all(
        cloud.client(fake_cloud.SOON_S), [*HOSTS, 'gone'], 'set_metric', 'M1'
    )
    assert list(answers.by_host) == ['n1', 'n2', 'n3']
    assert list(answers.not_reached) == ['gone']


def test_a_host_without_the_metric_does_not_block_others(cloud):
    cloud.agents['n1'].known = ('M0',)
    answers = rollout.set_for_all(cloud.client(), HOSTS, 'set_metric', 'M1')
    assert list(answers.by_host) == ['n2', 'n3']
    assert answers.refused == {'n1': "no metric 'M1'; installed: M0"}


def test_an_unknown_metric_is_refused_by_all(cloud):
    answers = rollout.set_for_all(cloud.client(), HOSTS, 'set_metric', 'M9')
    assert answers.by_host == {}
    assert list(answers.refused) == ['n1', 'n2', 'n3']
    assert {item.epoch for item in cloud.agents.values()} == {0}


class FakeSigner:
    """Signs by writing its name."""

    def signed(self, epoch, metric, policy, **_):
        return {
            'epoch': epoch,
            'metric': metric,
            'policy': policy,
            'origin': 'ctl',
            'signature': f'{epoch} {metric} {policy}',
        }

    def check(self, choice):
        good = self.signed(choice['epoch'], choice['metric'], choice['policy'])
        if good['signature'] != choice['signature']:
            raise exception.ReportRefused('signature', 'it is not signed')


def test_a_signed_epoch_is_above_the_newest_that_was_signed(cloud):
    client, signer = cloud.client(), FakeSigner()
    honest = cloud.agents['n1']
    honest.take_over('M0', 'P7', 4, 'ctl', '4 M0 P7')
    # Who is no controller says what they like.
    cloud.agents["n3"].policy = "P9"
    answers = rollout.set_for_all(client, HOSTS, 'set_metric', 'M1', signer)
    assert answers.is_complete
    assert desired(cloud) == {(5, 'M1', 'P7', 'ctl')}
    assert {item.signature for item in cloud.agents.values()} == {'5 M1 P7'}


def test_a_false_epoch_of_one_agent_is_ignored(cloud):
    for epoch, agent in zip((0, 0, 99), cloud.agents.values(), strict=True):
        agent.epoch = epoch
    statuses = {host: agent.status() for host, agent in cloud.agents.items()}
    statuses['n3']['policy'] = 'P9'
    assert rollout.signed({}, statuses, 'set_policy', 'P1', FakeSigner()) == {
        'name': 'P1',
        'metric': 'M0',
        'epoch': 1,
        'origin': 'ctl',
        'signature': '1 M0 P1',
    }


def test_no_more_hosts_are_asked_at_once_than_was_said():
    lock, both = threading.Lock(), threading.Barrier(2)
    now, most = [], []

    def ask(host):
        with lock:
            now.append(host)
            most.append(len(now))
        both.wait(fake_cloud.ENOUGH_S)
        with lock:
            now.remove(host)
        return host

    answers, errors = client_module.ask_all(
        'abcdef', ask, 2, fake_cloud.ENOUGH_S
    )
    assert list(answers) == list('abcdef')
    assert errors == {}
    assert max(most) == 2


def test_a_bug_of_the_caller_is_not_taken_for_an_answer():
    with pytest.raises(ZeroDivisionError):
        client_module.ask_all('a', lambda host: 1 / 0, 1, fake_cloud.ENOUGH_S)


def test_a_transport_that_connects_for_ever_is_left_behind():
    never = threading.Event()
    answers, errors = client_module.ask_all(
        'ab', lambda host: host == 'a' or never.wait(), 2, 0.1
    )
    never.set()
    assert answers == {'a': True}
    assert str(errors['b']) == 'no connection within 0.1 s'


@pytest.mark.parametrize(
    'desired',
    [None, {}, {'epoch': 'x'}, {'epoch': None}, {'epoch': float('inf')}, 'x'],
)
@pytest.mark.parametrize('signer', [None, FakeSigner()])
def test_a_host_that_says_nonsense_keeps_no_other_from_being_told(
    cloud, desired, signer
):
    agent = cloud.agents['n2']
    told = agent.status()
    agent.status = lambda: {**told, 'desired': desired}
    answers = rollout.set_for_all(
        cloud.client(), HOSTS, 'set_metric', 'M1', signer
    )
    assert list(answers.by_host) == ['n1', 'n2', 'n3']


def test_without_a_host_that_tells_the_choice_nothing_is_signed():
    with pytest.raises(exception.RpcError, match='no host that answers'):
        rollout.signed({}, {'n1': {}}, 'set_metric', 'M1', FakeSigner())


def test_a_maker_that_answers_nonsense_is_one_that_refuses(cloud):
    cloud.agents['n2'].epoch = 4
    cloud.agents['n2'].choose = lambda *_, **__: {'host': 'n2'}
    answers = rollout.set_for_all(cloud.client(), HOSTS, 'set_metric', 'M1')
    assert answers.refused == {'n2': 'its answer cannot be understood'}
    assert 'n3' in answers.by_host


def test_a_status_that_cannot_be_understood_names_no_host(cloud):
    for name in ('n1', 'n2', 'n3'):
        cloud.agents[name].status = lambda: {'host': 'n1', 'peers': None}
    with pytest.raises(exception.RpcError, match='cannot be understood'):
        cloud.client().known_hosts()


class ManyHosts(client_module.FairnessClient):
    """Hosts with the peers that each names.

    :ivar peers: names of all whom a host names, by host.
    :ivar first: hosts that are asked without a name, in turn.
    """

    def __init__(self, peers, first):
        self.peers, self.first = peers, list(first)
        self._timeout_s, self._at_once, self._domain = 10.0, 64, 'x'
        self.calls = []

    def _call(self, host, method, arguments):
        self.calls.append(host)
        name = host or self.first.pop()
        if name not in self.peers:
            raise exception.HostNotReached('no answer')
        return {'host': name, 'peers': dict.fromkeys(self.peers[name])}


def everybody(letter, count):
    names = [f'{letter}{number}' for number in range(count)]
    return dict.fromkeys(names, names)


@pytest.mark.parametrize('liars', ['xyz', 'yxz', 'xzy'])
def test_hosts_that_one_agent_invents_are_not_waited_for(liars, caplog):
    hosts = everybody('h', 300)
    lies = [*hosts, *(f'a{number}' for number in range(20_000))]
    first = {'x': 'h7', 'y': 'h8', 'z': 'h9'}
    client = ManyHosts({**hosts, 'h7': lies}, map(first.get, liars))
    known = client.known_hosts()
    assert set(hosts) <= set(known)
    assert len(known) <= len(hosts) + 64
    assert len(client.calls) <= 3 + 64
    assert 'are left out' in caplog.text


@pytest.mark.parametrize('first', [['h7', 'h7', 'h9'], ['h7', 'h7', 'h7']])
def test_hosts_that_one_agent_invents_are_few_however_often_it_is_asked(first):
    hosts = everybody('h', 300)
    lies = [f'a{number}' for number in range(20_000)]
    client = ManyHosts({**hosts, 'h7': lies}, first)
    known = client.known_hosts()
    assert ('h9' in first) is (set(hosts) <= set(known))
    assert len(known) <= len(hosts) + 64


def test_halves_of_a_domain_that_do_not_hear_each_other_are_both_known():
    halves = {**everybody('h', 200), **everybody('k', 200)}
    client = ManyHosts(halves, ['h1', 'h2', 'k1'])
    assert set(client.known_hosts()) == set(halves)


def test_an_agent_without_peers_hides_no_host():
    hosts = everybody('h', 300)
    client = ManyHosts({**hosts, 'h7': []}, ['h1', 'h7', 'h2'])
    assert set(client.known_hosts()) == set(hosts)


def test_a_few_hosts_that_one_agent_alone_names_are_known():
    hosts = everybody('h', 300)
    client = ManyHosts({**hosts, 'h7': [*hosts, 'gone']}, ['h1', 'h7', 'h2'])
    assert set(client.known_hosts()) == {*hosts, 'gone'}
    assert len(client.calls) == 3
