# SPDX-License-Identifier: Apache-2.0

"""The fake cloud, as planners see it."""

import copy
import dataclasses
import json

import pytest

from nova_fairness import exception
from nova_fairness.cluster import quarantine
from nova_fairness.cluster import snapshot as snapshot_module
from nova_fairness.cluster.accounts import limits_file
from nova_fairness.cluster.openstack import clients
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.openstack import paging
from nova_fairness.cluster.openstack import placement as placement_module
from nova_fairness.model import cluster
from nova_fairness.model import request
from tests.fixtures import fake_cloud
from tests.fixtures import small_cloud


@pytest.fixture
def cloud():
    made = fake_cloud.FakeCloud()
    made.add_host('h1', 8, child=[{'VGPU': 1}, {'VGPU': 1}])
    made.add_host('h2', 4, state='down', zone='z2')
    return made


@pytest.fixture
def reader(cloud):
    placement, nova, *_ = cloud.apis
    return snapshot_module.CloudReader(
        placement_module.Placement(placement),
        nova_module.Nova(nova),
        {'rich': cluster.Limits({'VCPU': 2})},
    )


def read_snapshot(reader, requests=(), given=()):
    return reader.read(requests, dict(given), 1000.0).snapshot


def test_hosts_are_read_with_their_provider_trees(reader):
    found = read_snapshot(reader)
    assert found.classes == ('MEMORY_MB', 'VCPU', 'VGPU')
    one, other = found.providers
    assert (one.name, one.zone, one.takes) == ('h1', 'z1', True)
    assert (other.name, other.zone, other.takes) == ('h2', 'z2', False)
    assert one.traits == {'CUSTOM_H1'}
    assert found.inventory.capacity.tolist() == [
        [10_000, 8, 2],
        [10_000, 4, 0],
    ]
    assert found.inventory.unit[0].tolist() == [10_000, 8, 2]


def test_use_is_read_by_host_and_project(cloud, reader):
    cloud.add_server('s1')
    cloud.build('s1', 'h1', {'VCPU': 3, 'MEMORY_MB': 100})
    found = read_snapshot(reader)
    assert found.inventory.used.tolist() == [[100, 3, 0], [0, 0, 0]]
    assert found.used['the-project'].tolist() == [100, 3, 0]
    assert found.used['rich'].tolist() == [0, 0, 0]
    assert found.limits['rich'].guaranteed == {'VCPU': 2}


def test_only_changed_hosts_are_read_again(cloud, reader):
    read_snapshot(reader)
    cloud.asked.clear()
    read_snapshot(reader)
    assert not [each for each in cloud.asked if 'inventories' in each]
    cloud.add_server('s1')
    cloud.build('s1', 'h1', {'VCPU': 3})
    assert read_snapshot(reader).inventory.used[0].tolist() == [0, 3, 0]
    read = [each for each in cloud.asked if 'inventories' in each]
    assert read == [
        f'GET /resource_providers/{fake_cloud.name_uuid("h1")}/inventories'
    ]


def full_hosts(cloud, count):
    """Hosts that each have one server; names of the servers."""
    names = [f's{number}' for number in range(count)]
    for name in names:
        cloud.add_host(f'host-{name}', 2)
        cloud.add_server(name)
        cloud.build(name, f'host-{name}', {'VCPU': 2})
    return names


def usages_read(cloud):
    begin = 'GET /resource_providers/'
    asked = [each for each in cloud.asked if each.startswith(begin)]
    return [each for each in asked if each.endswith('/usages')]


def test_changes_of_hosts_that_nova_does_not_tell_are_seen_in_turn(
    cloud, reader
):
    names = full_hosts(cloud, 60)
    vcpu = read_snapshot(reader).classes.index('VCPU')
    for name in names:
        cloud.write(name, {}, 'the-project')

    def used():
        return int(read_snapshot(reader).inventory.used[:, vcpu].sum())

    # No generation says so, and a look at a large cloud reads a part.
    left = [used() for _ in range(7)]
    assert left == sorted(left, reverse=True)
    assert 0 < left[0] < 120
    assert left[-1] == 0


def test_room_of_a_server_that_nova_deleted_is_seen_at_once(cloud, reader):
    names = full_hosts(cloud, 200)
    vcpu = read_snapshot(reader).classes.index('VCPU')
    cloud.asked.clear()
    read_snapshot(reader)
    usual = len(usages_read(cloud))
    for name in names[-5:]:
        cloud.remove(name)
    cloud.asked.clear()
    used = read_snapshot(reader).inventory.used[:, vcpu]
    assert int(used.sum()) == 2 * 195
    assert len(usages_read(cloud)) <= usual + 5


def test_room_that_a_server_left_by_moving_is_seen_at_once(cloud, reader):
    [*_, moves] = full_hosts(cloud, 200)
    cloud.add_host('empty', 2)
    vcpu = read_snapshot(reader).classes.index('VCPU')
    cloud.build(moves, 'empty', {'VCPU': 2})
    used = read_snapshot(reader).inventory.used[:, vcpu]
    assert int(used.sum()) == 2 * 200


SMALL, LARGE = {'VCPU': 1, 'MEMORY_MB': 10}, {'VCPU': 3, 'MEMORY_MB': 30}


@pytest.mark.parametrize(
    ('there', 'status'),
    [
        pytest.param(SMALL, 'MIGRATING', id='live migration'),
        pytest.param(SMALL, 'RESIZE', id='cold migration'),
        pytest.param(LARGE, 'VERIFY_RESIZE', id='resize'),
        pytest.param(SMALL, 'REBUILD', id='evacuation'),
    ],
)
def test_a_server_that_moves_is_counted_on_both_hosts_until_it_has_moved(
    cloud, reader, there, status
):
    first, second = map(fake_cloud.name_uuid, ('h1', 'h2'))
    cloud.add_server('s1')
    cloud.build('s1', 'h1', SMALL)
    read_snapshot(reader)
    cloud.servers['s1']['status'] = status
    if status == 'REBUILD':
        # The server alone has both until the host that failed is back.
        cloud.write('s1', {first: SMALL, second: there}, 'the-project')
    else:
        # The migration takes over what the server has where it was.
        cloud.write('a-migration', {first: SMALL}, 'the-project')
        cloud.write('s1', {second: there}, 'the-project')
    found = read_snapshot(reader)
    rows = [list(SMALL.values())[::-1], list(there.values())[::-1]]
    assert found.inventory.used[:, :2].tolist() == rows
    both = [one + other for one, other in zip(*rows, strict=True)]
    assert found.used['the-project'][:2].tolist() == both
    # It has moved.
    cloud.write('a-migration', {}, '')
    cloud.build('s1', 'h2', there)
    found = read_snapshot(reader)
    assert found.inventory.used[:, :2].tolist() == [[0, 0], rows[1]]
    assert found.used['the-project'][:2].tolist() == rows[1]


def requests_beginning_with(cloud, begin):
    return [each for each in cloud.asked if each.startswith(begin)]


def test_a_look_at_a_large_cloud_in_which_nothing_happens_asks_little(
    cloud, reader
):
    for number in range(300):
        name = f's{number}'
        cloud.add_host(f'host-{number}', 2)
        cloud.add_server(name, f'p{number}')
        cloud.build(name, f'host-{number}', {'VCPU': 1})
        cloud.groups[f'g{number}'] = [name]
    asked = [
        small_cloud.waiting_request(
            f'r{number}', group=request.Group(f'g{number}', request.Rule.APART)
        )
        for number in range(250)
    ]
    read_snapshot(reader, asked)
    assert requests_beginning_with(cloud, 'GET /os-server-groups') == [
        'GET /os-server-groups'
    ]
    reader.read(asked, {}, 2000.0)
    cloud.asked.clear()
    members = reader.read(asked, {}, 2000.0).snapshot.member_hosts
    assert members['g7'] == ('host-7',)
    # Ten hosts and five projects in turn, and each list once.
    assert len(cloud.asked) <= 10 + 5 + 4


def test_use_of_a_project_is_asked_again_when_its_servers_change(
    cloud, reader
):
    for number in range(60):
        cloud.add_server(f's{number}', f'p{number:02}')
        cloud.build(f's{number}', 'h1', {'MEMORY_MB': 1})
    read_snapshot(reader)
    read_snapshot(reader)
    cloud.remove('s59')
    assert read_snapshot(reader).used.get('p59', 0) == 0
    cloud.add_server('new', 'p58')
    cloud.build('new', 'h1', {'MEMORY_MB': 7})
    assert read_snapshot(reader).used['p58'][0] == 8


def test_changes_of_projects_that_nova_does_not_tell_are_seen_in_turn(
    cloud, reader
):
    for number in range(20):
        cloud.add_server(f's{number}', f'p{number:02}')
        cloud.build(f's{number}', 'h1', {'MEMORY_MB': 1})
    read_snapshot(reader)
    reader.read((), {}, 2000.0)
    for number in range(20):
        cloud.write(f's{number}', {}, '')

    def used():
        found = reader.read((), {}, 2000.0).snapshot.used
        return sum(int(each[0]) for each in found.values())

    left = [used() for _ in range(5)]
    assert 0 < left[0] < 20
    assert left[-1] == 0


def test_a_member_that_nova_lists_before_it_adds_it_is_seen(cloud, reader):
    rule = request.Group('g', request.Rule.APART)
    asked = [small_cloud.waiting_request('other', group=rule)]
    cloud.groups['g'] = []
    read_snapshot(reader, asked)
    read_snapshot(reader, asked)
    cloud.add_server('s1')
    cloud.build('s1', 'h1', {'VCPU': 1})
    assert read_snapshot(reader, asked).member_hosts == {'g': ()}
    cloud.groups['g'] = ['s1']
    assert read_snapshot(reader, asked).member_hosts == {'g': ('h1',)}


def test_servers_of_a_request_are_members_despite_lists_of_nova(cloud, reader):
    rule = request.Group('g', request.Rule.APART)
    asked = [small_cloud.waiting_request('r1', group=rule)]
    cloud.groups['g'] = []
    cloud.add_server('r1')
    cloud.build('r1', 'h1', {'VCPU': 1})
    assert read_snapshot(reader, asked).member_hosts == {'g': ('h1',)}


def test_groups_on_several_pages_are_read_to_the_end(
    cloud, reader, monkeypatch
):
    monkeypatch.setattr(paging, 'PAGE', 2)
    cloud.add_server('s1')
    cloud.build('s1', 'h1', {'VCPU': 1})
    cloud.groups |= {f'g{number}': [] for number in range(5)}
    cloud.groups['g4'] = ['s1']
    asked = [
        small_cloud.waiting_request(
            name, group=request.Group(name, request.Rule.APART)
        )
        for name in (*cloud.groups, 'gone')
    ]
    found = read_snapshot(reader, asked).member_hosts
    assert (found['g4'], found['g0'], found['gone']) == (('h1',), (), ())


def test_a_cloud_without_hosts_causes_no_host_request(cloud, reader):
    read_snapshot(reader)
    assert cloud.uptimes_asked == 0


@pytest.mark.parametrize('name', ['hypervisors', 'server_groups'])
def test_a_list_that_comes_to_no_end_is_not_read_for_ever(
    cloud, reader, monkeypatch, name, caplog
):
    monkeypatch.setattr(paging, 'PAGE', 2)
    read_snapshot(reader)
    asked = [
        small_cloud.waiting_request(
            each, group=request.Group(each, request.Rule.APART)
        )
        for each in 'abcd'
    ]
    path = f'GET /os-{name.replace("_", "-")}'
    same = [{**cloud.hypervisors[fake_cloud.name_uuid('h1')], 'members': []}]
    cloud.broken[path] = json.dumps({name: same * 2})
    if name == 'hypervisors':
        with pytest.raises(exception.CloudAway, match='the list has no end'):
            read_snapshot(reader, asked)
        return
    read_snapshot(reader, asked)
    assert 'the list has no end' in caplog.text
    assert sorted(reader.unreadable) == [
        (quarantine.InputKind.REQUEST, each) for each in 'abcd'
    ]


def servers_of_partial_read(reader, requests=()):
    """A look between two whole ones; UUIDs of servers."""
    return {*reader.read(requests, {}, 1000.0, is_whole=False).servers}


def test_between_whole_looks_waiting_servers_are_not_listed(cloud, reader):
    cloud.add_server('waits')
    cloud.add_server('runs')
    cloud.build('runs', 'h1', {'VCPU': 3})
    # Nothing is known yet: the first look is whole anyhow.
    assert servers_of_partial_read(reader) == {'waits', 'runs'}
    cloud.add_server('new')
    for name in ('sent', 'gone'):
        cloud.add_server(name)
    sent = [
        small_cloud.waiting_request(name, state=request.State.STARTING)
        for name in ('sent', 'gone')
    ]
    assert servers_of_partial_read(reader, sent) == {
        'waits',
        'runs',
        'sent',
        'gone',
    }
    cloud.build('sent', 'h1', {'VCPU': 1}, status='BUILD')
    cloud.remove('gone')
    cloud.remove('runs')
    found = reader.read(sent, {}, 1000.0, is_whole=False)
    assert {*found.servers} == {'waits', 'sent'}
    assert found.servers['sent'].host == 'h1'
    assert found.snapshot.inventory.used[0, -2] == 1
    cloud.remove('waits')
    assert 'waits' in servers_of_partial_read(reader, sent)
    assert {*reader.read(sent, {}, 1000.0).servers} == {'sent', 'new'}


def test_of_many_that_build_the_whole_list_is_read(cloud, reader, monkeypatch):
    monkeypatch.setattr(nova_module, '_FEW_BUILDS', 1)
    since = []
    listed = cloud._get_servers

    def noted(place, query, body):
        # Full lists, which come whatever changed, are not looked at here.
        if place == ['detail'] and ('changes-since' in query or not since):
            since.append((query.get('changes-since'), 'status' in query))
        return listed(place, query, body)

    cloud._get_servers = noted
    sent = [
        small_cloud.waiting_request(name, state=request.State.SENDING)
        for name in 'ab'
    ]
    for now, asked, is_whole in (
        (5000.0, sent, True),
        (6000.0, sent, True),
        (7000.0, sent[:1], False),
        (8000.0, sent, False),
        (9000.0, sent[:1], False),
    ):
        reader.read(asked, {}, now, is_whole=is_whole)
    # What builds changed since the last whole list; all else, since any.
    assert since == [
        (None, False),
        ('1970-01-01T00:00:00Z', False),
        ('1970-01-01T01:39:00Z', True),
        ('1970-01-01T01:39:00Z', False),
        ('1970-01-01T02:12:20Z', True),
    ]


def test_a_sent_request_counts_until_it_has_its_own_room(cloud, reader):
    cloud.add_server('r1')
    asked = [small_cloud.waiting_request('r1', 2, 'the-project')]
    given = {'r1': ('h1',)}
    assert read_snapshot(reader, asked, given).inventory.used[0].tolist() == [
        100,
        2,
        0,
    ]
    assert read_snapshot(reader, asked, given).used['the-project'][1] == 2
    cloud.build('r1', 'h1', {'VCPU': 2, 'MEMORY_MB': 100})
    assert read_snapshot(reader, asked, given).inventory.used[0].tolist() == [
        100,
        2,
        0,
    ]


def test_preemptible_servers_are_counted_for_no_project(cloud, reader):
    cloud.live('r1', 3, '2026-01-01T00:00:00.000000')
    cloud.live('r2', 1, '2026-01-01T00:00:00.000000')
    for name, vcpu in (('r1', 2), ('r2', 1)):
        cloud.build(name, 'h1', {'VCPU': vcpu, 'MEMORY_MB': 100})
    band = request.Band.PREEMPTIBLE
    # What was allocated counts, not what the flavor says now.
    asked = [small_cloud.waiting_request('r1', 2, 'the-project', band=band)]
    found = read_snapshot(reader, asked)
    assert found.inventory.used[0].tolist() == [200, 3, 0]
    assert found.used['the-project'].tolist() == [100, 1, 0]
    owner = ('the-project', 'u')
    assert found.preemptible[owner].tolist() == [100, 2, 0]
    running = {each.band: each for each in found.running}
    assert dict(running[band].amounts)['VCPU'] == 2


def test_members_of_groups_count_on_their_hosts(cloud, reader):
    cloud.add_server('s1')
    cloud.build('s1', 'h1', {'VCPU': 1})
    cloud.groups['g'] = ['s1', 'gone']
    rule = request.Group('g', request.Rule.APART)
    none = request.Group('unknown', request.Rule.APART)
    asked = [
        small_cloud.waiting_request('r1', group=rule),
        small_cloud.waiting_request('r2', group=none),
    ]
    assert read_snapshot(reader, asked).member_hosts == {
        'g': ('h1',),
        'unknown': (),
    }


@pytest.mark.parametrize(
    ('begin', 'answer', 'error'),
    [
        ('GET /resource_providers', 503, exception.CloudAway),
        ('GET /resource_providers', 'nonsense', exception.CloudAway),
        ('GET /resource_providers', '[]', exception.CloudAway),
        ('GET /resource_providers', '{}', exception.CloudAway),
        ('GET /resource_providers', 404, exception.CloudAway),
        ('GET /resource_providers', 403, exception.CloudRefused),
        ('GET /servers', '{"servers": 7}', exception.CloudAway),
        ('GET /servers', 404, exception.CloudAway),
        ('GET /os-services', 404, exception.CloudAway),
        ('GET /os-hypervisors', '{"hypervisors": 7}', exception.CloudAway),
    ],
)
def test_an_unreadable_answer_of_the_cloud_is_told(
    cloud, reader, begin, answer, error
):
    cloud.broken[begin] = answer
    with pytest.raises(error):
        read_snapshot(reader)
    cloud.broken.clear()
    assert len(read_snapshot(reader).providers) == 2


def test_a_host_that_vanishes_while_it_is_read_is_left_out(cloud, reader):
    h2 = fake_cloud.name_uuid('h2')
    cloud.broken[f'GET /resource_providers/{h2}'] = 404
    assert [each.name for each in read_snapshot(reader).providers] == ['h1']


def test_a_host_whose_inventories_cannot_be_read_takes_nothing_until_then(
    cloud, reader
):
    h2 = fake_cloud.name_uuid('h2')
    path = f'GET /resource_providers/{h2}/inventories'
    cloud.broken[path] = '{"inventories": {"VCPU": {}}}'
    assert [each.name for each in read_snapshot(reader).providers] == ['h1']
    [error] = reader.unreadable.values()
    assert f'about {h2} cannot' in str(error)
    del cloud.broken[path]
    assert len(read_snapshot(reader).providers) == 2
    assert not reader.unreadable


def test_an_unknown_cloud_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv('OS_CLIENT_CONFIG_FILE', str(tmp_path / 'none'))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(exception.ConfigurationError, match='nowhere'):
        clients.connect('nowhere')


def test_account_limits_are_read_into_the_snapshot(tmp_path):
    path = tmp_path / 'limits.json'
    path.write_text(json.dumps({'p': {'ceiling': {'VCPU': 4}}}))
    assert limits_file.read(path) == {'p': cluster.Limits({}, {'VCPU': 4})}
    path.write_text(json.dumps({'p': {'preemptible': {'VCPU': 4}}}))
    assert limits_file.read(path)['p'].preemptible == {'VCPU': 4}


@pytest.mark.parametrize(
    'text',
    [
        '{',
        '[]',
        '{"p": 3}',
        '{"p": {"shared": {}}}',
        '{"p": {"ceiling": 3}}',
        '{"p": {"ceiling": {"VCPU": -1}}}',
        '{"p": {"ceiling": {"VCPU": 1.5}}}',
        # Plans count in 64 bits.
        '{"p": {"guaranteed": {"VCPU": 1000000000000001}}}',
        '[' * 100_000,
    ],
)
def test_invalid_account_limits_are_named(tmp_path, text):
    path = tmp_path / 'limits.json'
    path.write_text(text)
    with pytest.raises(exception.ConfigurationError, match=r'limits\.json'):
        limits_file.read(path)


def test_a_running_server_is_seen_with_its_flavor(cloud, reader):
    cloud.live('s1', 3, '1970-01-01T00:15:00.000000')
    cloud.build('s1', 'h1', {'VCPU': 3, 'MEMORY_MB': 100})
    cloud.live('s2', 1, None)
    cloud.build('s2', 'h1', {'VCPU': 1, 'MEMORY_MB': 100}, status='BUILD')
    cloud.live('s3', 1, None)
    three, one = ((('MEMORY_MB', 100), ('VCPU', n)) for n in (3, 1))
    assert read_snapshot(reader).running == (
        cluster.Running('h1', 'the-project', three, 900.0, 'u', 's1'),
        cluster.Running('h1', 'the-project', one, 1000.0, 'u', 's2'),
    )


def test_a_request_sent_a_moment_ago_runs_from_now_on(cloud, reader):
    cloud.add_server('r')
    sent = small_cloud.waiting_request('r', state=request.State.STARTING)
    [found] = read_snapshot(reader, [sent], {'r': ('h1',)}).running
    assert (found.host, found.project, found.since) == ('h1', 'p', 1000.0)
    assert found.uuid == 'r'


def test_lifetimes_are_learned_of_those_that_were_deleted(cloud, reader):
    begin = '1970-01-01T00:00:00.000000'
    for n, end in enumerate(('00:09:00', '00:01:00', '00:05:00')):
        cloud.live(f's{n}', 2, begin, f'1970-01-01T{end}.000000')
    cloud.live('other', 2, begin, '1970-01-01T00:02:00', 'another')
    cloud.live('never', 2, None, '1970-01-01T00:02:00')
    # The first list has none that are gone; later ones tell them again.
    assert read_snapshot(reader).lifetimes == {}
    for _ in range(2):
        assert read_snapshot(reader).lifetimes == {
            ('the-project', 2, 100): (60.0, 300.0, 540.0),
            ('another', 2, 100): (120.0,),
        }


def test_the_last_hundred_lifetimes_are_remembered(cloud, reader):
    read_snapshot(reader)
    for n in range(130):
        end = f'1970-01-01T{n // 60:02}:{n % 60:02}:00'
        cloud.live(f's{n}', 2, '1970-01-01T00:00:00', end)
    [lifetimes] = read_snapshot(reader).lifetimes.values()
    assert lifetimes == tuple(60.0 * n for n in range(30, 130))


def answering(api, end, change):
    """The API; what it answers to paths that hold ``end`` is changed."""
    get = api.get

    def changed(path, secret=None):
        found = copy.deepcopy(get(path, secret))
        if end in path:
            change(found)
        return found

    api.get = changed
    return api


def with_each_inventory(**parts):
    def change(found):
        for each in found['inventories'].values():
            each.update(parts)

    return change


def with_a_flavor(vcpus):
    flavor = {'vcpus': vcpus, 'ram': 1, 'disk': 0, 'ephemeral': 0}
    return lambda found: found['servers'][0].update(flavor=flavor)


def reader_of(placement, nova):
    return snapshot_module.CloudReader(
        placement_module.Placement(placement), nova_module.Nova(nova), {}
    )


@pytest.mark.parametrize(
    'parts',
    [
        {'allocation_ratio': 3e38},
        {'allocation_ratio': float('inf')},
        {'total': 1e30},
    ],
)
def test_a_host_may_have_unlimited_capacity(cloud, parts):
    placement, nova, *_ = cloud.apis
    change = with_each_inventory(**parts)
    found = read_snapshot(
        reader_of(answering(placement, '/inventories', change), nova)
    )
    capacity = found.inventory.capacity[0]
    assert (capacity > 2**45).all()
    assert (capacity < 2**48).all()


@pytest.mark.parametrize(
    ('end', 'change'),
    [
        ('/inventories', with_each_inventory(total='many')),
        ('/inventories', with_each_inventory(allocation_ratio=float('nan'))),
        ('/inventories', dict.clear),
        ('/usages', lambda found: found['usages'].update(VCPU=-1)),
        ('/usages', dict.clear),
        ('/traits', dict.clear),
        ('/aggregates', dict.clear),
    ],
)
def test_hosts_that_cannot_be_read_take_nothing(cloud, end, change):
    placement, nova, *_ = cloud.apis
    made = reader_of(answering(placement, end, change), nova)
    assert read_snapshot(made).providers == ()
    assert {kind for kind, _ in made.unreadable} >= {quarantine.InputKind.HOST}


@pytest.mark.parametrize(
    ('end', 'change'),
    [
        ('/inventories', with_each_inventory(step_size=10**30)),
        ('/inventories', with_each_inventory(max_unit=-5)),
        ('/usages', lambda found: found['usages'].update(VCPU=10**30)),
    ],
)
def test_huge_amounts_never_make_a_host_emptier(cloud, end, change):
    placement, nova, *_ = cloud.apis
    found = read_snapshot(reader_of(answering(placement, end, change), nova))
    inventory, vcpu = found.inventory, found.classes.index('VCPU')
    free = inventory.capacity - inventory.used
    takes = (free >= inventory.step) & (inventory.unit > 0)
    assert not takes[:, vcpu].any()


def test_nonsense_of_placement_is_an_outage(cloud):
    placement, nova, *_ = cloud.apis
    told = answering(placement, '/resource_providers', dict.clear)
    with pytest.raises(exception.CloudAway, match='cannot be read'):
        read_snapshot(reader_of(told, nova))


@pytest.mark.parametrize('odd', [None, 7, [], {}, 'x', [[]], {'a': []}])
@pytest.mark.parametrize('answer', ['servers', 'hypervisors', 'services'])
def test_an_invalid_entry_of_a_list_hides_no_other(cloud, answer, odd):
    cloud.add_server('s1')
    cloud.build('s1', 'h1', {'VCPU': 1, 'MEMORY_MB': 1})
    placement, nova, *_ = cloud.apis
    change = lambda found: found.get(answer, []).append(odd)  # noqa: E731
    made = reader_of(placement, answering(nova, '/', change))
    found = read_snapshot(made)
    assert [each.name for each in found.providers] == ['h1', 'h2']
    assert [each.uuid for each in found.running] == ['s1']
    assert made.unreadable


@pytest.mark.parametrize('key', ['uuid', 'name', 'root_provider_uuid'])
@pytest.mark.parametrize('odd', [None, 7, [], {}])
def test_an_invalid_name_of_a_provider_hides_no_other_host(cloud, key, odd):
    cloud.add_host('h3', 4, child=[{'VGPU': 1}])
    bad = fake_cloud.name_uuid('h3-0')
    placement, nova, *_ = cloud.apis

    def change(found):
        for each in found.get('resource_providers', ()):
            if each['uuid'] == bad:
                each.update({key: odd})
                each.pop(key if odd is None else '', None)

    made = reader_of(answering(placement, '/resource_providers', change), nova)
    names = {each.name for each in read_snapshot(made).providers}
    assert names >= {'h1', 'h2'}
    assert made.unreadable or key == 'name'


def test_a_host_whose_provider_has_no_name_takes_servers(cloud):
    placement, nova, *_ = cloud.apis

    def change(found):
        for each in found.get('resource_providers', ()):
            each.pop('name')

    made = reader_of(answering(placement, '/resource_providers', change), nova)
    names = [each.name for each in read_snapshot(made).providers]
    assert names == ['h1', 'h2']


def test_two_hosts_of_one_name_take_nothing(cloud):
    cloud.add_host('h3', 4)
    cloud.hypervisors[fake_cloud.name_uuid('h3')].update(
        hypervisor_hostname='h1.example', service={'host': 'h1'}
    )
    placement, nova, *_ = cloud.apis
    made = reader_of(placement, nova)
    assert [each.name for each in read_snapshot(made).providers] == ['h2']


def test_a_server_that_cannot_be_read_stays_as_it_was(cloud):
    cloud.add_server('s1')
    cloud.build('s1', 'h1', {'VCPU': 1, 'MEMORY_MB': 1})
    placement, nova, *_ = cloud.apis
    made = reader_of(placement, nova)
    before = read_snapshot(made).running
    cloud.servers['s1']['status'] = ['?']
    assert read_snapshot(made).running == before
    assert (quarantine.InputKind.SERVER, 's1') in made.unreadable
    other = reader_of(placement, nova).read([], {}, 1000.0)
    assert other.servers['s1'].status == 'BUILD'
    assert not other.servers['s1'].is_settled


def test_unreadable_usages_of_a_project_hide_no_others(cloud):
    cloud.add_server('s1', 'evil')
    cloud.add_server('s2', 'victim')
    cloud.build('s2', 'h1', {'VCPU': 1, 'MEMORY_MB': 1})
    placement, nova, *_ = cloud.apis
    change = lambda found: found['usages'].update(VCPU='x')  # noqa: E731
    made = reader_of(
        answering(placement, '/usages?project_id=evil', change), nova
    )
    found = read_snapshot(made)
    assert found.used['victim'].any()
    assert list(made.unreadable) == [(quarantine.InputKind.ACCOUNT, 'evil')]


@pytest.mark.parametrize('answer', [500, 403, 'null', '{}'])
def test_a_group_for_which_nova_fails_keeps_its_requests_alone(cloud, answer):
    cloud.groups = {'g1': ['s1'], 'g2': ['s1']}
    asked = [
        small_cloud.waiting_request(
            f'r{n}', group=request.Group(f'g{n}', request.Rule.APART)
        )
        for n in (1, 2)
    ]
    cloud.broken['GET /os-server-groups/g1'] = answer
    placement, nova, *_ = cloud.apis
    made = reader_of(placement, nova)
    read_snapshot(made, asked)
    assert list(made.unreadable) == [(quarantine.InputKind.REQUEST, 'r1')]


def in_groups(cloud, *names):
    """A request for each group."""
    return [
        small_cloud.waiting_request(
            f'r-{name}', group=request.Group(name, request.Rule.TOGETHER)
        )
        for name in names
    ]


def test_members_in_a_cell_that_is_down_are_not_taken_for_absent(cloud):
    """Also by a process that starts, and has seen no member where it lies."""
    for name in ('s1', 's2'):
        cloud.add_server(name)
        cloud.build(name, 'h1', {'VCPU': 1})
    cloud.groups = {'g1': ['s1', 's2'], 'g2': ['s2', 'gone']}
    asked = in_groups(cloud, 'g1', 'g2')
    cloud.down.add('s1')
    placement, nova, *_ = cloud.apis
    made = reader_of(placement, nova)
    for _ in range(3):
        found = read_snapshot(made, asked)
        assert list(made.unreadable) == [
            (quarantine.InputKind.REQUEST, 'r-g1')
        ]
        assert found.member_hosts['g2'] == ('h1',)
    cloud.down.clear()
    for later_s in (1.0, 2.0):
        now = 1000.0 + nova_module.FULL_EVERY_S + later_s
        found = made.read(asked, {}, now).snapshot
    assert made.unreadable == {}
    assert found.member_hosts['g1'] == ('h1', 'h1')


def test_a_member_that_nova_does_not_tell_keeps_its_group_alone(cloud):
    for name in ('s1', 's2'):
        cloud.add_server(name)
        cloud.build(name, 'h1', {'VCPU': 1})
    cloud.groups = {'g1': ['s1'], 'g2': ['s2']}
    cloud.unlisted.add('s1')
    cloud.broken['GET /servers/s1'] = 500
    placement, nova, *_ = cloud.apis
    made = reader_of(placement, nova)
    read_snapshot(made, in_groups(cloud, 'g1', 'g2'))
    assert list(made.unreadable) == [(quarantine.InputKind.REQUEST, 'r-g1')]


def test_members_without_a_host_are_no_hidden_ones(cloud):
    """They are shelved, failed, or wait in the queue."""
    for name, status in (('s1', 'SHELVED_OFFLOADED'), ('s2', 'ERROR')):
        cloud.add_server(name)
        cloud.servers[name]['status'] = status
    cloud.add_server('s3')
    cloud.groups = {'g1': ['s1', 's2', 's3', 'waits']}
    asked = [
        dataclasses.replace(each, servers=('waits',))
        for each in in_groups(cloud, 'g1')
    ]
    placement, nova, *_ = cloud.apis
    made = reader_of(placement, nova)
    assert read_snapshot(made, asked).member_hosts == {'g1': ()}
    assert made.unreadable == {}


def test_many_groups_that_nova_does_not_list_are_asked_for_in_turn(cloud):
    cloud.add_server('s1')
    cloud.build('s1', 'h1', {'VCPU': 1})
    names = [f'g{n:02}' for n in range(50)]
    cloud.groups = {name: ['s1'] for name in names}
    asked = in_groups(cloud, *names)
    answer = cloud._get_os_server_groups
    cloud._get_os_server_groups = lambda place, *asked: (
        answer(place, *asked) if place and place[0] != 'g00' else 500
    )
    placement, nova, *_ = cloud.apis
    made = reader_of(placement, nova)
    left = []
    for _ in range(4):
        before = len(requests_beginning_with(cloud, 'GET /os-server-groups/'))
        read_snapshot(made, asked)
        left.append(len(made.unreadable))
        assert (
            len(requests_beginning_with(cloud, 'GET /os-server-groups/'))
            - before
            <= 20
        )
    assert left[-1] == 1
    assert list(made.unreadable) == [(quarantine.InputKind.REQUEST, 'r-g00')]


def test_members_of_a_group_that_cannot_be_read_keep_its_requests(cloud):
    placement, nova, *_ = cloud.apis
    cloud.groups = {'g1': 7, 'g2': ['s1']}
    rule = request.Group('g1', request.Rule.APART)
    other = request.Group('g2', request.Rule.APART)
    asked = [
        small_cloud.waiting_request('r1', group=rule),
        small_cloud.waiting_request('r2', group=other),
    ]
    made = reader_of(placement, nova)
    read_snapshot(made, asked)
    assert list(made.unreadable) == [(quarantine.InputKind.REQUEST, 'r1')]


@pytest.mark.parametrize(
    ('end', 'change'),
    [
        ('/servers/detail', dict.clear),
        ('/os-hypervisors', dict.clear),
        ('/os-services', dict.clear),
    ],
)
def test_nonsense_of_nova_is_an_outage(cloud, end, change):
    cloud.add_server('s1')
    placement, nova, *_ = cloud.apis
    with pytest.raises(exception.CloudAway, match='cannot be read'):
        read_snapshot(reader_of(placement, answering(nova, end, change)))


@pytest.mark.parametrize(
    'change',
    [
        lambda found: found['servers'][0].pop('status'),
        with_a_flavor(vcpus=2**46),
        with_a_flavor(vcpus=-1),
        with_a_flavor(vcpus='many'),
    ],
)
def test_nonsense_of_a_server_makes_it_an_unknown_one(cloud, change):
    cloud.add_server('s1')
    placement, nova, *_ = cloud.apis
    made = reader_of(placement, answering(nova, '/servers/detail', change))
    assert made.read([], {}, 1000.0).servers['s1'].amounts == ()
    assert (quarantine.InputKind.SERVER, 's1') in made.unreadable


def test_nonsense_about_one_server_or_flavors_is_an_outage(cloud):
    cloud.add_server('s1')
    nova = cloud.apis.nova
    asked = nova_module.Nova(answering(nova, '/', dict.clear))
    with pytest.raises(exception.CloudAway, match='cannot be read'):
        asked.server('s1')
    with pytest.raises(exception.CloudAway, match='cannot be read'):
        asked.flavor_amounts()
    too_large = lambda found: found['flavors'][0].update(ram=2**46)  # noqa: E731
    asked = nova_module.Nova(answering(cloud.apis.nova, '/', too_large))
    with pytest.raises(
        exception.CloudAway, match='of a flavor are out of range'
    ):
        asked.flavor_amounts()


def test_a_server_that_was_sent_is_a_member_on_its_host_at_once(cloud, reader):
    rule = request.Group('g', request.Rule.APART)
    sent = small_cloud.waiting_request(
        'r1', group=rule, state=request.State.STARTING
    )
    cloud.groups['g'] = []
    cloud.add_server('r1')
    asked = [sent, small_cloud.waiting_request('r2', group=rule)]
    found = read_snapshot(reader, asked, {'r1': ('h1',)})
    assert found.member_hosts == {'g': ('h1',)}
    assert found.belongs == {'r1': 'g'}
    cloud.build('r1', 'h2', {'VCPU': 1})
    found = read_snapshot(reader, asked, {'r1': ('h1',)})
    assert found.member_hosts == {'g': ('h2',)}


PINNED = request.Demand((('MEMORY_MB', 100), ('PCPU', 2)))


class TestClasses:
    """Which classes hosts have, and which may come again."""

    def at(self, reader, now, requests=()):
        return reader.read(requests, {}, now).snapshot

    def test_resource_classes_of_a_down_host_are_known(self, cloud, reader):
        cloud.add_provider(
            fake_cloud.name_uuid('below'), 'h2-0', {'PCPU': 4},
            fake_cloud.name_uuid('h2'),
        )  # fmt: skip
        found = self.at(reader, 1000.0)
        assert 'PCPU' in found.classes
        assert found.knows_classes

    def test_a_vanished_resource_class_is_known_for_an_hour(
        self, cloud, reader
    ):
        assert 'VGPU' in self.at(reader, 1000.0).classes
        for name in ('h1-0', 'h1-1'):
            del cloud.providers[fake_cloud.name_uuid(name)]
        assert 'VGPU' in self.at(reader, 4599.0).classes
        # Of the hour that began when it was seen last.
        found = self.at(reader, 4600.0)
        assert 'VGPU' not in found.classes
        assert found.inventory.capacity.shape == (2, 2)

    def test_a_host_that_nova_does_not_list_has_its_classes(
        self, cloud, reader
    ):
        del cloud.hypervisors[fake_cloud.name_uuid('h1')]
        assert 'VGPU' in self.at(reader, 1000.0).classes

    def test_a_host_without_a_provider_may_have_any_for_a_while(
        self, cloud, reader
    ):
        del cloud.providers[fake_cloud.name_uuid('h2')]
        assert not self.at(reader, 1000.0).knows_classes
        assert not self.at(reader, 1599.0).knows_classes
        assert self.at(reader, 1601.0).knows_classes

    def test_without_a_host_no_resource_class_is_known(self, cloud, reader):
        for name in ('h1', 'h2'):
            del cloud.hypervisors[fake_cloud.name_uuid(name)]
        assert not self.at(reader, 1000.0).knows_classes

    def test_a_provider_that_vanishes_between_reads_leaves_doubt(
        self, cloud, reader, monkeypatch
    ):
        gone = fake_cloud.name_uuid('h1-0')
        read = placement_module.Placement._read_provider

        def late(self, uuid, generation):
            return None if uuid == gone else read(self, uuid, generation)

        monkeypatch.setattr(placement_module.Placement, '_read_provider', late)
        assert not self.at(reader, 1000.0).knows_classes
        monkeypatch.undo()
        assert self.at(reader, 1001.0).knows_classes

    def test_a_resource_that_hosts_share_is_left_out_of_plans(
        self, cloud, reader
    ):
        pool = fake_cloud.name_uuid('pool')
        cloud.add_provider(pool, 'pool', {'DISK_GB': 1000})
        cloud.providers[pool]['traits'] = ['MISC_SHARES_VIA_AGGREGATE']
        wanted = request.Demand((('DISK_GB', 9), ('VCPU', 1)))
        asked = small_cloud.waiting_request('r', demand=wanted)
        found = self.at(reader, 1000.0, [asked])
        assert 'DISK_GB' not in found.classes
        assert dict(found.requests[0].demand.amounts) == {'VCPU': 1}

    def test_a_pinned_server_has_the_resources_its_host_gives(
        self, cloud, reader
    ):
        cloud.add_provider(
            fake_cloud.name_uuid('below'), 'h2-0', {'PCPU': 4},
            fake_cloud.name_uuid('h2'),
        )  # fmt: skip
        asked = [
            small_cloud.waiting_request(
                f's{n}', demand=PINNED, band=request.Band.PREEMPTIBLE
            )
            for n in (1, 2)
        ]
        for n, name in ((1, 'VCPU'), (2, 'PCPU')):
            cloud.add_server(f's{n}')
            cloud.build(f's{n}', f'h{n}', {name: 2})
        found = self.at(reader, 1000.0, asked)
        ways = [dict(each.demand.amounts) for each in found.requests]
        assert ['VCPU' in each for each in ways] == [True, False]

    def test_a_sent_pinned_server_takes_the_resources_its_host_gives(
        self, cloud, reader
    ):
        asked = small_cloud.waiting_request('s1', demand=PINNED)
        cloud.add_server('s1')
        found = reader.read([asked], {'s1': ('h1',)}, 1000.0).snapshot
        assert found.inventory.used[0].tolist() == [100, 2, 0]
