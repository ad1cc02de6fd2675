# SPDX-License-Identifier: Apache-2.0

import pytest

from nova_fairness import exception
from nova_fairness.batch import commands
from nova_fairness.batch import slurm
from nova_fairness.batch import slurm_accounts
from nova_fairness.model import pledge

JOBS = """\
1|physics|4|1000|1600
2|physics|8|1700|Unknown
3|biology|0|Unknown|Unknown
4|biology|2|100|900
5||1|1000|1100
"""
RUNS = {'2': None}


def told(text, known=RUNS, since=900.0, now=2000.0):
    return slurm_accounts.parse_accounting(text, known, since, now)


def test_accounting_lists_jobs_that_ran_in_the_period():
    assert told(JOBS) == pledge.Accounting(
        (
            pledge.Spent('physics', 4.0, 1000.0, 1600.0),
            pledge.Spent('physics', 8.0, 1700.0, None),
        )
    )
    assert told('') == pledge.Accounting()


@pytest.mark.parametrize(
    ('known', 'ends', 'faults'),
    [
        ({'2': None}, [None], 0),
        # slurmctld saw the end, and accounting not yet.
        ({'2': 1800.0}, [1800.0], 0),
        ({'2': 850.0}, [], 0),
        # Neither knows it any more.
        ({}, [], 1),
        ({'22': None}, [], 1),
    ],
)
def test_a_job_without_an_end_is_charged_while_slurm_lists_it(
    known, ends, faults
):
    found = told('2|physics|8|800|Unknown\n', known)
    assert [each.end for each in found.jobs] == ends
    assert len(found.faults) == faults
    assert all('job 2 of account physics' in each for each in found.faults)


def test_jobs_that_slurmctld_lists_run_or_have_an_end():
    text = '1|RUNNING|3000\n2|COMPLETING|1500\n3|PENDING|N/A\n'
    text += '4|COMPLETED|1600\n5|FAILED|N/A\n6|SUSPENDED|N/A\nodd\n\n'
    assert slurm_accounts.parse_listed_jobs(text) == {
        '1': None,
        '2': None,
        '4': 1600.0,
        '6': None,
    }


ODD_LINES = ['9|p|4|1000', '9|p|x|1|2', '9|p|4|1|late', '9|p|-1|1|2', '|', '']


@pytest.mark.parametrize('text', ODD_LINES)
def test_a_malformed_accounting_line_does_not_hide_others(text):
    found = told(f'{text}\n{JOBS}')
    assert found.jobs == told(JOBS).jobs
    assert any('entry cannot be read' in each for each in found.faults)


@pytest.mark.parametrize('text', ODD_LINES[:4])
def test_accounting_with_only_malformed_lines_is_refused(text):
    with pytest.raises(exception.BatchUnreadable, match='cannot be read'):
        told(text)


def test_slurm_accounts_are_listed_without_users():
    text = (
        'site|root||||\n'.replace('||||', '|||1')
        + 'site|root|root||1\nsite|physics||root|600\n'
        'site|optics||physics|parent\nsite|physics|ann||1\n'
        'other|physics||root|9\n'
    )
    assert slurm_accounts.parse_shares(text, 'site') == {
        'root': pledge.BatchShare('', 1),
        'physics': pledge.BatchShare('root', 600),
        'optics': pledge.BatchShare('physics', 0),
    }


def test_the_name_of_the_slurm_cluster_is_read():
    text = 'Configuration data\nClusterName             = site\nX = y\n'
    assert slurm_accounts.parse_cluster_name(text) == 'site'
    with pytest.raises(exception.BatchUnreadable, match='ClusterName'):
        slurm_accounts.parse_cluster_name('X = y')


@pytest.fixture
def asked(monkeypatch):
    """Commands that are run, and what they write."""
    found, answers = [], {'scontrol': 'ClusterName = site\n'}

    def output(command, timeout_s):
        found.append(command)
        name = command[2] if command[0] == 'env' else command[0]
        answer = answers.get(name, '')
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(commands, 'output', output)
    return found, answers


def test_slurm_is_asked_for_jobs_since_the_last_time(asked):
    found, answers = asked
    answers['sacct'] = JOBS
    answers['squeue'] = '2|RUNNING|3000\n'
    assert len(slurm.Slurm().accounting(900.0, 1000.5).jobs) == 1
    assert '--format=%A|%T|%e' in found[0]
    assert '--starttime=now-102seconds' in found[1]
    assert '--format=JobIDRaw,Account,AllocCPUS,Start,End' in found[1]


@pytest.mark.parametrize(
    ('command', 'text'),
    [
        ('sacct', 'ended with 1: Slurm accounting storage is disabled'),
        (
            'sacctmgr',
            (
                'ended with 1: You are not running a supported'
                ' accounting_storage plugin Only ...'
            ),
        ),
    ],
)
def test_slurm_without_accounting_is_named(asked, command, text):
    _, answers = asked
    answers[command] = exception.BatchAway(f'{command} {text}')
    ask = slurm.Slurm()
    with pytest.raises(exception.BatchRefused, match='no accounts'):
        _ = ask.shares() if command == 'sacctmgr' else ask.accounting(1.0, 2.0)
    answers[command] = exception.BatchAway(f'{command} gave no answer')
    with pytest.raises(exception.BatchAway, match='gave no answer'):
        _ = ask.shares() if command == 'sacctmgr' else ask.accounting(1.0, 2.0)


def test_a_share_is_set_in_the_own_slurm_cluster_only(asked):
    found, answers = asked
    slurm.Slurm().set_share('physics', 750)
    assert found[-1][-5:] == (
        'where',
        'name=physics',
        'cluster=site',
        'set',
        'fairshare=750',
    )
    answers['sacctmgr'] = exception.BatchAway('sacctmgr ended with 1: no')
    with pytest.raises(exception.BatchRefused, match='no'):
        slurm.Slurm().set_share('physics', 750)
    answers['sacctmgr'] = exception.BatchAway('sacctmgr gave no answer')
    with pytest.raises(exception.BatchAway):
        slurm.Slurm().set_share('physics', 750)
