# SPDX-License-Identifier: Apache-2.0

import time

import pytest

from nova_fairness import exception
from nova_fairness.cluster.admission import message_store_client
from nova_fairness.cluster.store import records
from nova_fairness.model import cast as cast_module

DAY_S = 86400.0


class FakeStore:
    def leader(self):
        return records.Leader(7)

    def __init__(self, time=None):
        self.now, self.held = time, []

    def database_time(self):
        return self.now

    def store_messages(self, casts):
        self.held += casts
        return [True] * len(casts)


class FakeDatabase:
    """Fails to open as often as it has failures."""

    def __init__(self, *failures):
        self.failures = list(failures)

    def open_store(self):
        if self.failures:
            raise self.failures.pop(0)
        return FakeStore()


A, B = (
    cast_module.Cast(name, 'm', time.time(), 'conductor', b'', {})
    for name in 'ab'
)


def test_a_store_that_becomes_available_later_is_opened_then():
    away = exception.StoreAway('away')
    holder = message_store_client.MessageStoreClient(
        FakeDatabase(away, away).open_store
    )
    with pytest.raises(exception.StoreAway):
        holder.hold([A])
    assert holder.hold([A, B]) == [True, True]


def test_the_epoch_is_read_once_the_store_is_available():
    away = exception.StoreAway('away')
    holder = message_store_client.MessageStoreClient(
        FakeDatabase(away, away).open_store
    )
    with pytest.raises(exception.StoreAway):
        holder.leader_epoch()
    assert holder.leader_epoch() == 7


def test_a_store_that_comes_with_other_tables_is_waited_for():
    wrong = exception.SchemaMismatch('upgrade')
    holder = message_store_client.MessageStoreClient(
        FakeDatabase(exception.StoreAway('away'), wrong).open_store
    )
    with pytest.raises(exception.StoreAway, match='upgrade'):
        holder.hold([A])
    assert holder.hold([A]) == [True]


def test_an_unusable_store_is_reported_at_once():
    with pytest.raises(exception.SchemaMismatch):
        message_store_client.MessageStoreClient(
            FakeDatabase(exception.SchemaMismatch('x')).open_store
        )


class Clocks:
    """Clocks of the host and of a database; the time is 1e9 when it begins.

    :ivar apart: of the database, seconds.
    """

    def __init__(self, apart=0.0, wall=1e9):
        self.wall, self.steady, self.store = wall, 50.0, FakeStore()
        self.be(apart)
        self.holder = message_store_client.MessageStoreClient(
            lambda: self.store, lambda: self.wall, lambda: self.steady
        )

    def be(self, apart):
        self.store.now = None if apart is None else self.wall + apart

    def held(self, ago_s=0.0):
        """When a message came, as it is kept."""
        cast = cast_module.Cast(
            'c', 'm', self.wall - ago_s, 'conductor', b'', {}
        )
        assert self.holder.hold([cast]) == [True]
        return self.store.held[-1].received_at


@pytest.mark.parametrize('apart', [0.0, None])
def test_messages_come_by_the_clock_that_goes_on(apart):
    clocks = Clocks(apart)
    assert clocks.held() == 1e9
    assert clocks.held(ago_s=59) == 1e9 - 59
    clocks.wall -= DAY_S
    clocks.be(None if apart is None else DAY_S)
    assert clocks.held() == 1e9
    clocks.wall += DAY_S
    # It came while the clock was wrong, and is kept afterwards.
    clocks.be(apart)
    assert clocks.held(ago_s=DAY_S) == clocks.held(ago_s=-DAY_S) == 1e9


@pytest.mark.parametrize('apart', [-DAY_S, DAY_S])
def test_a_database_whose_clock_is_wrong_for_a_moment_ages_no_message(apart):
    clocks = Clocks()
    clocks.held()
    clocks.be(apart)
    assert clocks.held() == 1e9
    clocks.be(0.0)
    assert clocks.held() == 1e9


@pytest.mark.parametrize('apart', [-DAY_S, DAY_S])
def test_no_message_is_old_while_clocks_disagree(apart):
    """A process that starts has no moment at which clocks agreed."""
    assert Clocks(apart).held() == max(1e9, 1e9 + apart)


def test_a_message_held_in_the_future_keeps_its_time():
    clocks = Clocks()
    clocks.held()
    clocks.wall += DAY_S
    clocks.be(-DAY_S)
    assert clocks.held() == 1e9 + DAY_S
