# SPDX-License-Identifier: Apache-2.0

"""What became of a move, by all that Nova can say of it."""

import pytest

from nova_fairness.cluster.move_plans import prechecks
from nova_fairness.cluster.openstack import live_migrations
from nova_fairness.cluster.openstack import nova
from nova_fairness.model import plans

M, C = plans.MoveEvent, plans.PlanCause
ASKED_AT, SOON, LATE = 100.0, 130.0, 161.0
MOVE = plans.Move(
    's1', 'h1', 'h2', 1, 100, plans.MoveState.MOVING, asked_at=ASKED_AT,
    after=7,
)  # fmt: skip


def server(host, task=''):
    return nova.Server('s1', 'p', 'u', 'ACTIVE', task, host)


def migration(number, status, target='h2'):
    return live_migrations.Migration(number, 's1', status, 'h1', target)


@pytest.mark.parametrize(
    ('there', 'migrations', 'now', 'event', 'cause'),
    [
        (None, [], SOON, M.SKIP, C.SERVER_GONE),
        (server(''), [], SOON, M.SKIP, C.SERVER_GONE),
        # Nothing is seen of it yet, or ever.
        (server('h1'), [], SOON, None, C.ASKED),
        (server('h1', 'migrating'), [], LATE, None, C.ASKED),
        (server('h1'), [], LATE, M.RETURN, C.NOT_ASKED),
        # An older migration is not ours, however it ended.
        (server('h1'), [(7, 'error')], SOON, None, C.ASKED),
        (server('h1'), [(7, 'error')], LATE, M.RETURN, C.NOT_ASKED),
        (server('h1'), [(8, 'running'), (7, 'error')], LATE, None, C.ASKED),
        (server('h1'), [(8, 'accepted')], LATE, None, C.ASKED),
        # What the server says last is written a moment later.
        (server('h1'), [(8, 'completed')], LATE, None, C.ASKED),
        (server('h2', 'migrating'), [(8, 'completed')], LATE, None, C.ASKED),
        (server('h2'), [(8, 'completed')], LATE, M.ARRIVE, C.ARRIVED),
        (server('h2'), [(8, 'error')], LATE, M.ARRIVE, C.ARRIVED),
        (server('h2'), [], SOON, M.ARRIVE, C.ARRIVED),
        (server('h1'), [(8, 'error')], SOON, M.FAIL, C.MIGRATION_FAILED),
        (server('h1'), [(8, 'failed')], SOON, M.FAIL, C.MIGRATION_FAILED),
        (server('h1'), [(8, 'cancelled')], SOON, M.FAIL, C.CANCELLED),
        # Somebody else moved it.
        (server('h3'), [], SOON, M.SKIP, C.ELSEWHERE),
        (server('h3'), [(8, 'completed')], SOON, M.SKIP, C.ELSEWHERE),
        (
            server('h3'), [(9, 'completed'), (8, 'error')], SOON, M.SKIP,
            C.ELSEWHERE,
        ),
    ],
)  # fmt: skip
def test_a_move_ends_as_migrations_of_nova_say(
    there, migrations, now, event, cause
):
    found = [migration(*each) for each in migrations]
    said = prechecks.check_end(MOVE, there, found, now)
    assert (said.event, said.cause) == (event, cause)


@pytest.mark.parametrize(
    ('there', 'is_last', 'event', 'cause'),
    [
        (server('h3'), False, None, C.ELSEWHERE),
        (server('h3'), True, M.SKIP, C.ELSEWHERE),
        (server('h1', 'rebooting'), True, None, C.BUSY),
    ],
)
def test_a_move_waits_for_those_before_it(there, is_last, event, cause):
    said = prechecks.check_start(MOVE, there, {}, None, is_last)
    assert (said.event, said.cause) == (event, cause)


@pytest.mark.parametrize(
    ('service', 'text'),
    [
        (None, ''),
        (nova.ComputeService('u', 'h2', False, True, 'by hand'), 'by hand'),
        (nova.ComputeService('u', 'h2', True, False), ''),
    ],
)
def test_no_server_comes_to_a_host_that_is_closed(service, text):
    services = {'h2': service} if service else {}
    said = prechecks.check_start(MOVE, server('h1'), services, None, True)
    assert said == prechecks.MoveVerdict(M.SKIP, C.HOST_CLOSED, text)
