# SPDX-License-Identifier: Apache-2.0

"""Notices, victims and plans that cannot be: refused or planned anew, and
said; the store is real, the cloud a fake."""

import math

import pytest

from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.eviction import notice_channels
from nova_fairness.cluster.eviction import preemption
from nova_fairness.cluster.store import leaves as leaves_module
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import cluster
from nova_fairness.model import eviction
from tests.unit.cluster import test_service
from tests.unit.cluster.eviction import test_preemption

world, process, spot = (
    test_preemption.world, test_preemption.process, test_preemption.spot
)  # fmt: skip
S, R = eviction.EvictionState, test_service.S
LEAST_S, NOTICE_S = test_preemption.LEAST_S, test_preemption.NOTICE_S
go, leave = test_preemption.go, test_preemption.leave


@pytest.mark.parametrize('notice_s', [0, 119.9, -600, math.nan, math.inf])
def test_an_invalid_notice_time_is_refused(notice_s):
    with pytest.raises(ValueError, match='at least 120 s, got'):
        evictor.EvictionTimeouts(notice_s=notice_s)


@pytest.mark.parametrize('action_s', [0, -1, math.nan, math.inf])
def test_an_invalid_patience_is_refused(action_s):
    with pytest.raises(ValueError, match='above 0 s, got'):
        evictor.EvictionTimeouts(action_s=action_s)


def test_a_delayed_process_gives_the_full_notice_time(world, process, spot):
    """However long ago a server should have left."""
    apis = world.cloud.apis
    nova = test_service.nova_module.Nova(apis.nova)
    to = evictor.Evictor(
        world.store.leaves, nova, None, None, lambda: world.now,
        evictor.EvictionTimeouts(),
        notice_channels.channels_before_steps(nova),
    )  # fmt: skip
    why = test_preemption.reason.why(
        test_preemption.reason.Reason.TIME_IS_UP, limit_s=1.0
    )
    chosen = to.start_eviction(
        nova.server(spot), eviction.EvictionCause.TIME_LIMIT, why,
        (eviction.EvictionAction.STOP,), world.store.leader().epoch,
        not_before=-1e9,
    )  # fmt: skip
    assert chosen.at == world.now + NOTICE_S


def test_a_server_of_a_clock_that_is_ahead_is_new_and_named(
    world, process, spot, caplog
):
    ahead = '1970-01-01T02:00:00'
    world.cloud.servers[spot]['OS-SRV-USG:launched_at'] = ahead
    asked = world.post('r1', project='rich')
    go(world, process, 2 * LEAST_S)
    assert leave(world, spot) is None
    assert f'server {spot} begins to run' in caplog.text
    assert 'by the clock of host h1' in caplog.text
    # Once its time has come it is as any other.
    world.now = 7200.0
    go(world, process, LEAST_S + NOTICE_S + 600)
    assert leave(world, spot).state is S.GONE
    assert world.state(asked) is R.STARTING


@pytest.mark.parametrize(
    ('thing', 'method'),
    [
        (store_module.Store, 'reserve_room'),
        (leaves_module.EvictionTable, 'add'),
        (leaves_module.EvictionTable, 'step'),
    ],
)
def test_a_victim_that_vanishes_at_any_step_counts_as_gone(
    world, process, spot, monkeypatch, thing, method
):
    """Whoever waited for its room starts in it, and nothing is done to it."""
    whole = getattr(thing, method)

    def vanishing(self, *arguments, **named):
        if spot in world.cloud.servers:
            world.cloud.remove(spot)
        return whole(self, *arguments, **named)

    asked = world.post('r1', project='rich')
    with monkeypatch.context() as patched:
        patched.setattr(thing, method, vanishing)
        go(world, process, LEAST_S + 60)
        assert spot not in world.cloud.servers
    go(world, process, 180)
    found = leave(world, spot)
    assert found is None or found.outcome == 'freed'
    assert found is None or found.lost_vcpu_s == 0.0
    assert world.cloud.acted == []
    assert world.state(asked) is R.STARTING


class FakeSlow:
    """A planner that is late: it gives the plan of a cycle before.

    :ivar kept: the first plan in which room is made.
    :ivar says: whether it is given now.
    """

    def __init__(self, plan):
        self._plan, self.kept, self.says = plan, None, False

    def __call__(self, snapshot, now):
        found = self._plan(snapshot, now)
        making = any(
            each.verb is cluster.Verb.MAKE_ROOM for each in found.actions
        )
        if self.says:
            return self.kept
        if making and self.kept is None:
            self.kept = found
        return cluster.Plan((), found.waiting) if making else found


def test_a_plan_older_than_the_request_sends_no_notice(
    world, process, spot, caplog
):
    world.plan = preemption.Planner(
        test_preemption.queue.plan,
        test_preemption.preemption.LEAST,
        test_preemption.preemption.USUAL,
    )
    sane = world.plan
    world.plan = late = FakeSlow(sane)
    world.tick += 31
    slow = world.process('two', terms=test_preemption.TERMS)
    slow.cycle()
    world.tick += 31
    slow.cycle()
    asked = world.post('r1', project='rich')
    while late.kept is None:
        go(world, slow, 60)
    record = world.store.request(asked)
    world.store.extend_time_limit(
        record.request, 60.0, world.store.leader().epoch
    )
    late.says = True
    slow.cycle()
    assert leave(world, spot) is None
    assert world.store.request(asked).room is None
    assert f'request {asked}' in caplog.text
    assert 'changed after the plan was made' in caplog.text
    # The next plan is made of the cloud as it is.
    world.plan = sane
    world.tick += 31
    third = test_preemption.process_of(world, 'three')
    go(world, third, 120)
    assert leave(world, spot).state is S.TOLD


def test_a_plan_with_a_victim_that_already_left_is_made_again(
    world, process, spot, monkeypatch
):
    """It is gone before it is told, and its host is full again."""
    whole = store_module.Store.reserve_room
    other = []

    def taken(self, *arguments, **named):
        whole(self, *arguments, **named)
        if not other:
            world.cloud.remove(spot)
            other.append(test_service.fake_cloud.name_uuid('quick'))
            world.cloud.add_server(other[0], 'rich')
            world.cloud.build(other[0], 'h1', test_service.NEED)

    asked = world.post('r1', project='rich')
    monkeypatch.setattr(store_module.Store, 'reserve_room', taken)
    go(world, process, LEAST_S + 120)
    assert other
    # It waits; a normal server makes no room, and nobody is told.
    go(world, process, 1800)
    assert world.state(asked) is R.WAITING
    assert world.cloud.acted == []
    world.cloud.remove(other[0])
    go(world, process, 120)
    assert world.state(asked) is R.STARTING
