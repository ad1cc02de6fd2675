# SPDX-License-Identifier: Apache-2.0

"""Groups with rates, and what is charged, on a real store."""

import random

import pytest
import sqlalchemy as sa

from nova_fairness import exception
from nova_fairness.cluster.api import requests
from nova_fairness.cluster.store import tables
from nova_fairness.cluster.usage import prices
from nova_fairness.cluster.usage import spending as spending_module
from nova_fairness.model import cluster
from nova_fairness.model import market
from nova_fairness.shares import spending
from tests.unit.cluster import test_service

world = test_service.world
SECOND = 1_000_000
HOUR = 3600 * SECOND


@pytest.fixture
def process(world):
    return world.process()


@pytest.fixture
def ask(world, process):
    return requests.ClusterOperations(world.store, process)


def runs(world, uuid, group='', project='p', vcpus=1000):
    """A server that runs, of a group that its metadata say."""
    flavor = {'vcpus': vcpus, 'ram': 1, 'disk': 0, 'ephemeral': 0}
    world.cloud.add_server(uuid, project, 'u', flavor=flavor)
    world.cloud.build(uuid, 'h1', {'VCPU': 1})
    if group:
        world.cloud.servers[uuid]['metadata'] = {'fairness:group': group}


def spent(world):
    """Units by account, as they are stored."""
    return dict(world.store.market.read_if_changed(-1).spent)


def after(world, name):
    """The process that leads once the one before has ended."""
    process = world.process(name)
    process.cycle()
    world.tick += 31
    assert process.cycle()
    return process


def had(ask, uuid, used, process='1/1', host='h1'):
    """The agent of a host says what a server had."""
    return ask.report_meters(host, {uuid: (process, used)})['elsewhere']


def later(world, process, seconds=spending_module.EVERY_S):
    world.now += seconds
    process.cycle()


def test_servers_of_a_group_have_their_part_of_its_rate(world, process, ask):
    for uuid in ('s1', 's2'):
        runs(world, uuid, 'web')
    runs(world, 's3')
    process.cycle()
    told = ask.create_group('p', 'web', 70.0, 2)['group']
    assert told == {
        'id': 'p/web', 'name': 'web', 'project_id': 'p', 'rate': 70.0,
        'count': 2, 'servers_count': 2, 'server_rate': 35.0,
    }  # fmt: skip
    asked = ['s1', 's2', 's3', 'x']
    told = ask.rates(asked, '')
    assert told['rates'] == {'s1': 35.0, 's2': 35.0, 's3': 1.0}
    assert ask.rates(asked, told['version']) == {
        'version': told['version'],
        'rates': None,
    }
    ask.set_group('p', 'web', 10.0, None)
    assert ask.rates(asked, '')['rates']['s1'] == 5.0
    ask.delete_group('p', 'web')
    assert ask.rates(asked, told['version'])['rates']['s1'] == 1.0


def test_groups_are_listed_by_project_and_name(world, process, ask):
    process.cycle()
    for project, name in (('q', 'a'), ('p', 'b'), ('p', 'a')):
        ask.create_group(project, name, 1.0, 1)
    first = ask.groups(None, None, 2)
    assert [each['id'] for each in first['groups']] == ['p/a', 'p/b']
    assert first['more']
    rest = ask.groups(None, 'p/b', 2)
    assert [each['id'] for each in rest['groups']] == ['q/a']
    assert not rest['more']
    assert [each['name'] for each in ask.groups('q', None, 9)['groups']] == [
        'a'
    ]


def test_an_unknown_or_repeated_group_is_named(process, ask):
    process.cycle()
    ask.create_group('p', 'web', 1.0, 1)
    with pytest.raises(exception.IllegalStep, match='a group web already'):
        ask.create_group('p', 'web', 1.0, 1)
    for call in (
        lambda: ask.set_group('p', 'db', 1.0, 1),
        lambda: ask.delete_group('q', 'web'),
    ):
        with pytest.raises(exception.UnknownGroup, match='no group'):
            call()
    with pytest.raises(exception.BadArgument, match='rate of group web'):
        ask.set_group('p', 'web', 1e9, None)
    assert ask.groups(None, None, 9)['groups'][0]['rate'] == 1.0


def test_use_is_charged_by_the_rate_from_when_it_is_first_told(
    world, process, ask
):
    runs(world, 's1', 'web')
    process.cycle()
    ask.create_group('p', 'web', 30.0, 1)
    had(ask, 's1', 5 * HOUR)
    later(world, process)
    had(ask, 's1', 6 * HOUR)
    # Late and told twice: it is charged once.
    later(world, process)
    had(ask, 's1', 6 * HOUR)
    had(ask, 's1', 5 * HOUR)
    later(world, process)
    assert spent(world) == {'p/u': 30 * spending.UNIT}
    # The VM began anew: what its new process has is seen from now on.
    had(ask, 's1', 0, '2/1')
    later(world, process)
    had(ask, 's1', HOUR, '2/1')
    later(world, process)
    assert spent(world) == {'p/u': 60 * spending.UNIT}


def test_charges_add_up_to_the_last_unit_over_restarts(world):
    """Processes end at any moment; rates change meanwhile."""
    runs(world, 's1', 'web')
    runs(world, 's2')
    chance = random.Random(5)
    process = world.process()
    process.cycle()
    ask = requests.ClusterOperations(world.store, process)
    ask.create_group('p', 'web', 7.0, 1)
    used, owed, rate = {'s1': 0, 's2': 0}, 0, 7000
    for uuid, much in used.items():
        had(ask, uuid, much)
    later(world, process)
    for _ in range(200):
        what = chance.random()
        if what < 0.6:
            uuid = chance.choice(['s1', 's2'])
            more = chance.randrange(1, 10**9)
            used[uuid] += more
            owed += more * (rate if uuid == 's1' else 1000)
            later(world, process, 1.0)
            had(ask, uuid, used[uuid])
        elif what < 0.75:
            rate = chance.randrange(1000, 10**6)
            ask.set_group('p', 'web', rate / 1000, None)
            rate = int(rate / 1000 * 1000)
        elif what < 0.9:
            later(world, process, chance.choice([1.0, 70.0]))
        else:
            # Killed: what was told since the last write is told again.
            process = after(world, f'p{world.tick}')
            ask = requests.ClusterOperations(world.store, process)
            for uuid, much in used.items():
                had(ask, uuid, much)
    later(world, process)
    assert spent(world) == {'p/u': owed}


def test_funds_are_never_below_zero_and_then_the_lowest_rate_holds(
    world, process, ask
):
    world.accounts = (cluster.Account('p', funds=10.0),)
    runs(world, 's1', 'web')
    process.cycle()
    ask.create_group('p', 'web', 30.0, 1)
    had(ask, 's1', 0)
    later(world, process)
    [limit] = ask.limits(None, None, 9)['limits']
    assert (limit['funds'], limit['funds_left']) == (10.0, 10.0)
    had(ask, 's1', HOUR // 6)
    told = ask.rates(['s1'], '')
    assert told['rates'] == {'s1': 30.0}
    [limit] = ask.limits(None, None, 9)['limits']
    assert limit['funds_left'] == 5.0
    later(world, process)
    had(ask, 's1', HOUR)
    process.cycle()
    had(ask, 's1', 2 * HOUR)
    told = ask.rates(['s1'], '')
    assert told['rates'] == {'s1': 1.0}
    [limit] = ask.limits(None, None, 9)['limits']
    assert limit['funds_left'] == 0.0
    later(world, process)
    assert spent(world) == {'p/u': 10 * spending.UNIT}
    # More funds: the rate of the group holds again.
    ask.set_limits('p', {'funds': 20.0})
    process.cycle()
    assert ask.rates(['s1'], '')['rates'] == {'s1': 30.0}


def test_groups_and_charges_outlive_the_process(world, process, ask):
    runs(world, 's1', 'web')
    process.cycle()
    ask.create_group('p', 'web', 30.0, 1)
    other = after(world, 'two')
    told = requests.ClusterOperations(world.store, other)
    assert told.groups(None, None, 9)['groups'][0]['rate'] == 30.0
    assert told.rates(['s1'], '')['rates'] == {'s1': 30.0}
    # Who was deposed changes nothing.
    with pytest.raises(exception.FairnessError):
        ask.set_group('p', 'web', 99.0, None)
    assert told.groups(None, None, 9)['groups'][0]['rate'] == 30.0


def test_servers_that_are_gone_are_forgotten(world, process, ask):
    runs(world, 's1')
    process.cycle()
    had(ask, 's1', 7)
    later(world, process)
    assert list(world.store.market.read_if_changed(-1).meters) == ['s1']
    world.cloud.remove('s1')
    runs(world, 's2')
    for _ in range(3):
        later(world, process, 1000.0)
    had(ask, 's2', 7)
    later(world, process)
    assert list(world.store.market.read_if_changed(-1).meters) == ['s2']


def test_a_project_has_so_many_groups_at_most(world, process, ask):
    process.cycle()
    process.charging.trading._most = 2
    for name in ('web', 'db'):
        ask.create_group('p', name, 1.0, 1)
    with pytest.raises(exception.IllegalStep, match='has 2 groups'):
        ask.create_group('p', 'more', 1.0, 1)
    ask.create_group('q', 'web', 1.0, 1)
    ask.set_group('p', 'web', 2.0, None)
    ask.delete_group('p', 'db')
    ask.create_group('p', 'more', 1.0, 1)


def test_an_agent_charges_for_servers_of_its_own_host_alone(
    world, process, ask
):
    world.cloud.add_host('h2', 4)
    runs(world, 's1')
    process.cycle()
    assert had(ask, 's1', 0, host='h2') == ['s1']
    assert had(ask, 'unknown', 0) == ['unknown']
    later(world, process)
    assert had(ask, 's1', HOUR, host='h2') == ['s1']
    later(world, process)
    assert (spent(world), world.store.market.read_if_changed(-1).meters) == (
        {},
        {},
    )


def test_no_server_is_charged_more_than_its_cpus_times_the_time(
    world, process, ask
):
    runs(world, 's1', vcpus=2)
    process.cycle()
    had(ask, 's1', 0)
    for used in (2**53 - 1, 2**53 - 1, 5, 2**53 - 1):
        had(ask, 's1', used)
    later(world, process)
    assert spent(world) == {}
    for n in range(1, 5):
        had(ask, 's1', 2**53 - 1)
        had(ask, 's1', 2**53 - 1)
        later(world, process)
        assert spent(world)['p/u'] == n * 2 * 60 * SECOND * 1000
    # Other processes begin from what they say, whatever they are called.
    for n in range(50):
        had(ask, 's1', 2**53 - 1, process=f'{n}/x')
    later(world, process)
    assert spent(world)['p/u'] == 4 * 2 * 60 * SECOND * 1000
    assert len(world.store.market.read_if_changed(-1).meters) == 1


def test_after_a_clock_was_set_back_meters_charge_from_then_on(
    world, process, ask
):
    """A day back: what can have been used since then, and no more."""
    runs(world, 's1', vcpus=2)
    process.cycle()
    had(ask, 's1', 0)
    later(world, process)
    had(ask, 's1', 10 * SECOND)
    later(world, process)
    assert spent(world)['p/u'] == 10 * SECOND * 1000
    world.now -= 86400
    process = after(world, 'two')
    ask = requests.ClusterOperations(world.store, process)
    had(ask, 's1', HOUR)
    later(world, process)
    assert spent(world)['p/u'] == 10 * SECOND * 1000
    had(ask, 's1', HOUR)
    later(world, process)
    assert spent(world)['p/u'] == (10 + 2 * 60) * SECOND * 1000


def test_after_a_clock_was_set_back_a_process_stores_charges_as_before(
    world, process, ask, monkeypatch
):
    runs(world, 's1', vcpus=2)
    process.cycle()
    had(ask, 's1', 0)
    later(world, process)
    see = process.charging.trading.see
    monkeypatch.setattr(
        process.charging.trading,
        'see',
        lambda snapshot, now, epoch: see(snapshot, now - 86400, epoch),
    )
    for _ in range(3):
        later(world, process)
        had(ask, 's1', 5 * SECOND)
    later(world, process)
    assert spent(world)['p/u'] == 5 * SECOND * 1000


def test_rows_grow_with_servers_and_not_with_messages(world, process, ask):
    for number in range(3):
        runs(world, f's{number}', project=f'p{number % 2}')
    process.cycle()
    for number in range(40):
        said = {f'x{number}-{n}' * 20: ('p', 1) for n in range(500)}
        said |= {f's{n}': (f'{number}' * 200, number) for n in range(3)}
        ask.report_meters('h1', said)
        ask.rates(list(said), '')
        later(world, process)
    with world.engine.connect() as connection:
        rows = connection.execute(sa.select(tables.TRADES)).fetchall()
    assert sorted(row.project for row in rows) == ['p0', 'p1']
    assert max(len(row.kept) for row in rows) < 2000


def test_a_row_that_cannot_be_read_sets_its_own_project_aside(world, caplog):
    process = world.process()
    runs(world, 's1', 'web')
    process.cycle()
    ask = requests.ClusterOperations(world.store, process)
    ask.create_group('p', 'web', 30.0, 1)
    ask.create_group('q', 'web', 20.0, 1)
    with world.engine.begin() as connection:
        at = tables.TRADES.c.project == 'q'
        broken = sa.update(tables.TRADES).where(at).values(kept='[')
        connection.execute(broken)
    process = after(world, 'two')
    ask = requests.ClusterOperations(world.store, process)
    found = [each['id'] for each in ask.groups(None, None, 9)['groups']]
    assert found == ['p/web']
    assert 'project q: its stored groups' in caplog.text
    had(ask, 's1', 0)
    later(world, process)
    had(ask, 's1', SECOND)
    later(world, process)
    assert spent(world) == {'p/u': 30_000 * SECOND}
    with world.engine.connect() as connection:
        query = sa.select(tables.TRADES.c.kept).where(at)
        assert connection.execute(query).scalar() == '['


def test_a_group_is_as_it_was_if_it_cannot_be_stored(world, process):
    process.cycle()
    group = market.SpendingGroup('p', 'web', 1.0)
    with pytest.raises(exception.FairnessError):
        process.charging.trading.change('p', 'web', group, epoch=77)
    assert process.charging.trading.group('p', 'web') is None


# Prices --------------------------------------------------------------------


def priced(told):
    return {each['host']: each['price'] for each in told['prices']}


def test_a_price_is_the_sum_of_spending_on_a_host(world, process, ask):
    world.cloud.add_host('h2', 4)
    for uuid in ('s1', 's2'):
        runs(world, uuid, 'web')
    runs(world, 's3')
    process.cycle()
    ask.create_group('p', 'web', 70.0, 2)
    [told] = [
        each for each in ask.prices(None, None, 9)['prices'] if each['price']
    ]
    assert told['host'] == told['id'] == 'h1'
    assert told['resource_class'] == 'VCPU'
    assert told['price'] == 71.0
    assert told['capacity'] > 0
    # Hosts without servers cost nothing, and are told.
    assert 0.0 in priced(ask.prices(None, None, 9)).values()


def test_prices_are_told_page_by_page(world, process, ask):
    world.cloud.add_host('h2', 4)
    process.cycle()
    names = [each['host'] for each in ask.prices(None, None, 9)['prices']]
    assert names == sorted(names)
    first = ask.prices(None, None, 1)
    assert first['more']
    rest = ask.prices(None, first['prices'][0]['id'], 9)
    assert [each['host'] for each in rest['prices']] == names[1:]


def test_the_past_has_a_row_where_a_price_changed(world, process, ask):
    runs(world, 's1', 'web')
    process.cycle()
    ask.create_group('p', 'web', 5.0, 1)
    for rate in (5.0, 5.0, 9.0):
        ask.set_group('p', 'web', rate, None)
        later(world, process, prices.EVERY_S)
    past = ask.prices('h1', None, 9)['prices']
    assert [each['price'] for each in past] == [9.0, 5.0, 1.0]
    first = ask.prices('h1', None, 1)
    assert first['more']
    rest = ask.prices('h1', first['prices'][0]['id'], 9)
    assert [each['price'] for each in rest['prices']] == [5.0, 1.0]
    assert not rest['more']
    # What changes in between is not written.
    ask.set_group('p', 'web', 11.0, None)
    later(world, process, prices.EVERY_S / 2)
    assert ask.prices('h1', None, 9)['prices'] == past
    assert priced(ask.prices(None, None, 9))['h1'] == 11.0


def test_an_old_price_is_forgotten(world, process, ask):
    runs(world, 's1')
    process.cycle()
    assert ask.prices('h1', None, 9)['prices']
    # Nothing changes: what is left would be a row of the first moment.
    later(world, process, 86400.0 + 60.0)
    assert ask.prices('h1', None, 9)['prices'] == []


def test_another_process_goes_on_with_the_past(world, process, ask):
    runs(world, 's1')
    process.cycle()
    world.now += 5.0
    successor = after(world, 'second')
    other = requests.ClusterOperations(world.store, successor)
    later(world, successor, prices.EVERY_S)
    past = other.prices('h1', None, 9)['prices']
    assert {each['price'] for each in past} == {1.0}
    assert len(past) == 2


def test_a_host_or_a_marker_that_is_none_is_named(world, process, ask):
    process.cycle()
    with pytest.raises(exception.UnknownHost, match='no host x'):
        ask.prices('x', None, 9)
    for marker in ('soon', 'nan'):
        with pytest.raises(exception.BadArgument, match='marker'):
            ask.prices('h1', marker, 9)


# What projects read of prices ------------------------------------------------


def of_project(ask, project):
    told = ask.prices(None, None, 99, project)['prices']
    return {each['host']: each['price'] for each in told}


@pytest.fixture
def market_of(world, process, ask):
    """Three hosts; two projects with a group and a server each."""
    for name in ('h2', 'h3'):
        world.cloud.add_host(name, 4)
    runs(world, 's1', 'web', 'p')
    runs(world, 's2', 'batch', 'q')
    runs(world, 's3', '', 'q')
    process.cycle()
    return ask


def test_a_project_reads_no_price_where_no_group_is_set(market_of):
    assert of_project(market_of, 'p') == {}
    assert market_of.prices(None, None, 99, '')['prices'] == []
    assert len(market_of.prices(None, None, 99)['prices']) == 3


def test_a_project_reads_names_of_its_own_that_stay(market_of, world, process):
    market_of.create_group('q', 'batch', 70.0, 1)
    first = of_project(market_of, 'p')
    assert not {'h1', 'h2', 'h3'} & first.keys()
    assert len(first) == 3
    assert not first.keys() & of_project(market_of, 'q').keys()
    later(world, process)
    assert of_project(market_of, 'p') == first
    other = after(world, 'two')
    again = requests.ClusterOperations(world.store, other)
    assert of_project(again, 'p') == first


def test_a_rate_of_ones_own_moves_no_price_that_one_reads(market_of):
    market_of.create_group('q', 'batch', 70.0, 1)
    before = of_project(market_of, 'p')
    assert sorted(before.values()) == [0.0, 0.0, 50.0]
    market_of.create_group('p', 'web', 0.5, 1)
    for rate in (1.0, 17.0, 12345.678):
        market_of.set_group('p', 'web', rate, None)
        assert of_project(market_of, 'p') == before


def test_prices_do_not_tell_how_many_servers_there_are(
    market_of, world, process
):
    market_of.create_group('q', 'batch', 70.0, 1)
    before = of_project(market_of, 'p')
    for number in range(1, 4):
        runs(world, f'more{number}', '', 'r')
        later(world, process)
        assert of_project(market_of, 'p') == before


def test_a_project_reads_no_past_of_any_host(market_of):
    market_of.create_group('p', 'web', 70.0, 1)
    [first, *_] = of_project(market_of, 'p')
    for host in ('h1', 'x', first):
        for project in ('p', ''):
            with pytest.raises(exception.UnknownHost, match=f'no host {host}'):
                market_of.prices(host, None, 9, project)


@pytest.mark.parametrize(
    ('amount', 'told'),
    [
        (0.0, 0.0), (-1.0, 0.0), (0.001, 0.001), (0.0029, 0.002),
        (1.0, 1.0), (4.99, 2.0), (5.0, 5.0), (9.99, 5.0), (10.0, 10.0),
        (1000.0, 1000.0), (999_999.0, 500_000.0), (1e12, 1e12),
    ],
)  # fmt: skip
def test_prices_are_rounded_down(amount, told):
    assert prices._rounded_down(amount) == pytest.approx(told)
