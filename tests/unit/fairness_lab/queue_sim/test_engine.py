# SPDX-License-Identifier: Apache-2.0

"""A cloud at discrete events."""

import dataclasses

import numpy as np
import pytest

from fairness_lab.queue_sim import engine
from fairness_lab.queue_sim import reader
from fairness_lab.queue_sim import workload
from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.model import cluster
from nova_fairness.planners.fairqueue import order as order_module
from nova_fairness.planners.preemption import watermark
from tests.unit.fairness_lab.queue_sim import small_clouds

Fate = engine.Fate
ONE, WHOLE, PAIR = small_clouds.ONE, small_clouds.WHOLE, small_clouds.PAIR


class Watching(order_module.OldestFirst):
    """Remembers what it was shown."""

    def __init__(self):
        self.seen = []

    def arrange(self, waiting, snapshot, now):
        self.seen.append((now, snapshot))
        return super().arrange(waiting, snapshot, now)


def run(cloud, order=None):
    simulation = engine.Simulation(cloud, order or Watching())
    return simulation, list(simulation.moments(100.0))


def test_a_request_that_fits_starts_at_the_next_cycle():
    found, moments = run(small_clouds.cloud([(3, 0, ONE, 50)]))
    assert found.started_s.tolist() == [10]
    assert found.fate.tolist() == [Fate.ENDED]
    assert moments[-1].area.tolist() == [[50 * 1024, 50], [0, 0]]
    assert [each.at_s for each in moments] == list(range(100, 1001, 100))


def test_a_request_that_does_not_fit_waits_until_a_server_ends():
    cloud = small_clouds.cloud([(0, 0, WHOLE, 95), (0, 1, WHOLE, 20)])
    found, moments = run(cloud)
    assert found.started_s.tolist() == [0, 100]
    assert moments[0].used.tolist() == [[0, 0], [4096, 4]]


def test_servers_of_one_request_start_together():
    cloud = small_clouds.cloud([(0, 0, WHOLE, 55), (1, 1, PAIR, 30)], hosts=2)
    found, _ = run(cloud)
    assert found.started_s.tolist() == [0, 60]


def test_the_planner_gets_running_servers_and_past_lifetimes():
    order = Watching()
    run(
        small_clouds.cloud(
            [(0, 0, ONE, 40), (3, 0, ONE, 500), (50, 1, PAIR, 5)], hosts=2
        ),
        order,
    )
    now, snapshot = next(each for each in order.seen if each[0] >= 50)
    [runs] = snapshot.running
    amounts = (('MEMORY_MB', 1024), ('VCPU', 1))
    assert (runs.project, runs.user, runs.amounts) == ('p0', 'u0', amounts)
    assert (runs.since, now) == (10, 50)
    assert runs.host in {each.name for each in snapshot.providers}
    assert snapshot.lifetimes == {cluster.kind_of('p0', amounts): (40.0,)}


def test_running_use_that_the_ledger_lacks_is_granted():
    order = Watching()
    every = range(0, 100, 20)
    lifetimes = {0: 60, 1: 900}
    asked = [(n, p, ONE, lifetimes[p]) for n in every for p in lifetimes]
    run(small_clouds.cloud(asked, hosts=3), order)
    for _, snapshot in order.seen[1:]:
        capacity = snapshot.inventory.capacity.sum(axis=0)
        parts = {name: used / capacity for name, used in snapshot.used.items()}
        found = {
            name: snapshot.granted[name] + snapshot.history.get(name, 0)
            for name in (*parts, *(f'{name}/u{name[1]}' for name in parts))
        }
        for name, part in found.items():
            runs = parts[name[:2]]
            if name.startswith('p1'):
                assert part == pytest.approx(runs)
            else:
                # Of those that ended the ledger still has a part.
                assert (part >= runs - 1e-12).all()
    assert found.keys() == {'p0', 'p1', 'p0/u0', 'p1/u1'}


def test_a_waiting_request_can_be_withdrawn():
    cloud = small_clouds.cloud([(0, 0, WHOLE, 500), (5, 1, WHOLE, 5, 42)])
    found, moments = run(cloud)
    assert found.fate.tolist() == [Fate.ENDED, Fate.DELETED]
    assert found.left_s[1] == 42
    assert not moments[0].wanted.any()


def test_a_running_server_is_deleted_before_its_time():
    found, moments = run(small_clouds.cloud([(0, 0, WHOLE, 500, 42)]))
    assert found.fate.tolist() == [Fate.ENDED]
    assert moments[-1].area[0].tolist() == [42 * 4096, 42 * 4]


def test_a_request_that_waits_too_long_expires_at_that_moment():
    cloud = small_clouds.cloud(
        [(0, 0, WHOLE, 500), (7, 1, WHOLE, 5)], longest_wait_s=60
    )
    found, _ = run(cloud)
    assert found.fate.tolist() == [Fate.ENDED, Fate.EXPIRED]
    assert found.left_s[1] == 67


@pytest.mark.parametrize(('patience_s', 'started_s'), [(99, 420), (0, 550)])
def test_others_start_on_reserved_room_during_the_patience(
    patience_s, started_s
):
    # How long servers last is known of both projects; then one has three
    # quarters of the host for a time, and the other asks for all of it, and
    # for a quarter for a short time.
    known = [(0, n % 2, ONE, 100 if n % 2 else 20) for n in range(12)]
    running = [(400, 1, ONE, 100)] * 3
    late = [(410, 0, WHOLE, 50), (411, 0, ONE, 20)]
    cloud = small_clouds.cloud(known + running + late, patience_s=patience_s)
    found, _ = run(cloud)
    assert found.started_s[-1] == started_s


def test_requests_start_in_the_sequence_of_the_order_plugin():
    class NewestFirst(order_module.OldestFirst):
        def arrange(self, waiting, snapshot, now):
            return super().arrange(waiting, snapshot, now)[::-1]

    requests = [(0, 0, WHOLE, 95), (1, 0, WHOLE, 40), (2, 1, WHOLE, 40)]
    found, _ = run(small_clouds.cloud(requests), NewestFirst())
    assert found.started_s.tolist() == [0, 140, 100]


def test_use_is_charged_and_decays():
    order = Watching()
    requests = [(0, 0, WHOLE, 95), (150, 1, ONE, 1)]
    run(small_clouds.cloud(requests), order)
    now, snapshot = order.seen[-1]
    assert now == 150
    # A mean of 0.95 for one half-life, and nothing for another half of one.
    expected = 0.95 * 0.5 * 0.5**0.5
    for name in ('p0', 'p0/u0'):
        assert snapshot.history[name] == pytest.approx([expected] * 2)
    assert snapshot.history.keys() == {'p0', 'p0/u0'}


def test_planners_get_allocations():
    order = Watching()
    requests = [(0, 0, ONE, 95), (20, 1, ONE, 50)]
    run(small_clouds.cloud(requests, shares=(3.0, 1.0)), order)
    _, snapshot = order.seen[-1]
    assert snapshot.inventory.used.tolist() == [[1024, 1]]
    assert snapshot.used['p0'].tolist() == [1024, 1]
    assert [each.share for each in snapshot.accounts] == [3, 1, 1, 1]
    assert [each.user for each in snapshot.requests] == ['u1']


def test_an_event_that_concerns_no_request_is_not_planned():
    cloud = small_clouds.cloud([(0, 0, ONE, 15), (0, 0, ONE, 15)])
    found, _ = run(cloud)
    assert found.plans == 1


def test_an_order_that_fails_is_named():
    class Failing(order_module.OldestFirst):
        def arrange(self, waiting, snapshot, now):
            raise ValueError('no')

    with pytest.raises(exception.PluginMisbehaved, match='Failing'):
        run(small_clouds.cloud([(0, 0, ONE, 15)]), Failing())


SHORT = {'days': '0.2', 'half_life_hours': '2'}


@pytest.mark.parametrize('name', sorted(set(reader.names()) - {'month'}))
def test_no_capacity_is_allocated_twice(name):
    """Every scenario: allocations fit, and add up to what requests had."""
    cloud = reader.find(name, SHORT)
    simulation = engine.Simulation(cloud, plugins.load_order('fair_tree'))
    for moment in simulation.moments(1800.0):
        assert (moment.used.sum(axis=0) <= cloud.capacity).all()
        assert (moment.used >= 0).all()
        assert (moment.wanted >= 0).all()
    stream = cloud.stream
    amounts = np.array([each.amounts for each in stream.sizes])[stream.size]
    started = np.isfinite(simulation.started_s)
    ends = np.minimum(
        np.minimum(simulation.started_s + stream.lifetime_s, stream.deleted_s),
        cloud.duration_s,
    )
    seconds = (ends - simulation.started_s)[started]
    # Who made room ran, and may run, more than once.
    if not simulation.leaving.left.any():
        had = seconds @ amounts[started]
        assert moment.area.sum(axis=0) == pytest.approx(had)
    assert (simulation.started_s[started] >= stream.asked_s[started]).all()


def test_a_repeated_queue_simulation_is_equal():
    cloud = reader.find('churn', SHORT)
    first, second = (
        engine.Simulation(cloud, plugins.load_order('multifactor'))
        for _ in range(2)
    )
    for each in (first, second):
        list(each.moments(3600.0))
    np.testing.assert_array_equal(first.started_s, second.started_s)


def test_a_preemptible_server_leaves_after_notice_and_comes_back():
    """It runs 600 s at least, who waits does 60 s, and the notice is 30 s."""
    requests = [(0, 0, WHOLE, 900), (600, 1, WHOLE, 100)]
    found, moments = run(
        small_clouds.cloud(requests, duration_s=3000, preemptible={0})
    )
    assert found.started_s.tolist() == [0, 690]
    assert (found.leaving.left.tolist(), found.fate[1]) == ([1, 0], Fate.ENDED)
    assert found.leaving.lost.tolist() == [[690 * 4096, 690 * 4], [0, 0]]
    # From 790 on for 900 s, as if it had never run.
    used = {each.at_s: each.used[0, 1] for each in moments}
    assert (used[700], used[1600], used[1700]) == (0, 4, 0)
    assert found.fate[0] == Fate.ENDED


def test_a_server_that_saves_at_a_notice_loses_nothing_and_goes_on():
    """The same, with a notice that is long enough."""
    requests = [(0, 0, WHOLE, 900), (600, 1, WHOLE, 100)]
    cloud = small_clouds.cloud(
        requests, duration_s=3000, preemptible={0}, notice_s=120.0
    )
    found, moments = run(dataclasses.replace(cloud, saves=1.0))
    assert (found.leaving.left.tolist(), found.fate[1]) == ([1, 0], Fate.ENDED)
    assert not found.leaving.lost.any()
    # From 880 on for the 120 s that were left after 780.
    used = {each.at_s: each.used[0, 1] for each in moments}
    assert (used[800], used[900], used[1100]) == (0, 4, 0)
    assert found.fate[0] == Fate.ENDED


def test_a_notice_that_is_too_short_saves_nothing():
    requests = [(0, 0, WHOLE, 900), (600, 1, WHOLE, 100)]
    cloud = small_clouds.cloud(requests, duration_s=3000, preemptible={0})
    found, _ = run(dataclasses.replace(cloud, saves=1.0))
    assert found.leaving.lost.any()


@pytest.mark.parametrize(
    ('marks', 'started_s', 'left'),
    [
        (watermark.WatermarkBounds(), [0, 0, 1000], 0),
        (watermark.WatermarkBounds(0.5), [0, 600, 1000], 0),
        (watermark.WatermarkBounds(0.5, 0.5), [0, 600, 1000], 1),
    ],
)
def test_the_configured_free_room_is_kept(marks, started_s, left):
    """Two halves of a host, and somebody who has all of it."""
    half = workload.Size(2, 2048)
    requests = [
        (0, 0, half, 600),
        (0, 0, half, 3000),
        (1000, 1, half, 300),
    ]
    cloud = small_clouds.cloud(
        requests, duration_s=3000, preemptible={0}, hosts=1
    )
    found, _ = run(dataclasses.replace(cloud, marks=marks))
    assert found.started_s.tolist() == started_s
    assert found.leaving.left.sum() == left


def test_a_server_that_comes_back_waits_with_its_age():
    order = Watching()
    requests = [
        (5, 0, WHOLE, 9000),
        (620, 0, WHOLE, 50),
        (600, 1, WHOLE, 100),
    ]
    requests.sort()
    found, _ = run(
        small_clouds.cloud(requests, duration_s=2000, preemptible={0}), order
    )
    waiting = {e.uuid: e.asked_at for e in order.seen[-1][1].requests}
    assert found.leaving.left.tolist() == [1, 0, 0]
    # The younger one of the same user is behind.
    assert waiting == {'00000002': 620}


def test_no_server_leaves_for_a_request_withdrawn_in_time():
    requests = [(0, 0, WHOLE, 2000), (600, 1, WHOLE, 100, 680)]
    found, _ = run(small_clouds.cloud(requests, preemptible={0}))
    assert (found.leaving.left.tolist(), found.fate[1]) == (
        [0, 0],
        Fate.DELETED,
    )


def test_use_of_preemptible_servers_is_not_charged():
    order = Watching()
    requests = [(0, 0, WHOLE, 5000), (100, 0, WHOLE, 100)]
    run(small_clouds.cloud(requests, preemptible={0}), order)
    snapshot = order.seen[-1][1]
    assert not snapshot.history
    assert not snapshot.used
    assert snapshot.preemptible['p0', 'u0'].tolist() == [4096, 4]


def test_equal_requests_do_not_evict_each_other_in_turns():
    """A loop of evictions, as Kueue has had (#13662)."""
    requests = [(n, n % 2, ONE, 9000) for n in range(12)]
    cloud = small_clouds.cloud(
        requests, duration_s=9000, cycle_s=100, preemptible={0, 1}
    )
    found, _ = run(cloud, plugins.load_order('fair_tree'))
    assert found.leaving.left.sum() == 0


@pytest.mark.parametrize('victims', sorted(plugins.describe_victims()))
def test_room_is_not_taken_back_by_its_victims(victims):
    """Those who left are older, and would be first."""
    requests = [(0, 0, ONE, 9000)] * 8 + [(700, 1, WHOLE, 300)]
    cloud = small_clouds.cloud(
        requests, hosts=2, duration_s=2000, preemptible={0}
    )
    simulation = engine.Simulation(
        cloud, Watching(), plugins.load_victims(victims)
    )
    list(simulation.moments(100.0))
    assert simulation.started_s[8] == 790
    assert simulation.leaving.left.sum() == 4
