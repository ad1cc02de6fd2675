# SPDX-License-Identifier: Apache-2.0

"""The store on the databases that operators run."""

import pytest

from nova_fairness import exception
from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import schema
from nova_fairness.cluster.store import sealing
from nova_fairness.cluster.store import store as store_module
from tests.fixtures import database_server
from tests.fixtures import store_contract


@pytest.fixture(scope='module')
def mariadb():
    with database_server.running(database_server.MARIADB) as server:
        yield server


@pytest.fixture(scope='module')
def postgresql():
    with database_server.running(database_server.POSTGRESQL) as server:
        yield server


class TestOnMariadb(store_contract.StoreContract):
    @pytest.fixture
    def url(self, mariadb):
        return mariadb.new_database()


class TestOnPostgresql(store_contract.StoreContract):
    @pytest.fixture
    def url(self, postgresql):
        return postgresql.new_database()


@pytest.mark.parametrize('kind', ['mariadb', 'postgresql'])
def test_held_requests_survive_a_killed_database(kind, request, tmp_path):
    server = request.getfixturevalue(kind)
    keys = tmp_path / 'keys'
    sealing.add_key(keys)
    engine = database.open_engine(server.new_database())
    schema.upgrade_tables(engine)
    store = store_module.Store(engine, sealing.read_key_file(keys))
    kept = [f'c{n}' for n in range(20)]
    for uuid in kept:
        store.store_message(store_contract.make_cast(uuid))
    server.kill()
    with pytest.raises(exception.StoreAway):
        store.store_message(store_contract.make_cast('lost'))
    server.start()
    assert sorted(store.messages_without_request(99)) == sorted(kept)
    assert store.store_message(store_contract.make_cast('lost'))
