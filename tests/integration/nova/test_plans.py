# SPDX-License-Identifier: Apache-2.0

"""Migration plans in a real cloud: real guests, and hosts of the fake driver
where many moves, failures and the service's death are wanted."""

import pathlib

import pytest

from nova_fairness.cluster.move_plans import host_power
from tests.fixtures import panels
from tests.fixtures.nova_cloud import environment
from tests.fixtures.nova_cloud import fake_hosts
from tests.fixtures.nova_cloud import scraping
from tests.integration.nova import planned
from tests.integration.nova import rooms
from tests.integration.nova import watching

pytestmark = [pytest.mark.real, pytest.mark.timeout(watching.TIMEOUT_S)]
pytest_plugins = (
    'tests.fixtures.nova_cloud.fixtures',
    'tests.integration.nova.planned',
)

HOSTS, VCPUS = 3, 4
WIDE = 'wide'
"""A flavor of four vCPUs."""


TEST = str(pathlib.Path(__file__).relative_to(environment.TOP))


def record(title, plans, uuid, **more):
    """Keep what came of a plan, and what came of it beside that."""
    keys = 'goal', 'state', 'explanation', 'promised', 'won'
    told = plans.show(uuid)
    moves = [
        {key: each[key] for key in ('state', 'explanation', 'sent_mb')}
        for each in told['moves']
    ]
    about = {key: told[key] for key in keys}
    planned.record(TEST, title, **about, moves=moves, **more)


@pytest.fixture(scope='module')
def fakes(cloud, queue):
    with fake_hosts.running(cloud, HOSTS, VCPUS) as names:
        yield names


@pytest.mark.slow
def test_a_host_is_emptied_under_load_and_disabled(plans, cloud, servers):
    busy = servers['carol-1']
    assert plans.host(busy) == 'cmp2'
    plans.start(planned.APPROVE)
    uuid = plans.empty('cmp2')
    assert plans.show(uuid)['state'] == 'proposed'
    plans.approve(uuid)
    try:
        told = plans.ended(uuid)
        assert plans.moves(uuid) == {busy: ('moved', 'arrived')}
        assert (told['state'], told['won']['emptied']) == ('done', 1)
        assert told['won']['memory_mb'] > 0
        assert plans.host(busy) == 'cmp1'
        found = plans.service_of('cmp2')
        assert found['status'] == 'disabled'
        assert found['disabled_reason'].startswith(host_power.EMPTIED)
        record('a host is emptied under load', plans, uuid)
        with scraping.running(cloud) as prometheus:
            panels.await_values('plans', prometheus.query)
    finally:
        plans.enable('cmp2')
        if plans.host(busy) != 'cmp2':
            cloud.await_status(busy)
            cloud.act(
                busy, 'os-migrateLive', host='cmp2', block_migration='auto'
            )
            cloud.await_status(busy)
    assert plans.host(busy) == 'cmp2'


@pytest.fixture
def two_vcpu_flavor(cloud):
    about = {'id': WIDE, 'name': WIDE, 'vcpus': 4, 'ram': 128, 'disk': 1}
    cloud.admin.post('compute', '/flavors', {'flavor': about})
    yield WIDE
    cloud.admin.delete('compute', f'/flavors/{WIDE}')


@pytest.mark.slow
def test_a_migration_makes_room_for_a_request_that_fits_nowhere(
    plans, cloud, fakes, lying, two_vcpu_flavor
):
    for host in fakes:
        lying(host, 2)
    plans.start(planned.APPROVE)
    known = plans.new(())
    plans.start({**planned.AUTO, 'goals': 'rescue'})
    [asked] = lying(None, 1, two_vcpu_flavor, wait=False)
    cloud.await_status(asked)
    [told] = [each for each in plans.all() if each['subject'] == asked]
    told = plans.ended(told['uuid'])
    assert (told['goal'], told['state']) == ('rescue', 'done')
    assert told['won']['served'] == told['promised']['served'] == 1
    assert told['won']['moves'] == 2
    assert len(plans.new(known)) == 1
    record('a request is rescued', plans, told['uuid'])


@pytest.fixture
def deaths(cloud, queue):
    made = rooms.Deaths(cloud)
    try:
        yield made
    finally:
        made.end()


@pytest.mark.slow
def test_a_plan_continues_after_service_crashes_without_repeated_moves(
    plans, cloud, fakes, lying, deaths
):
    first, *_ = fakes
    servers = lying(first, VCPUS)
    plans.start({**planned.APPROVE, 'at_once_per_host': '2'})
    uuid = plans.empty(first)
    plans.approve(uuid)
    deaths.begin()
    told = plans.ended(uuid)
    deaths.end()
    assert deaths.count >= 2
    assert (told['state'], told['won']['emptied']) == ('done', 1)
    assert plans.moves(uuid) == dict.fromkeys(servers, ('moved', 'arrived'))
    for each in servers:
        assert plans.migrations(each) == ['completed']
        assert plans.host(each) != first
    assert plans.service_of(first)['disabled_reason'].startswith(
        host_power.EMPTIED
    )
    record(
        'the service dies',
        plans,
        uuid,
        killed=deaths.count,
        migrations_of_each={each: plans.migrations(each) for each in servers},
    )
    plans.enable(first)


@pytest.mark.slow
def test_a_plan_reports_manual_moves_failures_and_its_end(
    plans, cloud, fakes, lying
):
    first, second, third = fakes
    # Both others have room for all of it.
    taken, fails, cancelled, stays = lying(first, VCPUS)
    fake_hosts.make_migrations_fail(cloud, fails)
    plans.start(planned.APPROVE)
    uuid = plans.empty(first)
    targets = {
        each['server']: each['target'] for each in plans.show(uuid)['moves']
    }
    other = second if targets[taken] == third else third
    cloud.act(taken, 'os-migrateLive', host=other, block_migration='auto')
    cloud.act(stays, 'lock')
    plans.approve(uuid)
    path = f'/servers/{cancelled}/migrations'
    watching.eventually(
        lambda: cloud.admin.get('compute', path)['migrations'],
        lambda: plans.show(uuid),
    )
    [one] = cloud.admin.get('compute', path)['migrations']
    watching.eventually(
        lambda: (
            cloud.admin.ask('DELETE', 'compute', f'{path}/{one["id"]}').status
            == 202
        ),
        lambda: plans.show(uuid),
    )
    told = plans.ended(uuid)
    assert plans.moves(uuid) == {
        taken: ('skipped', 'elsewhere'),
        fails: ('failed', 'migration_failed'),
        cancelled: ('failed', 'cancelled'),
        stays: ('skipped', 'locked'),
    }
    assert (told['state'], told['cause']) == ('failed', 'many_failed')
    assert plans.host(taken) == other
    for each in (fails, cancelled, stays):
        shown = cloud.show(each)
        assert shown['OS-EXT-SRV-ATTR:host'] == first
        assert (shown['status'], shown['OS-EXT-STS:task_state']) == (
            'ACTIVE', None,
        )  # fmt: skip
    assert plans.migrations(fails) == ['failed']
    assert plans.migrations(cancelled) == ['cancelled']
    assert plans.migrations(stays) == []
    assert plans.service_of(first)['status'] == 'enabled'
    for each in (taken, fails, cancelled, stays):
        assert cloud.show(each)['metadata'] == {}
    record('an administrator, a failure and an end', plans, uuid)
    cloud.act(stays, 'unlock')
    fake_hosts.make_migrations_fail(cloud)


GOOD = {
    'consolidate': ('rescue, consolidate', (VCPUS, 2, 0)),
    'balance': ('balance', (2, 2, 2)),
}
"""Goals, and servers on each host of a state that is good for them."""

CYCLES = 100


@pytest.mark.slow
@pytest.mark.parametrize('goal', GOOD)
def test_a_good_state_makes_no_plan_in_a_hundred_cycles(
    plans, fakes, lying, goal
):
    goals, state = GOOD[goal]
    servers = [
        each
        for host, count in zip(fakes, state, strict=True)
        for each in (lying(host, count) if count else ())
    ]
    plans.start({**planned.AUTO, 'goals': goals})
    known = plans.new(())
    cycles = plans.await_looks(CYCLES)
    assert plans.new(known) == []
    assert not any(plans.migrations(each) for each in servers)
    planned.record(
        TEST,
        f'a state that is good for {goal}',
        goals=goals,
        servers_by_host=state,
        cycles=cycles,
        plans=0,
        moves=0,
    )


RATES = {'dear': 120, 'cheap': 10}
"""Of groups of two servers each."""

LOOKS = 10


@pytest.fixture
def groups(cloud):
    owner = cloud.users[planned.OWNER]
    path = '/fairness/groups'
    for name, rate in RATES.items():
        about = {'name': name, 'rate': rate, 'count': 2}
        owner.post('compute', path, about)
    yield {name: {'metadata': {'fairness:group': name}} for name in RATES}
    for name in RATES:
        owner.put('compute', path, {'name': name, 'rate': None})


def prices(cloud, hosts):
    """Prices of hosts by name, as operators see them, and nobody else."""
    owner = cloud.users[planned.OWNER]
    told = owner.get('compute', '/fairness/prices')['prices']
    assert not {each['host'] for each in told} & set(hosts)
    listed = cloud.admin.get('compute', '/fairness/prices')['prices']
    return {
        each['host']: each['price'] for each in listed if each['host'] in hosts
    }


@pytest.mark.slow
def test_servers_move_to_cheaper_hosts_and_are_repacked(
    plans, cloud, fakes, lying, groups
):
    first, second, third = fakes
    dear = lying(first, 2, **groups['dear'])
    [cheap] = lying(first, **groups['cheap'])
    [other] = lying(second, **groups['cheap'])
    plans.start(planned.APPROVE)
    known = plans.new(())
    watching.eventually(
        lambda: prices(cloud, fakes) == {first: 125, second: 5, third: 0},
        lambda: prices(cloud, fakes),
    )
    plans.start({**planned.AUTO, 'goals': 'market'})
    uuid = plans.await_new(known)
    told = plans.ended(uuid)
    assert (told['goal'], told['state']) == ('market', 'done')
    assert plans.host(dear[0]) != plans.host(dear[1])
    assert plans.host(cheap) == plans.host(other)
    watching.eventually(
        lambda: sorted(prices(cloud, fakes).values()) == [10, 60, 60],
        lambda: prices(cloud, fakes),
    )
    # What it came to is good.
    plans.await_looks(LOOKS)
    assert plans.new(known) == [uuid]
    record('a market', plans, uuid, prices=prices(cloud, fakes))
    known.append(uuid)
    plans.start({**planned.AUTO, 'goals': 'repack'})
    uuid = plans.await_new(known)
    told = plans.ended(uuid)
    assert (told['goal'], told['state']) == ('repack', 'done')
    assert len({plans.host(each) for each in (*dear, cheap, other)}) == 1
    assert told['won']['emptied'] == told['promised']['emptied'] == 2
    record('all is packed anew', plans, uuid)


HELP = {**planned.AUTO, 'goals': 'help', 'seen_for': '60'}
DUE = 0.9
"""Part of what is due below which a user suffers."""

LOOKED_AT = 30
"""Rounds over which it is added up what users get."""

USERS = ('alice', 'bob', 'carol')


def levels(cloud, servers):
    """What users get for some rounds, as parts of what is due.

    Each wants more than a third of all, so that a third is due.
    """
    before = {name: node.rounds() for name, node in cloud.nodes.items()}
    for node in cloud.nodes.values():
        watching.await_rounds(node, LOOKED_AT)
    used = dict.fromkeys(USERS, 0.0)
    for host, node in cloud.nodes.items():
        for done in watching.rounds(node)[before[host] :]:
            for name, uuid in servers.items():
                seen = watching.in_round(done, uuid)
                if seen and seen.get('usage'):
                    used[name.split('-')[0]] += seen['usage']['cpu_time']
    due = sum(used.values()) / len(USERS)
    return {user: each / due for user, each in used.items()}


@pytest.mark.slow
def test_a_server_of_a_suffering_user_moves_and_gets_its_due_share(
    plans, cloud, servers
):
    where = {name: plans.host(uuid) for name, uuid in servers.items()}
    watching.use_defaults(cloud)
    watching.act(cloud, 'all', 'resume')
    before = levels(cloud, servers)
    assert min(before.values()) < DUE, before
    groups = {
        name: cloud.nodes[where[name]].group_of(uuid)
        for name, uuid in servers.items()
    }
    plans.start(planned.APPROVE)
    known = plans.new(())
    plans.start(HELP)
    uuid = plans.await_new(known)
    told = plans.ended(uuid)
    assert (told['goal'], told['state']) == ('help', 'done')
    moved = [each['server'] for each in told['moves']]
    try:
        [name] = [name for name in servers if servers[name] in moved]
        assert plans.host(servers[name]) == 'cmp2' != where[name]
        for node in cloud.nodes.values():
            watching.await_rounds(node, LOOKED_AT)
        after = levels(cloud, servers)
        record(
            'a user who suffers is helped',
            plans,
            told['uuid'],
            moved=name,
            before=before,
            after=after,
        )
        assert min(after.values()) >= DUE, (before, after)
        # Its weight came with it, and its old host remembers nothing.
        shares = {
            each: watching.shares(cloud, servers[each])
            for each in (name, 'carol-1')
        }
        assert shares['carol-1'] > watching.DIFFERENT * shares[name] > 0
        source, uuid = cloud.nodes[where[name]], servers[name]
        watching.eventually(lambda: not groups[name].exists())
        assert uuid not in source.domains().values()
        found = source.directory / 'var/lib/nova-fairness/found.json'
        watching.act(cloud, where[name], 'reset')
        watching.eventually(
            lambda: uuid not in found.read_text(), found.read_text
        )
        assert plans.new(known) == [told['uuid']]
    finally:
        plans.start(planned.APPROVE)
        for uuid in moved:
            cloud.await_status(uuid)
            [back] = [where[each] for each in servers if servers[each] == uuid]
            if plans.host(uuid) != back:
                cloud.act(
                    uuid, 'os-migrateLive', host=back, block_migration='auto'
                )
                cloud.await_status(uuid)
