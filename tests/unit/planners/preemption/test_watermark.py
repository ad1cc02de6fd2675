# SPDX-License-Identifier: Apache-2.0

"""A part of the cloud stays free."""

import dataclasses
import functools

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import planner as queue
from nova_fairness.planners.preemption import watermark
from tests.fixtures import small_cloud
from tests.unit.planners.preemption import test_planner
from tests.unit.planners.preemption import test_properties

NOW, LENT, SOON, V = (
    test_planner.NOW,
    test_planner.LENT,
    test_planner.SOON,
    test_planner.V,
)


NORMAL = request.Band.NORMAL


def cloud(used, *asked, running=()):
    """One host of eight CPUs."""
    wanted = [
        small_cloud.waiting_request(f"r{n}", vcpu, "p", float(n), band=band)
        for n, (vcpu, band) in enumerate(asked)
    ]
    taken = test_planner.runs('taken', 'a', used, 'q', 9.0, NORMAL)
    there = running or ([taken] if used else [])
    return test_planner.cloud({'a': 8}, there, wanted)


def started(snapshot, upper):
    plan = watermark.plan(snapshot, NOW, queue.plan, upper)
    return [each.request for each in plan.actions], plan


@pytest.mark.parametrize(
    ('upper', 'names'),
    [(0.0, ['r0', 'r1']), (0.25, ['r0', 'r1']), (0.26, ['r0']), (0.9, [])],
)
def test_preemptible_requests_keep_the_watermark_free(upper, names):
    snapshot = cloud(0, (4, LENT), (2, LENT))
    assert started(snapshot, upper)[0] == names


def test_normal_requests_use_room_kept_free():
    snapshot = cloud(4, (4, NORMAL))
    assert started(snapshot, 0.5)[0] == ['r0']


def test_no_request_overtakes_one_that_waits_for_the_mark():
    names, plan = started(cloud(4, (4, LENT), (1, LENT)), 0.25)
    assert names == []
    assert [each.position for each in plan.waiting.values()] == [1, 2]
    said = plan.waiting['r0'].why
    assert said == reason.why(
        reason.Reason.KEEPS_FREE, 'VCPU', kept=25.0, free=50.0
    )


def test_a_group_that_starts_together_waits_together():
    group = request.Group('g', request.Rule.APART, 4)
    snapshot = cloud(0, (4, LENT), (4, LENT))
    snapshot = dataclasses.replace(
        test_planner.cloud({'a': 8, 'b': 8}, (), ()),
        requests=tuple(
            dataclasses.replace(each, group=group, asked_at=0.0)
            for each in snapshot.requests
        ),
    )
    assert started(snapshot, 0.5)[0] in (['r0', 'r1'], [])
    assert started(snapshot, 0.6)[0] == []


def lent(name, vcpu, ran_s):
    return test_planner.runs(name, 'a', vcpu, 'p', ran_s)


def leaving(snapshot, lower, **rules):
    plan = watermark.plan(snapshot, NOW, queue.plan, lower)
    when = dataclasses.replace(SOON, **rules)
    return watermark.servers_to_evict(snapshot, plan, NOW, when, lower)


RUNNING = (lent('old', 4, 9000.0), lent('new', 2, 900.0), lent('mid', 2, 5e3))


def test_only_as_many_leave_as_the_watermark_needs():
    full = cloud(8, running=RUNNING)
    assert leaving(full, 0.0) == ()
    assert leaving(full, 0.25) == ('new',)
    assert set(leaving(full, 0.5)) == {'new', 'mid'}
    # Both would be free for less than one of the old one's size.
    assert 'old' in leaving(full, 0.6)


def test_a_server_that_leaves_already_counts_as_gone():
    full = dataclasses.replace(
        cloud(8, running=RUNNING), leaving=frozenset({'new'})
    )
    assert leaving(full, 0.25) == ()


def test_hourly_evictions_for_the_watermark_are_bounded():
    full = cloud(8, running=RUNNING)
    assert len(leaving(full, 0.5, per_hour=1)) == 1
    full = dataclasses.replace(full, evicted=1)
    assert leaving(full, 0.5, per_hour=1) == ()


def test_a_server_that_began_just_now_stays():
    full = cloud(8, running=RUNNING)
    assert leaving(full, 0.25, least_run_s=1000.0) == ('mid',)


def test_a_told_server_that_is_not_needed_stays():
    told = dataclasses.replace(
        cloud(6, running=RUNNING[:2]), leaving=frozenset({'new'})
    )
    plan = cluster.Plan((), {})
    assert watermark.unneeded_victims(told, plan, ['new'], 0.25) == ['new']
    assert watermark.unneeded_victims(told, plan, ['new'], 0.5) == []


@pytest.mark.parametrize(
    'wrong', [(0.1, 0.2), (-0.1, -0.2), (1.5, 0.0), (float('nan'), 0.0)]
)
def test_impossible_watermarks_are_refused(wrong):
    with pytest.raises(ValueError, match='expected'):
        watermark.WatermarkBounds(*wrong)


MARKS = st.sampled_from([0.05, 0.2, 0.5])


@hypothesis.given(test_properties.clouds(), MARKS)
def test_only_normal_requests_go_beyond_the_mark(snapshot, upper):
    whole = queue.plan(snapshot, NOW)
    plan = watermark.plan(snapshot, NOW, queue.plan, upper)
    known = {each.uuid: each for each in snapshot.requests}
    starts = [each for each in plan.actions if each.verb is V.START]
    assert set(starts) <= set(whole.actions)
    every = {each.request for each in starts} | plan.waiting.keys()
    assert every == {each.request for each in whole.actions} | (
        whole.waiting.keys()
    )
    normal = [e for e in whole.actions if not known[e.request].is_preemptible]
    assert [e for e in starts if not known[e.request].is_preemptible] == normal
    if any(known[each.request].is_preemptible for each in starts):
        assert (watermark._free_beyond(snapshot, plan, upper) >= 0).all()


@hypothesis.given(test_properties.clouds(), MARKS)
def test_no_servers_leave_and_start_in_turns(snapshot, mark):
    """Once all that leave are gone, they wait, and nobody else leaves."""
    plan = functools.partial(watermark.plan, queue=queue.plan, upper=mark)
    first = plan(snapshot, NOW)
    gone = watermark.servers_to_evict(snapshot, first, NOW, SOON, mark)
    lent_ones = {e.uuid for e in snapshot.running if e.band is LENT}
    assert set(gone) <= lent_ones
    then = dataclasses.replace(snapshot, leaving=frozenset(gone))
    again = plan(then, NOW)
    assert watermark.servers_to_evict(then, first, NOW, SOON, mark) == () or (
        len(gone) < len(lent_ones)
    )
    stay = watermark.unneeded_victims(then, first, sorted(gone), mark)
    # All that leave are needed.
    assert stay == [] or not gone
    if gone:
        assert np.isfinite(watermark._free_beyond(then, again, mark)).all()
