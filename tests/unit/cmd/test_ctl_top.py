# SPDX-License-Identifier: Apache-2.0

"""``nova-fairness-ctl top``: pictures of who uses how much."""

import pytest

from nova_fairness import exception
from nova_fairness.cmd import ctl_top
from tests.unit.cmd import test_ctl

cloud = test_ctl.cloud
command = test_ctl.command


def _user(heaviness, cpu):
    return {
        'heaviness_quotas': heaviness,
        'instances_here_count': 1,
        'usage_quotas': {'cpu_time': cpu, 'memory': None},
    }


def _vm(user, weight, *, waits):
    return {
        'user': user,
        'user_name': f'{user}-name',
        'project': 'p',
        'project_name': 'p',
        'wanting': {'cpu': waits},
        'weight_ratios': {'cpu': weight},
    }


USERS = {
    'n1': {
        'entity': 'user',
        'users': {'a': _user(-0.2, 0.5), 'b': _user(0.4, 1.4)},
    },
    'n2': {'entity': 'user', 'users': {'b': _user(0.4, 1.2)}},
}
INSTANCES = {
    'n1': {
        'instances': [_vm('a', 2.0, waits=True), _vm('b', 0.25, waits=True)]
    },
    'n2': {'instances': [_vm('b', 1.0, waits=False)]},
}


def test_the_heaviest_user_comes_first():
    lines = ctl_top.page_text(USERS, INSTANCES, {}).splitlines()
    assert lines[0] == '2 hosts, 2 users, 3 VMs'
    assert lines[2].split()[:3] == ['USER', 'HEAVINESS', 'CPU']
    first, second = (line.split() for line in lines[3:5])
    assert first[:3] == ['b-name', '0.400', '140%']
    assert first[-3:] == ['2', '1', '0.25-1.00']
    assert second[:3] == ['a-name', '-0.200', '50%']
    assert second[-3:] == ['1', '1', '2.00']


def test_heaviness_by_a_shadow_metric_has_a_column():
    said = USERS['n1']
    users = {user: dict(one) for user, one in said['users'].items()}
    users['b']['shadow_heaviness_quotas'] = 0.75
    shadowed = {'n1': {**said, 'users': users, 'shadow_metric': 'M2'}}
    lines = ctl_top.page_text(shadowed, INSTANCES, {}).splitlines()
    assert lines[2].split()[:3] == ['USER', 'HEAVINESS', 'SHADOW']
    assert lines[3].split()[:3] == ['b-name', '0.400', '0.750']
    assert lines[4].split()[:3] == ['a-name', '-0.200', '-']


def test_where_projects_are_compared_their_names_stand_there():
    users = {'n1': {'entity': 'project', 'users': {'p': _user(0.1, 1.0)}}}
    lines = ctl_top.page_text(users, INSTANCES, {}).splitlines()
    assert lines[3].split()[-3] == '3'


def test_hosts_that_do_not_answer_are_named():
    text = ctl_top.page_text(USERS, INSTANCES, {'n3': 'no answer'})
    assert 'n3: no answer' in text


def test_pictures_follow_each_other_until_the_count(capsys):
    assert ctl_top.show(lambda: (USERS, INSTANCES, {}), 0.001, 2)
    assert capsys.readouterr().out.count('2 hosts, 2 users') == 2


def test_ctrl_c_ends_top_with_success():
    def interrupted():
        raise KeyboardInterrupt

    assert ctl_top.show(interrupted, 1.0, None)


def test_top_continues_after_errors_of_hosts():
    def failing():
        raise exception.HostNotReached('nobody')

    with pytest.raises(exception.HostNotReached):
        ctl_top.show(failing, 1.0, None)


def test_top_asks_all_hosts(command, capsys):
    code, out, _ = command('top', '--all', '--count', '1')
    assert '3 hosts, 0 users' in out
    # The fake agents cannot tell of their VMs: what is there is shown.
    assert code == 1


@pytest.mark.parametrize(
    ('words', 'says'),
    [
        (('top', '--all', '--json'), '--json is not valid for top'),
        (('status', '--all', '--count', '2'), 'are valid for top only'),
        (('top', '--all', '--count', '0'), 'a whole number of 1 or more'),
        (('top', '--all', '--interval', '0'), 'seconds from 0.1 to 3600'),
    ],
)
def test_wrong_usage_is_refused(command, capsys, words, says):
    with pytest.raises(SystemExit) as ended:
        command(*words)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err
