# SPDX-License-Identifier: Apache-2.0

"""Groups have one pledge for both sides: use is counted, shares adjusted."""

import dataclasses

import pytest

from nova_fairness import exception
from nova_fairness.cluster import event_notifications
from nova_fairness.cluster.api import requests
from nova_fairness.cluster.usage import pledges as pledges_module
from nova_fairness.model import cluster
from nova_fairness.model import pledge
from nova_fairness.planners.border import pledges
from tests.unit.cluster import test_service
from tests.unit.cluster.border import test_controller

world = test_service.world
border = test_controller.border
EVERY_S = pledges_module.EVERY_S
GROUPS = """
groups:
- {account: P, batch: physics}
- {account: biology}
"""


@pytest.fixture
def pledged(border):
    """A border with two groups; what batch had of them is told."""
    border.world.accounts = (
        cluster.Account('P', None, 3.0),
        cluster.Account('biology', None, 1.0),
    )
    write_groups(border, GROUPS)
    return border


def write_groups(border, groups):
    border.path.write_text(test_controller.HOSTS + groups)


def shares(border):
    found = border.batch.accounts
    return found['physics'].share, found['biology'].share


def run_accounting(border, times=1):
    """Let it look at accounts again."""
    for _ in range(times):
        border.go(every_s=EVERY_S)


def run_job(border, account, cores):
    job = pledge.Spent(account, float(cores), border.world.now)
    border.batch.used.append(job)


def test_shares_of_batch_are_those_pledged(pledged):
    run_accounting(pledged)
    assert shares(pledged) == (750, 250)
    assert pledged.moving.last().faults == ()


def test_use_of_batch_is_counted_in_the_queue(pledged):
    run_accounting(pledged)
    run_job(pledged, 'physics', 8)
    before = pledged.service.last().snapshot.history
    run_accounting(pledged, 40)
    # Half of the hosts for more than three half-lives of an hour.
    history = pledged.service.last().snapshot.history
    assert 'P' not in before
    assert history['P'].max() == pytest.approx(0.45, abs=0.05)
    assert 'biology' not in history
    # Of batch alone: its shares are those that were pledged.
    assert shares(pledged) == (750, 250)


def test_a_group_that_used_the_cloud_has_less_of_batch(pledged, monkeypatch):
    run_accounting(pledged)
    for name in ('physics', 'biology'):
        run_job(pledged, name, 4)
    store = pledged.world.store
    cloud = store.read_ledger()
    parts = {'P': dict.fromkeys(('MEMORY_MB', 'VCPU'), 0.5)}
    monkeypatch.setattr(
        store,
        'read_ledger',
        lambda: type(cloud)(cloud.at, parts, cloud.version),
    )
    monkeypatch.setattr(store, 'write_ledger', lambda *_: None)
    run_accounting(pledged, 40)
    first, second = shares(pledged)
    # 0.225 of 0.725 was of batch: 0.75 times that, beside 0.25.
    assert first == pytest.approx(482, rel=pledges.NEAR)
    assert first + second == 1000
    [standing, _] = pledged.moving.last().groups
    assert standing.part == pytest.approx(0.75, abs=0.02)


def test_shares_are_written_only_where_they_differ(pledged, monkeypatch):
    run_accounting(pledged)
    given = []
    monkeypatch.setattr(
        pledged.batch, 'set_share', lambda *share: given.append(share)
    )
    run_accounting(pledged, 5)
    assert given == []


def test_shares_are_given_back_after_the_last_pledge(pledged):
    run_accounting(pledged)
    write_groups(pledged, '')
    run_accounting(pledged)
    assert shares(pledged) == (500, 500)
    run_accounting(pledged)
    assert not pledged.world.store.pledges.read().found
    # From now on they are somebody else's.
    pledged.batch.set_share('physics', 7)
    run_accounting(pledged, 2)
    assert shares(pledged) == (7, 500)


def test_a_group_without_a_pledge_gets_its_found_share_back(pledged):
    run_accounting(pledged)
    write_groups(pledged, '\n'.join(GROUPS.splitlines()[:3]))
    run_accounting(pledged)
    assert shares(pledged) == (500, 500)


def test_a_share_set_by_another_program_is_restored(pledged):
    run_accounting(pledged)
    pledged.batch.set_share('physics', 1500)
    run_accounting(pledged)
    assert shares(pledged)[0] == pytest.approx(1500, abs=5)
    write_groups(pledged, '')
    run_accounting(pledged)
    assert shares(pledged) == (1500, 500)


def test_an_unavailable_batch_system_is_reported_and_changes_no_share(pledged):
    run_accounting(pledged)
    run_job(pledged, 'physics', 8)
    run_accounting(pledged, 12)
    kept = pledged.world.store.pledges.read()
    pledged.batch.is_away = True
    run_accounting(pledged, 6)
    said = ' '.join(pledged.moving.last().faults)
    assert 'shares of both sides stay as they are' in said
    assert pledged.world.store.pledges.read() == kept
    after = pledged.service.last().snapshot.history['P'].max()
    # Both hosts are all of the cloud.
    assert after == pytest.approx(kept.use['P'])
    pledged.batch.is_away = False
    run_accounting(pledged)
    # What ran meanwhile is charged once it can be known.
    assert pledged.moving.last().faults == ()
    assert pledged.world.store.pledges.read().use['P'] > kept.use['P']


@pytest.mark.parametrize('step', ['set_share', 'write'])
def test_a_process_that_begins_after_a_kill_knows_the_found_shares(
    pledged, step, monkeypatch
):
    class Killed(BaseException):
        """A kill: nobody catches it."""

    def die(*_):
        raise Killed

    of = pledged.batch if step == 'set_share' else pledged.world.store.pledges
    with monkeypatch.context() as patch:
        patch.setattr(of, step, die)
        with pytest.raises(Killed):
            run_accounting(pledged)
    pledged.begin()
    run_accounting(pledged)
    assert shares(pledged) == (750, 250)
    write_groups(pledged, '')
    run_accounting(pledged)
    assert shares(pledged) == (500, 500)


def test_a_share_that_is_refused_keeps_no_other(pledged, monkeypatch):
    give = pledged.batch.set_share

    def refuse(account, share):
        if account == 'biology':
            raise exception.BatchRefused('not an administrator')
        give(account, share)

    monkeypatch.setattr(pledged.batch, 'set_share', refuse)
    run_accounting(pledged)
    assert shares(pledged) == (750, 500)
    [said] = pledged.moving.last().faults
    assert 'account biology: not an administrator' in said


def test_a_batch_system_without_accounts_says_so(pledged, monkeypatch):
    def refuse():
        raise exception.BatchRefused('no accounts')

    monkeypatch.setattr(pledged.batch, 'shares', refuse)
    run_accounting(pledged)
    [said] = pledged.moving.last().faults
    assert 'no accounts' in said
    assert pledged.states() == ('batch', 'cloud')


def test_a_group_that_one_side_does_not_know_changes_nothing(pledged):
    write_groups(pledged, GROUPS + '- {account: chemistry}\n')
    run_accounting(pledged)
    assert shares(pledged) == (500, 500)
    said = ' '.join(pledged.moving.last().faults)
    assert 'the share tree has no account chemistry' in said
    assert 'the batch system has no account chemistry' in said


@pytest.mark.parametrize(
    'groups',
    [
        '- {account: biology, batch: physics}',
        '- {account: P, batch: other}',
        '- {batch: other}',
        '- {account: x, batch: "a b"}',
        '- {account: x, share: 3}',
    ],
)
def test_invalid_groups_are_refused(pledged, groups, caplog):
    run_accounting(pledged)
    write_groups(pledged, GROUPS + groups)
    run_accounting(pledged)
    assert shares(pledged) == (750, 250)
    assert 'hosts stay as they were described' in caplog.text


def test_groups_are_told_to_operators_and_counted(pledged):
    run_accounting(pledged)
    run_job(pledged, 'physics', 8)
    run_accounting(pledged, 12)
    world = pledged.world
    ask = requests.ClusterOperations(
        world.store, pledged.service, None, pledged.moving
    )
    first, second = ask.border()['partition']['groups']
    assert (first['account'], first['batch_account']) == ('P', 'physics')
    assert (first['pledge'], second['pledge']) == (0.75, 0.25)
    assert first['part'] == 1.0
    assert first['used']['batch'] > 0.2
    assert first['used']['cloud'] == second['used']['batch'] == 0
    assert (first['batch_share'], first['batch_share_found']) == (750, 500)
    watch = event_notifications.BorderWatch(
        world.store, pledged.moving, lambda _: None, 'here'
    )
    seen = watch.border()
    assert seen.pledges == {'P': 0.75, 'biology': 0.25}
    assert seen.parts['P', 'batch'] == first['used']['batch']


def test_accounts_are_looked_at_as_often_as_is_said(pledged, monkeypatch):
    """Groups with a half-life of minutes need that more often."""
    often = pledges_module.PledgeKeeper(
        pledged.world.store, pledged.batch, test_controller.HALF_LIFE_S, 60.0
    )
    monkeypatch.setattr(pledged.moving, '_pledging', often)
    asked = []
    usual = pledged.batch.shares
    monkeypatch.setattr(
        pledged.batch, 'shares', lambda: asked.append(1) or usual()
    )
    pledged.go(5, every_s=30.0)
    assert len(asked) == 3


def test_a_job_that_is_not_charged_is_told_to_the_operator(pledged):
    pledged.batch.uncharged.append('Slurm: job 7 of account physics: odd')
    run_accounting(pledged)
    assert pledged.batch.uncharged[0] in pledged.moving.last().faults
    # Shares are adjusted all the same.
    assert shares(pledged) == (750, 250)
    pledged.batch.uncharged.clear()
    run_accounting(pledged)
    assert pledged.moving.last().faults == ()


def test_an_invalid_entry_of_batch_is_reported_to_the_operator(
    border, monkeypatch
):
    run_accounting = border.batch.read_hosts
    monkeypatch.setattr(
        border.batch,
        'read_hosts',
        lambda: dataclasses.replace(run_accounting(), faults=('job 7: odd',)),
    )
    border.go()
    assert 'job 7: odd' in border.moving.last().faults
