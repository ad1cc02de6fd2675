# SPDX-License-Identifier: Apache-2.0

import pytest

from nova_fairness import exception
from nova_fairness.batch import commands
from nova_fairness.batch import slurm
from nova_fairness.batch import slurm_accounts
from nova_fairness.model import pledge

JOBS = """\
physics|4|1000|1600
physics|8|1700|Unknown
biology|0|Unknown|Unknown
biology|2|100|900
|1|1000|1100
"""


def test_jobs_that_ran_in_between_are_told():
    found = slurm_accounts.spent(JOBS, 900.0, 2000.0)
    assert found == (
        pledge.Spent('physics', 4.0, 1000.0, 1600.0),
        pledge.Spent('physics', 8.0, 1700.0, None),
    )
    assert slurm_accounts.spent('', 0.0, 1.0) == ()


@pytest.mark.parametrize('text', ['physics|4|1000', 'p|x|1|2', 'p|4|1|late'])
def test_columns_that_are_others_are_refused(text):
    with pytest.raises(exception.BatchUnreadable, match='sacct wrote'):
        slurm_accounts.spent(text, 0.0, 1e9)


def test_accounts_are_told_and_users_are_not():
    text = (
        'site|root||||\n'.replace('||||', '|||1')
        + 'site|root|root||1\nsite|physics||root|600\n'
        'site|optics||physics|parent\nsite|physics|ann||1\n'
        'other|physics||root|9\n'
    )
    assert slurm_accounts.shares(text, 'site') == {
        'root': pledge.BatchShare('', 1),
        'physics': pledge.BatchShare('root', 600),
        'optics': pledge.BatchShare('physics', 0),
    }


def test_the_cluster_has_a_name():
    text = 'Configuration data\nClusterName             = site\nX = y\n'
    assert slurm_accounts.cluster(text) == 'site'
    with pytest.raises(exception.BatchUnreadable, match='ClusterName'):
        slurm_accounts.cluster('X = y')


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


def test_slurm_is_asked_for_what_ran_since(asked):
    found, answers = asked
    answers['sacct'] = JOBS
    assert len(slurm.Slurm().spent(900.0, 1000.5)) == 1
    assert '--starttime=now-102seconds' in found[0]
    assert '--format=Account,AllocCPUS,Start,End' in found[0]


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
def test_slurm_without_accounts_says_so(asked, command, text):
    _, answers = asked
    answers[command] = exception.BatchAway(f'{command} {text}')
    ask = slurm.Slurm()
    with pytest.raises(exception.BatchRefused, match='no accounts'):
        _ = ask.shares() if command == 'sacctmgr' else ask.spent(1.0, 2.0)
    answers[command] = exception.BatchAway(f'{command} gave no answer')
    with pytest.raises(exception.BatchAway, match='gave no answer'):
        _ = ask.shares() if command == 'sacctmgr' else ask.spent(1.0, 2.0)


def test_a_share_is_given_in_this_cluster_alone(asked):
    found, answers = asked
    slurm.Slurm().give('physics', 750)
    assert found[-1][-5:] == (
        'where',
        'name=physics',
        'cluster=site',
        'set',
        'fairshare=750',
    )
    answers['sacctmgr'] = exception.BatchAway('sacctmgr ended with 1: no')
    with pytest.raises(exception.BatchRefused, match='no'):
        slurm.Slurm().give('physics', 750)
    answers['sacctmgr'] = exception.BatchAway('sacctmgr gave no answer')
    with pytest.raises(exception.BatchAway):
        slurm.Slurm().give('physics', 750)
