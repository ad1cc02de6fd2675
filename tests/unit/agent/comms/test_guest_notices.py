# SPDX-License-Identifier: Apache-2.0

"""Guests that are told by their agents: when, how often, and in which turn."""

import json

import pytest

from nova_fairness import exception
from nova_fairness.agent.comms import guest_notices
from nova_fairness.agent.comms import peering
from nova_fairness.apply import guest_agent
from nova_fairness.model import instance
from nova_fairness.runtime import signatures
from nova_fairness.runtime import state_file
from oslo_messaging_zmq.keys import admin
from oslo_messaging_zmq.keys import keyring
from tests.integration import fake_ends

LEAVES = {'fairness:leaves_at': '2026-01-01T03:00:00Z'}


class FakeNode:
    """VMs, what the service says of them, and guests that are written to."""

    def __init__(self, path):
        self.path, self.now = path, 0.0
        self.pids = {'vm-1': 1, 'vm-2': 2}
        self.answer = {'notices': {}}
        self.written, self.silent, self.tried = [], set(), []
        self.wait_s = 0.0
        self.judge = None
        self.begin()

    def begin(self):
        """A new run of the agent."""
        self.made = guest_notices.Notices(
            lambda asked: self.answer,
            self.write,
            state_file.StateFile(self.path / 'notices.json'),
            0.0,
            self.judge,
            lambda: self.now,
        )

    def write(self, uuid, text):
        self.tried.append(uuid)
        if uuid in self.silent:
            self.now += self.wait_s
            raise exception.GuestFileNotWritten('no agent is there')
        self.written.append((uuid, json.loads(text)))

    def say(self, **told):
        """Say what servers are told, and look once."""
        self.answer = {'notices': told}
        return self.look()

    def look(self):
        """What was written since the last look."""
        before = len(self.written)
        self.made.set_vms(
            instance.Incarnation(instance.Instance(uuid, uuid, 1, 1), pid, 7)
            for uuid, pid in self.pids.items()
        )
        self.made._update('')
        return self.written[before:]


@pytest.fixture
def node(tmp_path):
    return FakeNode(tmp_path)


def test_a_guest_gets_one_notice_and_one_withdrawal(node):
    assert node.look() == []
    assert node.say(**{'vm-1': LEAVES}) == [('vm-1', LEAVES)]
    assert node.look() == []
    assert node.say() == [('vm-1', {})]
    assert node.look() == []
    assert node.made.statistics() == {'sent': 2, 'failed': 0}


def test_a_notice_to_a_guest_outlives_the_agent(node):
    node.say(**{'vm-1': LEAVES})
    node.begin()
    assert node.look() == []
    assert node.say() == [('vm-1', {})]
    node.begin()
    assert node.look() == []


def test_a_restarted_guest_gets_its_notice_again(node):
    node.say(**{'vm-1': LEAVES})
    node.pids['vm-1'] = 3
    assert node.look() == [('vm-1', LEAVES)]


def test_a_guest_without_guest_agent_is_retried_and_logged_once(node, caplog):
    caplog.set_level('INFO')
    node.silent = {'vm-1'}
    for _ in range(3):
        assert node.say(**{'vm-1': LEAVES, 'vm-2': LEAVES}) in (
            [('vm-2', LEAVES)],
            [],
        )
    assert caplog.text.count('vm-1 is not told by its agent') == 1
    assert node.made.statistics() == {'sent': 1, 'failed': 1}
    node.silent = set()
    assert node.look() == [('vm-1', LEAVES)]
    assert node.look() == []


def test_a_guest_without_a_notice_gets_no_withdrawal(node):
    node.silent = {'vm-1'}
    node.say(**{'vm-1': LEAVES})
    node.silent = set()
    assert node.say() == []


def test_slow_guests_do_not_delay_notices_of_others(node):
    stuck = [f'stuck-{number}' for number in range(5)]
    node.pids = {uuid: number for number, uuid in enumerate([*stuck, 'vm'])}
    node.silent, node.wait_s = set(stuck), guest_notices.DELIVERY_LIMIT_S / 2
    said = dict.fromkeys(stuck, LEAVES)
    for _ in range(3):
        node.say(**said)
    assert set(node.tried) == set(stuck)
    before = len(node.tried)
    assert node.say(**said, vm=LEAVES) == [('vm', LEAVES)]
    assert node.tried[before] == 'vm'
    # Then those that have not been tried for the longest.
    assert node.tried[before + 1 :] == [stuck[1], stuck[2]]


@pytest.mark.parametrize(
    'answer',
    [
        None,
        {},
        {'notices': []},
        {'notices': {'vm-1': 'soon'}},
        {'notices': {'vm-1': {'fairness:leaves_at': 3}}},
        {'notices': {'vm-1': {'a': 'x' * 5000}}},
        {'notices': {'another': LEAVES}},
    ],
)
def test_an_invalid_answer_of_the_service_sends_no_notice(node, answer):
    node.answer = answer
    with pytest.raises(exception.ReportRefused):
        node.look()
    assert node.written == []


@pytest.mark.parametrize('text', ['{', '[]', '{"a": 3}'])
def test_an_unreadable_file_is_reported(node, caplog, text):
    (node.path / 'notices.json').write_text(text)
    node.begin()
    assert 'notices.json cannot be read' in caplog.text
    assert node.say(**{'vm-1': LEAVES}) == [('vm-1', LEAVES)]


def test_only_a_signed_controller_answer_to_the_question_counts(
    node, tmp_path
):
    keys = tmp_path / 'keys'
    for name, role in (('c1', 'controller'), ('n1', 'node')):
        admin.make(keys, name, role)
    judges = {
        name: signatures.Signatures(
            keyring.Keyring(f'{keys}/{name}.secret'), 'd'
        )
        for name in ('c1', 'n1')
    }
    node.judge = judges['n1']
    node.begin()
    said, here = {'vm-1': LEAVES}, ['vm-1', 'vm-2']
    good = judges['c1'].signed_answer(signatures.NOTICES, here, said)
    other = judges['c1'].signed_answer(signatures.NOTICES, ['vm-1'], said)
    for more in ({}, other, {**good, 'origin': 'n1'}):
        node.answer = {'notices': said, **more}
        with pytest.raises(exception.ReportRefused):
            node.look()
    node.answer = {'notices': {'vm-2': LEAVES}, **good}
    with pytest.raises(exception.ReportRefused):
        node.look()
    node.answer = {'notices': said, **good}
    assert node.look() == [('vm-1', LEAVES)]


def test_without_a_notice_path_no_guest_gets_a_notice(tmp_path):
    conf = fake_ends.configuration('', tmp_path, 'n1', {})
    assert guest_notices.connect(conf, peering.Peering(), tmp_path) is None


@pytest.mark.parametrize(
    ('path', 'missing'), [('/run/x', 'transport_url'), ('a\tb', 'printable')]
)
def test_an_unusable_notice_path_or_a_missing_transport_is_named(
    tmp_path, path, missing
):
    conf = fake_ends.configuration(
        '', tmp_path, 'n1', {'guest_notice_path': path}
    )
    with pytest.raises(exception.ConfigurationError, match=missing):
        guest_notices.connect(conf, peering.Peering(), tmp_path)


@pytest.mark.parametrize(
    ('uri', 'uuid', 'says'),
    [
        ('test:///default', '6695eb01-f6a4-8304-79aa-97f2502e193f', 'support'),
        ('test:///default', '0' * 32, 'omain'),
        ('test:///nowhere', '0' * 32, 'nowhere'),
    ],
)
def test_a_refusal_of_libvirt_is_reported(uri, uuid, says):
    guests = guest_agent.GuestAgents(uri)
    with pytest.raises(exception.GuestFileNotWritten, match=says):
        guests.write(uuid, '/x', 'y')
