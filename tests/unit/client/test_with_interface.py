# SPDX-License-Identifier: Apache-2.0

"""The commands and the real HTTP interface understand each other."""

import io
import json

from keystoneauth1 import session
from keystoneauth1 import token_endpoint
from osc_lib import exceptions
import pytest
import requests
from requests import adapters
import webob

from nova_fairness.client import choices
from nova_fairness.client import dry_runs
from nova_fairness.client import groups
from nova_fairness.client import hosts
from nova_fairness.client import owners
from nova_fairness.client import partition
from nova_fairness.client import plans
from nova_fairness.client import plugin
from nova_fairness.client import prices
from nova_fairness.client import queue
from nova_fairness.client import servers
from nova_fairness.client import status
from tests.unit.api_ext import fake_cloud
from tests.unit.api_ext import fake_requests
from tests.unit.client import fake_compute


class WsgiAdapter(adapters.BaseAdapter):
    """Gives requests to an application in this process."""

    def __init__(self, application):
        super().__init__()
        self._application = application

    def send(self, request, **_more):
        body = request.body or b''
        asked = webob.Request.blank(
            request.path_url,
            method=request.method,
            headers=dict(request.headers),
            body=body.encode() if isinstance(body, str) else body,
        )
        said = asked.get_response(self._application)
        response = requests.Response()
        response.status_code = said.status_int
        response.reason = said.status.partition(' ')[2]
        response.headers.update(said.headers)
        response.raw = io.BytesIO(said.body)
        response.url = request.url
        return response

    def close(self):
        """Nothing is open."""


class Terminal(fake_compute.Terminal):
    """The commands of somebody in a cloud."""

    def __init__(self, cloud, who):
        super().__init__()
        own = requests.Session()
        own.mount('http://', WsgiAdapter(cloud))
        self.manager.session = session.Session(
            token_endpoint.Token(fake_compute.COMPUTE, who), session=own
        )
        self.manager.fairness = plugin.make_client(self.manager)

    def ask(self, command, *words):
        code, out = self.run(command, *words, '-f', 'json')
        return code, json.loads(out)


@pytest.fixture
def cloud(tmp_path):
    return fake_cloud.FakeCloud(tmp_path)


@pytest.fixture
def admin(cloud):
    return Terminal(cloud, 'admin')


@pytest.fixture
def alice(cloud):
    return Terminal(cloud, 'alice')


def test_commands_list_metrics_and_policies(admin, alice):
    code, told = admin.ask(choices.ListMetric)
    assert code == 0
    assert {item['Name']: item['Hosts Without'] for item in told} == {
        'DominantShareMetric': [],
        'GreedinessMetric': [],
        'TrialMetric': ['cmp2'],
    }
    code, told = alice.ask(choices.ListPolicy)
    shown = {'Name', 'In Force', 'Description'}
    assert [set(item) for item in told] == [shown] * 2


@pytest.mark.parametrize('words', [['--all'], ['--host', 'cmp1']])
def test_commands_choose_a_metric_and_a_policy(admin, words):
    code, told = admin.ask(choices.SetMetric, 'DominantShareMetric', *words)
    assert code == 0
    assert {item['Metric'] for item in told} == {'DominantShareMetric'}
    assert len(told) == (2 if words == ['--all'] else 1)
    code, told = admin.ask(choices.SetPolicy, 'thesis', *words)
    assert {item['Policy'] for item in told} == {'thesis'}


def test_a_command_names_hosts_that_lack_the_chosen_metric(admin, caplog):
    code, told = admin.ask(choices.SetMetric, 'TrialMetric', '--all')
    assert code == 1
    assert [item['Host'] for item in told] == ['cmp1']
    assert 'cmp2 refused: TrialMetric is not installed' in caplog.text


def test_a_command_refuses_a_metric_that_no_host_has(admin):
    with pytest.raises(exceptions.CommandError, match=r'Nosuch.*HTTP 400'):
        admin.run(choices.SetMetric, 'NosuchMetric', '--all')


def test_a_command_lists_waiting_requests(admin, alice):
    code, told = alice.ask(queue.ListRequest)
    assert code == 0
    assert [item['ID'] for item in told] == [fake_requests.REDS]
    assert told[0]['Position'] == 1
    code, told = admin.ask(queue.ListRequest, '--all-projects')
    assert len(told) == 2
    code, told = admin.ask(queue.ListRequest, '--all-projects', '--limit', '1')
    assert len(told) == 1
    with pytest.raises(exceptions.CommandError, match='HTTP 403'):
        alice.run(queue.ListRequest, '--all-projects')
    found = alice.ask(
        *(queue.ListRequest, '--state', 'waiting', '--ended'),
        *('--name', fake_requests.REDS, '--since', '2026-01-05'),
    )[1]
    assert [item['ID'] for item in found] == [fake_requests.REDS]
    with pytest.raises(exceptions.CommandError, match='HTTP 403'):
        alice.run(queue.ListRequest, '--host', 'cmp1')
    code, told = alice.ask(queue.ShowRequest, fake_requests.REDS)
    assert told['explanation'] == 'a server needs 2 VCPU'
    assert told['waited'] == 'waited 2 h for its turn'
    assert 'events' not in told
    code, told = alice.ask(queue.ShowRequest, fake_requests.REDS, '--events')
    assert told['events'] == [fake_requests.event()]
    with pytest.raises(exceptions.CommandError, match='HTTP 404'):
        alice.run(queue.ShowRequest, fake_requests.BLUES)


def test_a_command_lists_wait_times(admin, alice):
    assert len(admin.ask(queue.ListWait, '--all-projects')[1]) == 2
    [own] = alice.ask(queue.ListWait)[1]
    assert (own['Requests'], own['P90']) == (3, 5400.0)
    found = alice.ask(queue.ListWait, '--by', 'flavor')[1]
    assert [item['Flavor'] for item in found] == ['m1.large', 'm1.small']
    with pytest.raises(exceptions.CommandError, match='HTTP 403'):
        alice.run(queue.ListWait, '--all-projects')


def test_a_command_lists_preemptible_requests_only(cloud, alice):
    code, told = alice.ask(queue.ListRequest, '--preemptible')
    assert (code, told) == (0, [])
    items = cloud.requests.operations.items
    items[fake_requests.REDS]['preemptible'] = True
    code, told = alice.ask(queue.ListRequest, '--preemptible')
    assert [item['ID'] for item in told] == [fake_requests.REDS]


def test_commands_list_and_show_preemptions(admin, alice):
    lent = fake_requests.LENT
    code, [told] = alice.ask(queue.ListPreemption)
    assert (code, told['ID']) == (0, lent)
    assert told['Lost VCPU Seconds'] == 7200.0
    code, told = admin.ask(queue.ListPreemption, '--all-projects')
    assert len(told) == 2
    code, told = alice.ask(queue.ShowPreemption, lent)
    assert (code, told['for_project']) == (0, None)
    code, told = admin.ask(queue.ShowPreemption, lent)
    assert (code, told['for_project']) == (0, '2' * 32)
    with pytest.raises(exceptions.CommandError, match='HTTP 404'):
        alice.run(queue.ShowPreemption, fake_requests.OTHERS)
    with pytest.raises(exceptions.CommandError, match='HTTP 403'):
        alice.run(queue.ListPreemption, '--all-projects')


def test_commands_list_and_move_border_hosts(admin, alice):
    code, told = admin.ask(partition.ListPartition)
    assert (code, [each['Host'] for each in told]) == (0, ['h1', 'h2'])
    code, told = admin.ask(partition.ListPartition, '--limit', '1')
    assert [each['State'] for each in told] == ['batch']
    code, told = admin.ask(partition.ShowPartition)
    assert (code, told['states']) == (0, {'batch': 2})
    for command, state in (
        (partition.MovePartition, 'cloud_asked'),
        (partition.ShowPartition, 'cloud_asked'),
        (partition.CancelPartition, 'batch'),
    ):
        code, told = admin.ask(command, 'h1')
        assert (code, told['state']) == (0, state)
    assert told['work'][0]['name'] == '7'
    for words, target in (('2', 2), ('demand', None)):
        code, told = admin.ask(partition.TargetPartition, words)
        assert (code, told['target']) == (0, target)
    with pytest.raises(exceptions.CommandError, match='HTTP 403'):
        alice.run(partition.ListPartition)
    with pytest.raises(exceptions.CommandError, match='HTTP 404'):
        admin.run(partition.MovePartition, 'h9')
    with pytest.raises(SystemExit):
        admin.run(partition.TargetPartition, 'many')


def test_commands_list_and_control_migration_plans(admin, alice):
    first, second = fake_requests.PLANS
    code, told = admin.ask(plans.ListPlan)
    assert (code, [each['ID'] for each in told]) == (0, [first, second])
    code, told = admin.ask(plans.CreatePlan, '--empty', 'h1')
    assert (code, told['state']) == (0, 'proposed')
    [stays] = told['stays']
    assert stays['name'] == 'db'
    assert 'no other host has room' in stays['explanation']
    _, shown = admin.run(plans.CreatePlan, '--empty', 'h1')
    assert 'db: no other host has room for it, or may take it' in shown
    for command, state in (
        (plans.ApprovePlan, 'approved'),
        (plans.StopPlan, 'stopped'),
        (plans.ShowPlan, 'stopped'),
    ):
        code, told = admin.ask(command, first)
        assert (code, told['state']) == (0, state)
    assert told['moves'][0]['target'] == 'h2'
    with pytest.raises(exceptions.CommandError, match='HTTP 409'):
        admin.run(plans.StopPlan, first)
    with pytest.raises(exceptions.CommandError, match='HTTP 403'):
        alice.run(plans.ListPlan)
    with pytest.raises(exceptions.CommandError, match='HTTP 404'):
        admin.run(plans.CreatePlan, '--empty', 'h9')
    with pytest.raises(SystemExit):
        admin.run(plans.CreatePlan)


def test_commands_hold_requests_and_put_them_first(admin, alice):
    reds = fake_requests.REDS
    code, told = alice.ask(queue.HoldRequest, reds)
    assert (code, told['held_by']) == (0, 'owner')
    code, told = admin.ask(queue.HoldRequest, reds, '--why', 'open invoice')
    assert (code, told['held_by']) == (0, 'operator')
    with pytest.raises(exceptions.CommandError, match='an operator holds'):
        alice.run(queue.UnholdRequest, reds)
    code, told = admin.ask(queue.UnholdRequest, reds)
    assert (code, told['held_by']) == (0, None)
    for command, is_first in (
        (queue.PutRequestFirst, True),
        (queue.PutRequestBack, False),
    ):
        code, told = admin.ask(command, reds)
        assert (code, told['first']) == (0, is_first)


def test_a_command_releases_a_request_without_room(cloud, admin):
    cloud.requests.operations.is_full = True
    with pytest.raises(exceptions.CommandError, match='no room'):
        admin.run(queue.ReleaseRequest, fake_requests.REDS)
    code, told = admin.ask(
        queue.ReleaseRequest, fake_requests.REDS, '--without-room'
    )
    assert (code, told['state']) == (0, 'starting')


def test_commands_cancel_and_release_requests(admin, alice):
    code, told = alice.ask(queue.CancelRequest, fake_requests.REDS)
    assert (code, told['state']) == (0, 'cancelled')
    code, told = admin.ask(queue.ReleaseRequest, fake_requests.BLUES)
    assert (code, told['state']) == (0, 'starting')
    with pytest.raises(exceptions.CommandError, match='HTTP 409'):
        admin.run(queue.ReleaseRequest, fake_requests.BLUES)


def test_a_command_lists_shares(admin, alice):
    code, told = alice.ask(queue.ListShare)
    assert (code, [item['Account'] for item in told]) == (0, ['1' * 32])
    assert told[0]['Used'] == {'VCPU': 0.25}
    assert told[0]['Fair Share'] == 0.5
    code, told = admin.ask(queue.ListShare, '--all-projects')
    assert len(told) == 3
    with pytest.raises(exceptions.CommandError, match='HTTP 403'):
        alice.run(queue.ListShare, '--all-projects')


def test_commands_set_and_unset_a_share(admin, alice):
    red = '1' * 32
    code, told = admin.ask(queue.SetShare, red, '2.5')
    assert (code, told) == (0, {'account': red, 'share': 2.5})
    code, told = admin.ask(queue.UnsetShare, red)
    assert (code, told) == (0, {'account': red, 'share': None})
    with pytest.raises(exceptions.CommandError, match='HTTP 403'):
        alice.run(queue.SetShare, red, '9')
    with pytest.raises(exceptions.CommandError, match='HTTP 400'):
        admin.run(queue.SetShare, red, '-1')


def test_a_dry_run_shows_the_next_requests_and_sets_nothing(
    cloud, admin, alice
):
    red, operations = '1' * 32, cloud.requests.operations
    for command, words, tried in (
        (queue.SetShare, ['3'], {'share': 3.0}),
        (queue.UnsetShare, [], {'share': None}),
        (queue.SetLimit, ['--ceiling', 'VCPU=40'], {'ceiling': {'VCPU': 40}}),
        (queue.UnsetLimit, ['--budget'], {'budget': None}),
    ):
        code, told = admin.ask(command, red, *words, '--dry-run')
        assert (code, operations.tried[-1]) == (0, (red, tried))
        assert told['account'] == red
        assert [each['uuid'] for each in told['requests']] == [
            fake_requests.REDS, fake_requests.BLUES
        ]  # fmt: skip
        assert told['requests'][0]['after']['position'] == 2
    assert operations.done == []
    with pytest.raises(exceptions.CommandError, match='name one account'):
        admin.run(queue.SetShare, red, '2' * 32, '3', '--dry-run')
    with pytest.raises(exceptions.CommandError, match='HTTP 403'):
        alice.run(queue.SetShare, red, '9', '--dry-run')
    _, out = admin.run(queue.SetShare, red, '3', '--dry-run')
    words = ' '.join(out.replace('|', ' ').split())
    assert (
        f'{fake_requests.REDS} of {red}: starts now -> waits at place 2,'
        ' starts about 2026-01-01T01:00:00+00:00'
    ) in words
    assert f'{red}: 2 requests, p50 1 min -> 1 min, p90 10 min' in words
    assert 'fair_tree' in words


def test_an_order_is_previewed(cloud, admin, alice):
    operations = cloud.requests.operations
    words = ['multifactor', '--parameter', 'age=1', '--parameter', 'size=2.5']
    code, told = admin.ask(dry_runs.PreviewOrder, *words)
    assert (code, told['requests_count']) == (0, 2)
    assert operations.tried == [('multifactor', {'age': 1.0, 'size': 2.5})]
    with pytest.raises(SystemExit):
        admin.run(dry_runs.PreviewOrder, 'fifo', '--parameter', 'age')
    with pytest.raises(exceptions.CommandError, match='HTTP 403'):
        alice.run(dry_runs.PreviewOrder, 'fifo')


def test_a_command_extends_a_time_limit(alice):
    red = fake_requests.REDS
    code, told = alice.ask(queue.ExtendRequest, red, '30m')
    assert (code, told['extended']) == (0, 1800.0)
    assert told['leaving'][0]['action'] == 'shelve'
    with pytest.raises(exceptions.CommandError, match='HTTP 409'):
        alice.run(queue.ExtendRequest, red, '1h')
    with pytest.raises(SystemExit):
        alice.run(queue.ExtendRequest, red, 'soon')


def test_groups_are_created_listed_changed_and_deleted(admin, alice):
    red = '1' * 32
    words = ['web', '--rate', '70', '--count', '2']
    code, told = alice.ask(groups.CreateGroup, *words)
    assert (code, told['project_id']) == (0, red)
    assert (told['rate'], told['count']) == (70.0, 2)
    with pytest.raises(exceptions.CommandError, match='HTTP 409'):
        alice.run(groups.CreateGroup, *words)
    code, told = alice.ask(groups.SetGroup, 'web', '--rate', '40')
    assert (code, told['rate'], told['count']) == (0, 40.0, 2)
    words = ['db', '--rate', '5', '--project', '2' * 32]
    with pytest.raises(exceptions.CommandError, match='HTTP 403'):
        alice.run(groups.CreateGroup, *words)
    assert admin.ask(groups.CreateGroup, *words)[0] == 0
    code, told = alice.ask(groups.ListGroup)
    assert [item['Name'] for item in told] == ['batch', 'web']
    code, told = admin.ask(groups.ListGroup, '--all-projects')
    assert [item['Rate'] for item in told] == [5.0, 40.0, 5.0]
    assert alice.run(groups.DeleteGroup, 'web')[0] == 0
    with pytest.raises(exceptions.CommandError, match='HTTP 404'):
        alice.run(groups.SetGroup, 'web', '--count', '3')
    for words in (['--rate', '0'], ['--rate', '9', '--count', '0'], []):
        with pytest.raises((exceptions.CommandError, SystemExit)):
            alice.run(groups.CreateGroup, 'x', *words)
    with pytest.raises(exceptions.CommandError, match='HTTP 400'):
        alice.run(groups.SetGroup, 'web')


def test_operators_see_prices_of_hosts_now_and_in_the_past(admin):
    code, told = admin.ask(prices.ListPrice)
    assert (code, [item['Host'] for item in told]) == (0, ['cmp1', 'cmp2'])
    assert told[0]['Price'] == 70.5
    assert len(admin.ask(prices.ListPrice, '--limit', '1')[1]) == 1
    code, told = admin.ask(prices.ListPriceHistory, 'cmp1')
    assert (code, [item['Host'] for item in told]) == (0, ['cmp1', 'cmp1'])
    with pytest.raises(exceptions.CommandError, match='there is no host x'):
        admin.run(prices.ListPriceHistory, 'x')


def test_others_see_prices_under_names_of_their_own(alice):
    code, told = alice.ask(prices.ListPrice)
    red = '1' * 32
    names = [f'{number}-of-{red}' for number in range(2)]
    assert (code, [item['Host'] for item in told]) == (0, names)
    for host in ('cmp1', 'x'):
        with pytest.raises(exceptions.CommandError, match='HTTP 403'):
            alice.run(prices.ListPriceHistory, host)


def test_commands_show_set_and_unset_limits(admin, alice):
    red = '1' * 32
    code, told = alice.ask(queue.ListLimit)
    assert [item['Account'] for item in told] == [red]
    code, told = admin.ask(queue.ListLimit, '--all-projects')
    assert [item['Time Limit'] for item in told] == [7200.0] * 3
    assert [item['Budget Left'] for item in told] == [12.5] * 3
    code, told = admin.ask(queue.SetLimit, red, '--time-limit', '2h')
    assert (code, told) == (0, {'account': red, 'time_limit': 7200.0})
    code, told = admin.ask(queue.UnsetLimit, red, '--longest-wait')
    assert (code, told) == (0, {'account': red, 'longest_wait': None})
    code, told = admin.ask(queue.SetLimit, red, '--budget', '0')
    assert (code, told) == (0, {'account': red, 'budget': 0.0})
    code, told = admin.ask(queue.SetLimit, red, '--funds', '500')
    assert (code, told) == (0, {'account': red, 'funds': 500.0})
    code, told = admin.ask(queue.UnsetLimit, red, '--budget')
    assert (code, told) == (0, {'account': red, 'budget': None})
    code, told = admin.ask(
        queue.SetLimit,
        red,
        *('--ceiling', 'VCPU=4,CUSTOM_GOLD=1', '--nominal', 'VCPU=2'),
        *('--lending-limit', 'VCPU=0', '--borrowing-limit', '-'),
        *('--window', '0 20 * * mon-fri for 10h in Europe/Zurich'),
        *('--window', '0 0 * * sat for 2d'),
    )
    assert told == {
        'account': red,
        'ceiling': {'VCPU': 4, 'CUSTOM_GOLD': 1},
        'nominal': {'VCPU': 2},
        'lending_limit': {'VCPU': 0},
        'borrowing_limit': {},
        'windows': [
            {
                'begins': '0 20 * * mon-fri',
                'lasts': 36000.0,
                'zone': 'Europe/Zurich',
            },
            {'begins': '0 0 * * sat', 'lasts': 172800.0},
        ],
    }
    code, told = admin.ask(queue.UnsetLimit, red, '--nominal', '--window')
    assert told == {'account': red, 'nominal': None, 'windows': None}
    with pytest.raises(exceptions.CommandError, match='HTTP 400'):
        admin.run(queue.SetLimit, red, '--budget', '-1')
    with pytest.raises(exceptions.CommandError, match='HTTP 400'):
        admin.run(queue.SetLimit, red, '--nominal', 'vcpu=4')
    for flag, words in (
        ('--nominal', 'VCPU'),
        ('--nominal', 'VCPU=-4'),
        ('--ceiling', 'VCPU=4,VCPU=5'),
        ('--window', 'at night'),
        ('--window', '0 20 * * * for long'),
    ):
        with pytest.raises(SystemExit):
            admin.run(queue.SetLimit, red, flag, words)
    with pytest.raises(exceptions.CommandError, match='HTTP 403'):
        alice.run(queue.SetLimit, red, '--time-limit', '2h')
    with pytest.raises(exceptions.CommandError, match='at least one of'):
        admin.run(queue.SetLimit, red)


def test_a_command_shows_capacity(alice):
    code, told = alice.ask(queue.ShowCapacity)
    assert code == 0
    small = {'name': 'small', 'starts': 2, 'zones': {'z1': 2}}
    assert told['flavors'] == [small]


def test_commands_pause_and_resume_hosts(admin):
    code, told = admin.ask(hosts.PauseHost, '--all')
    assert (code, [item['Paused'] for item in told]) == (0, [True, True])
    code, told = admin.ask(hosts.ResumeHost, 'cmp2')
    assert told == [
        {'Host': 'cmp2', 'Paused': False, 'From Round': 42, 'Persistent': True}
    ]
    code, told = admin.ask(hosts.ResetHost, 'cmp1')
    assert told == [{'Host': 'cmp1', 'From Round': 42}]


def test_hosts(admin):
    words = ['--sort-key', 'instances_count', '--sort-dir', 'desc']
    code, told = admin.ask(hosts.ListHost, *words)
    assert (code, [item['Name'] for item in told]) == (0, ['cmp1', 'cmp2'])
    assert [item['VMs'] for item in told] == [2, 1]
    assert all(None not in item.values() for item in told)
    code, told = admin.ask(hosts.ListHost, '--limit', '1', '--marker', 'cmp1')
    assert [item['Name'] for item in told] == ['cmp2']
    code, told = admin.ask(hosts.ShowHost, 'cmp1')
    assert (told['name'], told['round']['number']) == ('cmp1', 41)
    with pytest.raises(exceptions.CommandError, match='HTTP 404'):
        admin.run(hosts.ShowHost, 'nosuch/../cmp1')


@pytest.mark.parametrize(
    ('lists', 'shows', 'own'),
    [
        (owners.ListUser, owners.ShowUser, fake_cloud.ALICE),
        (owners.ListProject, owners.ShowProject, fake_cloud.RED),
    ],
)
def test_commands_list_and_show_users_and_projects(
    admin, alice, lists, shows, own
):
    code, told = admin.ask(lists, '--sort-key', 'id')
    assert code == 0
    assert own in [item['ID'] for item in told]
    code, one = alice.ask(shows, 'me')
    assert (code, one['id']) == (0, own)
    assert one['instances_count'] >= 1
    with pytest.raises(exceptions.CommandError, match='HTTP 403'):
        alice.run(lists)


def test_a_command_explains_a_server(admin, alice):
    code, told = alice.ask(servers.ShowServer, fake_cloud.ALICES)
    assert (code, told['uuid']) == (0, fake_cloud.ALICES)
    assert told['summary']
    assert 'host' not in told
    assert admin.ask(servers.ShowServer, fake_cloud.ALICES)[1]['host']
    code, out = alice.run(servers.ShowServer, fake_cloud.ALICES)
    assert code == 0
    assert told['summary'] in ' '.join(out.split())
    with pytest.raises(exceptions.CommandError, match='HTTP 404'):
        alice.run(servers.ShowServer, fake_cloud.CAROLS)


def test_users_see_their_vms_requests_shares_and_budgets(alice):
    code, told = alice.ask(status.ShowMe)
    assert code == 0
    assert told['instances_count'] > 0
    assert told['shares'][0]['normalised_share'] == 0.7
    assert told['requests'][0]['standing'] == 'waits'
    _, out = alice.run(status.ShowMe)
    said = f'{"1" * 32}: share 70, that is 70 % of the cloud; used VCPU 25 %'
    assert said in out
    assert f'{"1" * 32}: 12.5 of ' in out
    assert f'{fake_requests.REDS}: waits' in out


def test_an_operator_sees_the_state_of_everything(cloud):
    admin = Terminal(cloud, 'admin')
    code, told = admin.ask(status.ShowStatus)
    assert (code, told['leader'], told['epoch']) == (0, 'ctl1', 7)
    assert told['waiting'][0]['reason'] == 'no_room'
    assert told['plans'][0]['uuid'] == fake_requests.PLANS[0]
    assert told['order'] == 'fair_tree'
    assert told['leads_since'] == '2025-12-31T00:00:00+00:00'
    _, out = admin.run(status.ShowStatus)
    red = '1' * 32
    assert f'2 of project {red}: for room on a host' in out
    assert f'{red}: used 25 % of the cloud, its share is 10 %' in out
    assert f'{fake_requests.PLANS[0]}: empty, proposed' in out
    assert sum(told['agents'].values()) == 2
    with pytest.raises(exceptions.CommandError, match='403'):
        Terminal(cloud, 'alice').run(status.ShowStatus)
