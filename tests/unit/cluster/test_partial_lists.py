# SPDX-License-Identifier: Apache-2.0

"""What is known of servers that lists of Nova lack, or show in part."""

import random

import pytest

from nova_fairness import exception
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.openstack import paging
from nova_fairness.model import request
from tests.fixtures import fake_cloud
from tests.unit.cluster import test_service as ends

world = ends.world
S = request.State
EVERY_S = nova_module.FULL_EVERY_S
NEED = {'VCPU': 1, 'MEMORY_MB': 10}


@pytest.fixture
def cloud():
    made = fake_cloud.FakeCloud()
    made.add_host('h1', 64)
    return made


def built(cloud, name):
    server = fake_cloud.name_uuid(name)
    cloud.add_server(server)
    cloud.build(server, 'h1', NEED)
    return server


def vanish(cloud, server):
    """It is deleted, and no list of changes tells."""
    cloud.remove(server)
    cloud.deleted.clear()


def test_a_server_that_no_list_of_changes_tells_of_is_found(cloud):
    nova = nova_module.Nova(cloud.apis.nova)
    assert nova.servers(0.0) == {}
    server = built(cloud, 's1')
    cloud.untold.add(server)
    assert server not in nova.servers(EVERY_S - 1)
    assert nova.servers(EVERY_S)[server].host == 'h1'


def test_a_server_whose_end_no_list_of_changes_tells_is_gone(cloud):
    nova = nova_module.Nova(cloud.apis.nova)
    server = built(cloud, 's1')
    assert server in nova.servers(0.0)
    vanish(cloud, server)
    assert server in nova.servers(EVERY_S - 1)
    assert server not in nova.servers(EVERY_S)
    assert nova.recent_changes(EVERY_S).left == {'h1'}
    assert nova.is_deleted(server)


@pytest.mark.parametrize('lacks', ['unlisted', 'down'])
def test_a_server_missing_from_a_full_list_keeps_its_host(cloud, lacks):
    nova = nova_module.Nova(cloud.apis.nova)
    server = built(cloud, 's1')
    before = nova.servers(0.0)[server]
    getattr(cloud, lacks).add(server)
    for n in range(1, 5):
        assert nova.servers(n * EVERY_S)[server] == before
    assert nova.server(server) == before
    getattr(cloud, lacks).clear()
    cloud.servers[server]['status'] = 'SHUTOFF'
    assert nova.servers(5 * EVERY_S)[server].status == 'SHUTOFF'


def test_a_cell_that_does_not_answer_is_not_asked_for_each_server(cloud):
    nova = nova_module.Nova(cloud.apis.nova)
    servers = {built(cloud, f's{n}') for n in range(100)}
    nova.servers(0.0)
    cloud.down |= servers
    cloud.asked.clear()
    assert nova.servers(EVERY_S).keys() == servers
    assert len(cloud.asked) < 10
    cloud.broken['GET /servers/' + min(servers)[:1]] = 503
    assert nova.servers(EVERY_S + 5).keys() == servers


def test_many_vanished_servers_are_checked_some_at_a_time(cloud):
    nova = nova_module.Nova(cloud.apis.nova)
    servers = [built(cloud, f's{n}') for n in range(100)]
    nova.servers(0.0)
    for server in servers[:90]:
        vanish(cloud, server)
    for n in range(10):
        cloud.asked.clear()
        found = nova.servers(EVERY_S + n)
        assert len(cloud.asked) < 30
    assert found.keys() == set(servers[90:])


def test_a_server_that_cannot_be_read_keeps_no_other_back(cloud):
    nova = nova_module.Nova(cloud.apis.nova)
    one, other = built(cloud, 's1'), built(cloud, 's2')
    before = nova.servers(0.0)[one]
    cloud.servers[one]['flavor'] = {'vcpus': -5, 'ram': 'much', 'disk': None}
    cloud.servers[other]['status'] = 'SHUTOFF'
    found = nova.servers(5.0)
    assert (found[one], found[other].status) == (before, 'SHUTOFF')


@pytest.mark.parametrize('seed', range(15))
def test_known_servers_come_to_match_the_servers_of_nova(
    cloud, monkeypatch, seed
):
    monkeypatch.setattr(paging, 'PAGE', 4)
    chance = random.Random(seed)
    nova = nova_module.Nova(cloud.apis.nova)
    count = 0
    now = 0.0
    for _ in range(60):
        for _ in range(chance.randrange(3)):
            server = built(cloud, f's{count}')
            count += 1
            if chance.random() < 0.5:
                cloud.untold.add(server)
        for server in chance.sample(
            sorted(cloud.servers),
            k=min(chance.randrange(3), len(cloud.servers)),
        ):
            cloud.remove(server)
            if chance.random() < 0.5:
                cloud.deleted.clear()
        cloud.unlisted = {
            each for each in cloud.servers if chance.random() < 0.05
        }
        now += chance.choice([5, 60])
        nova.servers(now)
    cloud.unlisted = set()
    for _ in range(80):
        now += 60
        found = nova.servers(now)
    assert found.keys() == cloud.servers.keys()
    assert all(each.host == 'h1' for each in found.values())


def test_a_request_whose_server_no_list_has_goes_on(world):
    process = world.process()
    server = world.post('r1', 2)
    process.cycle()
    world.cloud.build(server, 'h1', {'VCPU': 2, 'MEMORY_MB': 100})
    process.cycle()
    assert world.state(server) is S.ACTIVE
    world.cloud.down.add(server)
    for _ in range(5):
        world.go(EVERY_S)
        process.cycle()
        assert world.state(server) is S.ACTIVE
    # Whoever comes now sees a cell that is down from the first list on.
    other = world.process('two')
    other.cycle()
    world.go(31)
    for _ in range(3):
        other.cycle()
        assert world.state(server) is S.ACTIVE
    vanish(world.cloud, server)
    world.cloud.down.clear()
    for _ in range(3):
        world.go(EVERY_S)
        process.cycle()
        other.cycle()
    assert world.state(server) is S.ENDED


@pytest.mark.parametrize(
    'answer', [500, 403, 'null', '{}', '[]', '{"server": null}']
)
def test_a_build_for_which_nova_fails_keeps_no_other_back(cloud, answer):
    nova = nova_module.Nova(cloud.apis.nova)
    one, other = (fake_cloud.name_uuid(name) for name in ('b1', 'b2'))
    for server in (one, other):
        cloud.add_server(server)
    nova.servers(0.0)
    cloud.broken[f'GET /servers/{one}'] = answer
    cloud.build(other, 'h1', NEED)
    cloud.untold.add(other)
    found = nova.servers(5.0, [one, other])
    assert (found[one].status, found[other].host) == ('BUILD', 'h1')
    assert one in nova.unreadable


@pytest.mark.parametrize(
    'answer', [500, 403, 'null', '{}', '[]', '{"server": null}']
)
def test_a_missing_server_stays_known_while_nova_fails(cloud, answer):
    nova = nova_module.Nova(cloud.apis.nova)
    server = built(cloud, 's1')
    before = nova.servers(0.0)[server]
    cloud.unlisted.add(server)
    cloud.broken[f'GET /servers/{server}'] = answer
    assert nova.servers(EVERY_S)[server] == before


def build_servers(cloud, count=23):
    return [built(cloud, f's{n}') for n in range(count)]


@pytest.mark.repeated
@pytest.mark.parametrize(
    ('failing', 'unread'),
    [([7], {7}), ([0], {0}), ([22], {22}), ([5, 6, 9], {5, 6, 7, 8, 9})],
)
@pytest.mark.parametrize('page', [1, 4, 1000])
def test_rows_that_nova_fails_for_hide_no_others(
    cloud, monkeypatch, failing, unread, page, caplog
):
    monkeypatch.setattr(paging, 'PAGE', page)
    servers = build_servers(cloud)
    cloud.failing = {servers[n] for n in failing}
    nova = nova_module.Nova(cloud.apis.nova)
    before = len(cloud.asked)
    seen = nova.servers(0.0)
    assert {n for n, each in enumerate(servers) if each not in seen} == unread
    assert len(cloud.asked) - before < 80
    assert 'Nova fails for some servers between' in caplog.text
    # What is new is seen, and who was known stays where it lay.
    new = built(cloud, 'new')
    assert {*seen, new} == {*nova.servers(1.0)}
    cloud.failing = set()
    now, step_s = 1.0, EVERY_S / 30
    while now < 3 * EVERY_S:
        now += step_s
        seen = nova.servers(now)
    assert {*seen} == {*servers, new}


def test_a_known_server_stays_when_nova_fails_for_its_row(cloud, monkeypatch):
    """Others that are gone are found gone meanwhile, by the full list."""
    monkeypatch.setattr(paging, 'PAGE', 4)
    servers = build_servers(cloud)
    nova = nova_module.Nova(cloud.apis.nova)
    nova.servers(0.0)
    cloud.failing = {servers[7]}
    vanish(cloud, servers[20])
    vanish(cloud, servers[3])
    now = 0.0
    for _ in range(40):
        now += EVERY_S / 10
        seen = nova.servers(now)
    assert seen[servers[7]].host == 'h1'
    assert len(seen) == 21


@pytest.mark.parametrize('answer', [500, 503])
def test_a_nova_that_fails_for_every_row_counts_as_away(cloud, answer):
    build_servers(cloud, 3)
    cloud.broken['GET /servers/detail'] = answer
    nova = nova_module.Nova(cloud.apis.nova)
    with pytest.raises(exception.CloudAway, match=f'answers {answer}'):
        nova.servers(0.0)
    assert len(cloud.asked) < 30
