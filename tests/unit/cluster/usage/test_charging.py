# SPDX-License-Identifier: Apache-2.0

"""What is charged by a service with a real store beside a fake cloud."""

import dataclasses
import logging
import threading

import pytest

from nova_fairness import exception
from nova_fairness.cluster.admission import intake
from nova_fairness.cluster.messages import parser
from nova_fairness.cluster.usage import charging
from nova_fairness.model import cluster
from nova_fairness.planners.fairqueue import order
from nova_fairness.planners.fairqueue import orders
from nova_fairness.runtime import supervision
from nova_fairness.shares import measured
from tests.fixtures import fake_cloud
from tests.fixtures.patience import wait_for_value
from tests.unit.cluster import test_service

HALF_LIFE_S = 86400.0
world = test_service.world


def runs(world, name, vcpu, project='the-project', user='u'):
    """A server runs that is of no request of ours."""
    server = fake_cloud.name_uuid(name)
    world.cloud.add_server(server, project, user)
    world.cloud.build(server, 'h2', {'VCPU': vcpu})
    return server


def parts(world, cls='VCPU'):
    """Parts of the cloud that are used, by account."""
    found = world.store.read_ledger().parts
    return {name: each[cls] for name, each in found.items()}


def after(seconds):
    """How much of a steady use is known after some seconds."""
    return pytest.approx(1 - 0.5 ** (seconds / HALF_LIFE_S), rel=1e-9)


@pytest.fixture(autouse=True)
def cloud(world):
    """Four VCPUs on one host, and twelve on another."""
    world.cloud.add_host('h2', 12)
    return world.cloud


@pytest.fixture
def process(world):
    """A process that has charged what there was: nothing."""
    made = world.process()
    made.cycle()
    assert world.store.read_ledger().at == world.now
    return made


def test_accounts_are_charged_for_their_allocations(world, process):
    runs(world, 's1', 4, 'p', 'ann')
    runs(world, 's2', 2, 'p', 'bob')
    runs(world, 's3', 2, 'q', 'ann')
    world.now += 600
    process.cycle()
    known = 1 - 0.5 ** (600 / HALF_LIFE_S)
    expected = {
        'p': 6 / 16, 'p/ann': 4 / 16, 'p/bob': 2 / 16,
        'q': 2 / 16, 'q/ann': 2 / 16,
    }  # fmt: skip
    assert {name: part / known for name, part in parts(world).items()} == (
        pytest.approx(expected)
    )


def test_only_users_whose_servers_changed_are_asked_about(
    world, process, monkeypatch
):
    servers = [runs(world, f's{n}', 1, f'p{n % 2}', f'u{n}') for n in range(8)]
    asked = []
    answer = world.cloud._get_usages

    def noted(place, query, body):
        asked.append(query.get('user_id'))
        return answer(place, query, body)

    monkeypatch.setattr(world.cloud, '_get_usages', noted)

    def users():
        asked.clear()
        world.now += 60
        process.cycle()
        return sorted(filter(None, asked))

    assert users() == [f'u{n}' for n in range(8)]
    assert users() == []
    world.cloud.remove(servers[3])
    runs(world, 'new', 2, 'p1', 'u5')
    # The one who is gone has no server that would be charged.
    assert users() == ['u5']
    # Nova does not tell of it, the sum of the project does.
    world.cloud.write(servers[0], {}, 'p0')
    assert users() == ['u0', 'u2', 'u4', 'u6']
    assert parts(world)['p0'] == sum(
        parts(world)[f'p0/u{n}'] for n in (0, 2, 4, 6)
    )


def test_an_allocation_without_a_server_is_charged_to_its_project(
    world, process
):
    world.cloud.add_server('s1', 'p', 'ann')
    host = fake_cloud.name_uuid('h2')
    world.cloud.write('a-migration', {host: {'VCPU': 8}}, 'p')
    world.now += 600
    process.cycle()
    # Of those who are alone it is not told apart.
    assert parts(world)['p'] / 0.5 == after(600)
    world.cloud.add_server('s2', 'p', 'bob')
    world.now += 600
    process.cycle()
    assert parts(world)['p'] / 0.5 == after(1200)
    assert parts(world)['p/ann'] < parts(world)['p'] * 0.6
    assert 'p/bob' not in parts(world)


@pytest.mark.parametrize('charged', [0.0, 0.5])
def test_preemptible_servers_are_charged_as_far_as_operators_say(
    world, charged
):
    world.charged = charged
    terms = intake.AdmissionOptions(
        preemptible=parser.PreemptibleRules(marks=True)
    )
    process = world.process(terms=terms)
    server = world.post('r1', 8, hints={parser.MARK: ['true']})
    process.cycle()
    world.cloud.build(server, 'h2', {'VCPU': 8, 'MEMORY_MB': 100})
    world.now += 600
    process.cycle()
    assert world.store.request(server).request.is_preemptible
    known = 1 - 0.5 ** (600 / HALF_LIFE_S)
    for name in ('the-project', 'the-project/u'):
        part = parts(world).get(name, 0.0)
        assert part == pytest.approx(charged * 0.5 * known)
        granted = process.last().snapshot.granted.get(name)
        assert granted is not None if charged else granted is None


@pytest.mark.parametrize(
    ('charge', 'by_project', 'ann', 'bob'),
    [
        ('allocated', False, 8 / 16, 4 / 16),
        ('used', False, 2 / 16, 4 / 16),
        ('larger', False, 8 / 16, 4 / 16),
        ('used', True, 6 / 16 * 8 / 12, 6 / 16 * 4 / 12),
    ],
)
def test_use_that_agents_measured_is_charged_as_operators_say(
    world, charge, by_project, ann, bob
):
    world.charge = measured.Charge(charge)
    whose = {'p': {'cpu_time': 6 / 16}}
    if not by_project:
        # Of bob no agent knows; memory of nobody.
        whose = {'ann': {'cpu_time': 2 / 16}, 'eve': {'cpu_time': 1.0}}
    world.measured = measured.MeasuredUse(by_project, whose)
    process = world.process()
    process.cycle()
    runs(world, 's1', 8, 'p', 'ann')
    runs(world, 's2', 4, 'p', 'bob')
    world.now += 600
    process.cycle()
    known = 1 - 0.5 ** (600 / HALF_LIFE_S)
    expected = {'p': ann + bob, 'p/ann': ann, 'p/bob': bob}
    assert parts(world) == pytest.approx(
        {name: part * known for name, part in expected.items()}
    )
    # Budgets pay for what is allocated.
    assert world.store.read_ledger().spent['p'] == 12 * 600


def test_allocations_are_charged_while_no_agent_answers(world):
    world.charge = measured.Charge.USED
    process = world.process()
    process.cycle()
    runs(world, 's1', 8, 'p', 'ann')
    world.now += 600
    process.cycle()
    assert parts(world)['p'] / 0.5 == after(600)


def test_a_waiting_request_is_not_charged(world, process):
    world.post('r1', vcpu=99)
    world.now += 600
    process.cycle()
    assert parts(world) == {}


def test_a_minute_passes_between_two_charges(world, process):
    runs(world, 's1', 16)
    version = world.store.read_ledger().version
    world.now += charging.EVERY_S - 1
    process.cycle()
    assert world.store.read_ledger().version == version
    world.now += 1
    process.cycle()
    assert world.store.read_ledger().version == version + 1
    assert parts(world)['the-project'] == after(60)


def test_a_hundred_charges_fit_into_a_short_half_life(world):
    world.half_life_s = 1000.0
    process = world.process()
    process.cycle()
    version = world.store.read_ledger().version
    for elapsed_s, charges in ((9.0, 0), (1.0, 1), (9.0, 1), (1.0, 2)):
        world.now += elapsed_s
        process.cycle()
        assert world.store.read_ledger().version == version + charges


def test_a_successor_charges_from_where_the_ledger_ends(world, process):
    runs(world, 's1', 16)
    world.now += 600
    process.cycle()
    successor = world.process('two')
    assert not successor.cycle()
    world.now += 600
    world.tick += 600
    assert successor.cycle()
    assert parts(world)['the-project'] == after(1200)
    assert not process.cycle()
    assert parts(world)['the-project'] == after(1200)


def test_a_leader_deposed_in_the_cycle_charges_nothing(world, process):
    runs(world, 's1', 16)
    world.now += 600
    read = process.charging._reader.used_by_users

    def taken_over(view):
        world.store.take_over(world.store.leader().epoch, 'two', world.now)
        return read(view)

    process.charging._reader.used_by_users = taken_over
    before = world.store.read_ledger()
    with pytest.raises(exception.Deposed):
        process.cycle()
    assert world.store.read_ledger() == before


def test_one_hour_of_a_gap_is_charged_and_older_use_decays(world, process):
    runs(world, 's1', 16)
    world.now += 600
    process.cycle()
    before = parts(world)['the-project']
    world.now += HALF_LIFE_S
    process.cycle()
    hour = 1 - 0.5 ** (charging.LONGEST_S / HALF_LIFE_S)
    assert parts(world)['the-project'] == pytest.approx(before / 2 + hour)


def test_a_clock_that_goes_back_a_little_charges_nothing_twice(world, process):
    runs(world, 's1', 16)
    world.now += 600
    process.cycle()
    before = world.store.read_ledger()
    world.now -= 500
    process.cycle()
    assert world.store.read_ledger() == before
    world.now += 1100
    process.cycle()
    assert parts(world)['the-project'] == after(1200)


def test_a_clock_that_was_far_ahead_stops_nothing_for_long(
    world, process, caplog
):
    runs(world, 's1', 16)
    world.now += 100 * HALF_LIFE_S
    process.cycle()
    ahead = parts(world)
    world.now -= 100 * HALF_LIFE_S
    with caplog.at_level(logging.WARNING):
        process.cycle()
    assert world.store.read_ledger().at == world.now
    assert parts(world) == ahead
    assert caplog.messages == [charging.WENT_BACK % (100 * HALF_LIFE_S)]
    world.now += 600
    process.cycle()
    assert parts(world)['the-project'] > ahead['the-project']


def test_a_class_that_is_gone_for_a_while_is_not_forgotten(world, process):
    gone = world.cloud.add_host('h3', 4, child=[{'VGPU': 2}])
    host = fake_cloud.name_uuid('h3-0')
    world.cloud.add_server('s1', 'p', 'ann')
    world.cloud.write('s1', {host: {'VGPU': 2}}, 'p')
    world.now += 600
    process.cycle()
    used = parts(world, 'VGPU')['p']
    assert used == after(600)
    for each in (gone, host):
        del world.cloud.providers[each]
    del world.cloud.hypervisors[gone]
    world.now += 600
    process.cycle()
    kept = 0.5 ** (600 / HALF_LIFE_S)
    assert parts(world, 'VGPU')['p'] == pytest.approx(used * kept)
    snapshot = process.last().snapshot
    assert snapshot.history['p'].shape == (len(snapshot.classes),)


def test_orders_get_past_use(world, process):
    runs(world, 's1', 4, 'p')
    world.now += 600
    process.cycle()
    snapshot = process.last().snapshot
    column = snapshot.classes.index('VCPU')
    assert snapshot.history['p'][column] / 0.25 == after(600)


@pytest.mark.parametrize(
    ('share', 'first'), [(1, 'cast-light'), (9, 'cast-heavy')]
)
def test_the_next_account_is_the_one_that_used_less_of_its_share(
    world, share, first
):
    world.order = orders.FairTree()
    world.accounts = (cluster.Account('heavy', None, share),)
    runs(world, 's1', 8, 'heavy')
    runs(world, 's2', 4, 'light')
    process = world.process()
    process.cycle()
    world.post('heavy', 4, 'heavy')
    world.post('light', 4, 'light')
    # One of both fits: the first host has four VCPUs.
    process.cycle()
    assert world.conductor.sent == [first]


def test_an_order_that_fails_ends_the_cycle_and_not_the_service(world):
    class Fails(order.Order):
        def arrange(self, waiting, snapshot, now):
            raise KeyError('x')

    world.order = Fails()
    world.post('r1')
    process, stopped = world.process(), threading.Event()
    manager = supervision.ServiceManager()
    given = stopped, 0.01, manager
    thread = threading.Thread(target=process.run, args=given)
    thread.start()
    wait_for_value(lambda: process.cycles_failed > 1)
    stopped.set()
    thread.join()
    assert process.cycles_failed == process.cycles
    assert world.conductor.sent == []


def test_all_above_an_account_is_charged_as_well(world, process):
    runs(world, 's1', 4, 'p', 'ann')
    view = process._reader.read([], {}, world.now)
    accounts = (
        cluster.Account('faculty'),
        cluster.Account('p', 'faculty'),
        cluster.Account('group', 'p'),
        cluster.Account('p/ann', 'group'),
    )
    view = dataclasses.replace(
        view,
        snapshot=dataclasses.replace(view.snapshot, accounts=accounts),
    )
    epoch = world.store.leader().epoch
    process.charging.charge(view, world.now + 600, epoch)
    assert set(parts(world)) == {'faculty', 'p', 'group', 'p/ann'}
    assert len(set(parts(world).values())) == 1


def test_a_running_server_counts_whole_with_its_part_in_the_ledger(
    world, process
):
    world.cloud.live('s1', 4, '1970-01-01T00:16:40', project='p')
    world.cloud.build('s1', 'h2', {'VCPU': 4})
    world.post('r1', vcpu=99)
    for seconds in (0, 600, HALF_LIFE_S - 600):
        # An hour at most is charged at once.
        for _ in range(int(seconds // 600)):
            world.now += 600
            process.cycle()
        process.cycle()
        seen = process.last().snapshot
        column = seen.classes.index('VCPU')
        for name in ('p', 'p/u'):
            had = seen.history.get(name, [0.0, 0.0])[column]
            assert had + seen.granted[name][column] == pytest.approx(4 / 16)
    assert had == pytest.approx(2 / 16)
