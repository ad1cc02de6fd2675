# SPDX-License-Identifier: Apache-2.0

"""What holds for every plan that makes room."""

import dataclasses
import functools
import graphlib
import random

import hypothesis
from hypothesis import strategies as st
import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import orders
from nova_fairness.planners.fairqueue import planner as queue
from nova_fairness.planners.preemption import over_share
from nova_fairness.planners.preemption import planner
from nova_fairness.planners.preemption import pricing
from tests.fixtures import small_cloud
from tests.unit.planners.preemption import test_planner

NOW, LENT, V = test_planner.NOW, test_planner.LENT, test_planner.V
BY_SHARES = functools.partial(queue.plan, order=orders.FairTree())
PROJECTS = ('p', 'q', 'r')


@st.composite
def clouds(draw):
    """Hosts that are full of what runs, and requests of all bands."""
    hosts, running = {}, []
    for name in 'abc'[: draw(st.integers(1, 3))]:
        hosts[name] = draw(st.integers(0, 2))
        for n in range(draw(st.integers(0, 4))):
            vcpu = draw(st.integers(1, 4))
            hosts[name] += vcpu
            running.append(
                test_planner.runs(
                    f's{name}{n}',
                    name,
                    vcpu,
                    draw(st.sampled_from(PROJECTS)),
                    draw(st.sampled_from([10.0, 900.0, 4000.0])),
                    draw(st.sampled_from([LENT, LENT, request.Band.NORMAL])),
                    group=draw(st.sampled_from(['', '', 'g'])),
                )
            )
    asked = [
        small_cloud.waiting_request(
            f'r{n}',
            draw(st.integers(1, 5)),
            draw(st.sampled_from(PROJECTS)),
            float(n),
            draw(st.integers(1, 2)),
            band=draw(st.sampled_from(list(request.Band))),
        )
        for n in range(draw(st.integers(0, 4)))
    ]
    return test_planner.cloud(hosts, running, asked)


def made(plan):
    return [each for each in plan.actions if each.verb is V.MAKE_ROOM]


def left_over(snapshot, plan, staying=()):
    """What hosts have left once a plan is carried out, (p, c)."""
    free = snapshot.inventory.capacity - snapshot.inventory.used
    row = {each.name: n for n, each in enumerate(snapshot.providers)}
    asked = {each.uuid: each for each in snapshot.requests}
    gone = {uuid for each in made(plan) for uuid in each.leaving}
    for each in snapshot.running:
        if each.uuid in gone - set(staying):
            free[row[each.host]] += vector(each.amounts)
    for action in plan.actions:
        for host in action.hosts:
            amounts = asked[action.request].demand.amounts
            free[row[host]] -= vector(amounts)
    return free


def vector(amounts):
    return cluster.amounts_vector(dict(amounts), small_cloud.CLASSES)


def carried_out(snapshot, plan):
    """The cloud after a plan, in which victims wait again with their age."""
    gone = {uuid for each in made(plan) for uuid in each.leaving}
    left = [each for each in snapshot.running if each.uuid in gone]
    used = snapshot.inventory.used.copy()
    row = {each.name: n for n, each in enumerate(snapshot.providers)}
    for each in left:
        used[row[each.host]] -= vector(each.amounts)
    asked = {each.uuid: each for each in snapshot.requests}
    started, again = [], []
    for action in plan.actions:
        each = asked.pop(action.request)
        for server, host in zip(each.servers, action.hosts, strict=True):
            used[row[host]] += vector(each.demand.amounts)
            started.append(
                cluster.Running(
                    host, each.project, each.demand.amounts, 0.0, each.user,
                    f'{each.uuid}/{server}', band=each.band,
                )
            )  # fmt: skip
    for each in left:
        demand = request.Demand(each.amounts)
        again.append(
            request.Request(
                each.uuid, each.project, each.user, (each.uuid,), demand,
                0.0, band=LENT,
            )
        )  # fmt: skip
    stay = tuple(e for e in snapshot.running if e.uuid not in gone)
    return dataclasses.replace(
        snapshot,
        inventory=dataclasses.replace(snapshot.inventory, used=used),
        running=(*stay, *started),
        requests=(*asked.values(), *again),
    )


def plan_of(snapshot):
    return planner.plan(snapshot, NOW, BY_SHARES, rules=test_planner.SOON)


@hypothesis.given(clouds())
def test_no_plan_evicts_more_servers_than_needed(snapshot):
    plan = plan_of(snapshot)
    assert (left_over(snapshot, plan) >= 0).all()
    gone = {uuid for each in made(plan) for uuid in each.leaving}
    parties = {
        (each.project, each.group) if each.group else each.uuid: {each.uuid}
        for each in snapshot.running
        if each.uuid in gone
    }
    for key, those in parties.items():
        if isinstance(key, tuple):
            those.update(
                each.uuid
                for each in snapshot.running
                if (each.project, each.group) == key and each.band is LENT
            )
            # A group leaves whole.
            assert those <= gone
        assert (left_over(snapshot, plan, those) < 0).any()


@hypothesis.given(clouds())
def test_only_preemptible_servers_leave_and_for_one_request_each(snapshot):
    told = [uuid for each in made(plan_of(snapshot)) for uuid in each.leaving]
    bands = {each.uuid: each.band for each in snapshot.running}
    assert all(bands[uuid] is LENT for uuid in told)
    assert len(set(told)) == len(told)


@hypothesis.given(clouds(), st.randoms(use_true_random=False))
def test_the_sequence_of_listed_inputs_does_not_matter(snapshot, chance):
    def shuffled(items):
        return tuple(chance.sample(list(items), len(items)))

    rows = list(range(len(snapshot.providers)))
    chance.shuffle(rows)
    turned = dataclasses.replace(
        snapshot,
        providers=tuple(snapshot.providers[row] for row in rows),
        inventory=cluster.Inventory(
            *(
                getattr(snapshot.inventory, field.name)[rows]
                for field in dataclasses.fields(snapshot.inventory)
            )
        ),
        running=shuffled(snapshot.running),
        requests=shuffled(snapshot.requests),
    )
    assert plan_of(turned) == plan_of(snapshot)


@hypothesis.given(clouds())
def test_servers_do_not_evict_each_other_endlessly(snapshot):
    """Kueue #13662: victims that wait again retook the room, for ever."""
    for _ in range(40):
        plan = plan_of(snapshot)
        if not plan.actions:
            break
        snapshot = carried_out(snapshot, plan)
    assert plan_of(snapshot).actions == ()


parts = st.integers(0, 20).map(lambda n: n / 64)
asked_parts = st.integers(1, 20).map(lambda n: n / 64)


@hypothesis.given(
    st.lists(parts, min_size=4, max_size=4),
    asked_parts,
    asked_parts,
    asked_parts,
    st.floats(1, 4),
)
def test_two_servers_never_evict_each_other(use, gains, loses, back, margin):
    """For the way back, levels would have to be the other way round."""
    names = ['p', 'p/u', 'q', 'q/u']
    use = dict(zip(names, (use[0], use[0], use[1], use[1]), strict=True))

    def may(use, place, asked, other, lost):
        capacity = np.full((1, 2), 64)
        snapshot = cluster.ClusterSnapshot(
            small_cloud.CLASSES,
            (cluster.Provider('a', 'a'),),
            cluster.Inventory(capacity, capacity * 0, capacity, capacity),
            tuple(small_cloud.waiting_request(p, project=p) for p in 'pq'),
            history={n: np.full(2, part) for n, part in use.items()},
        )
        levels = over_share.ShareLevels(snapshot)
        return levels.may_leave_for(
            levels.place(place, 'u'),
            np.full(2, asked),
            np.array([levels.place(other, 'u')]),
            np.full((1, 2), lost),
            margin,
        )[0]

    hypothesis.assume(use['q'] >= loses)
    if not may(use, 'p', gains, 'q', loses):
        return
    after = {
        'p': use['p'] + gains, 'p/u': use['p'] + gains,
        'q': use['q'] - loses, 'q/u': use['q'] - loses,
    }  # fmt: skip
    for lost in {gains, min(after['p'], gains + use['p'])}:
        assert not may(after, 'q', back, 'p', lost)


def test_random_test_clouds_need_preemption():
    """A strategy that draws nothing worth planning would prove nothing."""
    chance, found = random.Random(1), 0
    for n in range(30):
        running = [
            test_planner.runs(f's{k}', 'a', 2, chance.choice(PROJECTS))
            for k in range(4)
        ]
        asked = [small_cloud.waiting_request('r', 3, 'x', float(n))]
        snapshot = test_planner.cloud({'a': 8}, running, asked)
        found += len(made(plan_of(snapshot)))
    assert found == 30


@hypothesis.given(clouds(), st.data())
def test_priorities_by_shares_have_no_cycle(snapshot, data):
    """Not of two, nor of three or more, in whatever tree they are."""
    above = st.sampled_from([None, 'g', 'h'])
    accounts = [cluster.Account(name) for name in 'gh']
    for name in PROJECTS:
        share = data.draw(st.integers(0, 3))
        accounts.append(cluster.Account(name, data.draw(above), share))
    given = dataclasses.replace(snapshot, accounts=tuple(accounts))
    levels = over_share.ShareLevels(given)
    parties = pricing.list_candidates(given, levels, NOW, 0.0)
    if not parties:
        return
    owners = np.array([each.place for each in parties], dtype=np.intp)
    lost = pricing.lost_parts(given, parties)
    least = lost.min(axis=0)
    takes = {
        place: set(
            owners[levels.may_leave_for(place, least, owners, lost)].tolist()
        )
        for place in np.unique(owners).tolist()
    }
    # It raises if there is a circle.
    assert list(graphlib.TopologicalSorter(takes).static_order())
