# SPDX-License-Identifier: Apache-2.0

"""What the endpoint lets pass, and what it says of the rest."""

from oslo_context import context
import oslo_messaging
import pytest

from nova_fairness import exception
from nova_fairness.model import caller
from nova_fairness.rpc import endpoint
from nova_fairness.rpc import request_ids
from tests.unit.rpc import fake_cloud

NODE = {'zmq_peer': {'name': 'n1', 'role': 'node'}}
CONTROLLER = {'zmq_peer': {'name': 'c1', 'role': 'controller'}}
INSECURE = {'zmq_peer': {'name': None, 'role': None, 'insecure': True}}
REVOKED = {'zmq_peer': {'name': 'x', 'role': None}}
READS = (
    'get_status',
    'list_users',
    'list_projects',
    'get_usage',
    'get_idle',
    'get_lacking',
    'get_plugins',
    'get_preview',
)
CHANGES = ('pause', 'resume', 'reset')


@pytest.fixture
def agent():
    return fake_cloud.FakeOperations('n1')


def ask(agent, method, context, **arguments):
    """Call as the server does; give the answer or raise the error."""
    called = getattr(endpoint.FairnessEndpoint(agent), method)
    try:
        return called(context, **arguments)
    except oslo_messaging.ExpectedException as expected:
        raise expected.exc_info[1] from None


@pytest.mark.parametrize('method', [*READS, *CHANGES])
@pytest.mark.parametrize('context', [{}, CONTROLLER, INSECURE])
def test_controllers_and_callers_without_keys_may_do_everything(
    agent, method, context
):
    assert ask(agent, method, context)['host'] == 'n1'


@pytest.mark.parametrize('method', READS)
def test_a_node_may_read(agent, method):
    assert ask(agent, method, NODE)['host'] == 'n1'


@pytest.mark.parametrize('method', CHANGES)
def test_a_node_key_may_change_nothing(agent, method):
    with pytest.raises(
        exception.NotAllowed,
        match=f'{method} needs a key with the role controller; the key of n1',
    ):
        ask(agent, method, NODE)
    assert agent.asked == []


@pytest.mark.parametrize('method', ['set_metric', 'set_policy'])
def test_a_node_key_may_set_nothing(agent, method):
    with pytest.raises(exception.NotAllowed):
        ask(agent, method, NODE, name='M1')
    assert agent.asked == []


@pytest.mark.parametrize('method', [*READS, *CHANGES])
def test_a_key_without_a_role_may_do_nothing(agent, method):
    with pytest.raises(exception.NotAllowed):
        ask(agent, method, REVOKED)


def test_a_new_metric_is_chosen_and_the_policy_kept(agent):
    answer = ask(agent, 'set_metric', {}, name='M1')
    assert (answer['metric'], answer['policy']) == ('M1', 'P0')
    assert (answer['epoch'], answer['origin']) == (1, 'n1')


def test_the_epoch_of_another_node_is_taken_over(agent):
    ask(agent, 'set_policy', {}, name='P1', epoch=7, origin='n2', metric='M1')
    assert agent.asked == [('M1', 'P1', 7, 'n2')]


BAD = {
    'no name': ({}, "missing a required argument: 'name'"),
    'an unknown argument': ({'name': 'M1', 'x': 1}, "'x'; expected name, ep"),
    'a number as a name': ({'name': 3}, 'metric is int, expected a string'),
    'an empty name': ({'name': ''}, "metric '' has 0 characters"),
    'a long name': ({'name': 'x' * 256}, 'has 256 characters, expected 1 to'),
    'a line break': ({'name': 'M1\n'}, 'printable'),
    'a list as a policy': ({'name': 'M1', 'policy': []}, 'policy is list'),
    'a word as an epoch': ({'name': 'M1', 'epoch': '1'}, 'epoch is str'),
    'a truth as an epoch': ({'name': 'M1', 'epoch': True}, 'epoch is bool'),
    'epoch zero': ({'name': 'M1', 'epoch': 0}, 'out of range'),
    'a huge epoch': ({'name': 'M1', 'epoch': 10**400}, 'out of range'),
    'an epoch alone': ({'name': 'M1', 'epoch': 2}, 'without origin'),
}


@pytest.mark.parametrize(
    ('arguments', 'said'), BAD.values(), ids=list(BAD.keys())
)
def test_bad_arguments_are_named_and_change_nothing(agent, arguments, said):
    with pytest.raises(exception.BadArgument) as caught:
        ask(agent, 'set_metric', {}, **arguments)
    assert said in str(caught.value)
    assert agent.asked == []


def test_an_unknown_metric_is_refused_with_those_that_exist(agent):
    with pytest.raises(exception.UnknownPlugin, match='installed: M0, M1'):
        ask(agent, 'set_metric', {}, name='M9')


def test_preferences_are_handed_over(agent):
    given = {'a': 2, 'b': 0.5, 'c': None}
    answer = ask(agent, 'set_preferences', CONTROLLER, preferences=given)
    assert answer['preferences_count'] == 3
    assert agent.asked == [given]


def test_a_node_may_not_prefer(agent):
    with pytest.raises(exception.NotAllowed):
        ask(agent, 'set_preferences', NODE, preferences={'a': 2})


@pytest.mark.parametrize(
    'given',
    [
        None,
        [],
        {},
        {'': 1},
        {3: 1},
        {'a': '2'},
        {'a': True},
        {'a': [2]},
        dict.fromkeys(map(str, range(10_001)), 1),
    ],
)
def test_preferences_of_another_form_are_refused(agent, given):
    with pytest.raises(exception.BadArgument):
        ask(agent, 'set_preferences', {}, preferences=given)
    assert agent.asked == []


def test_a_vm_is_asked_for_by_its_uuid(agent):
    agent.vms = ('a-1',)
    answer = ask(agent, 'get_instance', NODE, uuid='a-1')
    assert answer['instance'] == {'uuid': 'a-1'}
    with pytest.raises(exception.UnknownInstance, match='no VM x on n1'):
        ask(agent, 'get_instance', NODE, uuid='x')


@pytest.mark.parametrize('uuid', [None, 3, '', 'x' * 256, 'a\nb', ['a']])
def test_a_text_that_is_no_uuid_is_refused(agent, uuid):
    with pytest.raises(exception.BadArgument, match='uuid'):
        ask(agent, 'get_instance', {}, uuid=uuid)


def test_a_call_and_its_outcome_are_logged(agent, caplog):
    caplog.set_level('INFO')
    request = CONTROLLER | {'request_id': 'req-1', 'user_id': 'u-9'}
    ask(agent, 'set_metric', request, name='M1')
    ask(agent, 'get_status', request)
    assert caplog.messages == [
        "set_metric(name='M1') was asked for by c1 for user u-9 in req-1",
        (
            "req-1: set_metric: host='n1', metric='M1', policy='P0', epoch=1, "
            "origin='n1', warning=''"
        ),
    ]


def test_a_refused_call_is_logged_with_its_request(agent, caplog):
    caplog.set_level('INFO')
    with pytest.raises(exception.NotAllowed):
        ask(agent, 'pause', NODE | {'request_id': 'req-2'})
    (line,) = caplog.messages
    assert line.startswith('req-2: pause was refused: pause needs a key')
    caplog.clear()
    # Who looks for a VM on many hosts finds it on one.
    with pytest.raises(exception.UnknownInstance):
        ask(agent, 'get_instance', CONTROLLER, uuid='x')
    assert caplog.messages == []


@pytest.mark.parametrize(
    ('method', 'given'),
    [
        ('set_metric', {'name': 'M1'}),
        ('set_policy', {'name': 'P1'}),
        ('set_policy', {'name': 'P1', 'epoch': 3, 'origin': 'c1'}),
        ('pause', {}),
        ('resume', {}),
    ],
)
def test_a_change_carries_its_caller(agent, method, given):
    request = CONTROLLER | {'request_id': 'req-1', 'user_id': 'u-9'}
    ask(agent, method, request, **given)
    assert agent.by == caller.Asker('c1', 'u-9', 'req-1')
    ask(agent, method, INSECURE | {'user_id': 'a\nb'}, **given)
    assert agent.by == caller.UNKNOWN


def test_every_line_of_a_call_carries_its_request(agent):
    seen = []
    agent.pause = lambda by: (
        seen.append(context.get_current().request_id) or {}
    )
    ask(agent, 'pause', {'request_id': 'req-3'})
    assert seen == ['req-3']


BAD_IDS = [None, 3, '', 'x' * 256, 'a\nb', ['a'], {'a': 1}]


@pytest.mark.parametrize('given', BAD_IDS)
def test_a_text_that_is_no_request_id_never_reaches_the_log(
    agent, caplog, given
):
    caplog.set_level('INFO')
    ask(agent, 'reset', {'request_id': given})
    assert caplog.messages[1].startswith('req-')
    assert len(caplog.messages[1].split(': ')[0]) == len(
        request_ids.new_request_id()
    )
