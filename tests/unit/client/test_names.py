# SPDX-License-Identifier: Apache-2.0

"""Commands that are given names, and several of them."""

import json
import time

from osc_lib import exceptions
import pytest

from nova_fairness.client import groups
from nova_fairness.client import hosts
from nova_fairness.client import partition
from nova_fairness.client import plans
from nova_fairness.client import queue
from nova_fairness.client import servers
from tests.unit.client import fake_compute

UUID = '53a7a2a1-7d4e-4a55-9d3c-2a8f9d0a1c11'
OLD, NEW, OTHER = (f'{n}1111111-2222-4111-8111-111111111111' for n in '123')
RED, BOB = 'a' * 32, 'b' * 32


@pytest.fixture
def cloud(requests_mock):
    made = fake_compute.FakeCompute(requests_mock)
    made.names = {'red': RED, 'bob': BOB}
    return made


def ask(cloud, command, *words):
    code, out = cloud.run(command, *words, '-f', 'json')
    return code, json.loads(out)


@pytest.mark.parametrize(
    ('given', 'account'),
    [
        ('red', RED),
        ('red/bob', f'{RED}/{BOB}'),
        (f'{RED}/bob', f'{RED}/{BOB}'),
        ('physics', 'physics'),
    ],
)
def test_accounts_can_be_given_by_names(cloud, given, account):
    for path in ('/shares', '/limits'):
        cloud.answers(path, {'account': account}, method='PUT')
    for command, more in (
        (queue.SetShare, ['2']),
        (queue.UnsetShare, []),
        (queue.SetLimit, ['--budget', '3']),
        (queue.UnsetLimit, ['--budget']),
    ):
        assert ask(cloud, command, given, *more)[0] == 0
        assert cloud.asked[-1].json()['account'] == account


def test_an_ambiguous_name_is_refused(cloud):
    with pytest.raises(exceptions.CommandError, match='several have this'):
        cloud.run(queue.SetShare, 'red/twice', '2')
    assert cloud.asked == []


def test_callers_that_may_not_ask_keystone_give_ids(cloud):
    cloud.forbidden = True
    cloud.answers('/shares', {'account': 'x'}, method='PUT')
    ask(cloud, queue.SetShare, 'u-1/red', '2')
    assert cloud.asked[-1].json()['account'] == 'u-1/red'


def test_a_group_of_another_project_is_named_by_its_name(cloud):
    cloud.answers('/groups', {'group': None}, method='PUT')
    ask(cloud, groups.DeleteGroup, 'web', '--project', 'red')
    assert cloud.asked[-1].json()['project_id'] == RED


def request(uuid, server, asked_at='2026-01-01T00:00:00Z', **more):
    return {
        'uuid': uuid, 'servers': [server], 'asked_at': asked_at, **more
    }  # fmt: skip


def test_a_returned_server_leads_to_its_newest_request(cloud):
    cloud.servers = {'web-1': UUID}
    newest = request(NEW, UUID, '2026-01-02T00:00:00Z')
    cloud.answers(f'/requests/{UUID}', {'request': newest})
    assert ask(cloud, queue.ShowRequest, 'web-1')[1]['uuid'] == NEW


def test_a_request_of_another_project_is_found_by_its_server(cloud):
    cloud.others = {'web-1': UUID}
    cloud.answers(f'/requests/{UUID}', {'request': request(OLD, UUID)})
    assert ask(cloud, queue.ShowRequest, 'web-1')[1]['uuid'] == OLD


def test_a_build_that_is_not_listed_has_the_id_of_its_server(cloud):
    cloud.servers = {'web-1': UUID}
    cloud.answers(f'/requests/{UUID}', {'request': request(UUID, UUID)})
    assert ask(cloud, queue.ShowRequest, 'web-1')[1]['uuid'] == UUID


def test_a_request_is_found_by_the_name_of_its_deleted_server(cloud):
    cloud.deleted = [('web-1', UUID), ('web-10', OTHER)]
    ended = request(OLD, UUID, state='ended')
    cloud.answers(f'/requests/{UUID}', {'request': ended})
    assert ask(cloud, queue.ShowRequest, 'web-1')[1]['uuid'] == OLD
    assert cloud.filters[0]['name'] == '^web\\-1$'
    cloud.answers('/requests', {'requests': [ended]})
    _, told = ask(cloud, queue.ListRequest, '--name', 'web-1', '--ended')
    assert [each['ID'] for each in told] == [OLD]
    assert cloud.asked[-1].qs['server'] == [UUID]


def test_a_server_that_is_there_comes_before_a_deleted_one(cloud):
    cloud.servers, cloud.deleted = {'web-1': UUID}, [('web-1', OTHER)]
    cloud.answers(f'/requests/{UUID}', {'request': request(OLD, UUID)})
    assert ask(cloud, queue.ShowRequest, 'web-1')[1]['uuid'] == OLD
    assert cloud.filters == []


def test_a_name_that_several_deleted_servers_had_is_refused(cloud):
    cloud.deleted = [('web-1', UUID), ('web-1', OTHER)]
    with pytest.raises(exceptions.CommandError, match='several have this'):
        cloud.run(queue.ShowRequest, 'web-1')


def test_a_deleted_server_is_shown_by_its_name(cloud):
    cloud.deleted = [('web-1', UUID)]
    gone = {'uuid': UUID, 'summary': 'Nova deleted this server.'}
    cloud.answers(f'/instances/{UUID}', {'instance': gone})
    assert ask(cloud, servers.ShowServer, 'web-1')[1]['uuid'] == UUID


def test_an_order_for_an_ended_request_is_refused_with_its_end(cloud):
    cloud.deleted = [('web-1', UUID)]
    said = {'conflictingRequest': {'message': 'It ended at 12:00 UTC.'}}
    cloud.answers(f'/requests/{UUID}/action', said, 409, 'POST')
    with pytest.raises(exceptions.CommandError, match='It ended at 12:00'):
        cloud.run(queue.CancelRequest, 'web-1')


def test_a_server_without_a_request_is_named(cloud):
    said = {'itemNotFound': {'message': 'Request x could not be found.'}}
    cloud.answers(f'/requests/{UUID}/action', said, 404, 'POST')
    with pytest.raises(
        exceptions.CommandError, match=f'{UUID}: request not found'
    ):
        cloud.run(queue.PutRequestFirst, UUID)


@pytest.mark.parametrize(
    ('command', 'field', 'said'),
    [
        (queue.UnholdRequest, 'held_by', 'it was not held'),
        (queue.PutRequestBack, 'first', 'it was not put first'),
    ],
)
def test_an_order_without_effect_says_so(cloud, caplog, command, field, said):
    told = {'request': request(UUID, UUID, **{field: None})}
    cloud.answers(f'/requests/{UUID}', told)
    cloud.answers(f'/requests/{UUID}/action', told, method='POST')
    assert ask(cloud, command, UUID)[0] == 0
    assert f'{UUID}: {said}; nothing was changed' in caplog.text
    caplog.clear()
    told['request'][field] = 'operator'
    cloud.answers(f'/requests/{UUID}', told)
    assert ask(cloud, command, UUID)[0] == 0
    assert caplog.text == ''


def test_an_action_shows_names_that_only_the_request_knows(cloud):
    told = request(UUID, UUID, server_names=['web-1'], state='cancelled')
    cloud.answers(f'/requests/{UUID}/action', {'request': told}, method='POST')
    _, out = cloud.run(queue.CancelRequest, UUID)
    assert f'web-1 ({UUID})' in out


def test_a_server_without_any_request_gives_a_sentence(cloud):
    with pytest.raises(exceptions.CommandError, match="no server 'carol-7'"):
        cloud.run(queue.ShowRequest, 'carol-7')


@pytest.mark.parametrize(
    ('command', 'words', 'order'),
    [
        (queue.CancelRequest, [], {'cancel': None}),
        (queue.ReleaseRequest, [], {'release': None}),
        (queue.PutRequestFirst, [], {'first': None}),
        (queue.PutRequestBack, [], {'unfirst': None}),
        (queue.HoldRequest, ['--why', 'x'], {'hold': {'why': 'x'}}),
        (queue.UnholdRequest, [], {'unhold': None}),
        (queue.ExtendRequest, ['1h'], {'extend': {'seconds': 3600.0}}),
    ],
)
def test_several_requests_are_acted_on(cloud, command, words, order):
    for uuid in (OLD, NEW):
        told = request(uuid, uuid, state='waiting', explanation='it waits')
        path = f'/requests/{uuid}/action'
        cloud.answers(path, {'request': told}, method='POST')
        cloud.answers(f'/requests/{uuid}', {'request': told})
    code, told = ask(cloud, command, OLD, NEW, *words)
    assert (code, list(told)) == (0, [OLD, NEW])
    assert told[NEW]['state'] == 'waiting'
    sent = [each.json() for each in cloud.asked if each.method == 'POST']
    assert sent == [order] * 2
    _, out = cloud.run(command, OLD, NEW, *words)
    assert 'waiting: it waits' in out


def test_one_of_several_that_fails_keeps_none_from_being_done(cloud, caplog):
    fault = {'conflictingRequest': {'message': 'It ended.'}}
    cloud.answers(f'/requests/{OLD}/action', fault, 409, 'POST')
    told = {'request': request(NEW, NEW, state='cancelled')}
    cloud.answers(f'/requests/{NEW}/action', told, method='POST')
    code, told = ask(cloud, queue.CancelRequest, OLD, NEW)
    assert (code, list(told)) == (1, [NEW])
    assert f'{OLD}: It ended. (HTTP 409)' in caplog.text


def test_several_plans_and_hosts_are_acted_on(cloud):
    for uuid in (OLD, NEW):
        cloud.answers(
            f'/plans/{uuid}/action',
            {'plan': {'uuid': uuid, 'state': 'approved'}},
            method='POST',
        )
    code, told = ask(cloud, plans.ApprovePlan, OLD, NEW)
    assert (code, told[OLD]['state']) == (0, 'approved')
    for host in ('h1', 'h2'):
        cloud.answers(
            f'/partition/hosts/{host}/action',
            {'host': {'name': host, 'state': 'batch'}},
            method='POST',
        )
    code, told = ask(cloud, partition.MovePartition, 'h1', 'h2')
    assert (code, sorted(told)) == (0, ['h1', 'h2'])


def test_several_hosts_are_paused_also_if_one_is_unknown(cloud, caplog):
    done = {'hosts': [{'name': 'h1', 'paused': True}]}
    cloud.answers('/h1/action', done, 202, 'POST')
    fault = {'itemNotFound': {'message': 'No host h9.'}}
    cloud.answers('/h9/action', fault, 404, 'POST')
    code, told = ask(cloud, hosts.PauseHost, 'h9', 'h1')
    assert (code, [each['Host'] for each in told]) == (1, ['h1'])
    assert 'h9 was not changed: No host h9.' in caplog.text
    with pytest.raises(exceptions.CommandError, match='No host h9'):
        cloud.run(hosts.PauseHost, 'h9')


def test_several_accounts_and_groups_are_acted_on(cloud):
    for path in ('/shares', '/limits'):
        cloud.answers(path, {'account': 'x'}, method='PUT')
    for command, more in (
        (queue.SetShare, ['2']),
        (queue.UnsetShare, []),
        (queue.SetLimit, ['--budget', '3']),
    ):
        code, told = ask(cloud, command, 'red', 'red/bob', *more)
        assert (code, list(told)) == (0, [RED, f'{RED}/{BOB}'])
    cloud.answers('/groups', {'group': None}, method='PUT')
    code, told = ask(cloud, groups.DeleteGroup, 'web', 'db')
    assert (code, told) == (0, {'web': {}, 'db': {}})


def becoming(cloud, path, noun, *states):
    told = [{'json': {noun: {'uuid': UUID, 'state': s}}} for s in states]
    cloud.mock.get(f'{cloud.base}{path}', told)


@pytest.mark.parametrize(
    ('command', 'action', 'end'),
    [
        (queue.ShowRequest, None, 'active'),
        (queue.ReleaseRequest, 'release', 'active'),
        (queue.CancelRequest, 'cancel', 'cancelled'),
    ],
)
def test_a_command_waits_until_a_request_is_there(
    cloud, monkeypatch, command, action, end
):
    monkeypatch.setattr(time, 'sleep', lambda _: None)
    becoming(cloud, f'/requests/{UUID}', 'request', 'waiting', 'sending', end)
    held = {'request': request(UUID, UUID, state='waiting')}
    cloud.answers(f'/requests/{UUID}/action', held, method='POST')
    assert ask(cloud, command, UUID, '--wait')[1]['state'] == end
    asked = [each.method for each in cloud.asked]
    assert asked == [*(['POST'] if action else []), *(['GET'] * 4)]


def test_a_wait_that_cannot_end_well_ends_the_command(cloud):
    becoming(cloud, f'/requests/{UUID}', 'request', 'failed')
    with pytest.raises(exceptions.CommandError, match='is failed'):
        cloud.run(queue.ShowRequest, UUID, '--wait')


@pytest.mark.parametrize('words', [[], ['--wait']])
def test_a_server_without_a_request_is_told_in_the_same_words(cloud, words):
    fault = {'itemNotFound': {'message': 'no request'}}
    cloud.answers(f'/requests/{UUID}', fault, 404)
    with pytest.raises(exceptions.CommandError, match='without the queue'):
        cloud.run(queue.ShowRequest, UUID, *words)


def test_a_command_waits_for_the_moves_of_a_plan(cloud, monkeypatch):
    monkeypatch.setattr(time, 'sleep', lambda _: None)
    path = f'/plans/{UUID}'
    cloud.answers(
        f'{path}/action', {'plan': {'state': 'approved'}}, method='POST'
    )
    becoming(cloud, path, 'plan', 'approved', 'running', 'partial')
    code, told = ask(cloud, plans.ApprovePlan, UUID, '--wait')
    assert (code, told['state']) == (0, 'partial')


def test_a_server_shows_names_of_its_owner(cloud):
    at_rest = {'uuid': UUID, 'user_id': BOB, 'project_id': RED}
    cloud.answers(f'/instances/{UUID}', {'instance': at_rest})
    _, out = cloud.run(servers.ShowServer, UUID)
    assert f'red ({RED})' in out
    measured = {**at_rest, 'project_name': 'red', 'user_name': 'bob'}
    cloud.answers(f'/instances/{UUID}', {'instance': measured})
    _, out = cloud.run(servers.ShowServer, UUID)
    assert f'red ({RED})' not in out
