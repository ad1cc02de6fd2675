# SPDX-License-Identifier: Apache-2.0

"""Budgets of a service with a real store beside a fake cloud.

Time begins at 1000 s of the epoch: the first month ends at 31 days.
"""

import pytest

from nova_fairness import exception
from nova_fairness.cluster.eviction import time_limits
from nova_fairness.model import cluster
from nova_fairness.model import eviction
from nova_fairness.model import reason
from nova_fairness.shares import budgets
from tests.unit.cluster import test_service

world = test_service.world
S, R = test_service.S, reason.Reason
HOUR_S = 3600.0
LIMIT_S = 2 * HOUR_S
MONTH_S = 31 * 86400.0
STOPS = time_limits.TimeLimitOptions(
    (eviction.EvictionAction.SHELVE,), extension_s=10 * HOUR_S
)
FLAVOR = {'vcpus': 4, 'ram': 100, 'disk': 0}


@pytest.fixture
def process(world):
    """A process that charged what there was: nothing."""
    budget(world, 20.0)
    made = world.process(at_end=STOPS)
    made.cycle()
    return made


def budget(world, hours, limit_s=LIMIT_S):
    account = cluster.Account(
        'the-project', time_limit_s=limit_s, budget_hours=hours
    )
    world.accounts = (account,)


def hours_left(process):
    """Hours that are left of this month."""
    now, _ = process.last().snapshot.budgets.left['the-project']
    return now / HOUR_S


def start(world, process, name, host='h1'):
    """A server of four VCPUs that runs."""
    server = world.post(name)
    world.cloud.servers[server]['flavor'] = FLAVOR
    process.cycle()
    if world.state(server) is S.STARTING:
        world.cloud.build(server, host, test_service.NEED)
        process.cycle()
    return server


def test_a_budget_is_committed_at_start_and_settled_at_the_end(world, process):
    server = start(world, process, 'r1')
    assert world.state(server) is S.ACTIVE
    process.cycle()
    assert hours_left(process) == 20 - 8
    for _ in range(30):
        world.now += 120
        process.cycle()
        assert hours_left(process) == pytest.approx(20 - 8)
    world.cloud.remove(server)
    world.now += 60
    process.cycle()
    # It ran for an hour of two.
    assert hours_left(process) == pytest.approx(20 - 4)
    assert world.store.read_ledger().spent['the-project'] == 4 * HOUR_S


def test_a_server_moves_hours_from_left_to_committed_to_used(world, process):
    def told():
        parts = budgets.budget_parts(
            world.accounts[0], process.last().snapshot.budgets
        )
        return [each / HOUR_S for each in parts]

    assert told() == pytest.approx([0, 0, 20])
    server = start(world, process, 'r1')
    assert told() == pytest.approx([0, 8, 12])
    world.now += HOUR_S
    process.cycle()
    assert told() == pytest.approx([4, 4, 12])
    process.extend(server, HOUR_S)
    assert told() == pytest.approx([4, 8, 8])
    world.cloud.remove(server)
    world.now += 60
    process.cycle()
    used, committed, hours_left = told()
    assert (committed, hours_left) == (0, pytest.approx(20 - used))


def test_a_request_beyond_its_budget_waits_until_some_is_left(world, process):
    world.cloud.add_host('h2', 4)
    # A minute at most is not charged yet, and could still be used.
    budget(world, 12.1)
    first = start(world, process, 'r1')
    second = start(world, process, 'r2')
    assert (world.state(second), world.reason(second)) == (
        S.WAITING, R.BUDGET_SPENT
    )  # fmt: skip
    world.now += HOUR_S
    process.cycle()
    world.cloud.remove(first)
    for _ in range(2):
        world.now += 2
        process.cycle()
    assert world.state(second) is S.STARTING


def test_the_next_month_begins_at_zero(world, process):
    world.now = MONTH_S - 2 * LIMIT_S
    process.cycle()
    server = start(world, process, 'r1')
    world.now += 60
    process.cycle()
    world.cloud.remove(server)
    budget(world, 8.0)
    process.cycle()
    waits = start(world, process, 'r2')
    assert world.reason(waits) is R.BUDGET_SPENT
    world.now = MONTH_S + 1
    process.cycle()
    process.cycle()
    assert world.state(waits) is S.STARTING
    assert hours_left(process) == pytest.approx(0.0, abs=0.01)


def test_a_monthly_budget_is_charged_for_use_in_that_month_only(
    world, process
):
    world.now = MONTH_S - HOUR_S
    process.cycle()
    start(world, process, 'r1')
    world.now = MONTH_S + 1800
    process.cycle()
    assert world.store.read_ledger().since == MONTH_S
    assert world.store.read_ledger().spent['the-project'] == 4 * 1800
    process.cycle()
    # From the begin of the month to its end an hour after.
    assert hours_left(process) == pytest.approx(20 - 4, abs=0.01)


def test_a_clock_that_goes_back_renews_no_budget(world, process):
    start(world, process, 'r1')
    world.now = MONTH_S + 60
    process.cycle()
    spent = world.store.read_ledger()
    world.now = MONTH_S - 60
    process.cycle()
    assert world.store.read_ledger() == spent
    world.now = MONTH_S + 61
    process.cycle()
    assert world.store.read_ledger().spent == spent.spent


def test_a_new_process_continues_with_stored_budgets(world, process):
    start(world, process, 'r1')
    world.now += 600
    process.cycle()
    spent = world.store.read_ledger().spent
    world.tick += 31
    other = world.process('two', at_end=STOPS)
    other.cycle()
    world.tick += 31
    other.cycle()
    assert hours_left(other) == pytest.approx(20 - 8)
    assert world.store.read_ledger().spent == spent


def test_an_extension_is_paid_for_at_once(world, process):
    server = start(world, process, 'r1')
    process.extend(server, 2 * HOUR_S)
    assert hours_left(process) == pytest.approx(20 - 16)
    with pytest.raises(exception.IllegalStep, match='and the budget of'):
        process.extend(server, 2 * HOUR_S)
    process.cycle()
    assert hours_left(process) == pytest.approx(20 - 16)
    process.extend(server, HOUR_S)
    process.cycle()
    assert hours_left(process) == pytest.approx(0.0)


def test_a_refused_extension_tells_nothing_of_accounts_above(world):
    world.accounts = (
        cluster.Account('physics', budget_hours=20.0),
        cluster.Account('the-project', parent='physics', time_limit_s=LIMIT_S),
    )
    process = world.process(at_end=STOPS)
    process.cycle()
    server = start(world, process, 'r1')
    process.extend(server, 2 * HOUR_S)
    with pytest.raises(exception.IllegalStep) as refused:
        process.extend(server, 2 * HOUR_S)
    said = str(refused.value)
    assert 'more than is left of the budget of an account' in said
    assert 'physics' not in said


def test_an_extended_waiting_request_is_charged_later(world, process):
    budget(world, 0.0)
    server = start(world, process, 'r1')
    process.extend(server, HOUR_S)
    assert world.reason(server) is R.BUDGET_SPENT
    assert hours_left(process) == 0
    budget(world, 12.0)
    process.cycle()
    process.cycle()
    assert hours_left(process) == pytest.approx(0.0, abs=0.01)


def change(process, name, values):
    process.change(lambda epoch: process.accounts.change(name, values, epoch))


def test_a_budget_is_set_while_the_service_runs(world, process):
    world.accounts = ()
    process.cycle()
    assert process.last().snapshot.budgets is None
    change(process, 'the-project', {'budget_hours': 1.0})
    process.cycle()
    waits = start(world, process, 'r1')
    assert world.reason(waits) is R.BUDGET_SPENT
    with pytest.raises(exception.BadShares, match='budget of account'):
        change(process, 'the-project', {'budget_hours': -1.0})


def test_outside_of_its_window_an_account_starts_nothing(world, process):
    window = cluster.Window('0 20 * * *', HOUR_S)
    world.accounts = (cluster.Account('the-project', windows=(window,)),)
    waits = start(world, process, 'r1')
    assert world.reason(waits) is R.WINDOW_CLOSED
    world.now = 20 * HOUR_S
    process.cycle()
    assert world.state(waits) is S.STARTING


def test_an_account_starts_no_more_than_its_ceiling(world, process):
    world.cloud.add_host('h2', 4)
    world.accounts = (
        cluster.Account('faculty', ceiling=(('VCPU', 7),)),
        cluster.Account('the-project', 'faculty'),
    )
    first, second = start(world, process, 'r1'), start(world, process, 'r2')
    assert world.state(first) is S.ACTIVE
    assert world.reason(second) is R.OVER_ACCOUNT_CEILING
    world.cloud.remove(first)
    for _ in range(2):
        process.cycle()
    assert world.state(second) is S.STARTING
