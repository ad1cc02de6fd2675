# SPDX-License-Identifier: Apache-2.0

"""VMs that get what nobody else wants: who they are, what becomes of them."""

import dataclasses

import pytest

from nova_fairness import exception
from nova_fairness.agent.comms import peering
from nova_fairness.agent.inputs import best_effort
from nova_fairness.model import allocation
from nova_fairness.model import resources
from nova_fairness.runtime import signatures
from nova_fairness.runtime import state_file
from oslo_messaging_zmq.keys import admin
from oslo_messaging_zmq.keys import keyring
from tests.fixtures.patience import wait_for_value
from tests.integration import fake_ends
from tests.unit.agent import fake_host

CPU = resources.CONTROLS.index(resources.ResourceControl.CPU)
HERE = ('vm-1', 'vm-2')
WHAT = signatures.PREEMPTIBLE


class FakeService:
    """Says which servers are preemptible, or that it is away."""

    def __init__(self, *servers, **more):
        self.answer = {'servers': list(servers), **more}

    def __call__(self, asked):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def connect(tmp_path):
    made = []

    def connected(service, judge=None):
        known = best_effort.PreemptibleVms(
            service,
            state_file.StateFile(tmp_path / 'best_effort.json'),
            0.0,
            judge,
        )
        made.append(known)
        known.start()
        return known

    yield connected
    for known in made:
        known.stop()


def is_known(known, *servers):
    return lambda: known.subset_of(HERE) == frozenset(servers)


def test_a_vm_is_best_effort_as_long_as_the_service_names_it(connect):
    service = FakeService('vm-1')
    known = connect(service)
    wait_for_value(is_known(known, 'vm-1'))
    service.answer = {'servers': []}
    wait_for_value(is_known(known))


def test_the_last_answer_counts_while_the_service_is_away(connect, caplog):
    wait_for_value(is_known(connect(FakeService('vm-1')), 'vm-1'))
    away = connect(FakeService())
    away._ask.answer = exception.HostNotReached('nobody answers')
    assert away.subset_of(HERE) == {'vm-1'}
    wait_for_value(lambda: 'query failed' in caplog.text)
    assert away.subset_of(HERE) == {'vm-1'}


@pytest.mark.parametrize(
    'answer',
    [None, [], {}, {'servers': 'vm-1'}, {'servers': [7]}, {'servers': ['x']}],
)
def test_an_invalid_answer_is_logged_and_changes_nothing(
    connect, caplog, answer
):
    service = FakeService()
    service.answer = answer
    known = connect(service)
    wait_for_value(
        lambda: known.subset_of(HERE) or 'ReportRefused' in caplog.text
    )
    assert known.subset_of(HERE) == frozenset()


@pytest.mark.parametrize('text', ['{', '[]', '{"servers": 3}'])
def test_an_unreadable_file_is_reported_and_kept(
    connect, tmp_path, caplog, text
):
    (tmp_path / 'best_effort.json').write_text(text)
    known = connect(FakeService('vm-2'))
    assert 'best_effort.json cannot be read' in caplog.text
    wait_for_value(is_known(known, 'vm-2'))


def test_only_a_signed_controller_answer_to_the_question_counts(
    connect, tmp_path, caplog
):
    keys = tmp_path / 'keys'
    for name, role in (('c1', 'controller'), ('n1', 'node')):
        admin.make(keys, name, role)

    def judge(name, domain='d'):
        return signatures.Signatures(
            keyring.Keyring(f'{keys}/{name}.secret'), domain
        )

    good = judge('c1').signed_answer(WHAT, HERE, ['vm-1'])
    for service in (
        FakeService('vm-1'),
        FakeService('vm-2', **good),
        FakeService('vm-1', **{**good, 'origin': 'n1'}),
        FakeService(
            'vm-1',
            **judge('c1', 'another').signed_answer(WHAT, HERE, ['vm-1']),
        ),
        FakeService(
            'vm-1', **judge('c1').signed_answer(WHAT, ['vm-1'], ['vm-1'])
        ),
        FakeService(
            'vm-1',
            **judge('c1').signed_answer(signatures.NOTICES, HERE, ['vm-1']),
        ),
    ):
        caplog.clear()
        known = connect(service, judge('n1'))
        wait_for_value(
            lambda made=known: (
                made.subset_of(HERE)
                or 'ReportRefused: preemptible' in caplog.text
            )
        )
        assert known.subset_of(HERE) == frozenset()
    wait_for_value(
        is_known(connect(FakeService('vm-1', **good), judge('n1')), 'vm-1')
    )
    with pytest.raises(exception.NotAllowed, match='controller'):
        judge('n1').signed_answer(WHAT, HERE, [])


def test_without_a_transport_the_service_cannot_be_asked(tmp_path):
    conf = fake_ends.configuration('', tmp_path, 'n1', {'best_effort': 'true'})
    with pytest.raises(exception.ConfigurationError, match='transport_url'):
        best_effort.connect(conf, peering.Peering(), tmp_path)


def test_without_the_option_no_vm_is_best_effort(tmp_path):
    conf = fake_ends.configuration('', tmp_path, 'n1', {})
    nobody = best_effort.connect(conf, peering.Peering(), tmp_path)
    nobody.start()
    assert nobody.subset_of(HERE) == frozenset()
    nobody.stop()


# What becomes of them ------------------------------------------------------


@pytest.fixture
def host(tmp_path):
    """Ann has a VM and two preemptible ones, bob has one; all want a CPU."""
    made = fake_host.FakeHost(
        tmp_path,
        fake_host.vm('a-1', 'ann'),
        fake_host.vm('a-2', 'ann'),
        fake_host.vm('a-3', 'ann'),
        fake_host.vm('b-4', 'bob'),
    )
    made.best_effort.update({'a-2', 'a-3'})
    return made


def test_best_effort_vms_are_idle_and_add_no_heaviness_to_their_owner(host):
    done = host.rounds(12)
    assert host.shares('a-2', 'a-3') == [allocation.IDLE] * 2
    mine, other = host.shares('a-1', 'b-4')
    assert mine == pytest.approx(other, rel=0.05)
    assert done.errors == ()
    weights = done.decided.weights[:, CPU]
    assert weights[1] == weights[2] == allocation.LEAST
    # What they used is told all the same.
    assert (done.measured.usage.amounts[:, fake_host.CPU] > 0).all()


def test_best_effort_vms_get_cpu_time_that_no_other_vm_wants(host):
    host.cpu.wants = {'a-1': 0.1, 'b-4': 0.1}
    host.rounds(4)
    before = dict(host.cpu._used)
    done = host.rounds(1)
    used = {
        key[0:3]: host.cpu._used[key] - before[key] for key in host.cpu._used
    }
    assert used['a-2'] + used['a-3'] == pytest.approx(8.0)
    assert not done.decided.contended[CPU]
    assert host.shares('a-1', 'b-4') == [1024] * 2


def test_vms_are_normal_one_round_after_leaving_best_effort(host):
    host.rounds(8)
    host.best_effort.clear()
    host.rounds(1)
    print(host.shares('a-2', 'a-3'))
    assert min(host.shares('a-2', 'a-3')) > 1024 / 4.5
    done = host.rounds(20)
    first, second, third, fourth = host.shares('a-1', 'a-2', 'a-3', 'b-4')
    part = fourth / (first + second + third + fourth)
    assert part == pytest.approx(0.5, abs=0.03)
    assert done.errors == ()


def test_best_effort_vms_get_back_their_found_values(host):
    host.rounds(4)
    host.change(enforce=False)
    host.rounds(1)
    assert host.shares('a-1', 'a-2', 'a-3', 'b-4') == [1024] * 4


def test_an_exempt_vm_is_left_alone_also_if_best_effort(host):
    host.change(exempt=frozenset({'a-2'}))
    host.rounds(4)
    assert host.shares('a-2', 'a-3') == [1024, allocation.IDLE]


def test_preferences_give_best_effort_vms_no_share_of_their_owner(host):
    host.preferences = {'a-2': 50.0}
    host.rounds(12)
    mine, other = host.shares('a-1', 'b-4')
    assert mine == pytest.approx(other, rel=0.05)
    assert host.shares('a-2') == [allocation.IDLE]


# Proof ---------------------------------------------------------------------


def test_received_cpu_time_is_reported_beside_the_expected(host):
    done = host.rounds(6)
    effect = done.effect
    assert effect.received == pytest.approx(effect.expected, abs=0.02)
    assert effect.received.sum() == pytest.approx(1.0)
    assert effect.followed == pytest.approx(1.0, abs=0.05)
    assert done.controls[resources.ResourceControl.CPU].works


def test_a_kernel_that_does_not_follow_weights_is_named(host):
    host.cpu.ignores_weights = True
    host.scheduler = 'simple'
    done = host.rounds(12)
    assert done.effect.followed == pytest.approx(0.0, abs=0.05)
    working = done.controls[resources.ResourceControl.CPU]
    assert not working.works
    assert 'simple (sched_ext)' in working.why
    host.cpu.ignores_weights = False
    host.scheduler = ''
    assert host.rounds(8).controls[resources.ResourceControl.CPU].works


def test_without_a_control_of_the_cpu_there_is_no_proof(host):
    nothing = type(host.cycle._parts.proof)(host.node, None)
    rooms = dataclasses.replace(host.cycle._parts, proof=nothing)
    host.cycle._parts = rooms
    assert host.rounds(3).effect is None
