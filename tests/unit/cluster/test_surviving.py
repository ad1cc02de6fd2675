# SPDX-License-Identifier: Apache-2.0

"""No input of one ends the cycle of all."""

import functools
import threading

import pytest

from nova_fairness import exception
from nova_fairness.cluster import quarantine
from nova_fairness.cluster.admission import plugin_fallbacks
from nova_fairness.cluster.api import requests
from nova_fairness.model import cluster
from nova_fairness.planners.fairqueue import order
from nova_fairness.planners.fairqueue import planner
from nova_fairness.runtime import supervision
from tests.fixtures import fake_cloud
from tests.unit.cluster import test_service

R, S = test_service.R, test_service.S
K = quarantine.InputKind


@pytest.fixture
def world(tmp_path):
    made = test_service.World(tmp_path)
    made.cloud.add_host('h1', 8)
    made.cloud.add_host('h2', 8)
    yield made
    made.close()


def victim_starts(world, process, name='victim'):
    server = world.post(name, 1, 'victim')
    for _ in range(2):
        world.now += 5
        world.tick += 5
        process.cycle()
    return world.state(server) in (S.STARTING, S.ACTIVE)


class FakePlanner:
    """The queue's planner, which raise_error on projects of some names."""

    def __init__(self, error, *projects):
        self.error, self.projects = error, set(projects)

    def __call__(self, snapshot, now):
        if self.projects & {each.project for each in snapshot.requests}:
            raise self.error
        return planner.plan(snapshot, now)


@pytest.mark.parametrize(
    'error',
    [IndexError('x'), MemoryError(), RecursionError(), TypeError('x'),
     OverflowError('x'), exception.BadShares('x')],
)  # fmt: skip
def test_a_failing_request_is_told_and_tried_again_and_others_start(
    world, error
):
    world.plan = FakePlanner(error, 'evil')
    bad, process = world.post('bad', 1, 'evil'), world.process()
    assert victim_starts(world, process)
    told = requests.ClusterOperations(world.store, process).request(bad)[
        'request'
    ]
    assert told['reason'] == 'quarantined'
    assert told['position'] == 1
    assert 'tried again after 60 s' in told['summary'][-1]
    assert world.reason(bad) is R.QUARANTINED
    assert process.quarantine.counts()['request'] == 1
    world.plan.projects = set()
    world.tick += 60
    process.cycle()
    assert world.state(bad) is S.STARTING


def test_an_order_that_hangs_keeps_no_request_from_starting(world):
    class FakeOrder(order.OldestFirst):
        def arrange(self, waiting, snapshot, now):
            while True:
                pass

    table = quarantine.Quarantine(world.steady)
    orders = plugin_fallbacks.OrderFallbacks(
        {'mine': FakeOrder(), 'fifo': order.OldestFirst()}, table, 0.1
    )
    world.plan = functools.partial(planner.plan, order=orders)
    assert victim_starts(world, world.process())
    assert table.names(K.PLUGIN) == {'order mine'}


def test_the_loop_goes_on_after_every_error_of_a_cycle(world):
    errors = [MemoryError(), KeyError('x'), RuntimeError('x'), OSError('x')]

    class FakeStop:
        left = 6

        def is_set(self):
            return not self.left

        def wait(self, _):
            self.left -= 1

    process = world.process()
    read = process._reader.read

    def raise_error(*given):
        if errors:
            raise errors.pop()
        return read(*given)

    process._reader.read = raise_error
    server = world.post('r1', 1)
    process.run(FakeStop(), 0.0, supervision.ServiceManager())
    assert (process.cycles, process.cycles_failed) == (6, 4)
    assert process.quarantine.failures()['part'] == 4
    assert world.state(server) is S.STARTING


@pytest.mark.repeated
@pytest.mark.parametrize(
    'part',
    ['charging.charge', 'chores.apply', '_ends.apply', '_ends.release_times',
     '_making.process_victims', '_leaving.advance_evictions',
     '_estimating.record_delays', '_estimating.compare_with_outcomes',
     '_estimating.current_estimates', '_estimating.compute',
     '_store.settled_requests_with_message', '_store.remove_ended_requests',
     'accounts.times', '_planning.changed_reasons'],
)  # fmt: skip
@pytest.mark.parametrize('error', [ValueError('x'), MemoryError()])
def test_a_failing_part_of_a_cycle_does_not_stop_others(
    world, part, error, monkeypatch
):
    process = world.process()
    held, name = process, part.split('.')
    first = world.post('first', 1, 'victim')
    process.cycle()
    for each in name[:-1]:
        held = getattr(held, each)

    def raise_error(*_):
        raise error

    monkeypatch.setattr(held, name[-1], raise_error)
    world.cloud.build(first, 'h1', {'VCPU': 1, 'MEMORY_MB': 100})
    process.cycle()
    assert world.state(first) is S.ACTIVE
    process.estimate(5.0)
    if part != 'accounts.times':
        assert victim_starts(world, process)
    assert process.quarantine.counts()['part'] == 1
    monkeypatch.undo()
    assert victim_starts(world, process, 'later')


def test_a_part_that_fails_counts_as_a_failed_cycle(world):
    process, stopped = world.process(), threading.Event()

    def raise_error(*_):
        stopped.set()
        raise ValueError

    process.chores.apply = raise_error
    process.run(stopped, 0.0, supervision.ServiceManager())
    assert (process.cycles, process.cycles_failed) == (1, 1)


def test_budgets_are_not_opened_by_a_ledger_that_fails(world, monkeypatch):
    world.accounts = (
        cluster.Account('rich', budget_hours=10.0, time_limit_s=60.0),
    )
    process = world.process()

    def raise_error(*_):
        raise exception.BadLedger('an agent says nan')

    monkeypatch.setattr(process.charging, 'charge', raise_error)
    server = world.post('r1', 1, 'rich')
    assert victim_starts(world, process)
    assert world.state(server) is S.WAITING
    assert world.reason(server) is R.QUARANTINED
    monkeypatch.undo()
    process.cycle()
    assert world.state(server) is S.STARTING


def test_use_stands_still_while_it_cannot_be_charged(world, monkeypatch):
    world.accounts = (cluster.Account('rich', budget_hours=1.0),)
    process = world.process()
    process.cycle()
    before = process.last().snapshot

    def raise_error(*_):
        raise exception.BadLedger('an agent says nan')

    monkeypatch.setattr(process.charging, 'charge', raise_error)
    process.cycle()
    assert process.last().snapshot.budgets == before.budgets
    assert process.last().snapshot.history == before.history


def test_a_listener_to_a_step_cannot_undo_it(world):
    def raise_error(*_):
        raise KeyError

    world.store.set_listener(raise_error)
    assert victim_starts(world, world.process())


@pytest.mark.parametrize('value', [7, {'a': 1}, [['x']], [None, 3], 'h', True])
@pytest.mark.parametrize('field', ['ignore_hosts', 'force_hosts', 'limits'])
def test_fields_of_any_type_harm_only_their_sender(world, field, value):
    name = fake_cloud.name_uuid('bad')
    world.cloud.add_server(name, 'evil')
    cast = test_service.build('bad', name, 1, 'evil', {}, **{field: value})
    world.store.store_message(cast)
    process = world.process()
    assert victim_starts(world, process)
    # What was never sent is in no doubt.
    for record in world.store.requests({S.SENDING}):
        assert record.request.project != 'evil'


def test_messages_that_fail_wait_and_others_are_read(world, monkeypatch):
    process = world.process()
    held = world.store.add_request

    def add(request, *given, **more):
        if request.project == 'evil':
            raise KeyError('x')
        return held(request, *given, **more)

    monkeypatch.setattr(world.store, 'add_request', add)
    server = world.post('bad', 1, 'evil')
    assert victim_starts(world, process)
    assert process.quarantine.counts()['message'] == 1
    monkeypatch.undo()
    world.tick += 60
    process.cycle()
    assert world.state(server) is S.STARTING


def test_limits_that_fail_let_no_request_start_without_them(
    world, monkeypatch
):
    process = world.process()
    times = process.accounts.times

    def failing(longest):
        granted = times(longest)

        def of(project, user):
            if project == 'evil':
                raise ZeroDivisionError
            return granted(project, user)

        return of

    monkeypatch.setattr(process.accounts, 'times', failing)
    server = world.post('bad', 1, 'evil')
    assert victim_starts(world, process)
    assert world.store.request(server) is None
    monkeypatch.undo()
    process.cycle()
    assert world.state(server) in (S.WAITING, S.STARTING)


def test_a_request_with_which_promises_fail_is_set_aside(world, monkeypatch):
    process = world.process()
    seen = process._making.with_evictions

    def raise_error(view, found, *given):
        if any(each.request.project == 'evil' for each in found):
            raise ValueError
        return seen(view, found, *given)

    monkeypatch.setattr(process._making, 'with_evictions', raise_error)
    server = world.post('bad', 1, 'evil')
    assert victim_starts(world, process)
    assert process.quarantine.holds(K.REQUEST, server)
    assert world.reason(server) is R.QUARANTINED


@pytest.mark.repeated
@pytest.mark.parametrize('answer', [500, 503, 400, 403, 409, 429, 'null'])
@pytest.mark.parametrize(
    'part', ['inventories', 'usages', 'traits', 'aggregates']
)
def test_a_provider_for_which_placement_fails_keeps_no_other_host_back(
    world, part, answer
):
    bad = world.cloud.add_host('bad', 8)
    process = world.process()
    process.cycle()
    path = f'GET /resource_providers/{bad}/{part}'
    world.cloud.providers[bad]['generation'] += 1
    world.cloud.broken[path] = answer
    assert victim_starts(world, process)
    assert world.hosts('victim') != ('bad',)
    assert process.quarantine.holds(K.HOST, 'bad')
    assert not process.cycles_failed
    world.cloud.broken.clear()
    process.cycle()
    assert not process.quarantine.holds(K.HOST, 'bad')


@pytest.mark.parametrize('answer', [500, 503, 400, 403, 409, 429, 'null'])
def test_a_project_for_which_placement_fails_keeps_no_other_back(
    world, answer, monkeypatch
):
    tell = world.cloud.answer

    def told(method, url, *more):
        is_bad = 'project_id=evil' in url
        if is_bad and isinstance(answer, int):
            return answer, ''
        return (200, answer) if is_bad else tell(method, url, *more)

    world.cloud.answer = told
    process = world.process()
    bad = world.post('bad', 1, 'evil')
    assert victim_starts(world, process)
    assert world.reason(bad) is R.QUARANTINED
    world.cloud.answer = tell
    process.cycle()
    assert world.state(bad) is S.STARTING


@pytest.mark.parametrize('path', ['GET /resource_providers/', 'GET /usages'])
def test_a_placement_that_is_away_ends_the_cycle(world, path):
    process = world.process()
    world.cloud.broken[path] = 503
    server = world.post('r1', 1)
    with pytest.raises(exception.CloudAway):
        process.cycle()
    world.cloud.broken.clear()
    process.cycle()
    assert world.state(server) is S.STARTING
