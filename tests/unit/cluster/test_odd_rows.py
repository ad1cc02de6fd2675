# SPDX-License-Identifier: Apache-2.0

"""Rows of the store that cannot be read end nothing for others."""

import pytest
import sqlalchemy as sa

from nova_fairness.cluster.api import requests
from nova_fairness.cluster.store import tables
from tests.unit.cluster import test_service
from tests.unit.cluster import test_surviving

R, S = test_service.R, test_service.S
world = test_surviving.world
victim_starts = test_surviving.victim_starts


def _row(**columns):
    return columns


HUGE = f'1{"0" * 400}'
DEEP = '[' * 50_000
ODD = [
    '', 'null', '[', '[]', '{}', '7', '"x"', '{"a": [1]}', '[[1, 2]]', 'x',
    '1e999', HUGE, DEEP,
    f'{{"hosts": [], "leaving": [], "at": {HUGE}, "until": 1}}',
]  # fmt: skip


def write(world, statement):
    with world.engine.begin() as connection:
        connection.execute(statement)


@pytest.mark.repeated
@pytest.mark.parametrize('odd', ODD, ids=range(len(ODD)))
@pytest.mark.parametrize(
    'column',
    ['wanted', 'numbers', 'hosts', 'room', 'reason', 'origin', 'band',
     'leaves_by', 'asked_at', 'changed_at', 'expires_at', 'time_limit_s',
     'extended_s', 'subject', 'owner', 'project'],
)  # fmt: skip
def test_an_invalid_row_of_a_request_harms_no_other(world, column, odd):
    process = world.process()
    bad = world.post('bad', 7, 'evil')
    world.cloud.broken['POST /allocations'] = 409
    process.cycle()
    world.cloud.broken.clear()
    where = tables.REQUESTS.c.uuid == bad
    write(
        world,
        sa.update(tables.REQUESTS)
        .where(where)
        .values({column: sa.text(f"'{odd}'")}),
    )
    assert victim_starts(world, process)
    told = requests.ClusterOperations(world.store, process)
    assert told.request(bad)['request']['uuid'] == bad


@pytest.mark.repeated
@pytest.mark.parametrize('odd', ODD, ids=range(len(ODD)))
@pytest.mark.parametrize('column', ['wanted', 'room', 'reason', 'changed_at'])
def test_an_invalid_row_of_an_ended_request_with_room_harms_no_other(
    world, column, odd
):
    process = world.process()
    bad = world.post('bad', 7, 'evil')
    process.cycle()
    where = tables.REQUESTS.c.uuid == bad
    room = '{"hosts":["h1"],"leaving":["x"],"at":1.0,"until":9.0}'
    ended = {'state': 'cancelled', 'room': room}
    write(
        world,
        sa.update(tables.REQUESTS)
        .where(where)
        .values({**ended, column: sa.text(f"'{odd}'")}),
    )
    assert victim_starts(world, process)


def test_a_step_that_fails_without_any_request_blames_no_request(
    world, monkeypatch
):
    process = world.process()
    waits = world.post('waits', 99)
    process.cycle()

    def fails(*_):
        raise ValueError('a row of another table')

    monkeypatch.setattr(process._making, 'with_evictions', fails)
    with pytest.raises(ValueError, match='another table'):
        process.cycle()
    monkeypatch.undo()
    process.cycle()
    assert world.reason(waits) is R.TOO_LARGE


@pytest.mark.parametrize('state', ['starting', 'active', 'sending'])
def test_a_request_that_was_sent_is_followed_without_its_row(world, state):
    process = world.process()
    bad = world.post('bad', 7, 'evil')
    process.cycle()
    where = tables.REQUESTS.c.uuid == bad
    odd = {'wanted': '[', 'state': state}
    write(world, sa.update(tables.REQUESTS).where(where).values(**odd))
    [host] = world.hosts('bad')
    # What it takes is not known: nobody else starts there.
    assert victim_starts(world, process)
    if state != 'active':
        assert world.hosts('victim') != (host,)
    world.cloud.build(bad, host, {'VCPU': 7, 'MEMORY_MB': 100})
    process.cycle()
    process.cycle()
    assert world.state(bad) is S.ACTIVE
    world.cloud.remove(bad)
    process.cycle()
    assert world.state(bad) is S.ENDED


def test_the_owner_reads_that_a_row_is_unreadable(world):
    process = world.process()
    bad = world.post('bad', 99, 'evil')
    process.cycle()
    where = tables.REQUESTS.c.uuid == bad
    held = sa.select(tables.REQUESTS.c.wanted).where(where)
    with world.engine.connect() as connection:
        before = connection.execute(held).scalar_one()
    update = sa.update(tables.REQUESTS).where(where)
    write(world, update.values(wanted='['))
    process.cycle()
    assert world.reason(bad) is R.QUARANTINED
    assert world.state(bad) is S.WAITING
    write(world, update.values(wanted=before))
    process.cycle()
    assert world.reason(bad) is R.TOO_LARGE


@pytest.mark.parametrize('name', tables.ONLY)
def test_a_table_without_its_single_row_is_initialized(world, name):
    process = world.process()
    process.cycle()
    write(world, sa.delete(tables.METADATA.tables[name]))
    assert victim_starts(world, process)
    world.tick += 31
    other = world.process('two')
    other.cycle()
    world.tick += 31
    assert victim_starts(world, other, 'later')
    table = tables.METADATA.tables[name]
    with world.engine.connect() as connection:
        rows = connection.execute(sa.select(table)).all()
    assert len(rows) == (1 if name in _READ else len(rows))
    assert world.store.nodes.read_target().hosts is None
    assert world.store.pledges.read().use == {}


_READ = ('ledger', 'shares', 'promises', 'market')


@pytest.mark.repeated
@pytest.mark.parametrize('odd', ODD, ids=range(len(ODD)))
@pytest.mark.parametrize(
    ('name', 'column'),
    [('ledger', 'used'), ('ledger', 'spent'), ('ledger', 'at'),
     ('promises', 'kept')],
)  # fmt: skip
def test_malformed_rows_of_single_row_tables_end_no_cycle(
    world, name, column, odd
):
    process = world.process()
    process.cycle()
    table = tables.METADATA.tables[name]
    given = {column: sa.text(f"'{odd}'"), 'version': 7}
    write(world, sa.update(table).values(given))
    world.now += 100
    assert victim_starts(world, process)
    world.tick += 31
    other = world.process('two')
    other.cycle()
    world.tick += 31
    assert victim_starts(world, other, 'later')


def test_an_account_that_cannot_be_read_waits_and_others_start(world):
    process = world.process()
    settings = tables.SETTINGS
    odd = {'evil': '{"ceiling": 7}', 'victim': '{"share": 2.0}'}
    for name, given in odd.items():
        row = {'key': name, 'account': name, 'given': given}
        write(world, sa.insert(settings).values(row))
    bad = world.post('bad', 1, 'evil')
    assert victim_starts(world, process)
    assert world.reason(bad) is R.ACCOUNT_SET_ASIDE
    good = '{"ceiling": {"VCPU": 7}}'
    where = settings.c.account == 'evil'
    write(world, sa.update(settings).where(where).values(given=good))
    process.cycle()
    assert world.state(bad) is S.STARTING


@pytest.mark.parametrize('column', ['state', 'reason', 'numbers', 'actions'])
def test_an_invalid_row_of_a_victim_ends_no_cycle(world, column):
    process = world.process()
    row = _row(
        uuid='l', server='s', project='evil', owner='u', cause='idle',
        actions='stop', at=0.0, changed_at=world.now, tried=0, state='told',
        version=0, reason='idle', subject='', numbers='[["idle_h", 1]]',
        turn=0, vcpus=1, chosen_at=0.0,
    )  # fmt: skip
    write(world, sa.insert(tables.LEAVES).values({**row, column: '?'}))
    assert victim_starts(world, process)
    if column != 'state':
        assert process.quarantine.counts()['row'] == 1


@pytest.mark.parametrize('column', ['moves', 'empties', 'promised', 'goal'])
def test_an_invalid_row_of_a_plan_ends_no_cycle(world, column):
    process = world.process()
    row = _row(
        uuid='p', goal='empty', subject='h1', state='running', is_open=True,
        made_at=0.0, changed_at=0.0, until=9e9, cause='operator',
        explanation='', moves='[]', empties='["h1"]', promised='{}',
        version=0, stays='[]',
    )  # fmt: skip
    write(world, sa.insert(tables.PLANS).values({**row, column: '?'}))
    assert victim_starts(world, process)
    assert world.store.plans.open_plans() == []
