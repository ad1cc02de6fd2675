# SPDX-License-Identifier: Apache-2.0

"""What holds for every plan of every cloud."""

import dataclasses
import random

import hypothesis
from hypothesis import strategies as st
import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import orders
from nova_fairness.planners.fairqueue import planner
from nova_fairness.shares import quotas
from tests.fixtures import small_cloud

PROJECTS = ('p', 'q', 'r')
NOW = 100.0

amounts = st.integers(0, 9)


@st.composite
def hosts(draw):
    return [
        small_cloud.host(
            f'h{n}',
            vcpu=draw(st.integers(0, 8)),
            memory=draw(st.integers(0, 800)),
            used=draw(st.integers(0, 9)),
            zone=draw(st.sampled_from(['z1', 'z2'])),
            takes=draw(st.integers(0, 5)) > 0,
        )
        for n in range(draw(st.integers(0, 5)))
    ]


groups = st.one_of(
    st.none(),
    st.builds(
        request.Group,
        st.sampled_from(['g1', 'g2']),
        st.just(request.Rule.TOGETHER),
    ),
    st.builds(
        request.Group,
        st.sampled_from(['g3', 'g4']),
        st.just(request.Rule.APART),
        st.integers(1, 2),
    ),
)


@st.composite
def requests(draw):
    return [
        small_cloud.waiting_request(
            f'r{n}',
            project=draw(st.sampled_from(PROJECTS)),
            at=float(draw(st.integers(0, 5))),
            count=draw(st.integers(1, 3)),
            group=draw(groups),
            expires_at=draw(st.sampled_from([None, 50.0, 150.0])),
            demand=small_cloud.demand(
                draw(st.integers(1, 4)),
                draw(st.sampled_from([1, 100, 100, 400])),
                zone=draw(st.sampled_from(['', 'z1'])),
            ),
        )
        for n in range(draw(st.integers(0, 9)))
    ]


limits = st.dictionaries(
    st.sampled_from(PROJECTS),
    st.builds(
        cluster.Limits,
        st.dictionaries(st.sampled_from(small_cloud.CLASSES), amounts),
        st.dictionaries(
            st.sampled_from(small_cloud.CLASSES), st.integers(0, 900)
        ),
    ),
)


named = st.one_of(
    st.just(()),
    st.dictionaries(
        st.sampled_from(small_cloud.CLASSES), amounts, max_size=2
    ).map(lambda each: tuple(sorted(each.items()))),
)


@st.composite
def accounts(draw):
    """A share tree with quotas; mostly none, as in most clouds."""
    if draw(st.integers(0, 2)):
        return ()
    return tuple(
        cluster.Account(
            name,
            None if name == 'top' else draw(st.sampled_from([None, 'top'])),
            nominal=draw(named),
            borrowing_limit=draw(named),
            lending_limit=draw(named),
        )
        for name in ('top', *PROJECTS)
    )


@st.composite
def clouds(draw):
    listed = draw(hosts())
    names = st.sampled_from([each[0].name for each in listed] or ['gone'])
    uses = st.tuples(amounts, amounts).map(lambda pair: np.array(pair))
    members = st.dictionaries(
        st.sampled_from(['g1', 'g3']),
        st.lists(names, max_size=2).map(tuple),
    )
    kinds = st.builds(
        cluster.kind_of,
        st.sampled_from(PROJECTS),
        st.builds(small_cloud.demand, st.integers(1, 4), st.just(100)).map(
            lambda each: each.amounts
        ),
    )
    lasting = st.lists(st.floats(1, 500), min_size=4, max_size=7)
    running = st.builds(
        cluster.Running,
        names,
        st.sampled_from(PROJECTS),
        st.builds(small_cloud.demand, st.integers(1, 4), st.just(100)).map(
            lambda each: each.amounts
        ),
        st.floats(0, NOW),
    )
    return small_cloud.cloud(
        listed,
        draw(requests()),
        running=draw(st.lists(running, max_size=6).map(tuple)),
        lifetimes=draw(
            st.dictionaries(
                kinds, lasting.map(lambda each: tuple(sorted(each)))
            )
        ),
        limits=draw(limits),
        used=draw(st.dictionaries(st.sampled_from(PROJECTS), uses)),
        member_hosts=draw(members),
        accounts=draw(accounts()),
    )


def starts(plan):
    return [a for a in plan.actions if a.verb is cluster.Verb.START]


def quotas_of(snapshot):
    """What accounts have of what they own and may borrow."""
    supply = np.where(
        np.array([[each.takes] for each in snapshot.providers], bool).reshape(
            -1, 1
        ),
        snapshot.inventory.capacity,
        snapshot.inventory.used,
    ).sum(axis=0, dtype=np.int64)
    return quotas.Quotas(
        snapshot.accounts,
        {
            name: cluster.amounts_vector(each.guaranteed, snapshot.classes)
            for name, each in snapshot.limits.items()
        },
        snapshot.used,
        supply,
        snapshot.classes,
    )


@hypothesis.given(clouds())
def test_no_host_is_filled_beyond_its_capacity(snapshot):
    is_within_hosts(snapshot, planner.plan(snapshot, NOW))


def is_within_hosts(snapshot, plan):
    later = small_cloud.cloud_after_plan(snapshot, plan, NOW)
    grown = later.inventory.used > snapshot.inventory.used
    full = later.inventory.used > later.inventory.capacity
    assert not (grown & full).any()
    taking = {each.name for each in snapshot.providers if each.takes}
    assert {h for each in starts(plan) for h in each.hosts} <= taking


@hypothesis.given(clouds())
def test_no_project_gets_beyond_its_ceiling_or_the_shared_part(snapshot):
    is_within_limits(snapshot, planner.plan(snapshot, NOW))


def is_within_limits(snapshot, plan):
    later = small_cloud.cloud_after_plan(snapshot, plan, NOW)
    before, left = quotas_of(snapshot), quotas_of(later)
    assert (left.left >= np.minimum(before.left, 0)).all()
    for project in PROJECTS:
        passed = left.passed(project, np.zeros(2, np.int64) + 1)
        had = before.passed(project, np.zeros(2, np.int64) + 1)
        assert passed is None or had or passed.asked == passed.limit + 1
    for project, use in later.used.items():
        limit = snapshot.limits.get(project, cluster.NO_LIMITS)
        had = snapshot.used.get(project, np.zeros(len(use)))
        for c, name in enumerate(snapshot.classes):
            ceiling = limit.ceiling.get(name)
            if ceiling is not None and use[c] > had[c]:
                assert use[c] <= ceiling


@hypothesis.given(clouds())
def test_a_completed_plan_leaves_nothing_to_plan(snapshot):
    later = small_cloud.cloud_after_plan(
        snapshot, planner.plan(snapshot, NOW), NOW
    )
    assert planner.plan(later, NOW).actions == ()


@hypothesis.given(clouds(), st.integers(0, 3), st.sampled_from([0, 97, 200]))
def test_a_planned_state_is_stable_with_any_backfill(
    snapshot, depth, patience_s
):
    backfill = planner.Backfill(depth, patience_s)
    plan = planner.plan(snapshot, NOW, backfill=backfill)
    later = small_cloud.cloud_after_plan(snapshot, plan, NOW)
    assert planner.plan(later, NOW, backfill=backfill).actions == ()


@hypothesis.given(clouds())
def test_only_the_first_that_would_fit_in_time_has_a_reservation(snapshot):
    plan = planner.plan(snapshot, NOW)
    reserved = [u for u, each in plan.waiting.items() if each.reserved]
    asked = {each.uuid: each for each in snapshot.requests}
    groups = {
        (asked[u].project, asked[u].group and asked[u].group.uuid)
        for u in reserved
    }
    assert len(groups) <= 1
    assert len(reserved) <= 1 or None not in {group for _, group in groups}
    for uuid in reserved:
        at = plan.waiting[uuid].reserved.at
        assert at is None or at > NOW


@hypothesis.given(clouds(), st.randoms(use_true_random=False))
def test_a_plan_does_not_depend_on_the_sequence_of_its_inputs(
    snapshot, chance: random.Random
):
    listed = list(snapshot.requests)
    chance.shuffle(listed)
    rows = list(range(len(snapshot.providers)))
    chance.shuffle(rows)
    moved = dataclasses.replace(
        snapshot,
        requests=tuple(listed),
        providers=tuple(snapshot.providers[row] for row in rows),
        inventory=cluster.Inventory(
            *(
                getattr(snapshot.inventory, field.name)[rows]
                for field in dataclasses.fields(cluster.Inventory)
            )
        ),
    )
    plan, other = planner.plan(snapshot, NOW), planner.plan(moved, NOW)
    assert other == plan
    assert list(other.waiting) == list(plan.waiting)


@hypothesis.given(clouds())
def test_every_request_starts_or_has_one_reason(snapshot):
    has_answers(snapshot, planner.plan(snapshot, NOW))


def has_answers(snapshot, plan):
    answered = [each.request for each in plan.actions] + list(plan.waiting)
    assert sorted(answered) == sorted(r.uuid for r in snapshot.requests)
    positions = [each.position for each in plan.waiting.values()]
    assert positions == list(range(1, len(positions) + 1))


@hypothesis.given(clouds())
def test_requests_and_groups_start_whole_and_as_their_rule_says(snapshot):
    keeps_groups(snapshot, planner.plan(snapshot, NOW))


def keeps_groups(snapshot, plan):
    asked = {each.uuid: each for each in snapshot.requests}
    began = {each.request: each.hosts for each in starts(plan)}
    for uuid, placed in began.items():
        assert len(placed) == len(asked[uuid].servers)
    for (project, group), uuids in _groups(snapshot).items():
        alive = [u for u in uuids if asked[u].expires_at != 50.0]
        # An empty cloud may hold a part only: then the others are too many.
        alive = [u for u in alive if not _is_out(plan, u)]
        assert len(set(alive) & set(began)) in (0, len(alive))
        placed = [host for u in alive for host in began.get(u, ())]
        if group.rule is request.Rule.TOGETHER:
            assert len(set(placed)) <= 1, project


def _is_out(plan, uuid):
    place = plan.waiting.get(uuid)
    return place is not None and place.why.reason in (
        reason.Reason.NO_HOST_MATCHES,
        reason.Reason.TOO_LARGE,
        reason.Reason.GROUP_TOO_LARGE,
    )


def _groups(snapshot):
    found = {}
    for each in snapshot.requests:
        if each.group:
            key = (each.project, each.group)
            found.setdefault(key, []).append(each.uuid)
    return {
        key: uuids
        for key, uuids in found.items()
        if len({g for p, g in found if (p, g.uuid) == (key[0], key[1].uuid)})
        == 1
    }


@hypothesis.given(clouds())
def test_a_plan_changes_no_argument(snapshot):
    used = snapshot.inventory.used.copy()
    projects = {name: use.copy() for name, use in snapshot.used.items()}
    planner.plan(snapshot, NOW)
    assert (snapshot.inventory.used == used).all()
    for name, use in projects.items():
        assert (snapshot.used[name] == use).all()


BY_SHARES = st.sampled_from(
    [
        orders.FairTree(),
        orders.Multifactor(),
        orders.Synergy(),
        orders.DominantShare(),
        orders.Distribution(),
    ]
)


@st.composite
def contended(draw):
    """Servers of one size ask for a host that cannot hold them all."""
    there = [
        small_cloud.waiting_request(
            f'{draw(st.integers(0, 99)):02}-{n}',
            project=draw(st.sampled_from(PROJECTS)),
            at=float(draw(st.integers(0, 5))),
        )
        for n in range(draw(st.integers(1, 12)))
    ]
    asked = [
        dataclasses.replace(each, user=draw(st.sampled_from('uvw')))
        for each in there
    ]
    part = st.floats(0, 0.5).map(lambda use: np.array([use, use / 2]))
    users = [f'{project}/{user}' for project in PROJECTS for user in 'uvw']
    history = {name: draw(part) for name in users}
    for project in PROJECTS:
        history[project] = sum(history[f'{project}/{user}'] for user in 'uvw')
    return small_cloud.cloud(
        [small_cloud.host('h', vcpu=draw(st.integers(1, 8)))],
        asked,
        history=history,
        accounts=tuple(
            cluster.Account(project, None, draw(st.integers(1, 9)))
            for project in PROJECTS
        ),
    )


def started_of(snapshot, order, project):
    of = {each.uuid: each.project for each in snapshot.requests}
    plan = planner.plan(snapshot, NOW, order)
    return sum(of[each.request] == project for each in starts(plan))


@hypothesis.given(contended(), BY_SHARES, st.integers(2, 50))
def test_a_plan_is_monotone_in_shares(snapshot, order, factor):
    first, *others = snapshot.accounts
    larger = dataclasses.replace(first, share=first.share * factor)
    richer = dataclasses.replace(snapshot, accounts=(larger, *others))
    before = started_of(snapshot, order, first.name)
    assert started_of(richer, order, first.name) >= before


@hypothesis.given(contended(), BY_SHARES, st.permutations('uvw'))
def test_a_permutation_of_users_changes_nothing(snapshot, order, names):
    """Who is called how is another matter; what they used goes with them."""
    other = dict(zip('uvw', names, strict=True))
    renamed = dataclasses.replace(
        snapshot,
        requests=tuple(
            dataclasses.replace(each, user=other[each.user])
            for each in snapshot.requests
        ),
        history={
            name[:2] + other[name[2:]] if '/' in name else name: use
            for name, use in snapshot.history.items()
        },
    )
    plan, after = (
        planner.plan(each, NOW, order) for each in (snapshot, renamed)
    )
    assert [each.request for each in after.actions] == [
        each.request for each in plan.actions
    ]
    assert list(after.waiting) == list(plan.waiting)
