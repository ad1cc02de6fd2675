# SPDX-License-Identifier: Apache-2.0

"""Plans in a real cloud keep to zones, pins, server groups and locks, and
owners are told.

Hosts of Nova's fake driver lie in two zones.
"""

import json
import pathlib
import re
import time

import pytest

from nova_fairness.cluster.move_plans import plan_executor
from tests.fixtures.nova_cloud import environment
from tests.fixtures.nova_cloud import fake_hosts
from tests.integration.nova import planned
from tests.integration.nova import watching

pytestmark = [pytest.mark.real, pytest.mark.timeout(watching.TIMEOUT_S)]
pytest_plugins = (
    'tests.fixtures.nova_cloud.fixtures',
    'tests.integration.nova.planned',
)

HOSTS, VCPUS = 5, 8
HERE, THERE = ZONES = (fake_hosts.ZONE, 'others')
LEFT, NEAR, CLOSED, FAR, EMPTY = (
    f'fake-0{number}' for number in (1, 3, 5, 2, 4)
)
"""The first three lie in the one zone, the others in the other."""

PINS = 'compute 2.104'
AT_ONCE = {'at_once': '8', 'at_once_per_host': '8'}
APPROVE = {**planned.APPROVE, **AT_ONCE}
FLAVORS = {
    'wide': (6, {}),
    # Whoever has it needs something of its host that no list tells.
    'bound': (1, {'hw:vif_multiqueue_enabled': 'true'}),
}
"""Their vCPUs and extra specs."""

RESTS_S = 70.0
"""Nova is asked who changed in a minute, again and again."""

TEST = str(pathlib.Path(__file__).relative_to(environment.TOP))
AT = r'[0-9-]{10}T[0-9:]{8}Z'


@pytest.fixture(scope='module')
def servers():
    """None but those of a test."""
    return {}


@pytest.fixture(scope='module')
def fakes(cloud, queue):
    project = f'/os-quota-sets/{cloud.users[planned.OWNER].project}'
    limits = dict.fromkeys(('instances', 'cores', 'ram'), -1)
    cloud.admin.put('compute', project, {'quota_set': limits})
    try:
        with fake_hosts.running(cloud, HOSTS, VCPUS, ZONES) as names:
            yield names
    finally:
        cloud.admin.delete('compute', project)


@pytest.fixture(scope='module')
def flavors(cloud):
    for name, (vcpus, specs) in FLAVORS.items():
        about = {'id': name, 'name': name, 'ram': 128, 'disk': 1}
        body = {'flavor': {**about, 'vcpus': vcpus}}
        cloud.admin.post('compute', '/flavors', body)
        path = f'/flavors/{name}/os-extra_specs'
        cloud.admin.post('compute', path, {'extra_specs': specs})
    yield
    for name in FLAVORS:
        cloud.admin.delete('compute', f'/flavors/{name}')


@pytest.fixture
def group(cloud):
    """Makes server groups of the owner; deletes them."""
    owner = cloud.users[planned.OWNER]
    made = []

    def make(policy):
        about = {'server_group': {'name': policy, 'policy': policy}}
        found = owner.post('compute', '/os-server-groups', about)
        made.append(found['server_group']['id'])
        return made[-1]

    yield make
    for each in made:
        owner.delete('compute', f'/os-server-groups/{each}')


def pin(cloud, server, zone):
    """Pin a server to its zone, or to none, as its owner does."""
    path, body = f'/servers/{server}', {'pinned_availability_zone': zone}
    owner = cloud.users[planned.OWNER].speaking(PINS)
    found = owner.put('compute', path, {'server': body})
    assert found['server']['pinned_availability_zone'] == zone


@pytest.fixture
def bounds(cloud, lying, flavors, group):
    """Servers on the host that is to be emptied, by what binds them.

    One host of its zone has room for two more, one is closed, and those of
    the other zone have much. The last three servers lie there.
    """
    apart, together = group('anti-affinity'), group('affinity')
    made = {
        'pinned': lying(LEFT, zone=HERE),
        'pinned since': lying(LEFT),
        'free': lying(LEFT),
        'apart': lying(LEFT, group=apart),
        'together': lying(LEFT, group=together),
        'together, too': lying(LEFT, group=together),
        'locked': lying(LEFT),
        'bound': lying(LEFT, flavor='bound'),
        'fills': lying(NEAR, flavor='wide', zone=HERE),
        'other': lying(FAR, group=apart),
        # Else another host would be as full once somebody came there.
        'beside': lying(FAR),
    }
    found = {what: uuid for what, [uuid] in made.items()}
    cloud.act(found['locked'], 'lock')
    yield found
    cloud.act(found['locked'], 'unlock')


def seen(cloud, user, server):
    """What a user sees of a server; nothing of one that is not his."""
    answer = cloud.users[user].ask('GET', 'compute', f'/servers/{server}')
    return answer.body['server'] if answer.status == 200 else {}


def said(cloud, server):
    """What the owner of a server reads in its metadata; no more is there."""
    return seen(cloud, planned.OWNER, server)['metadata']


@pytest.mark.slow
def test_an_emptied_host_keeps_its_servers_in_their_bounds_and_owners_know(
    plans, cloud, bounds
):
    plans.start(APPROVE)
    with plans.closed(CLOSED):
        pin(cloud, bounds['pinned since'], HERE)
        plans.await_look()
        uuid = plans.empty(LEFT)
        assert plans.targets(uuid) == {
            bounds['pinned']: NEAR,
            bounds['pinned since']: NEAR,
            bounds['free']: FAR,
            bounds['apart']: EMPTY,
        }
        targets = plans.targets(uuid)
        assert not any(said(cloud, each) for each in bounds.values())
        plans.approve(uuid)
        before = {}

        def all_are_told():
            # The first may have arrived before the last is told.
            for each in targets.keys() - before.keys():
                if told := said(cloud, each):
                    before[each] = told
            return len(before) == len(targets)

        watching.eventually(all_are_told, lambda: plans.show(uuid))
        assert plans.over(uuid)['state'] == 'partial'
        plans.stop(uuid)
    moved = dict.fromkeys(targets, ('moved', 'arrived'))
    assert plans.moves(uuid) == moved
    assert {each: plans.host(each) for each in targets} == targets
    stay = bounds.values() - targets.keys()
    assert not any(plans.migrations(each) for each in stay)
    for each, told in before.items():
        assert re.fullmatch(f'{AT} empty', told[plan_executor.MOVING]), told
        after = said(cloud, each)
        assert [*after] == [plan_executor.MOVED]
        assert re.fullmatch(f'{AT} empty', after[plan_executor.MOVED])
        assert after[plan_executor.MOVED] > told[plan_executor.MOVING]
        assert 'fake-' not in json.dumps(seen(cloud, planned.OWNER, each))
        assert not seen(cloud, 'bob', each)
    assert not any(said(cloud, each) for each in stay)
    for user in (planned.OWNER, 'bob'):
        for path in (planned.URL, f'{planned.URL}/{uuid}'):
            answer = cloud.users[user].ask('GET', 'compute', path)
            assert answer.status == 403, answer
    planned.record(
        TEST,
        'a host of a zone is emptied',
        goes={what: plans.host(each) for what, each in bounds.items()},
        zones={
            name: plans.service_of(name)['zone']
            for name in (LEFT, NEAR, CLOSED, FAR, EMPTY)
        },
        closed=CLOSED,
        told={'before': before[bounds['free']]}
        | {'after': said(cloud, bounds['free'])},
    )


@pytest.mark.slow
def test_a_server_whose_zone_or_pin_changes_meanwhile_is_left_out(
    plans, cloud, lying
):
    [pinned], [free] = lying(LEFT, zone=HERE), lying(LEFT)
    lying(FAR, 2)
    with plans.closed(CLOSED):
        plans.start(APPROVE)
        uuid = plans.empty(LEFT)
        assert plans.targets(uuid) == {pinned: NEAR, free: FAR}
        with fake_hosts.host_in_other_zone(cloud, NEAR, HERE, THERE):
            pin(cloud, free, HERE)
            watching.eventually(
                lambda: plans.service_of(NEAR)['zone'] == THERE
            )
            plans.await_look()
            plans.approve(uuid)
            plans.over(uuid)
            assert plans.moves(uuid) == dict.fromkeys(
                (pinned, free), ('skipped', 'no_room')
            )
            for each in plans.show(uuid)['moves']:
                assert f'pinned to zone {HERE}' in each['explanation']
            # It is known from now on, and nothing is left to propose.
            assert f'nothing on host {LEFT} can move' in plans.refused(LEFT)
        assert plans.migrations(pinned) == plans.migrations(free) == []
        pin(cloud, free, None)
        plans.await_look()
        uuid = plans.empty(LEFT)
        assert plans.targets(uuid) == {pinned: NEAR, free: FAR}
        plans.approve(uuid)
        plans.over(uuid)
        assert (plans.host(pinned), plans.host(free)) == (NEAR, FAR)


@pytest.mark.slow
def test_zone_pins_of_stopped_servers_are_known(plans, cloud, lying):
    """Nova lists none of them as changed."""
    [free], [pinned] = lying(LEFT), lying(LEFT, zone=HERE)
    lying(FAR)
    with plans.closed(NEAR, CLOSED):
        plans.start(APPROVE)
        begun = time.time()
        watching.eventually(lambda: plans.looked_at() > begun + RESTS_S)
        assert plans.targets(plans.empty(LEFT)) == {free: FAR}
        pin(cloud, free, HERE)
        pin(cloud, pinned, None)
        plans.await_look()
        assert plans.targets(plans.empty(LEFT)) == {pinned: FAR}


def zones(plans, servers):
    """Zones in which servers are now."""
    path = '/os-services?binary=nova-compute'
    listed = plans.cloud.admin.get('compute', path)['services']
    by_host = {each['host']: each['zone'] for each in listed}
    return {each: by_host[plans.host(each)] for each in servers}


@pytest.mark.slow
def test_plans_of_each_goal_keep_servers_in_their_zones(
    plans, cloud, lying, flavors
):
    few = [*lying(LEFT, zone=HERE), *lying(NEAR, 2, zone=HERE)]
    many = lying(FAR, 5, zone=THERE)
    where = zones(plans, few + many)
    plans.start(APPROVE)
    known, told = set(plans.new(())), {}

    def follow(goal):
        uuid = plans.await_new(known)
        known.add(uuid)
        assert plans.over(uuid)['goal'] == goal
        assert set(plans.moves(uuid).values()) == {('moved', 'arrived')}
        assert zones(plans, few + many) == where
        told[goal] = sorted(plans.targets(uuid).values())

    # The host with room that is fullest is in the other zone.
    plans.start({**planned.AUTO, **AT_ONCE, 'goals': 'consolidate'})
    follow('consolidate')
    assert {plans.host(each) for each in few} == {NEAR}
    # The emptiest ones are in the zone of who has enough room.
    plans.start({**planned.AUTO, **AT_ONCE, 'goals': 'balance'})
    follow('balance')
    assert [plans.host(each) for each in many].count(EMPTY) == 2
    # There would be room in the other zone.
    for host in (LEFT, NEAR):
        there = [plans.host(each) for each in few].count(host)
        lying(host, 3 - there, zone=HERE)
    with plans.closed(CLOSED):
        plans.start({**planned.AUTO, **AT_ONCE, 'goals': 'rescue'})
        [asked] = lying(None, 1, 'wide', wait=False)
        follow('rescue')
        cloud.await_status(asked)
        assert zones(plans, [asked]) == {asked: HERE}
    planned.record(TEST, 'zones of pinned servers', moved_to=told)
