# SPDX-License-Identifier: Apache-2.0

"""Dry runs beside a service with a real store."""

import functools
import threading

import pytest

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.cluster.api import dry_run
from nova_fairness.cluster.api import requests
from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.planners.fairqueue import order as order_module
from nova_fairness.planners.fairqueue import orders
from nova_fairness.planners.fairqueue import planner
from nova_fairness.rpc import requests as interface
from tests.unit.cluster import test_service

world = test_service.world
ALL = interface.DryRunReader(None, 50, reason.Audience.OPERATOR)
ENOUGH_S = 30.0


def trial(order='fair_tree', parameters=None):
    made = plugins.load_order(order, parameters or {})
    return tried_with(functools.partial(planner.plan, order=made), made)


def tried_with(plan, order=None):
    made = order or order_module.OldestFirst()
    return dry_run.TrialPlanner(plan, made, 'fifo')


@pytest.fixture
def process(world):
    """Two projects wait for a full cloud; the one that used less is next."""
    world.order = orders.FairTree()
    world.accounts = (cluster.Account('p'), cluster.Account('q'))
    for name, project, vcpus in (('s1', 'p', 3), ('s2', 'q', 1)):
        flavor = {'vcpus': vcpus, 'ram': 1, 'disk': 0, 'ephemeral': 0}
        world.cloud.add_server(name, project, 'u', flavor=flavor)
        world.cloud.build(name, 'h1', {'VCPU': vcpus})
    made = world.process()
    made.cycle()
    for name, project in (('r1', 'p'), ('r2', 'p'), ('r3', 'q')):
        world.post(name, 2, project)
    world.go(3600.0)
    made.cycle()
    return made


@pytest.fixture
def ask(world, process):
    return requests.ClusterOperations(world.store, process, trial=trial)


def positions(told, when):
    return {
        each['uuid']: each[when]['position']
        for each in told['dry_run']['requests']
    }


def planned(process):
    process.cycle()
    return {
        uuid: each.position
        for uuid, each in process.last().plan.waiting.items()
    }


def test_a_dry_run_foretells_the_plan_after_the_change(world, process, ask):
    before = planned(process)
    told = ask.try_account('p', {'share': 10.0}, ALL)
    assert positions(told, 'before') == before
    found = told['dry_run']
    assert found['requests_count'] == 3
    assert (found['sooner_count'], found['later_count']) == (2, 1)
    first, *_, last = found['requests']
    assert (first['project_id'], last['project_id']) == ('p', 'q')
    assert last['before']['position'] == 1
    # Nothing was set.
    assert planned(process) == before
    assert world.store.account_settings().accounts == {}
    ask.set_share('p', 10.0)
    assert planned(process) == positions(told, 'after')


def test_a_dry_run_of_a_ceiling_tells_the_new_reason(process, ask):
    told = ask.try_account('q', {'ceiling': {'VCPU': 1}}, ALL)['dry_run']
    assert [e['project_id'] for e in told['requests']] == ['p', 'p', 'q']
    # The place in the order is no turn to start.
    assert (told['sooner_count'], told['later_count']) == (2, 1)
    mine = told['requests'][-1]
    assert mine['after']['position'] == mine['before']['position'] == 1
    assert mine['before']['reason'] != 'over_account_ceiling'
    assert mine['after']['reason'] == 'over_account_ceiling'
    assert 'may have' in mine['after']['explanation']


def test_a_dry_run_of_a_budget_counts_its_rest(process, ask):
    told = ask.try_account('q', {'budget': 0.0}, ALL)['dry_run']
    [mine] = [e for e in told['requests'] if e['project_id'] == 'q']
    assert mine['before']['reason'] != 'budget_spent'
    assert mine['after']['reason'] == 'budget_spent'


def test_another_order_is_compared_with_that_in_use(process, ask):
    told = ask.try_order('fifo', {}, ALL)
    assert positions(told, 'before') == planned(process)
    oldest = sorted(positions(told, 'after'))
    expected = {uuid: at for at, uuid in enumerate(oldest, 1)}
    assert positions(told, 'after') == expected
    assert positions(told, 'before') != expected


@pytest.mark.parametrize(
    ('name', 'parameters', 'why'),
    [('none', {}, 'fair_tree'), ('fifo', {'depth': 3.0}, 'no number depth')],
)
def test_an_order_that_cannot_be_used_is_refused(ask, name, parameters, why):
    with pytest.raises(exception.BadArgument, match=why):
        ask.try_order(name, parameters, ALL)


def test_a_manager_reads_requests_of_its_own_project_alone(ask):
    reader = interface.DryRunReader('q', 50, reason.Audience.MANAGER)
    told = ask.try_account('p', {'share': 3.0}, reader)['dry_run']
    assert [each['project_id'] for each in told['requests']] == ['q']
    assert (told['requests_count'], told['not_named_count']) == (3, 2)
    assert "'p'" not in repr(told['requests'])


@pytest.mark.parametrize('most', [0, 1])
def test_a_dry_run_names_no_more_requests_than_asked_for(ask, most):
    reader = interface.DryRunReader(None, most, reason.Audience.OPERATOR)
    told = ask.try_account('p', {'share': 3.0}, reader)['dry_run']
    assert len(told['requests']) == most
    assert told['not_named_count'] == 3 - most


@pytest.mark.parametrize(
    ('values', 'error'),
    [
        ({'share': -1.0}, exception.BadShares),
        ({'ceiling': {'VCPU': -1}}, exception.BadShares),
        ({'share': None}, exception.UnknownAccount),
        ({'cores': 3}, exception.BadArgument),
    ],
)
def test_a_dry_run_refuses_values_as_the_change_does(ask, values, error):
    with pytest.raises(error):
        ask.try_account('p', values, ALL)


def test_a_dry_run_of_an_account_that_is_none_is_refused(process, ask):
    process.accounts._exists = lambda _: False
    with pytest.raises(exception.UnknownAccount, match='nothing was set'):
        ask.try_account('ghost', {'share': 3.0}, ALL)


def test_a_process_that_does_not_lead_tries_nothing(world, process):
    other = requests.ClusterOperations(
        world.store, world.process('two'), trial=trial
    )
    with pytest.raises(exception.NotLeading):
        other.try_account('p', {'share': 3.0}, ALL)
    with pytest.raises(exception.NotLeading):
        other.try_order('fifo', {}, ALL)


def test_other_accounts_stay_as_they_were_seen(process):
    snapshot = process.last().snapshot
    p, q = snapshot.accounts
    after = (cluster.Account('p', share=3.0), cluster.Account('new'))
    found = dry_run.with_changed_accounts(
        snapshot, (p, cluster.Account('q')), after
    )
    assert [each.name for each in found.accounts] == ['p', 'new']
    assert found.accounts[0].share == 3.0
    same = dry_run.with_changed_accounts(snapshot, (p,), (p,))
    assert same.accounts == (p, q)


def test_estimates_are_told_without_and_with_the_change(world):
    world.order = orders.FairTree()
    world.accounts = (cluster.Account('p'), cluster.Account('q'))
    begin = '1970-01-01T00:00:00'
    for n in range(5):
        world.cloud.live(f's{n}', 3, begin, '1970-01-01T00:10:00')
    world.cloud.live('runs', 3, '1970-01-01T00:16:00')
    world.cloud.build('runs', 'h1', {'VCPU': 3, 'MEMORY_MB': 100})
    for name, project in (('r1', 'p'), ('r3', 'q')):
        world.post(name, 4, project)
    process = world.process()
    for _ in range(2):
        process.cycle()
    ask = requests.ClusterOperations(world.store, process, trial=trial)
    told = ask.try_account('p', {'share': 0.0}, ALL)['dry_run']
    found = {
        each['project_id']: (
            each['before']['estimated_start'], each['after']['estimated_start']
        )
        for each in told['requests']
    }  # fmt: skip
    at = '1970-01-01T00:26:00+00:00'
    assert found['p'][0] == {'p50': at, 'p90': at}
    assert found['q'][1] == {'p50': at, 'p90': at}
    assert found['p'][1] != found['p'][0]


def test_estimates_that_take_too_long_are_told_of_neither(process):
    last, (time, tried) = process.last(), runs()
    made = trial()

    def plan(snapshot, now):
        time.now += 10.0
        return made.plan(snapshot, now)

    slow = dry_run.QueueTrial(last.snapshot, tried_with(plan))
    found = tried.compare(slow, slow, last.at)
    for each in (*found.before.values(), *found.after.values()):
        assert each.estimate is None
        assert each.waits


@pytest.fixture
def lived(world):
    """Requests of two projects that had room for one at a time."""
    process = world.process()
    for name, project in (
        ('r1', 'p'), ('r2', 'p'), ('r3', 'p'), ('r4', 'q')
    ):  # fmt: skip
        server = world.post(name, 4, project)
        for _ in range(2):
            process.cycle()
        world.cloud.build(server, 'h1', test_service.NEED)
        process.cycle()
        world.go(100.0)
        world.cloud.remove(server)
        process.cycle()
    return process


@pytest.fixture
def replays(world, lived):
    return requests.ClusterOperations(world.store, lived, trial=trial)


@pytest.mark.parametrize('of_order', [False, True])
def test_waits_of_the_last_week_are_replayed(replays, of_order):
    told = (
        replays.try_order('fifo', {}, ALL)
        if of_order
        else replays.try_account('p', {'share': 3.0}, ALL)
    )
    past = told['dry_run']['past_waits']
    assert past['requests_count'] == 4
    counts = {e['project_id']: e['requests_count'] for e in past['projects']}
    assert counts == {'p': 3, 'q': 1}
    assert past['before'].keys() == {'p50', 'p90', 'p95'}
    assert past['since'] == '1970-01-01T00:16:40+00:00'


def test_waits_of_others_are_not_told_to_a_manager(replays):
    reader = interface.DryRunReader('q', 50, reason.Audience.MANAGER)
    told = replays.try_account('q', {'share': 3.0}, reader)['dry_run']
    [only] = told['past_waits']['projects']
    assert (only['project_id'], only['requests_count']) == ('q', 1)


def test_no_waits_are_replayed_for_a_limit(replays):
    told = replays.try_account('p', {'ceiling': {'VCPU': 1}}, ALL)
    assert told['dry_run']['past_waits'] is None


def test_no_waits_are_replayed_after_a_week(world, lived, replays):
    world.go(8 * 86400.0)
    lived.cycle()
    told = replays.try_account('p', {'share': 3.0}, ALL)
    assert told['dry_run']['past_waits'] is None


def test_a_dry_run_beside_another_one_reads_nothing(process, ask, monkeypatch):
    assert ask._dry_runs._working.acquire(blocking=False)
    monkeypatch.setattr(process.accounts, 'require', None)
    monkeypatch.setattr(ask, '_trial', None)
    with pytest.raises(exception.Busy):
        ask.try_account('p', {'share': 3.0}, ALL)
    with pytest.raises(exception.Busy):
        ask.try_order('fifo', {}, ALL)


class Steady:
    """Seconds that stand still until a test moves them."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def runs(**more):
    time = Steady()
    return time, dry_run.DryRuns(lambda _: 1.0, time, **more)


def test_one_dry_run_goes_on_at_a_time_and_none_waits(process):
    last = process.last()
    began, ends = threading.Event(), threading.Event()

    def plan(snapshot, now):
        began.set()
        assert ends.wait(ENOUGH_S)
        return cluster.Plan()

    time, tried = runs()
    slow = dry_run.QueueTrial(last.snapshot, tried_with(plan))
    quick = dry_run.QueueTrial(last.snapshot, trial())
    one = threading.Thread(target=tried.compare, args=(slow, quick, last.at))
    one.start()
    assert began.wait(ENOUGH_S)
    with pytest.raises(exception.Busy, match='try again'):
        tried.compare(quick, quick, last.at)
    with pytest.raises(exception.Busy):
        tried.require_free()
    time.now = 2.0
    ends.set()
    one.join()
    # It took two seconds; cycles have the next two.
    time.now = 3.9
    with pytest.raises(exception.Busy):
        tried.compare(quick, quick, last.at)
    with pytest.raises(exception.Busy):
        tried.require_free()
    time.now = 4.0
    tried.require_free()
    assert len(tried.compare(quick, quick, last.at).requests) == 3


def test_a_dry_run_that_takes_too_long_keeps_others_out_until_it_ends(
    process,
):
    last = process.last()
    ends = threading.Event()

    def plan(snapshot, now):
        assert ends.wait(ENOUGH_S)
        return cluster.Plan()

    _, tried = runs(deadline_s=0.2)
    slow = dry_run.QueueTrial(last.snapshot, tried_with(plan))
    with pytest.raises(exception.IllegalStep, match=r'ended after 0\.2 s'):
        tried.compare(slow, slow, last.at)
    with pytest.raises(exception.Busy):
        tried.compare(slow, slow, last.at)
    ends.set()
    assert tried._working.acquire(timeout=ENOUGH_S)


def test_a_dry_run_that_fails_tells_no_secret_and_sets_nothing_aside(
    process, caplog
):
    last = process.last()

    def plan(snapshot, now):
        raise ValueError('secret of another project')

    _, tried = runs()
    failing = dry_run.QueueTrial(last.snapshot, tried_with(plan))
    with pytest.raises(exception.IllegalStep, match='ValueError') as found:
        tried.compare(failing, failing, last.at)
    assert 'secret' not in str(found.value)
    assert 'secret' in caplog.text
    assert process.quarantine.is_empty
