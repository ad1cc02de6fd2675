# SPDX-License-Identifier: Apache-2.0

"""What operators and owners order for one request, with a real store."""

import pytest

from nova_fairness import exception
from nova_fairness.cluster.admission import intake
from nova_fairness.cluster.admission import interventions
from nova_fairness.cluster.api import requests
from nova_fairness.cluster.store import records
from nova_fairness.model import reason
from nova_fairness.model import request
from tests.fixtures import fake_cloud
from tests.fixtures import small_cloud
from tests.unit.cluster import test_service

world = test_service.world
R, S = reason.Reason, request.State


@pytest.fixture
def process(world):
    return world.process()


@pytest.fixture
def ask(world, process):
    return requests.ClusterOperations(world.store, process)


def run_server(world, name='runs', host='h1', vcpu=4):
    """A server that runs on a host."""
    world.cloud.add_server(name, 'another')
    world.cloud.build(name, host, {'VCPU': vcpu, 'MEMORY_MB': 100})


def end_server(world, name='runs'):
    world.cloud.remove(name)


class TestRelease:
    def test_a_full_cloud_refuses_and_the_request_waits(
        self, world, process, ask
    ):
        run_server(world)
        server = world.post('r1')
        process.cycle()
        with pytest.raises(exception.NoRoom, match='has 0 left'):
            ask.release(server)
        assert world.state(server) is S.WAITING
        assert world.conductor.sent == []
        assert world.cloud.holds() == []
        process.cycle()
        assert ask.request(server)['request']['state'] == 'waiting'

    def test_a_request_that_fits_no_host_is_not_released(
        self, world, process, ask
    ):
        server = world.post('r1', vcpu=99)
        process.cycle()
        with pytest.raises(exception.NoRoom, match='when it is empty'):
            ask.release(server)
        assert world.state(server) is S.WAITING

    def test_a_release_without_room_leaves_the_host_to_nova(
        self, world, process, ask
    ):
        server = world.post('r1', vcpu=99)
        process.cycle()
        told = ask.release(server, without_room=True)['request']
        assert told['state'] == 'starting'
        assert world.conductor.sent == ['cast-r1']
        assert world.cloud.holds() == []

    def test_a_release_checks_present_room_and_not_the_last_plan(
        self, world, process, ask
    ):
        run_server(world)
        first, second = world.post('r1'), world.post('r2')
        process.cycle()
        end_server(world)
        assert ask.release(second)['request']['state'] == 'starting'
        assert world.conductor.sent == ['cast-r2']
        assert world.hosts('r2') == ('h1',)
        # What was sent and not claimed yet has its room, too.
        with pytest.raises(exception.NoRoom):
            ask.release(first)

    def test_room_that_is_kept_for_another_is_refused(
        self, world, process, ask
    ):
        _, small = large_and_small(world, process)
        with pytest.raises(exception.NoRoom, match='is reserved for others'):
            ask.release(small)
        assert world.state(small) is S.WAITING
        told = ask.release(small, without_room=True)['request']
        assert told['state'] == 'starting'

    def test_a_refused_release_of_a_held_request_names_the_hold(
        self, world, process, ask
    ):
        run_server(world)
        server = world.post('r1')
        process.cycle()
        ask.hold(server, by_operator=True)
        with pytest.raises(exception.NoRoom, match=r'end its hold \(unhold\)'):
            ask.release(server)

    def test_a_request_keeps_waiting_if_its_reserved_room_vanishes(
        self, world, process, ask
    ):
        run_server(world)
        server = world.post('r1')
        process.cycle()
        end_server(world)
        world.cloud.broken['POST /allocations'] = 409
        with pytest.raises(exception.NoRoom, match='took its room'):
            ask.release(server)
        assert world.state(server) is S.WAITING
        assert world.cloud.holds() == []

    @pytest.mark.parametrize('state', ['starting', 'active', 'ended'])
    def test_an_order_for_a_started_request_is_refused_with_its_state(
        self, world, process, ask, state
    ):
        server = world.post('r1')
        process.cycle()
        if state != 'starting':
            world.cloud.build(server, 'h1', test_service.NEED)
            process.cycle()
        if state == 'ended':
            world.cloud.remove(server)
            process.cycle()
        for act in (
            ask.release,
            ask.first,
            ask.unfirst,
            lambda uuid: ask.hold(uuid, True),
            lambda uuid: ask.unhold(uuid, True),
        ):
            with pytest.raises(exception.IllegalStep, match=f'is {state}: '):
                act(server)


class TestFirst:
    def test_a_request_put_first_precedes_all_others_until_unset(
        self, world, process, ask
    ):
        run_server(world)
        servers = sorted(world.post(f'r{n}') for n in range(3))
        process.cycle()
        assert ask.first(servers[2])['request']['first'] is True
        process.cycle()
        assert place(ask, servers[2]) == 1
        ask.unfirst(servers[2])
        ask.unfirst(servers[2])
        process.cycle()
        assert place(ask, servers[2]) == 3

    def test_the_position_of_a_request_put_first_is_known_after_the_cycle(
        self, world, process, ask
    ):
        run_server(world)
        servers = sorted(world.post(f'r{n}') for n in range(3))
        process.cycle()
        for act, turn in ((ask.first, 1), (ask.unfirst, 3)):
            told = act(servers[2])['request']
            assert told['position'] is None
            assert told['reason'] == 'not_planned'
            assert 'next cycle of the queue' in told['status']
            process.cycle()
            assert place(ask, servers[2]) == turn

    def test_several_requests_put_first_follow_the_sequence_of_commands(
        self, world, process, ask
    ):
        run_server(world)
        servers = sorted(world.post(f'r{n}') for n in range(4))
        process.cycle()
        for n in (3, 1, 3):
            ask.first(servers[n])
        process.cycle()
        assert [place(ask, servers[n]) for n in (3, 1, 0, 2)] == [1, 2, 3, 4]

    def test_the_first_starts_with_the_next_room(self, world, process, ask):
        run_server(world)
        servers = sorted(world.post(f'r{n}') for n in range(3))
        process.cycle()
        ask.first(servers[2])
        end_server(world)
        process.cycle()
        assert world.state(servers[2]) is S.STARTING
        assert [world.state(each) for each in servers[:2]] == [S.WAITING] * 2


class TestHold:
    def test_a_held_request_starts_only_after_the_hold(
        self, world, process, ask
    ):
        run_server(world)
        server = world.post('r1')
        process.cycle()
        told = ask.hold(server, True, 'the invoice is open')['request']
        assert (told['reason'], told['held_by'], told['position']) == (
            'held_by_operator',
            'operator',
            None,
        )
        words = 'an operator holds it (the invoice is open)'
        assert words in told['explanation']
        end_server(world)
        process.cycle()
        assert world.state(server) is S.WAITING
        assert world.reason(server) is R.HELD_BY_OPERATOR
        told = ask.unhold(server, True)['request']
        assert (told['held_by'], told['reason']) == (None, 'not_planned')
        process.cycle()
        assert world.state(server) is S.STARTING

    def test_owners_end_their_own_hold_and_no_operators(
        self, world, process, ask
    ):
        server = world.post('r1', vcpu=99)
        process.cycle()
        assert ask.hold(server, False)['request']['held_by'] == 'owner'
        assert ask.unhold(server, False)['request']['held_by'] is None
        ask.hold(server, True, 'why')
        # It is held already: theirs does not take the operator's place.
        assert ask.hold(server, False)['request']['held_by'] == 'operator'
        with pytest.raises(exception.IllegalStep, match='an operator holds'):
            ask.unhold(server, False)
        assert ask.unhold(server, True)['request']['held_by'] is None

    def test_an_operator_takes_over_the_hold_of_an_owner(
        self, world, process, ask
    ):
        server = world.post('r1', vcpu=99)
        process.cycle()
        ask.hold(server, False)
        assert ask.hold(server, True)['request']['held_by'] == 'operator'

    def test_orders_that_are_repeated_change_nothing(
        self, world, process, ask
    ):
        server = world.post('r1', vcpu=99)
        process.cycle()
        for order in (
            lambda: ask.hold(server, True, 'x'),
            lambda: ask.unhold(server, True),
            lambda: ask.first(server),
            lambda: ask.unfirst(server),
        ):
            order()
            before = world.store.request(server)
            order()
            assert world.store.request(server) == before

    def test_operators_hold_stops_the_clock_and_owners_do_not(
        self, world, ask
    ):
        one = world.process(terms=intake.AdmissionOptions(2000.0))
        ask = requests.ClusterOperations(world.store, one)
        mine, theirs = world.post('r1', 99), world.post('r2', 99)
        one.cycle()
        ask.hold(mine, False)
        ask.hold(theirs, True)
        world.now += 5000.0
        one.cycle()
        assert world.state(mine) is S.EXPIRED
        assert world.state(theirs) is S.WAITING
        before = world.store.request(theirs).request.expires_at
        ask.unhold(theirs, True)
        after = world.store.request(theirs).request.expires_at
        assert after == before + 5000.0
        one.cycle()
        assert world.state(theirs) is S.WAITING

    def test_a_held_request_keeps_no_reservation(self, world, process, ask):
        large, small = large_and_small(world, process)
        ask.hold(large, True)
        process.cycle()
        assert world.state(small) is S.STARTING

    def test_a_release_ends_the_hold(self, world, process, ask):
        run_server(world)
        server = world.post('r1')
        process.cycle()
        ask.hold(server, True)
        end_server(world)
        process.cycle()
        told = ask.release(server)['request']
        assert (told['state'], told['held_by']) == ('starting', None)

    def test_holds_are_sent_as_notifications(self, world, process, ask):
        told = []
        server = world.post('r1', vcpu=99)
        process.cycle()
        world.store.set_listener(lambda *what: told.append(what[1].reason))
        ask.hold(server, True)
        ask.unhold(server, True)
        assert told == [R.HELD_BY_OPERATOR, R.NOT_PLANNED]


def test_orders_survive_the_process(world, process, ask):
    servers = [world.post(f'r{n}', vcpu=99) for n in range(2)]
    process.cycle()
    ask.first(servers[1])
    ask.hold(servers[1], True, 'why')
    found = world.store.request(servers[1]).request
    assert found.first == 1
    assert found.hold == request.Hold(
        request.Holder.OPERATOR, world.now, 'why'
    )


def place(ask, uuid):
    return ask.request(uuid)['request']['position']


def large_and_small(world, process):
    """A request that room is kept for, and one that would fit there."""
    run_server(world, vcpu=2)
    # Asked for at the same moment: the UUID decides.
    first, second = sorted(('r1', 'r2'), key=fake_cloud.name_uuid)
    large, small = world.post(first, 4), world.post(second, 2)
    process.cycle()
    assert world.state(small) is S.WAITING
    return large, small


def grouped(name, state=S.WAITING, hosts=()):
    group = request.Group('g', request.Rule.APART)
    demand = request.Demand((('MEMORY_MB', 100), ('VCPU', 1)))
    asked = request.Request(
        name, 'p', 'u', (f's-{name}',), demand, 0.0, group=group, state=state
    )
    why = reason.why(R.SENT)
    return records.RequestRecord(asked, f'c-{name}', why, 0.0, hosts)


def test_group_policies_respect_servers_in_migration():
    waits, sent = grouped('a'), grouped('b', S.STARTING, ('h0',))
    hosts = [small_cloud.host(name) for name in ('h0', 'h1')]
    two = small_cloud.cloud(hosts, (waits.request, sent.request))
    assert interventions.hosts_with_room(waits, two, {}, [waits, sent]) == (
        'h1',
    )
    one = small_cloud.cloud(hosts[:1], (waits.request, sent.request))
    with pytest.raises(exception.NoRoom):
        interventions.hosts_with_room(waits, one, {}, [waits, sent])
