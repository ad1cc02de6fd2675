# SPDX-License-Identifier: Apache-2.0

"""The database is restored from a backup that is older than the cloud."""

import contextlib
import sqlite3

import pytest

from tests.unit.cluster import test_service

world = test_service.world
S, NEED = test_service.S, test_service.NEED


class Backup:
    """A copy of the database of a world."""

    def __init__(self, world, path):
        self._live, self._copy = world.engine.url.database, str(path)
        self._write(self._live, self._copy)

    def restore(self):
        self._write(self._copy, self._live)

    @staticmethod
    def _write(source, target):
        with (
            contextlib.closing(sqlite3.connect(source)) as one,
            contextlib.closing(sqlite3.connect(target)) as other,
        ):
            one.backup(other)


@pytest.fixture
def server_with_backup(world, tmp_path):
    """A request that waited when the backup was made, and was sent since."""
    world.cloud.add_server('full', 'other', 'u')
    world.cloud.build('full', 'h1', NEED)
    server, process = world.post('r1'), world.process()
    process.cycle()
    assert world.state(server) is S.WAITING
    backup = Backup(world, tmp_path / 'backup.sqlite')
    world.cloud.remove('full')
    process.cycle()
    process.cycle()
    assert world.conductor.sent == ['cast-r1']
    process.resign()
    return server, backup


def wait_for_new_leader(world):
    """Let a new process lead. The backup still names the leader of its time,
    until the lease of that leader ends.
    """
    process = world.process('two')
    process.cycle()
    world.go(31)
    for _ in range(3):
        process.cycle()


def run_server(world, server):
    world.cloud.build(server, 'h1', NEED)


def failed(world, server):
    """Conductor found no host, and needs no second message."""
    world.cloud.servers[server]['status'] = 'ERROR'


@pytest.mark.parametrize(
    ('happened', 'state'), [(run_server, S.ACTIVE), (failed, S.FAILED)]
)
def test_a_request_that_nova_has_since_is_not_sent_again(
    world, server_with_backup, happened, state
):
    server, backup = server_with_backup
    happened(world, server)
    backup.restore()
    wait_for_new_leader(world)
    assert world.conductor.sent == ['cast-r1']
    assert world.state(server) is state
    assert world.cloud.holds() == []


def test_a_request_that_nova_does_not_have_is_sent_again(
    world, server_with_backup
):
    """As a message that was lost with the broker."""
    server, backup = server_with_backup
    backup.restore()
    wait_for_new_leader(world)
    assert world.conductor.sent == ['cast-r1', 'cast-r1']
    assert world.state(server) is S.STARTING


def test_a_message_that_came_after_the_backup_is_not_known(
    world, server_with_backup
):
    _, backup = server_with_backup
    later = world.post('r2')
    backup.restore()
    wait_for_new_leader(world)
    assert world.store.request(later) is None
