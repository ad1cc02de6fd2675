# SPDX-License-Identifier: Apache-2.0

"""What users and operators ask a service with a real store for."""

import datetime as dt
import json

import pytest

from nova_fairness import exception
from nova_fairness.cluster.admission import intake
from nova_fairness.cluster.api import requests
from nova_fairness.cluster.messages import parser
from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request
from tests.fixtures import fake_cloud
from tests.unit.cluster import test_service

world = test_service.world
R, S = reason.Reason, request.State


@pytest.fixture
def process(world):
    return world.process()


@pytest.fixture
def operations(world, process):
    return requests.ClusterOperations(world.store, process)


def test_requests_are_told_with_place_and_reason(world, process, operations):
    first, second, third = (
        world.post(name, vcpu=99) for name in ('r1', 'r2', 'r3')
    )
    process.cycle()
    told = operations.requests('the-project', None, 2)
    assert told['more']
    order = sorted((first, second, third))
    assert [each['uuid'] for each in told['requests']] == order[:2]
    assert [each['position'] for each in told['requests']] == [1, 2]
    item = told['requests'][0]
    assert item['reason'] == 'too_large'
    assert item['numbers'] == {'asked': 99.0, 'most': 4.0}
    assert '99 VCPU' in item['explanation']
    assert item['since'] == '1970-01-01T00:16:40+00:00'
    rest = operations.requests(None, order[1], 9)
    assert [each['uuid'] for each in rest['requests']] == order[2:]
    assert operations.requests('another', None, 9)['requests'] == []


def test_why_is_told_and_nothing_of_other_projects(world, process, operations):
    names = {world.post(f'r{n}', project=f'project-{n}'): n for n in (1, 2)}
    world.cloud.add_server('s1', 'another', 'ann')
    world.cloud.build('s1', 'h1', {'VCPU': 2})
    process.cycle()
    # Asked for at the same moment: the UUID decides.
    other, mine = sorted(names)
    item = operations.request(mine)['request']
    assert item['position'] == 2
    assert item['factors'] == {'waited_s': 999.0}
    assert item['summary'][0] == '1 request is before it.'
    assert item['summary'][-1][1:] == f'{item["explanation"][1:]}.'
    text = json.dumps(item)
    assert f'project-{names[mine]}' in text
    for secret in (other, f'project-{names[other]}', 'another', 'ann'):
        assert secret not in text


def test_a_request_with_a_reservation_is_told_when(world, process, operations):
    begin = '1970-01-01T00:00:00'
    for n in range(5):
        world.cloud.live(f's{n}', 3, begin, '1970-01-01T00:10:00')
    world.cloud.live('runs', 3, '1970-01-01T00:16:00')
    world.cloud.build('runs', 'h1', {'VCPU': 3, 'MEMORY_MB': 100})
    large, small = world.post('r1', vcpu=4), world.post('r2', vcpu=99)
    process.cycle()
    # Those that are gone are in the second list.
    assert operations.request(large)['request']['reserved_at'] is None
    process.cycle()
    item = operations.request(large)['request']
    assert item['reserved_at'] == '1970-01-01T00:26:00+00:00'
    assert any('1970-01-01 00:26 UTC' in each for each in item['summary'])
    assert operations.request(small)['request']['reserved_at'] is None


def test_a_waiting_request_is_told_when_it_starts(world, process, operations):
    begin = '1970-01-01T00:00:00'
    for n in range(5):
        world.cloud.live(f's{n}', 3, begin, '1970-01-01T00:10:00')
    world.cloud.live('runs', 3, '1970-01-01T00:16:00')
    world.cloud.build('runs', 'h1', {'VCPU': 3, 'MEMORY_MB': 100})
    large, never = world.post('r1', vcpu=4), world.post('r2', vcpu=99)

    def told(uuid):
        process.cycle()
        process.estimate(5.0)
        return operations.request(uuid)['request']

    # Those that are gone are in the second list: the first estimates know
    # none, and others are made a minute later.
    for tick in (0, 0, 29, 58):
        world.tick = tick
        assert told(large)['estimated_start'] is None
    world.tick = 61
    told(large)
    at = '1970-01-01T00:26:00+00:00'
    item = told(large)
    assert item['estimated_start'] == {'p50': at, 'p90': at}
    assert any(each.startswith('It starts at') for each in item['summary'])
    assert told(never)['estimated_start'] is None
    # What did not come true is told no more.
    world.now = 1561.0
    assert told(large)['estimated_start'] is None
    # Once it started, it is known that it was late, by another process, too.
    assert operations.capacity()['estimates'] is None
    world.cloud.remove('runs')
    process.cycle()
    world.cloud.build(large, 'h1', {'VCPU': 4, 'MEMORY_MB': 100})
    for _ in range(2):
        process.cycle()
    judged = operations.capacity()['estimates']
    assert (judged['count'], judged['by_p50'], judged['off_s']) == (1, 0, 1)


def test_shares_are_told_in_pages(world, process, operations):
    world.accounts = (
        cluster.Account('faculty', None, 3),
        cluster.Account('the-project', 'faculty', 2),
    )
    world.post('r1', vcpu=99)
    world.cloud.add_server('s1', 'another', 'ann')
    world.cloud.build('s1', 'h1', {'VCPU': 4})
    process.cycle()
    first = operations.shares(None, None, 3)
    assert first['more']
    second = operations.shares(None, first['shares'][-1]['name'], 3)
    assert not second['more']
    told = {each['name']: each for each in first['shares'] + second['shares']}
    assert list(told) == [
        'another', 'another/ann', 'faculty', 'the-project', 'the-project/u'
    ]  # fmt: skip
    faculty, another = told['faculty'], told['another']
    assert (faculty['share'], faculty['normalised_share']) == (3.0, 0.75)
    assert (faculty['parent'], told['the-project']['parent']) == (
        None, 'faculty'
    )  # fmt: skip
    assert another['used']['VCPU'] > 0 == faculty['used']['VCPU']
    assert another['fair_share'] == pytest.approx(2**-4)
    own = operations.shares('the-project', None, 9)['shares']
    assert [each['name'] for each in own] == ['the-project', 'the-project/u']
    with pytest.raises(exception.UnknownAccount):
        operations.shares('the-project', 'another', 9)


def test_a_share_that_is_set_counts_from_the_next_cycle_on(
    world, process, operations
):
    process.cycle()
    assert operations.set_share('the-project', 3.0) == {
        'account': 'the-project', 'share': 3.0
    }  # fmt: skip
    assert operations.set_share('the-project/ann', 0.5)['share'] == 0.5
    process.cycle()
    told = operations.shares('the-project', None, 9)['shares']
    assert {each['name']: each['share'] for each in told} == {
        'the-project': 3.0, 'the-project/ann': 0.5
    }  # fmt: skip
    assert world.store.account_settings().accounts == {
        'the-project': {'share': 3.0}, 'the-project/ann': {'share': 0.5}
    }  # fmt: skip
    assert operations.set_share('the-project', None)['share'] is None
    assert world.store.account_settings().accounts == {
        'the-project/ann': {'share': 0.5}
    }
    with pytest.raises(exception.UnknownAccount, match='the-project'):
        operations.set_share('the-project', None)
    with pytest.raises(exception.BadShares, match='from 0 to'):
        operations.set_share('the-project', -1.0)
    assert world.store.account_settings().accounts == {
        'the-project/ann': {'share': 0.5}
    }


def test_a_process_that_does_not_lead_sets_no_share(
    world, process, operations
):
    process.cycle()
    other = requests.ClusterOperations(world.store, world.process('two'))
    with pytest.raises(exception.NotLeading):
        other.set_share('the-project', 3.0)
    assert world.store.account_settings().accounts == {}


def test_agents_are_told_the_tree_when_it_is_new_to_them(
    world, process, operations
):
    world.accounts = (cluster.Account('the-project', None, 2),)
    process.cycle()
    first = operations.tree('')
    assert first['accounts'] == [
        {'name': 'the-project', 'parent': None, 'share': 2, 'fair_share': 1.0}
    ]
    assert operations.tree(first['version']) == {**first, 'accounts': None}
    world.accounts = (cluster.Account('the-project', None, 3),)
    process.cycle()
    second = operations.tree(first['version'])
    assert second['version'] != first['version']
    assert second['accounts'][0]['share'] == 3


def test_an_unknown_request_is_refused(world, process, operations):
    process.cycle()
    for call in (
        lambda: operations.request('x'),
        lambda: operations.cancel('x', False),
        lambda: operations.release('x'),
        lambda: operations.requests(None, 'x', 9),
    ):
        with pytest.raises(exception.UnknownRequest):
            call()


@pytest.mark.parametrize(
    ('by_operator', 'why'),
    [(False, 'taken_back'), (True, 'cancelled_by_operator')],
)
def test_a_build_that_waits_is_taken_back(
    world, process, operations, by_operator, why
):
    server = world.post('r1', vcpu=99)
    process.cycle()
    told = operations.cancel(server, by_operator)['request']
    assert (told['state'], told['reason']) == ('cancelled', why)
    # Nova may take longer to delete it than whoever asks waits.
    assert server in world.cloud.servers
    process.cycle()
    assert server not in world.cloud.servers
    # Nova then forgets where it would have been.
    assert world.conductor.sent == ['cast-r1']
    assert world.store.read_message('cast-r1') is None
    with pytest.raises(exception.IllegalStep) as refused:
        operations.cancel(server, by_operator)
    ended = dt.datetime.fromtimestamp(world.now, dt.UTC)
    assert str(refused.value) == (
        f'request {server} is cancelled already: it ended at'
        f' {ended:%Y-%m-%d %H:%M} UTC; nothing is left to do'
    )


def test_a_build_is_taken_back_even_if_nova_is_away(
    world, process, operations
):
    server = world.post('r1', vcpu=99)
    process.cycle()
    world.cloud.broken['DELETE /servers'] = 503
    assert operations.cancel(server, False)['request']['state'] == 'cancelled'
    world.cloud.broken.clear()
    process.cycle()
    assert server not in world.cloud.servers


def test_a_build_is_taken_back_even_if_the_broker_is_away(
    world, process, operations
):
    server = world.post('r1', vcpu=99)
    process.cycle()
    world.conductor.away = True
    assert operations.cancel(server, False)['request']['state'] == 'cancelled'
    assert world.store.read_message('cast-r1') is not None
    world.conductor.away = False
    process.cycle()
    assert world.conductor.sent == ['cast-r1']
    assert world.store.read_message('cast-r1') is None


def test_a_request_that_nova_has_cannot_be_taken_back(
    world, process, operations
):
    server = world.post('r1')
    process.cycle()
    assert world.state(server) is S.STARTING
    for act in (
        lambda: operations.cancel(server, True),
        lambda: operations.release(server),
    ):
        with pytest.raises(exception.IllegalStep):
            act()
    assert world.conductor.sent == ['cast-r1']


def test_an_operator_starts_a_request_that_would_wait(
    world, process, operations
):
    server = world.post('r1', vcpu=99)
    process.cycle()
    told = operations.release(server, without_room=True)['request']
    assert told['state'] == 'starting'
    assert world.conductor.sent == ['cast-r1']
    assert world.cloud.holds() == []


def test_an_operator_resolves_a_doubt(world, process, operations):
    server = world.post('r1')
    with pytest.MonkeyPatch.context() as patched:
        dying = test_service.TestInDoubt.dying('before')
        patched.setattr(test_service.FakeConductor, 'send', dying)
        with pytest.raises(test_service.Killed):
            process.cycle()
    assert world.state(server) is S.SENDING
    assert operations.release(server)['request']['state'] == 'starting'
    assert world.conductor.sent == ['cast-r1']


def test_all_that_waits_is_started_when_the_queue_is_taken_out(world, process):
    servers = [world.post(name, vcpu=99) for name in ('r1', 'r2')]
    world.post('r3')
    assert process.drain() == []
    assert sorted(world.conductor.sent) == ['cast-r1', 'cast-r2', 'cast-r3']
    assert {world.state(each) for each in servers} == {S.STARTING}
    assert process.drain() == []
    assert len(world.conductor.sent) == 3


def test_a_request_that_cannot_start_is_told_when_the_queue_is_drained(
    world, process
):
    server = world.post('r1', vcpu=99)
    world.cloud.broken[f'GET /servers/{server}'] = 503
    assert [each.request.uuid for each in process.drain()] == [server]
    world.cloud.broken.clear()
    process.drain()
    assert process.drain() == []
    assert world.conductor.sent == ['cast-r1']


def test_a_process_that_does_not_lead_drains_nothing(world, process):
    world.process('two').cycle()
    world.post('r1')
    with pytest.raises(exception.NotLeading):
        process.drain()
    assert world.conductor.sent == []


def test_unshelving_is_not_taken_back(world, process, operations):
    process.cycle()
    shelved = request.Request(
        'u', 'p', 'u', ('s',), request.Demand((('VCPU', 99),)), 1.0,
        request.Origin.UNSHELVE,
    )  # fmt: skip
    world.store.add_request(shelved, 'cast-u', 1.0)
    with pytest.raises(exception.IllegalStep, match='unshelves'):
        operations.cancel('u', False)


def test_a_process_that_does_not_act_names_the_leader(world, process):
    world.process('host1:7').cycle()
    process.cycle()
    operations = requests.ClusterOperations(world.store, process)
    for call in (
        lambda: operations.requests(None, None, 9),
        lambda: operations.capacity(),
    ):
        with pytest.raises(exception.NotLeading, match=r'^host1$'):
            call()


def test_room_is_told(world, process, operations):
    world.cloud.add_host('h2', 8, memory=150)
    world.cloud.add_host('h3', 90, status='disabled')
    server = world.post('r0')
    world.cloud.build(server, 'h1', {'VCPU': 1, 'MEMORY_MB': 100})
    world.post('r1', vcpu=99)
    process.cycle()
    told = operations.capacity()
    assert (told['hosts_count'], told['waiting_count']) == (2, 1)
    vcpu = next(each for each in told['classes'] if each['name'] == 'VCPU')
    assert vcpu == {'name': 'VCPU', 'capacity': 12, 'used': 1, 'largest': 8}
    # h1 has 3 left; h2 has memory for one server only.
    starts = {each['name']: each['starts'] for each in told['flavors']}
    assert starts == {'two': 2, 'nine': 0}
    assert fake_cloud.name_uuid('h3') in world.cloud.providers


def test_room_is_told_by_zone(world, process, operations):
    world.cloud.add_host('h2', 5, zone='z2')
    world.cloud.add_host('h3', 8, zone='z2', status='disabled')
    world.cloud.add_host('h4', 1, zone='z3')
    process.cycle()
    told = {each['name']: each for each in operations.capacity()['flavors']}
    # Two servers of 2 vCPUs on h1, and two on h2.
    zones = {'z1': 2, 'z2': 2, 'z3': 0}
    assert told['two'] == {'name': 'two', 'starts': 4, 'zones': zones}
    assert told['nine']['zones'] == dict.fromkeys(zones, 0)
    world.cloud.add_host('h5', 2, zone='')
    process.cycle()
    told = {each['name']: each for each in operations.capacity()['flavors']}
    assert told['two'] == {'name': 'two', 'starts': 5, 'zones': zones}


def test_one_server_gets_no_more_of_a_host_than_it_may(
    world, process, operations
):
    root = world.cloud.add_host('h2', 8)
    inventories = world.cloud.providers[root]['inventories']
    inventories['VCPU']['max_unit'] = 2
    process.cycle()

    def starts():
        told = operations.capacity()['flavors']
        return {each['name']: each['starts'] for each in told}['two']

    # Four on h2, two on h1.
    assert starts() == 6
    inventories['VCPU']['max_unit'] = 1
    world.cloud.providers[root]['generation'] += 1
    process.cycle()
    assert starts() == 2


LEAVES = 'is to leave at 1970-01-01 00:31 UTC'


def test_a_request_with_an_end_tells_when_and_why(world, process, operations):
    world.accounts = (cluster.Account('the-project', time_limit_s=900.0),)
    server = world.post('r1')
    process.cycle()
    world.cloud.build(server, 'h1', test_service.NEED)
    process.cycle()
    told = operations.request(server)['request']
    assert (told['time_limit'], told['extended']) == (900.0, 0.0)
    assert told['ends_at'] == '1970-01-01T00:31:40+00:00'
    assert told['leaving'] == []
    world.now += 300
    process.cycle()
    process.cycle()
    [told] = operations.requests(None, None, 9)['requests']
    [leaves] = told['leaving']
    assert (leaves['state'], leaves['action']) == ('told', 'shelve')
    assert leaves['leaves_at'] == told['ends_at']
    assert told['summary'][-3:] == [
        'It may run until 1970-01-01 00:31 UTC.',
        f'Server {server} {LEAVES}: it may run for 900 s.',
        'It is shelved then.',
    ]


def test_requests_that_do_no_more_than_run_are_left_out(
    world, process, operations
):
    world.accounts = (cluster.Account('the-project', time_limit_s=900.0),)
    leaves = world.post('r1')
    process.cycle()
    world.cloud.build(leaves, 'h1', test_service.NEED)
    process.cycle()
    wanted = request.RequestFilter(unsettled=True)

    def listed():
        found = operations.requests(None, None, 9, wanted=wanted)['requests']
        return {each['uuid']: each['standing'] for each in found}

    assert listed() == {}
    waits = world.post('r2', vcpu=99)
    process.cycle()
    assert listed() == {waits: 'waits'}
    world.now += 300
    process.cycle()
    process.cycle()
    assert listed() == {leaves: 'leaves', waits: 'waits'}
    assert len(operations.requests(None, None, 9)['requests']) == 2


def test_limits_are_listed_set_and_taken_back(world, process, operations):
    world.accounts = (
        cluster.Account('physics', time_limit_s=60.0),
        cluster.Account('p', 'physics'),
        cluster.Account('p/u', 'p', longest_wait_s=9.0),
    )
    process.cycle()
    assert operations.set_limits('p', {'time_limit': 30.0}) == {
        'account': 'p', 'time_limit': 30.0
    }  # fmt: skip
    process.cycle()
    told = operations.limits(None, None, 2)
    assert [each['account'] for each in told['limits']] == ['p', 'p/u']
    assert told['more']
    [told] = operations.limits(None, 'p/u', 2)['limits']
    assert told == {
        'account': 'physics', 'parent': None, 'time_limit': 60.0,
        'longest_wait': None, 'budget': None,
        'budget_used': None, 'budget_committed': None, 'budget_left': None,
        'funds': None, 'funds_left': None,
        'budget_until': None, 'windows': [], 'opens_at': None, 'ceiling': {},
        'nominal': {}, 'borrowing_limit': {}, 'lending_limit': {},
    }  # fmt: skip
    own = operations.limits('p', None, 9)['limits']
    assert [each['account'] for each in own] == ['p', 'p/u']
    with pytest.raises(exception.BadArgument, match='no limits cores'):
        operations.set_limits('p', {'cores': 3.0})
    with pytest.raises(exception.BadShares, match='time limit'):
        operations.set_limits('p', {'time_limit': -3.0})
    operations.set_limits('p', {'time_limit': None})
    with pytest.raises(exception.UnknownAccount):
        operations.set_limits('p', {'time_limit': None})


def test_all_that_limits_an_account_is_told(world, process, operations):
    night = cluster.Window('0 20 * * *', 36000.0)
    world.accounts = (
        cluster.Account('p', budget_hours=2.0),
        cluster.Account('q', windows=(night,), ceiling=(('VCPU', 4),)),
    )
    world.now = 12 * 3600.0
    process.cycle()
    p, q = operations.limits(None, None, 9)['limits']
    assert (p['budget'], p['budget_left']) == (2.0, 2.0)
    assert (p['budget_used'], p['budget_committed']) == (0.0, 0.0)
    assert p['budget_until'] == '1970-02-01T00:00:00+00:00'
    assert q['ceiling'] == {'VCPU': 4}
    assert q['windows'] == [
        {'begins': '0 20 * * *', 'lasts': 36000.0, 'zone': 'UTC'}
    ]
    assert q['opens_at'] == '1970-01-01T20:00:00+00:00'
    operations.set_limits('p', {'budget': 5.0})
    process.cycle()
    p, q = operations.limits(None, None, 9)['limits']
    assert p['budget_left'] == 5.0


def test_amounts_and_windows_are_set_as_they_are_listed(
    world, process, operations
):
    process.cycle()
    wanted = {
        'ceiling': {'VCPU': 8},
        'nominal': {'CUSTOM_GOLD': 1, 'VCPU': 4},
        'borrowing_limit': {'VCPU': 0},
        'lending_limit': {'VCPU': 2},
        'windows': [
            {'begins': '0 20 * * *', 'lasts': 60.0, 'zone': 'Europe/Zurich'}
        ],
    }
    assert operations.set_limits('p', wanted) == {'account': 'p', **wanted}
    process.cycle()
    [told] = operations.limits(None, None, 9)['limits']
    assert {key: told[key] for key in wanted} == wanted
    [account] = process.last().snapshot.accounts
    assert account.nominal == (('CUSTOM_GOLD', 1), ('VCPU', 4))
    operations.set_limits('p', dict.fromkeys(wanted))
    process.cycle()
    assert operations.limits(None, None, 9)['limits'] == []


@pytest.mark.parametrize(
    ('account', 'limit', 'value', 'said'),
    [
        ('p', 'nominal', {'VCPUS': 4}, "'VCPUS' is no resource class"),
        ('p', 'nominal', {'CUSTOM_a': 4}, 'no resource class'),
        ('p', 'ceiling', {'VCPU': -4}, "ceiling of account 'p': expected a w"),
        ('p', 'ceiling', {'VCPU': 10**16}, 'whole amount of VCPU'),
        ('p', 'ceiling', {'VCPU': 4.5}, 'whole amount of VCPU'),
        ('p', 'ceiling', {'VCPU': True}, 'whole amount of VCPU'),
        ('p', 'ceiling', [4], 'expected amounts by resource class'),
        ('p', 'ceiling', dict.fromkeys(map(str, range(101)), 1), 'at most'),
        ('p', 'windows', 'night', 'expected a list of 100 windows'),
        ('p', 'windows', ['night'], 'must have begins and lasts'),
        ('p', 'windows', [{'begins': '0 9 * * *'}], 'must have begins and'),
        ('p', 'windows', [{'begins': 9, 'lasts': 9}], 'must have begins and'),
        ('p', 'windows', [{'begins': 'x', 'lasts': 9}], 'of five fields'),
        (
            'p',
            'windows',
            [{'begins': '0 9 * * *', 'lasts': float('nan')}],
            'must last more',
        ),
        (
            'p',
            'windows',
            [{'begins': '0 9 * * *', 'lasts': 'long'}],
            "expected a number, got 'long'",
        ),
        (
            'p',
            'windows',
            [{'begins': '0 9 * * *', 'lasts': 9, 'zone': 'Mars/Base'}],
            "no time zone 'Mars/Base'",
        ),
        ('p', 'budget', 'much', 'expected a number'),
        ('p/u', 'nominal', {'VCPU': 4}, "'p/u' is that of a user, who has no"),
        ('p/u', 'lending_limit', {'VCPU': 4}, 'who has no nominal'),
    ],
)
def test_limits_that_are_none_are_refused_whole(
    process, operations, account, limit, value, said
):
    process.cycle()
    with pytest.raises(exception.BadShares, match=said):
        operations.set_limits(account, {'time_limit': 30.0, limit: value})
    process.cycle()
    assert operations.limits(None, None, 9)['limits'] == []


def test_users_extend_as_far_as_operators_allow(world, process, operations):
    server = world.post('r1')
    process.cycle()
    with pytest.raises(exception.IllegalStep, match='no time limit'):
        operations.extend(server, 60.0)
    with pytest.raises(exception.UnknownRequest):
        operations.extend('other', 60.0)


def test_agents_are_told_which_of_their_servers_are_preemptible(world):
    mark = {parser.MARK: ['true']}
    spare, normal = world.post('r1', hints=mark), world.post('r2')
    process = world.process(
        terms=intake.AdmissionOptions(
            preemptible=parser.PreemptibleRules(marks=True)
        )
    )
    process.cycle()
    operations = requests.ClusterOperations(world.store, process)
    assert operations.preemptible([normal, spare, 'x']) == {'servers': [spare]}
    assert operations.preemptible([normal]) == {'servers': []}
    world.cloud.remove(spare)
    for _ in range(4):
        process.cycle()
    assert operations.preemptible([spare]) == {'servers': []}


def test_answers_to_agents_are_signed(world, process):
    class Pen:
        def signed_answer(self, what, asked, answer):
            return {'signature': (what, list(asked), answer)}

    process.cycle()
    operations = requests.ClusterOperations(world.store, process, Pen())
    assert operations.preemptible(['x']) == {
        'servers': [],
        'signature': ('preemptible servers', ['x'], []),
    }
    assert operations.notices(['x']) == {
        'notices': {},
        'signature': ('notices to guests', ['x'], {}),
    }
