# SPDX-License-Identifier: Apache-2.0

"""Lines of the debug log for decisions of the planner."""

import logging

import pytest

from nova_fairness.cluster.admission import decisions
from nova_fairness.cluster.admission import scheduler
from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.planners.fairqueue import planner
from tests.fixtures import small_cloud

R = reason.Reason
FULL = reason.why(R.BEHIND_OTHERS, before=1)
STARTS = cluster.Action(
    cluster.Verb.START, 'r1', 1, ('h1', 'h2'), reason.why(R.ROOM_KEPT)
)


@pytest.fixture
def lines(caplog):
    """Gives the lines since the last call."""
    caplog.set_level(logging.DEBUG, decisions.LOG.name)

    def taken():
        found = [each.getMessage() for each in caplog.records]
        caplog.clear()
        return found

    return taken


def waiting(position, why=FULL, reserved=None):
    return cluster.Waiting(position, why, {}, reserved)


def test_a_start_is_logged_with_its_hosts(lines):
    decisions.DecisionLog().log(cluster.Plan((STARTS,), {}))
    assert lines() == [
        f'request r1: start: {STARTS.why.sentence}; hosts: h1, h2'
    ]


def test_a_plan_that_changes_nothing_is_not_logged(lines):
    made, plan = decisions.DecisionLog(), cluster.Plan((), {'r1': waiting(1)})
    made.log(plan)
    assert lines() == [f'request r1: waits at position 1: {FULL.sentence}']
    made.log(plan)
    assert lines() == []


@pytest.mark.parametrize(
    ('now', 'expected'),
    [
        (waiting(1), []),
        (waiting(3), ['request r1: moved back from position 2 to 3']),
        (waiting(2, reason.why(R.BEHIND_OTHERS, before=7)), []),
        (
            waiting(2, reason.why(R.NO_HOST_MATCHES, hosts=2)),
            ['request r1: waits at position 2: '],
        ),
        (
            waiting(2, reserved=cluster.Reservation(('h1', 'h2'))),
            ['request r1: hosts with reserved room: h1, h2'],
        ),
    ],
)
def test_a_changed_reason_position_or_reservation_is_logged(
    lines, now, expected
):
    made = decisions.DecisionLog()
    made.log(cluster.Plan((), {'r1': waiting(2)}))
    lines()
    made.log(cluster.Plan((), {'r1': now}))
    found = lines()
    assert len(found) == len(expected)
    for line, begin in zip(found, expected, strict=True):
        assert line.startswith(begin)


def test_an_ended_reservation_is_logged(lines):
    made = decisions.DecisionLog()
    kept = waiting(1, reserved=cluster.Reservation(('h1',)))
    made.log(cluster.Plan((), {'r1': kept}))
    lines()
    made.log(cluster.Plan((), {'r1': waiting(1)}))
    assert lines() == ['request r1: hosts with reserved room: none']


def test_decisions_are_not_formatted_without_debug_logging(lines, caplog):
    caplog.set_level(logging.INFO, decisions.LOG.name)
    decisions.DecisionLog().log(cluster.Plan((STARTS,), {'r1': waiting(1)}))
    assert lines() == []


def test_the_scheduler_logs_its_decisions(lines):
    request = small_cloud.waiting_request('r1', 1)
    snapshot = small_cloud.cloud([small_cloud.host('h1', 4)], [request])
    scheduler.Scheduler(planner.plan).plan(snapshot, 100.0)
    assert any(line.startswith('request r1: start: ') for line in lines())
