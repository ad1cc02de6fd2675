# SPDX-License-Identifier: Apache-2.0

import sqlite3

import pytest
import sqlalchemy as sa

from nova_fairness import exception
from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import schema
from nova_fairness.cluster.store import sealing
from nova_fairness.cluster.store import store as store_module
from tests.fixtures import small_store
from tests.fixtures import store_contract


class TestOnSqlite(store_contract.StoreContract):
    @pytest.fixture
    def url(self, tmp_path):
        return f'sqlite:///{tmp_path}/store.sqlite'

    @pytest.fixture
    def store(self, tmp_path, engine, keys):
        small_store.fill(tmp_path / 'store.sqlite')
        return store_module.Store(engine, sealing.read_key_file(keys))


def test_a_store_is_opened_by_url_and_keys(tmp_path):
    url = f'sqlite:///{tmp_path}/store.sqlite'
    keys = tmp_path / 'keys'
    sealing.add_key(keys)
    schema.upgrade_tables(database.open_engine(url))
    store = store_module.open_store(url, keys)
    assert store.store_message(store_contract.make_cast())
    assert store_module.open_store(url, keys).messages_without_request(9) == [
        'c1'
    ]


def test_readers_do_not_wait_for_the_writer(tmp_path):
    engine = database.open_engine(f'sqlite:///{tmp_path}/store.sqlite')
    with engine.connect() as connection:
        mode = connection.exec_driver_sql('PRAGMA journal_mode').scalar()
        sync = connection.exec_driver_sql('PRAGMA synchronous').scalar()
    assert (mode, sync) == ('wal', 2)


def test_a_writer_that_stops_after_a_statement_holds_no_lock(tmp_path):
    path = tmp_path / 'store.sqlite'
    engine = database.open_engine(f'sqlite:///{path}')
    schema.upgrade_tables(engine)
    keys = tmp_path / 'keys'
    sealing.add_key(keys)
    store = store_module.Store(engine, sealing.read_key_file(keys))
    written = []

    def write_beside(connection, cursor, statement, *_):
        other = sqlite3.connect(path, timeout=0, isolation_level=None)
        other.execute('BEGIN IMMEDIATE')
        other.close()
        written.append(statement.split()[0])

    sa.event.listen(engine, 'after_cursor_execute', write_beside)
    assert store.store_message(store_contract.make_cast())
    assert written == ['INSERT']


def test_a_locked_database_counts_as_away(tmp_path):
    path = tmp_path / 'store.sqlite'
    engine = database.open_engine(f'sqlite:///{path}?timeout=0')
    schema.upgrade_tables(engine)
    keys = tmp_path / 'keys'
    sealing.add_key(keys)
    store = store_module.Store(engine, sealing.read_key_file(keys))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute('BEGIN IMMEDIATE')
    with pytest.raises(exception.StoreAway, match='does not answer'):
        store.store_message(store_contract.make_cast())
    other.execute('COMMIT')
    assert store.store_message(store_contract.make_cast())


def test_a_database_that_cannot_be_opened_counts_as_away(tmp_path):
    with pytest.raises(exception.StoreError):
        database.open_engine(f'sqlite:///{tmp_path}/none/store.sqlite')
