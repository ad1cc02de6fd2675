# SPDX-License-Identifier: Apache-2.0

"""GET /fairness/instances/{uuid}."""

import math

import pytest

from api_ext import http_request
from api_ext.handlers import instance as instance_handler
from nova_fairness import exception
from tests.unit.api_ext import fake_agents
from tests.unit.api_ext import fake_cloud
from tests.unit.api_ext import fake_requests

URL = '/fairness/instances/{}'
NOT_THERE = '44444444-4444-4444-8444-444444444444'


def ask(cloud, who, uuid):
    return cloud.ask(who, 'GET', URL.format(uuid))


def test_the_owner_is_told_why(cloud):
    answer = ask(cloud, 'alice', fake_cloud.ALICES)
    assert answer.status_code == 200
    instance = answer.json['instance']
    assert instance['heaviness']['total'] == 0.5
    assert instance['weights'] == {'cpu': 0.7}
    assert instance['summary'] == 'Nothing slows this VM down.'
    assert instance['advice'] == ['Use less CPU.']
    assert instance['contended'] == ['cpu_time']


def test_the_owner_is_told_no_host_and_nothing_that_is_not_described(cloud):
    text = ask(cloud, 'alice', fake_cloud.ALICES).text
    assert 'cmp1' not in text
    assert 'neighbours' not in text


@pytest.mark.parametrize('who', ['admin', 'auditor'])
def test_operators_see_any_instance_and_its_host(cloud, who):
    answer = ask(cloud, who, fake_cloud.CAROLS)
    assert answer.json['instance']['host'] == 'cmp2'


def test_members_of_the_project_see_an_instance(cloud):
    answer = ask(cloud, 'bob', fake_cloud.ALICES)
    assert answer.status_code == 200
    assert 'host' not in answer.json['instance']


@pytest.mark.parametrize('who', ['carol', 'nobody'])
def test_a_server_of_another_user_looks_like_one_that_is_not_there(cloud, who):
    theirs = ask(cloud, who, fake_cloud.ALICES)
    none = ask(cloud, who, NOT_THERE)
    assert theirs.status_code == none.status_code == 404
    assert theirs.text == none.text.replace(NOT_THERE, fake_cloud.ALICES)


def test_an_answer_of_an_older_agent_without_summary_is_shown(cloud):
    agent = cloud.client._agents['cmp1']
    answer = agent.instance(fake_cloud.ALICES)
    for key in ('summary', 'user_name', 'project_name'):
        del answer['instance'][key]
    cloud.client.broken = {'cmp1': answer}
    cloud.agents.hosts = lambda **_: ('cmp1',)
    answer = ask(cloud, 'alice', fake_cloud.ALICES)
    assert answer.status_code == 200
    assert 'summary' not in answer.json['instance']


def test_a_uuid_in_capital_letters_is_accepted(cloud):
    vm = 'abcdefab-1111-4111-8111-111111111111'
    cloud.client._agents['cmp1'].vms.append(
        fake_agents.FakeVm(vm, fake_cloud.ALICE, fake_cloud.RED)
    )
    assert ask(cloud, 'alice', vm.upper()).status_code == 200


def test_an_instance_that_may_be_on_a_silent_host_gives_503(cloud):
    cloud.client.silent = {'cmp2'}
    answer = ask(cloud, 'carol', fake_cloud.CAROLS)
    assert answer.status_code == 503
    assert 'cmp2' not in answer.text
    assert ask(cloud, 'alice', fake_cloud.ALICES).status_code == 200


@pytest.mark.parametrize(
    'change',
    [
        {'weights': {'cpu': math.nan}},
        {'usage': None},
        {'user_id': 7},
        {'advice': 'x'},
        {'summary': ['x']},
    ],
)
def test_an_invalid_answer_gives_503(cloud, change):
    agent = cloud.client._agents['cmp1']
    answer = agent.instance(fake_cloud.ALICES)
    answer['instance'].update(change)
    cloud.client.broken = {'cmp1': answer}
    cloud.client.silent = {'cmp2'}
    cloud.agents._hosts.get(lambda: ('cmp1',))
    cloud.agents.hosts = lambda **_: ('cmp1',)
    assert ask(cloud, 'alice', fake_cloud.ALICES).status_code == 503


class FakeNova:
    """Knows where instances are."""

    def __init__(self, **owners):
        self.owners = owners

    def __call__(self, context, uuid):
        for owner in self.owners.values():
            if owner is not None and owner[0] == uuid:
                return owner[1]
        raise LookupError(uuid)


@pytest.fixture
def located(tmp_path):
    nova = FakeNova(
        alice=(
            fake_cloud.ALICES,
            http_request.Owner('cmp1', fake_cloud.ALICE, fake_cloud.RED),
        ),
        bob=(
            fake_cloud.BOBS,
            http_request.Owner(None, fake_cloud.BOB, fake_cloud.RED),
        ),
        carol=(
            fake_cloud.CAROLS,
            http_request.Owner('cmp1', fake_cloud.CAROL, fake_cloud.BLUE),
        ),
    )
    return fake_cloud.FakeCloud(tmp_path, locate=nova)


def test_only_the_host_named_by_nova_is_asked(located):
    answer = ask(located, 'alice', fake_cloud.ALICES)
    assert answer.status_code == 200
    assert [call[:2] for call in located.client.calls] == [
        ('cmp1', 'get_instance')
    ]


def test_while_an_instance_moves_all_hosts_are_asked(located):
    assert ask(located, 'bob', fake_cloud.BOBS).status_code == 200


def test_a_server_unknown_to_nova_gives_404(located):
    assert ask(located, 'admin', NOT_THERE).status_code == 404
    assert located.client.calls == []


def test_a_deleted_server_is_described_by_its_request(located):
    with_request(
        located, NOT_THERE, standing='ended', user_id=fake_cloud.ALICE,
        status='ended: its server was deleted', server_names=['web-1'],
    )  # fmt: skip
    found = ask(located, 'alice', NOT_THERE).json['instance']
    assert found['summary'] == (
        f'Nova deleted this server. Its request {NOT_THERE} has ended '
        '(ended: its server was deleted).'
    )
    assert (found['standing'], found['request_id']) == ('ended', NOT_THERE)
    assert found['name'] == 'web-1'
    assert located.client.calls == []


def test_a_deleted_server_whose_request_seems_to_run_has_ended(located):
    with_request(located, NOT_THERE, standing='runs', status='runs')
    found = ask(located, 'admin', NOT_THERE).json['instance']
    assert found['standing'] == 'ended'
    assert found['summary'].endswith('ends with this server.')


def test_a_deleted_server_of_several_does_not_end_their_request(located):
    servers = [NOT_THERE, fake_cloud.BOBS]
    with_request(
        located, NOT_THERE, standing='runs', status='runs', servers=servers
    )
    found = ask(located, 'admin', NOT_THERE).json['instance']
    assert found['summary'].endswith(f'{NOT_THERE} also has other servers.')


def test_a_deleted_server_of_another_project_gives_404(located):
    with_request(located, NOT_THERE)
    assert ask(located, 'carol', NOT_THERE).status_code == 404


def test_a_caller_without_the_right_to_see_a_server_calls_no_agents(located):
    assert ask(located, 'carol', fake_cloud.ALICES).status_code == 404
    assert located.client.calls == []


def test_an_instance_unknown_to_its_host_gets_a_sentence(located):
    answer = ask(located, 'carol', fake_cloud.CAROLS)
    assert answer.status_code == 200
    assert 'has not noticed it' in answer.json['instance']['summary']


def at_rest(located, host, state):
    owner = http_request.Owner(
        host, fake_cloud.ALICE, fake_cloud.RED, 'web-1', state
    )
    known = {'alice': (fake_cloud.ALICES, owner)}
    located.own._services.locate.owners.update(known)
    return ask(located, 'alice', fake_cloud.ALICES)


@pytest.mark.parametrize(
    ('host', 'state', 'said'),
    [
        ('cmp1', 'stopped', 'is stopped'),
        ('cmp1', 'suspended', 'is suspended'),
        ('', 'shelved_offloaded', 'is shelved'),
        ('', 'error', 'is in error'),
        ('', 'building', 'is being built'),
        ('', 'new', 'has not noticed it'),
    ],
)
def test_an_instance_that_does_not_run_gets_a_sentence(
    located, host, state, said
):
    answer = at_rest(located, host, state)
    assert answer.status_code == 200
    item = answer.json['instance']
    assert item['name'] == 'web-1'
    assert said in item['summary']
    assert item['advice'] == [item['summary']]
    assert instance_handler._shape(answer.json) == item
    assert located.client.calls == []


def test_an_instance_in_error_may_run(located):
    answer = at_rest(located, 'cmp1', 'error')
    assert answer.json['instance']['weights'] == {'cpu': 0.7}


def test_a_failing_agent_gives_503(located, monkeypatch):
    def call(self, host, method, arguments):
        raise exception.RpcError('KeyError: a bug')

    monkeypatch.setattr(type(located.client), '_call', call)
    answer = ask(located, 'alice', fake_cloud.ALICES)
    assert answer.status_code == 503
    assert 'KeyError' not in answer.text


def test_foreign_instances_look_unknown_while_hosts_are_silent(cloud):
    cloud.client.silent = {'cmp2'}
    never = fake_cloud.ALICES.replace('1', '9')
    said = [
        cloud.ask('carol', 'GET', f'/fairness/instances/{uuid}')
        for uuid in (fake_cloud.ALICES, never)
    ]
    assert [each.status_code for each in said] == [503, 503]
    texts = [
        each.text.replace(uuid, '')
        for each, uuid in zip(said, (fake_cloud.ALICES, never), strict=True)
    ]
    assert texts[0] == texts[1]
    url = f'/fairness/instances/{fake_cloud.ALICES}'
    assert cloud.ask('alice', 'GET', url).status_code == 200


def with_request(cloud, uuid, **more):
    item = fake_requests.item(uuid, fake_cloud.RED, leaving=[], **more)
    cloud.requests.operations.items[uuid] = item


def test_a_waiting_server_shows_its_position(tmp_path):
    at_rest = http_request.Owner(
        '', fake_cloud.ALICE, fake_cloud.RED, 'web', 'building'
    )
    nova = FakeNova(alice=(fake_cloud.ALICES, at_rest))
    cloud = fake_cloud.FakeCloud(tmp_path, locate=nova)
    with_request(cloud, fake_cloud.ALICES)
    found = ask(cloud, 'alice', fake_cloud.ALICES).json['instance']
    assert found['summary'] == (
        'This server waits: 3rd, a server needs 2 VCPU.'
    )
    assert found['advice'] == [found['summary']]
    assert found['request_id'] == fake_cloud.ALICES
    assert found['standing'] == 'waits'


@pytest.mark.parametrize('standing', ['waits', 'starts', 'away'])
def test_a_server_at_rest_for_the_queue_is_shown_without_agents(
    located, standing
):
    with_request(located, fake_cloud.ALICES, standing=standing, status='goes')
    found = at_rest(located, 'cmp1', 'building').json['instance']
    assert found['summary'] == 'This server goes.'
    assert located.client.calls == []
    assert located.requests.rpc.calls == [(None, 'get_request')]


def test_a_leaving_server_shows_its_eviction_and_its_heaviness(cloud):
    with_request(
        cloud, fake_cloud.ALICES, state='active', standing='leaves',
        status='leaves at 01:35',
    )  # fmt: skip
    found = ask(cloud, 'alice', fake_cloud.ALICES).json['instance']
    assert found['summary'] == (
        'This server leaves at 01:35. Nothing slows this VM down.'
    )
    assert found['advice'] == ['Use less CPU.']


@pytest.mark.parametrize('state', ['shelved', 'stopped', 'active'])
def test_a_server_being_evicted_gets_no_advice_to_start_it(located, state):
    with_request(
        located, fake_cloud.ALICES, state='active', standing='leaves',
        status='leaves now, and returns by itself',
    )  # fmt: skip
    found = at_rest(located, '', state).json['instance']
    said = 'This server leaves now, and returns by itself.'
    assert (found['summary'], found['advice']) == (said, [said])


def test_a_leaving_server_is_shown_while_its_agent_is_silent(located):
    located.client.silent = {'cmp1'}
    assert ask(located, 'alice', fake_cloud.ALICES).status_code == 503
    with_request(
        located, fake_cloud.ALICES, state='active', standing='leaves',
        status='leaves at 01:35',
    )  # fmt: skip
    found = ask(located, 'alice', fake_cloud.ALICES).json['instance']
    assert found['summary'] == 'This server leaves at 01:35.'
    assert found['advice'] == [found['summary']]


def test_a_running_server_shows_no_queue_state(cloud):
    with_request(cloud, fake_cloud.ALICES, standing='runs', status='runs')
    found = ask(cloud, 'alice', fake_cloud.ALICES).json['instance']
    assert found['summary'] == 'Nothing slows this VM down.'
    assert found['standing'] == 'runs'


@pytest.mark.parametrize('standing', ['leaves', 'moves'])
def test_a_server_shows_no_events_of_its_siblings(cloud, standing):
    with_request(
        cloud, fake_cloud.ALICES, standing=standing, status='goes',
        servers=[fake_cloud.ALICES, fake_cloud.BOBS],
    )  # fmt: skip
    found = ask(cloud, 'alice', fake_cloud.ALICES).json['instance']
    assert 'standing' not in found


def test_a_request_of_another_project_adds_nothing_to_a_server(cloud):
    with_request(cloud, fake_cloud.ALICES)
    item = cloud.requests.operations.items[fake_cloud.ALICES]
    item['project_id'] = fake_cloud.BLUE
    found = ask(cloud, 'alice', fake_cloud.ALICES).json['instance']
    assert 'request_id' not in found


@pytest.mark.parametrize(
    'error', [exception.HostNotReached('x'), exception.NotLeading('unknown')]
)
def test_a_server_is_shown_without_the_cluster_service(cloud, error):
    cloud.requests.operations.error = error
    answer = ask(cloud, 'alice', fake_cloud.ALICES)
    assert answer.status_code == 200
    assert answer.json['instance']['summary'] == 'Nothing slows this VM down.'


def test_an_older_service_without_standing_adds_nothing(cloud):
    with_request(cloud, fake_cloud.ALICES)
    del cloud.requests.operations.items[fake_cloud.ALICES]['standing']
    answer = ask(cloud, 'alice', fake_cloud.ALICES)
    assert answer.status_code == 200
    assert 'request_id' not in answer.json['instance']
