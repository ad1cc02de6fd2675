# SPDX-License-Identifier: Apache-2.0

"""``nova-fairness-ctl`` on the transport of tests."""

import json
import os

import oslo_messaging
import pytest

from nova_fairness.cmd import ctl
from nova_fairness.cmd import ctl_options
from nova_fairness.cmd import ctl_tables
from tests.unit.rpc import fake_cloud

HOSTS = ('n1', 'n2', 'n3')


@pytest.fixture
def cloud():
    made = fake_cloud.FakeCloud(*HOSTS)
    yield made
    made.stop()


@pytest.fixture
def command(cloud, tmp_path, capsys):
    """Run it as an operator would; give code, output and complaints."""
    path = tmp_path / 'ctl.conf'
    path.write_text(
        '[DEFAULT]\ntransport_url = fake://\n'
        f'[fairness_exchange]\ndomain = {cloud.domain}\n'
    )

    def run(*words):
        timeout = ['--timeout', '60'] if 'gone' not in words else []
        code = ctl.main(['--config-file', str(path), *timeout, *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.mark.parametrize('word', ['pause', 'resume', 'reset'])
def test_a_command_reaches_all_hosts_with_the_same_order(
    cloud, command, monkeypatch, word
):
    monkeypatch.setattr(ctl_tables, 'table', lambda name, by_host: name)
    code, out, err = command(word, '--all')
    assert (code, out, err) == (0, word, '')
    assert [item.asked for item in cloud.agents.values()] == [[word]] * 3


def test_a_command_for_one_host_reaches_no_other(cloud, command):
    code, _, _ = command('--host', 'n2', 'reset', '--json')
    assert code == 0
    assert cloud.agents['n1'].asked == []
    assert cloud.agents['n2'].asked == ['reset']


def test_a_metric_is_set_with_one_epoch(cloud, command):
    code, out, _ = command('set-metric', 'M1', '--all', '--json')
    assert code == 0
    told = json.loads(out)
    assert told['version'] == 1
    assert told['command'] == 'set-metric'
    assert set(told['by_host']) == set(HOSTS)
    assert {item['epoch'] for item in told['by_host'].values()} == {1}
    assert {item.metric for item in cloud.agents.values()} == {'M1'}


def test_a_warning_of_many_hosts_is_printed_once(cloud, command):
    for host in ('n1', 'n3'):
        cloud.agents[host].warning = 'M1 does not suit P0'
    code, out, err = command('set-metric', 'M1', '--all', '--json')
    assert (code, len(json.loads(out)['by_host'])) == (0, 3)
    assert err == 'nova-fairness-ctl: warning: M1 does not suit P0\n'


def test_agents_log_the_request_that_the_answers_name(command, caplog):
    caplog.set_level('INFO')
    code, out, _ = command('--host', 'n2', 'reset', '--json')
    assert code == 0
    assert f'{json.loads(out)["request_id"]}: reset: ' in caplog.text


def test_a_vm_is_found_among_all_hosts(cloud, command):
    cloud.agents['n3'].vms = ('a-1',)
    code, out, err = command('why', 'a-1', '--all', '--json')
    assert (code, err) == (0, '')
    assert list(json.loads(out)['by_host']) == ['n3']
    code, _, err = command('why', 'x-9', '--all')
    assert code == 1
    assert 'n1: refused: no VM x-9 on n1\n' in err


def test_hosts_that_refuse_are_named_with_their_metrics(command):
    code, out, err = command('set-metric', 'M9', '--all')
    assert (code, out) == (1, '')
    assert err.count("refused: no metric 'M9'; installed: M0, M1") == 3


def test_hosts_from_a_file_are_asked(command, tmp_path):
    path = tmp_path / 'hosts'
    path.write_text('n1\n\n# not n2\nn3  # the third\n')
    code, out, _ = command('--hosts-from', str(path), 'reset', '--json')
    assert code == 0
    assert list(json.loads(out)['by_host']) == ['n1', 'n3']


def test_an_action_names_unreached_hosts(command):
    code, out, err = command(
        '--host', 'gone', '--host', 'n1', '--timeout', '0.3', 'reset', '--json'
    )
    assert code == 1
    assert json.loads(out)['not_reached'] == {'gone': 'no answer within 0.3 s'}
    assert 'gone: not reached: no answer within 0.3 s\n' in err


WRONG = {
    'no hosts': (['status'], 'hosts: none given'),
    'hosts and all': (
        ['status', '--all', '--host', 'x'],
        '--all is not valid',
    ),
    'no name': (['set-metric', '--all'], 'set-metric: expected a NAME'),
    'a name too many': (['pause', 'x', '--all'], 'pause: expected no NAME'),
    'an unknown command': (['stop', '--all'], "invalid choice: 'stop'"),
    'long without why': (['users', '--all', '--long'], 'for why and preview'),
    'no time': (['status', '--all', '--timeout', '0'], 'seconds from 0.1'),
}


@pytest.mark.parametrize(('words', 'said'), WRONG.values(), ids=list(WRONG))
def test_wrong_usage_of_ctl_is_named(capsys, words, said):
    with pytest.raises(SystemExit) as caught:
        ctl.main(words)
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


MISCONFIGURED = {
    'no transport': ([], 'transport_url: not set'),
    'no such driver': (['--transport-url', 'nosuch://'], 'nosuch'),
    'no such file': (['--config-file', '/nonexistent'], '/nonexistent'),
    'no list': (
        ['--transport-url', 'fake://', '--hosts-from', '/nonexistent'],
        '--hosts-from /nonexistent: not readable',
    ),
    'an empty list': (
        ['--transport-url', 'fake://', '--hosts-from', os.devnull],
        '/dev/null: it contains no host',
    ),
}


@pytest.mark.parametrize(
    ('words', 'said'), MISCONFIGURED.values(), ids=list(MISCONFIGURED)
)
def test_a_wrong_configuration_is_named(capsys, tmp_path, words, said):
    empty = tmp_path / 'empty.conf'
    empty.touch()
    whom = [] if '--hosts-from' in words else ['--host', 'n1']
    code = ctl.main(['--config-file', str(empty), *words, *whom, 'status'])
    complaint = capsys.readouterr().err
    assert code == 2
    assert said in complaint
    assert 'Traceback' not in complaint


@pytest.mark.parametrize(
    ('error', 'code', 'said'),
    [
        (KeyboardInterrupt(), 130, 'interrupted'),
        (RuntimeError('a bug'), 1, 'RuntimeError: a bug'),
    ],
)
def test_ctl_ends_without_a_traceback(monkeypatch, capsys, error, code, said):
    def broken(*_arguments, **_more):
        raise error

    monkeypatch.setattr(oslo_messaging, 'get_rpc_transport', broken)
    words = ['--transport-url', 'fake://', '--host', 'x', 'status']
    assert ctl.main(words) == code
    assert capsys.readouterr().err == f'nova-fairness-ctl: {said}\n'


def test_a_domain_without_agents_is_no_wrong_usage(capsys):
    words = ['--transport-url', 'fake://', '--all', '--timeout', '0.1']
    assert ctl.main([*words, 'status']) == 1
    assert 'no answer within 0.1 s' in capsys.readouterr().err


def test_every_command_is_answered():
    told = {*ctl_tables._FORMS, ctl_options.WHY, ctl_options.PREVIEW}
    assert told == set(ctl_options.METHODS)


STATUS = {
    'metric': 'M1',
    'policy': 'P1',
    'epoch': 3,
    'paused': False,
    'enforce': True,
    'refused': '',
    'desired': {'problem': ''},
    'quarantined': {},
    'controls': {'cpu': {'works': True}, 'memory': {'works': False}},
    'round': None,
    'peers': {},
}
ROUND = {
    'number': 12,
    'duration_s': 0.0014,
    'instances_count': 3,
    'users_count': 2,
    'errors': [],
}
PEERS = {
    'n2': {'age_s': 1.0, 'left_out': None},
    'n3': {'age_s': None, 'left_out': 'silent for 40 s'},
}


def test_a_status_is_one_line_per_host():
    answers = {
        'n1': {**STATUS, 'round': ROUND, 'peers': PEERS},
        'n2': {
            **STATUS,
            'paused': True,
            'refused': 'X',
            'warning': 'M1 does not suit P1',
            'quarantined': {'M1': 'raised'},
            'unsaved': ['cannot write paused.json: disk full'],
        },
        'n3': {**STATUS, 'enforce': False},
    }
    lines = ctl_tables.table('status', answers).splitlines()
    assert [' '.join(line.split()) for line in lines[1:]] == [
        'n1 enforces M1 P1 3 cpu 12 1.4 3 2 1/2 -',
        (
            'n2 paused M1 P1 3 cpu - - - - 0/0 '
            'M1 is in quarantine; M1 does not suit P1; '
            'metric and policy not accepted: X; '
            'cannot write paused.json: disk full'
        ),
        'n3 observes M1 P1 3 cpu - - - - 0/0 -',
    ]


def test_users_of_many_nodes_are_put_together_the_heaviest_first():
    def says(heaviness, here, usage):
        return {
            'heaviness_quotas': heaviness,
            'instances_here_count': here,
            'usage_quotas': usage,
        }

    answers = {
        'n1': {'users': {'ann': says(0.5, 2, {'cpu_time': 0.4, 'memory': 1})}},
        'n2': {
            'users': {
                'ann': says(0.6, 1, {'cpu_time': 0.5, 'memory': None}),
                'bob': says(0.9, 1, {}),
            }
        },
    }
    lines = ctl_tables.table('users', answers).splitlines()
    assert [line.split() for line in lines[1:]] == [
        ['bob', '0.900', '1', '-', '-'],
        ['ann', '0.600', '3', 'memory', '1'],
    ]


def shadowed(number, shadow, metric='M2'):
    one = {
        'heaviness_quotas': number,
        'shadow_heaviness_quotas': shadow,
        'instances_here_count': 1,
        'usage_quotas': {},
    }
    return {
        'shadow_metric': metric,
        'scope': 'host',
        'users': {'ann': one},
        'projects': {'ann': one},
    }


def test_a_column_shows_the_heaviness_by_a_shadow_metric():
    answers = {
        'n1': shadowed(0.5, 0.1),
        'n2': shadowed(0.5, 0.25),
        'n3': shadowed(0.5, 9.0, 'M3'),
        'n4': shadowed(0.5, None, ''),
    }
    table = ctl_tables.table('users', answers).splitlines()
    assert table[0].split()[:3] == ['USER', 'HEAVINESS', 'SHADOW']
    assert table[1].split()[:4] == ['ann', '0.500', '0.250', '4']
    table = ctl_tables.table('projects', answers).splitlines()
    assert table[0].split() == [
        *('PROJECT', 'SCOPE', 'HEAVINESS', 'SHADOW', 'VMS')
    ]
    assert table[1].split() == ['ann', 'host', '2.000', '0.350', '4']
    without = {'n4': answers['n4']}
    for command in ('users', 'projects'):
        assert 'SHADOW' not in ctl_tables.table(command, without)


def test_a_status_names_the_shadow_metric_and_its_problem():
    said = {
        **dict.fromkeys(('metric', 'policy'), 'M'),
        **{key: {} for key in ('controls', 'peers', 'desired')},
        'quarantined': [],
        'epoch': 0,
        'refused': '',
        'paused': False,
        'enforce': True,
        'round': None,
    }
    told = ctl_tables.table('status', {'n1': {**said, 'shadow': None}})
    assert 'SHADOW' not in told
    shadow = {'metric': 'M2', 'round': 7, 'problem': 'M2: took too long'}
    told = ctl_tables.table('status', {'n1': {**said, 'shadow': shadow}})
    title, line = told.splitlines()
    assert title.split()[3] == 'SHADOW'
    assert line.split()[3] == 'M2'
    assert line.endswith('shadow metric M2: M2: took too long')


def test_plugins_are_listed_with_how_many_hosts_have_them(command):
    code, out, _ = command('plugins', '--all')
    assert code == 0
    assert [line.split() for line in out.splitlines()[1:]] == [
        ['metric', 'M0', '3/3', 'A', 'metric.'],
        ['metric', 'M1', '3/3', 'A', 'metric.'],
        ['policy', 'P0', '3/3', 'A', 'policy.'],
    ]


@pytest.mark.parametrize(
    ('scope', 'heaviness'), [('host', '1.100'), ('domain', '0.600')]
)
def test_projects_are_added_up_unless_each_node_tells_the_whole(
    scope, heaviness
):
    def says(number):
        one = {'heaviness_quotas': number, 'instances_here_count': 2}
        return {'scope': scope, 'projects': {'p': one}}

    answers = {'n1': says(0.5), 'n2': says(0.6), 'n3': says(None)}
    lines = ctl_tables.table('projects', answers).splitlines()
    assert lines[1].split() == ['p', scope, heaviness, '6']


WHY = {
    'uuid': 'a-1',
    'name': 'we\x1bb',
    'user_id': 'ann',
    'user_name': 'Ann',
    'project_id': 'p',
    'metric': 'M1',
    'heaviness': {'total': 0.5, 'by_resource': {'cpu_time': 0.4}},
    'endowment': {'cpu_time': 0.5, 'memory': 2.0e9},
    'quota': {'cpu_time': 1.0, 'memory': 4.0e6},
    'usage': {'cpu_time': 0.25, 'memory': 1500.0},
    'owner_usage': {'cpu_time': 0.75, 'memory': 3.0e9},
    'contended': ['cpu_time'],
    'waiting': [],
    'weights': {'cpu': 0.5},
    'advice': ['Do this.', 'Or that.'],
}


def test_the_why_command_prints_sentences():
    answers = {'n1': {'instance': WHY}}
    assert ctl_tables.explanation(answers, everything=False).splitlines() == [
        'we?b (a-1) of Ann in p, on n1:',
        'Do this.',
        'Or that.',
    ]


def test_numbers_and_a_row_for_each_resource_follow_the_words():
    answers = {'n1': {'instance': WHY}}
    text = ctl_tables.explanation(answers, everything=True)
    words = ctl_tables.explanation(answers, everything=False)
    assert text.startswith(words)
    lines = text.removeprefix(words).splitlines()
    assert lines[:4] == [
        '',
        'heaviness: 0.500 (M1)',
        'weights: cpu=0.500',
        '',
    ]
    assert lines[4].split()[:2] == ['HOST', 'RESOURCE']
    assert [line.split() for line in lines[5:]] == [
        [
            'n1',
            'cpu_time',
            '0.400',
            '0.25',
            '0.50',
            '0.75',
            '1.00',
            'yes',
            'no',
        ],
        ['n1', 'memory', '-', '1.50k', '2.00G', '3.00G', '4.00M', 'no', 'no'],
    ]


def test_why_tells_the_heaviness_by_the_shadow_metric():
    heaviness = {**WHY['heaviness'], 'shadow': 0.25, 'shadow_metric': 'M2'}
    vm = {**WHY, 'heaviness': heaviness}
    text = ctl_tables.explanation({'n1': {'instance': vm}}, everything=True)
    assert 'shadow heaviness: 0.250 (M2)' in text.splitlines()


def test_the_why_command_works_for_an_unmeasured_vm():
    vm = {
        **WHY,
        'heaviness': {'total': None, 'by_resource': {}},
        'usage': {},
        'weights': {},
    }
    text = ctl_tables.explanation({'n1': {'instance': vm}}, everything=True)
    assert text.splitlines()[1:6] == [
        'Do this.',
        'Or that.',
        '',
        'heaviness: - (M1)',
        '',
    ]


def previewed(change, **more):
    amounts = {
        'gets_cpus': 0.5,
        'wants_cpus': 1.0,
        'would_get_cpus': 0.5 + change,
        'change_cpus': change,
        'change_spread_cpus': 0.3 if change > 0.2 else 0.4,
    }
    ann = {'name': 'Ann', 'instances_here_count': 1, **amounts}
    bob = {'name': 'Bob', 'instances_here_count': 2, **amounts}
    vm = {'name': 'we\x1bb', 'uuid': 'a-1', 'user_name': 'Ann', **amounts}
    one = {
        'metric': 'M1',
        'problem': '',
        'settled': True,
        'users': {'ann': ann, 'bob': {**bob, 'change_cpus': -change}},
        'instances': [{**vm, 'weight_ratio': 2.0}],
    }
    return {
        'enforced': False,
        'not_foreseen': [],
        'metrics': [{**one, **more}],
    }


def test_a_preview_adds_up_hosts_and_begins_with_losers():
    answers = {'n1': previewed(0.25), 'n2': previewed(0.125)}
    lines = ctl_tables.preview(answers, everything=False).splitlines()
    assert [line.split() for line in lines[1:3]] == [
        ['M1', 'Bob', '4', '1.000', '2.000', '1.375', '-0.375', '0.500'],
        ['M1', 'Ann', '2', '1.000', '2.000', '1.375', '0.375', '0.500'],
    ]
    assert lines[3:] == [ctl_tables._FORESEEN]


def test_a_long_preview_has_a_row_for_each_vm():
    answers = {'n1': previewed(0.25), 'n2': previewed(-0.125)}
    lines = ctl_tables.preview(answers, everything=True).splitlines()
    begin = 'M1 {} we?b a-1 Ann 0.500 1.000'
    assert [line.split() for line in lines[1:3]] == [
        f'{begin.format(host)} {get} {change} {spread} 2.000'.split()
        for host, get, change, spread in (
            ('n2', '0.375', '-0.125', '0.400'),
            ('n1', '0.750', '0.250', '0.300'),
        )
    ]


def test_a_preview_omits_a_spread_that_one_host_lacks():
    old = previewed(0.125)
    del old['metrics'][0]['users']['ann']['change_spread_cpus']
    text = ctl_tables.preview(
        {'n1': previewed(0.25), 'n2': old}, everything=False
    )
    assert [line.split()[-1] for line in text.splitlines()[1:3]] == [
        '0.500', '-'
    ]  # fmt: skip


def test_a_preview_names_its_gaps():
    answers = {
        'n1': {**previewed(0.0, settled=False), 'enforced': True},
        'n2': {
            **previewed(0.0, problem='it fails', users={}),
            'not_foreseen': ['memory', 'disk'],
        },
    }
    lines = ctl_tables.preview(answers, everything=False).splitlines()
    assert lines[4:] == [
        'n1: already enforces weights.',
        'n2: VMs also compete for memory, disk: not in the preview.',
        'n1: weights by M1 never become constant.',
        'n2: no preview of M1: it fails.',
    ]


@pytest.mark.parametrize(
    ('words', 'metrics'), [([], ['M0', 'M1']), (['M1'], ['M1'])]
)
def test_a_preview_is_of_one_metric_or_of_all(command, words, metrics):
    code, out, _ = command('preview', *words, '--host', 'n2', '--json')
    assert code == 0
    told = json.loads(out)['by_host']['n2']['metrics']
    assert [item['metric'] for item in told] == metrics


def test_names_of_others_cannot_steer_the_terminal():
    vm = {
        'name': 'a\x1b[2Jb',
        'uuid': 'u',
        'user_name': 'ann',
        'heaviness_quotas': None,
        'wanting': {'cpu': True},
        'weight_ratios': {'cpu': 2.0},
        'applied_units': {},
    }
    text = ctl_tables.table('instances', {'n1': {'instances': [vm]}})
    assert '\x1b' not in text
    assert text.splitlines()[1].split() == [
        'n1', 'a?[2Jb', 'u', 'ann', '-', 'yes', '2.000', '-',
    ]  # fmt: skip


def test_a_list_without_entries_is_a_header():
    assert ctl_tables.table('instances', {'n1': {'instances': []}}) == (
        'HOST  NAME  UUID  USER  HEAVINESS  WANTS CPU  CPU WEIGHT  CPU UNITS\n'
    )
