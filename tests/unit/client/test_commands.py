# SPDX-License-Identifier: Apache-2.0

"""The commands: what they ask, what they show, how they end."""

import configparser
import json
import pathlib
import re

from cliff import columns as cliff_columns
from osc_lib import exceptions
import pytest

from nova_fairness.client import base
from nova_fairness.client import choices
from nova_fairness.client import columns
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
from tests.unit.client import fake_compute

TOP = pathlib.Path(__file__).parents[3]
UUID = '53a7a2a1-7d4e-4a55-9d3c-2a8f9d0a1c11'


@pytest.fixture
def cloud(requests_mock):
    return fake_compute.FakeCompute(requests_mock)


def ask(cloud, command, *words):
    """Run a command with -f json; give its code and what it said."""
    code, out = cloud.run(command, *words, '-f', 'json')
    return code, json.loads(out)


INSTALLED = {
    'metrics': [
        {'metric': {'name': 'M1', 'description': 'One.', 'hosts_without': []}},
        {
            'metric': {
                'name': 'M2',
                'description': 'Two.',
                'hosts_without': ['cmp2', 'cmp3'],
            }
        },
    ],
    'policies': [{'policy': {'name': 'P1', 'description': 'A policy.'}}],
}


def test_metrics_are_listed_with_the_hosts_that_lack_them(cloud):
    cloud.answers('', INSTALLED)
    code, out = cloud.run(choices.ListMetric)
    assert code == 0
    assert 'cmp2, cmp3' in out
    assert 'Hosts Without' in out
    code, told = ask(cloud, choices.ListMetric)
    assert told[1] == {
        'Name': 'M2',
        'Description': 'Two.',
        'Hosts Without': ['cmp2', 'cmp3'],
    }


def test_a_caller_without_sight_of_hosts_gets_no_column_of_them(cloud):
    cloud.answers('', INSTALLED)
    assert ask(cloud, choices.ListPolicy) == (
        0,
        [{'Name': 'P1', 'Description': 'A policy.'}],
    )


DONE = {
    'name': 'cmp1',
    'from_round': 42,
    'epoch': 7,
    'metric': 'M1',
    'policy': 'P1',
    'origin': 'cmp1',
}


@pytest.mark.parametrize(
    ('command', 'action'),
    [(choices.SetMetric, 'set-metric'), (choices.SetPolicy, 'set-policy')],
)
@pytest.mark.parametrize(
    ('words', 'host'), [(['--all'], 'all'), (['--host', 'cmp1'], 'cmp1')]
)
def test_a_metric_is_chosen_for_one_host_or_all(
    cloud, command, action, words, host
):
    cloud.answers(
        f'/{host}/action', {'action': action, 'hosts': [DONE]}, 202, 'POST'
    )
    code, told = ask(cloud, command, 'X', *words)
    assert cloud.asked[-1].json() == {action: {'name': 'X'}}
    assert code == 0
    assert told == [
        {
            'Host': 'cmp1',
            'Metric': 'M1',
            'Policy': 'P1',
            'Epoch': 7,
            'From Round': 42,
        }
    ]


def test_an_action_names_failed_hosts_and_shows_the_others(cloud, caplog):
    cloud.answers(
        '/all/action',
        {
            'action': 'set-metric',
            'hosts': [DONE],
            'not_reached': [{'host': 'cmp2', 'reason': 'no answer'}],
            'refused': [{'host': 'cmp3', 'reason': 'no metric X'}],
        },
        202,
        'POST',
    )
    code, told = ask(cloud, choices.SetMetric, 'X', '--all')
    assert code == 1
    assert len(told) == 1
    assert 'cmp2 was not reached: no answer' in caplog.text
    assert 'cmp3 refused: no metric X' in caplog.text


def test_a_warning_of_many_hosts_is_printed_once(cloud, caplog):
    told = [{**DONE, 'name': name, 'warning': 'M1, P1'} for name in 'abc']
    cloud.answers('/all/action', {'hosts': told}, 202, 'POST')
    assert ask(cloud, choices.SetMetric, 'M1', '--all')[0] == 0
    assert caplog.messages.count('M1, P1') == 1


@pytest.mark.parametrize(
    ('command', 'action'),
    [
        (hosts.PauseHost, 'pause'),
        (hosts.ResumeHost, 'resume'),
        (hosts.ResetHost, 'reset'),
    ],
)
@pytest.mark.parametrize(
    ('word', 'host'), [('--all', 'all'), ('cmp1', 'cmp1')]
)
def test_an_action_needs_a_host_or_all(cloud, command, action, word, host):
    answer = {**DONE, 'paused': True, 'persistent': True, 'problem': ''}
    cloud.answers(
        f'/{host}/action', {'action': action, 'hosts': [answer]}, 202, 'POST'
    )
    code, told = ask(cloud, command, word)
    assert (code, told[0]['Host']) == (0, 'cmp1')
    assert cloud.asked[-1].json() == {action: None}


def test_a_pause_that_will_be_forgotten_is_a_warning(cloud, caplog):
    answer = {**DONE, 'paused': True, 'persistent': False, 'problem': 'full'}
    cloud.answers('/cmp1/action', {'hosts': [answer]}, 202, 'POST')
    assert ask(cloud, hosts.PauseHost, 'cmp1')[0] == 0
    assert 'cmp1: full' in caplog.text


WRONG = {
    'no host': (hosts.PauseHost, []),
    'a host and all': (hosts.PauseHost, ['cmp1', '--all']),
    'no host to tell': (choices.SetMetric, ['X']),
    'no metric': (choices.SetMetric, ['--all']),
    'two to tell': (choices.SetMetric, ['X', '--all', '--host', 'a']),
    'a wrong key': (owners.ListUser, ['--sort-key', 'name']),
    'a wrong sort': (owners.ListUser, ['--sort', 'name']),
    'a wrong direction': (owners.ListUser, ['--sort', 'id:up']),
    'a wrong limit': (owners.ListUser, ['--limit', '0']),
    'no server': (servers.ShowServer, []),
}


@pytest.mark.parametrize(('command', 'words'), WRONG.values(), ids=list(WRONG))
def test_wrong_usage_sends_no_request(cloud, command, words):
    with pytest.raises(SystemExit) as caught:
        cloud.run(command, *words)
    assert caught.value.code == 2
    assert cloud.asked == []


HOST = {
    'name': 'cmp1',
    'metric': 'M1',
    'policy': 'P1',
    'epoch': 7,
    'paused': False,
    'enforce': True,
    'instances_count': 12,
    'users_count': 5,
    'peers_count': 1,
    'left_out_count': 0,
    'round': 4241,
    'duration_s': 0.0031234,
    'age_s': None,
    'refused': '',
}


def test_hosts_are_listed_with_the_given_options(cloud, caplog):
    cloud.answers(
        '/hosts',
        {
            'hosts': [HOST],
            'partial': True,
            'not_reached': [{'host': 'cmp2', 'reason': 'no answer'}],
        },
    )
    words = ['--sort-key', 'duration_s', '--sort-dir', 'desc', '--limit', '5']
    code, told = ask(cloud, hosts.ListHost, *words, '--marker', 'cmp0')
    assert cloud.asked[-1].qs == {
        'sort_key': ['duration_s'],
        'sort_dir': ['desc'],
        'limit': ['5'],
        'marker': ['cmp0'],
    }
    assert code == 1
    assert [(row['Name'], row['State']) for row in told] == [
        ('cmp1', 'up'),
        ('cmp2', 'down'),
    ]
    assert told[0]['Duration (s)'] == 0.0031234
    assert 'cmp2 was not reached' in caplog.text
    _, out = cloud.run(hosts.ListHost)
    assert '0.00312' in out


def test_a_host_is_shown_with_all_that_it_says(cloud):
    cloud.answers(
        '/hosts/cmp1',
        {
            'host': {
                **HOST,
                'peers': {'cmp2': {'age_s': 4.1, 'left_out': None}},
                'quarantined': {},
                'unsaved': ['cannot write paused.json: disk full'],
                'round': {'errors': ['one', 'two'], 'wall_s': 1763774400.0},
            }
        },
    )
    code, told = ask(cloud, hosts.ShowHost, 'cmp1')
    assert code == 0
    assert told['peers'] == {'cmp2': {'age_s': 4.1, 'left_out': None}}
    _, out = cloud.run(hosts.ShowHost, 'cmp1')
    assert 'cmp2.age_s=4.1' in out
    assert 'errors=one, two' in out
    assert 'cannot write paused.json: disk full' in out
    assert 'wall_s=2025-11-22T01:20:00Z' in out


AMOUNTS = {
    'gets_cpus': 0.5,
    'wants_cpus': 1.0,
    'would_get_cpus': 0.25,
    'change_cpus': -0.25,
    'change_spread_cpus': 0.125,
}
PREVIEW = {
    'name': 'cmp1',
    'enforced': False,
    'not_foreseen': [],
    'metrics': [
        {
            'metric': name,
            'problem': '',
            'settled': True,
            'users': {
                'u1': {'name': 'Ann', 'instances_here_count': 2, **AMOUNTS}
            },
            'instances': [
                {
                    'name': 'web',
                    'uuid': UUID,
                    'user_name': 'Ann',
                    **AMOUNTS,
                    'weight_ratio': 0.5,
                }
            ],
        }
        for name in ('M1', 'M2')
    ],
}


def test_users_that_would_gain_or_lose_are_listed(cloud, caplog):
    cloud.answers('/hosts/cmp1/preview', {'preview': PREVIEW})
    code, told = ask(cloud, hosts.PreviewHost, 'cmp1')
    assert (code, caplog.text) == (0, '')
    shown = ('Metric', 'User', 'Change', 'Spread')
    assert [tuple(row[each] for each in shown) for row in told] == [
        ('M1', 'Ann', -0.25, 0.125),
        ('M2', 'Ann', -0.25, 0.125),
    ]
    words = ['cmp1', '--metric', 'M2', '--servers']
    _, [row] = ask(cloud, hosts.PreviewHost, *words)
    assert (row['Metric'], row['ID'], row['CPU Weight']) == ('M2', UUID, 0.5)


def test_a_preview_names_its_gaps(cloud, caplog):
    one, other = PREVIEW['metrics']
    failed = {**other, 'problem': 'it fails', 'users': {}, 'instances': []}
    answer = {
        **PREVIEW,
        'enforced': True,
        'not_foreseen': ['memory'],
        'metrics': [{**one, 'settled': False}, failed],
    }
    cloud.answers('/hosts/cmp1/preview', {'preview': answer})
    code, told = ask(cloud, hosts.PreviewHost, 'cmp1')
    assert (code, len(told)) == (base.INCOMPLETE, 1)
    for text in (
        'Host already enforces',
        'the preview does not include: memory',
        'Metric M1: the weights never become constant',
        'M2 has no preview: it fails',
    ):
        assert text in caplog.text
    with pytest.raises(exceptions.CommandError, match='choose one of: M1, M2'):
        cloud.run(hosts.PreviewHost, 'cmp1', '--metric', 'M3')


USER = {
    'id': 'u1',
    'heaviness_quotas': 0.83123,
    'instances_count': 3,
    'usage_quotas': {'cpu_time': 1.21, 'memory': None},
}


@pytest.mark.parametrize(
    ('noun', 'lists', 'shows'),
    [
        ('user', owners.ListUser, owners.ShowUser),
        ('project', owners.ListProject, owners.ShowProject),
    ],
)
def test_users_and_projects_are_listed_and_shown(cloud, noun, lists, shows):
    cloud.answers(f'/{noun}s', {f'{noun}s': [USER], 'partial': False})
    cloud.answers(f'/{noun}s/me', {noun: USER, 'partial': False})
    code, told = ask(cloud, lists)
    assert (code, told[0]['Usage']) == (0, USER['usage_quotas'])
    _, out = cloud.run(lists)
    assert '0.831' in out
    assert ask(cloud, shows, 'me') == (0, USER)


SHADOW = {'shadow_metric': 'M2', 'shadow_heaviness_quotas': 0.25}


def test_a_column_shows_the_heaviness_by_a_shadow_metric(cloud):
    cloud.answers('/users', {'users': [USER], 'partial': False})
    _, out = cloud.run(owners.ListUser)
    assert 'Shadow' not in out
    shadowed = {'users': [{**USER, **SHADOW}, USER], 'partial': False}
    cloud.answers('/users', shadowed)
    _, out = cloud.run(owners.ListUser)
    titles = [title.strip() for title in out.splitlines()[1].split('|')]
    assert titles[1:4] == ['ID', 'Heaviness', 'Shadow Heaviness']
    code, told = ask(cloud, owners.ListUser)
    assert (code, told[0]['Shadow Heaviness']) == (0, 0.25)
    assert (told[0]['Shadow Metric'], told[1]['Shadow Heaviness']) == (
        'M2',
        None,
    )
    cloud.answers('/users/me', {'user': {**USER, **SHADOW}, 'partial': False})
    assert ask(cloud, owners.ShowUser, 'me') == (0, {**USER, **SHADOW})


WHY = {
    'uuid': UUID,
    'name': 'web-1',
    'user_id': 'u1',
    'user_name': 'ann',
    'summary': 'Nothing slows this VM down. Really.',
    'heaviness': {'total': 0.31, 'by_resource': {'cpu_time': 0.4}},
    'usage': {
        'cpu_time': 1.4,
        'disk_read': 2.75e-268,
        'memory': 134217728.0,
    },
    'contended': ['cpu_time'],
    'weights': {'cpu': 0.7, 'blkio': 1.0},
    'weights_last_hour': [
        {'at': f'2026-01-31T12:{n:02}:00Z', 'weights': {'cpu': 0.8}}
        for n in range(14)
    ],
    'advice': ['Nothing slows this VM down.', 'Really.'],
    'host': 'cmp1',
}


@pytest.mark.parametrize('given', [UUID, UUID.upper(), 'web-1'])
def test_the_why_command_begins_with_the_summary(cloud, given):
    cloud.servers = {'web-1': UUID}
    cloud.answers(f'/instances/{UUID}', {'instance': WHY})
    code, told = ask(cloud, servers.ShowServer, given, '--long')
    assert (code, told) == (0, WHY)
    assert list(told)[:4] == ['summary', 'name', 'uuid', 'host']
    _, out = cloud.run(servers.ShowServer, given, '--long')
    assert 'by_resource.cpu_time=0.4' in out
    assert '... 4 before' in out
    assert '2026-01-31T12:13:00Z cpu=0.8' in out


def test_the_usual_output_of_a_server_is_short(cloud):
    cloud.answers(f'/instances/{UUID}', {'instance': WHY})
    code, told = ask(cloud, servers.ShowServer, UUID)
    assert code == 0
    assert told == {
        key: value
        for key, value in WHY.items()
        if key not in ('heaviness', 'contended', 'weights_last_hour', 'advice')
    }
    _, out = cloud.run(servers.ShowServer, UUID)
    assert 'CPU: 1.40 CPU' in out
    assert 'memory: 128 MiB' in out
    assert 'cpu: 0.70' in out
    for nothing in ('disk', 'blkio', 'e-268'):
        assert nothing not in out


def test_the_value_format_prints_plain_text(cloud):
    cloud.answers(f'/instances/{UUID}', {'instance': WHY})
    for column in ('summary', 'advice'):
        words = [UUID, '--long', '-f', 'value', '-c', column]
        _, out = cloud.run(servers.ShowServer, *words)
        assert ' '.join(out.split()) == WHY['summary']
    _, out = cloud.run(servers.ShowServer, UUID, '-f', 'value', '-c', 'usage')
    assert out == 'CPU: 1.40 CPU\nmemory: 128 MiB\n'
    cloud.answers('/users', {'users': [USER], 'partial': False})
    _, out = cloud.run(owners.ListUser, '-f', 'value')
    assert out == 'u1 0.83123 3 cpu_time=1.21, memory= \n'


def test_advice_is_shown_if_an_older_agent_has_no_summary(cloud):
    old = {key: value for key, value in WHY.items() if key != 'summary'}
    cloud.answers(f'/instances/{UUID}', {'instance': old})
    _, told = ask(cloud, servers.ShowServer, UUID)
    assert next(iter(told)) == 'advice'


def test_servers_are_listed_with_their_state_and_heaviness(cloud, caplog):
    cloud.servers = {'web-1': UUID, 'web-2': '0' * 32}
    cloud.answers(f'/instances/{UUID}', {'instance': WHY})
    fault = {'serviceUnavailable': {'message': 'Agents are silent.'}}
    cloud.answers(f'/instances/{"0" * 32}', fault, 503)
    code, told = ask(cloud, servers.ListServer)
    assert code == 1
    assert told == [
        {
            'Name': 'web-1',
            'ID': UUID,
            'Status': 'ACTIVE',
            'CPU': 1.4,
            'CPU Weight': 0.7,
            'Summary': 'Nothing slows this VM down.',
        },
        {
            'Name': 'web-2',
            'ID': '0' * 32,
            'Status': 'ACTIVE',
            'CPU': None,
            'CPU Weight': None,
            'Summary': None,
        },
    ]
    assert 'Agents are silent.' in caplog.text
    assert ask(cloud, servers.ListServer, '--limit', '1')[0] == 0
    cloud.answers(f'/instances/{"o" * 32}', {'instance': WHY})
    words = ['--all-projects', '--limit', '3']
    assert len(ask(cloud, servers.ListServer, *words)[1]) == 3


@pytest.mark.parametrize(
    ('noun', 'command'),
    [('user', owners.ShowUser), ('project', owners.ShowProject)],
)
def test_commands_accept_a_server_name_or_id(cloud, noun, command):
    cloud.names = {'bob': 'b' * 32}
    for known in ('b' * 32, 'u1', 'bob'):
        cloud.answers(f'/{noun}s/{known}', {noun: {'id': known}})
    assert ask(cloud, command, 'bob') == (0, {'id': 'b' * 32})
    assert ask(cloud, command, 'b' * 32) == (0, {'id': 'b' * 32})
    assert ask(cloud, command, 'u1') == (0, {'id': 'u1'})
    cloud.forbidden = True
    assert ask(cloud, command, 'bob') == (0, {'id': 'bob'})


def test_the_metric_in_force_is_marked(cloud):
    metrics = [
        {'metric': {'name': name, 'description': '', 'in_force': name == 'M2'}}
        for name in ('M1', 'M2')
    ]
    cloud.answers('', {'metrics': metrics, 'policies': []})
    _, told = ask(cloud, choices.ListMetric)
    assert [(item['Name'], item['In Force']) for item in told] == [
        ('M1', False),
        ('M2', True),
    ]


def test_an_unknown_server_is_named(cloud):
    with pytest.raises(exceptions.CommandError, match="no server 'web-9'"):
        cloud.run(servers.ShowServer, 'web-9')


def test_callers_that_may_list_it_find_a_server_of_another_project(
    cloud,
):
    cloud.others = {'web-9': UUID}
    cloud.answers(f'/instances/{UUID}', {'instance': WHY})
    assert ask(cloud, servers.ShowServer, 'web-9')[1]['uuid'] == UUID
    cloud.lists_all = False
    with pytest.raises(exceptions.CommandError, match='that you may see'):
        cloud.run(servers.ShowServer, 'web-9')


@pytest.mark.parametrize(
    ('value', 'text'),
    [
        (None, ''),
        (7.87e-82, '0'),
        (0.0, '0'),
        (0.12345, '0.123'),
        (-1234.0, '-1.23k'),
        (5e6, '5M'),
        (2e9, '2G'),
        (3e13, '30T'),
        (7, '7'),
    ],
)
def test_numbers_have_three_digits(value, text):
    assert columns.Number(value).human_readable() == text
    assert columns.Number(value).machine_readable() == value


@pytest.mark.parametrize(
    'kind',
    [
        item
        for item in vars(columns).values()
        if isinstance(item, type)
        and issubclass(item, cliff_columns.FormattableColumn)
    ],
)
@pytest.mark.parametrize('nothing', [None, {}, []])
def test_empty_lists_are_shown_without_error(kind, nothing):
    if kind not in (columns.Number, columns.Percent, columns.Span):
        assert kind(nothing).human_readable() == ''


def entry_points(group):
    parser = configparser.ConfigParser()
    parser.optionxform = str
    parser.read(TOP / 'setup.cfg', encoding='utf-8')
    lines = parser['entry_points'][group].strip().splitlines()
    return dict(line.split(' = ') for line in lines)


def test_the_group_of_commands_is_where_the_client_looks():
    assert entry_points('openstack.cli.extension') == {
        plugin.API_NAME: plugin.__name__
    }
    major = plugin.DEFAULT_API_VERSION.split('.')[0]
    assert entry_points(f'openstack.{plugin.API_NAME}.v{major}')


def test_the_page_lists_the_commands_of_the_group():
    page = (TOP / 'doc/source/cli/openstack-fairness.rst').read_text('utf-8')
    groups = re.findall(
        r'^\.\. autoprogram-cliff:: (\S+)$', page, re.MULTILINE
    )
    assert groups == ['openstack.fairness.v1']


@pytest.mark.parametrize('code', [404, 503])
def test_the_status_of_the_caller_is_shown_as_far_as_known(cloud, code):
    for path in ('/users/me', '/requests', '/shares', '/limits'):
        cloud.answers(path, {'message': 'none'}, code)
    assert ask(cloud, status.ShowMe)[1] == {
        'user': None,
        'instances_count': 0,
        'heaviness_quotas': 0.0,
        'usage_quotas': {},
        'requests': [],
        'shares': [],
        'budgets': [],
    }


def test_the_status_of_the_caller_reads_no_unneeded_page(cloud):
    for path in ('/users/me', '/shares', '/limits'):
        cloud.answers(path, {'message': 'none'}, 404)
    rows = [{'uuid': f'r{n}', 'standing': 'waits'} for n in range(300)]

    def page(request, _):
        last = int(request.qs['limit'][0])
        link = f'{cloud.base}/requests?limit={last}&marker=r{last - 1}'
        return {
            'requests': rows[:last],
            'requests_links': [{'rel': 'next', 'href': link}],
        }

    cloud.mock.get(f'{cloud.base}/requests', json=page)
    shown = ask(cloud, status.ShowMe)[1]['requests']
    assert [each['uuid'] for each in shown] == [f'r{n}' for n in range(20)]
    [asked] = [each for each in cloud.asked if '/requests' in each.url]
    assert asked.qs == {'limit': ['20']}


def test_the_status_of_the_caller_follows_the_policy(cloud):
    cloud.answers('/users/me', {'message': 'no'}, 403)
    with pytest.raises(exceptions.CommandError, match='HTTP 403'):
        ask(cloud, status.ShowMe)


def test_every_command_has_a_help_text():
    modules = (
        choices, dry_runs, groups, hosts, owners, partition, plans, prices,
        queue, servers, status,
    )  # fmt: skip
    for target in entry_points('openstack.fairness.v1').values():
        module, _, name = target.partition(':')
        made = {m.__name__: m for m in modules}
        command = getattr(made[module], name)
        assert command.__doc__, name
        assert issubclass(command, base.Lister | base.ShowOne)
