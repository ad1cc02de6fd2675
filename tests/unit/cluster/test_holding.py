# SPDX-License-Identifier: Apache-2.0

import pytest

from nova_fairness import exception
from nova_fairness.cluster import holding
from nova_fairness.cluster.store import records
from nova_fairness.model import cast as cast_module


class FakeStore:
    def leader(self):
        return records.Leader(7)

    def __init__(self, time=None):
        self.now, self.held = time, []

    def time(self):
        return self.now

    def hold_all(self, casts):
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


def test_a_store_that_comes_later_is_opened_later():
    away = exception.StoreAway('away')
    holder = holding.Holder(FakeDatabase(away, away).open_store)
    with pytest.raises(exception.StoreAway):
        holder.hold(['a'])
    assert holder.hold(['a', 'b']) == [True, True]


def test_who_leads_is_asked_of_a_store_that_comes_later():
    away = exception.StoreAway('away')
    holder = holding.Holder(FakeDatabase(away, away).open_store)
    with pytest.raises(exception.StoreAway):
        holder.epoch()
    assert holder.epoch() == 7


def test_a_store_that_comes_with_other_tables_is_waited_for():
    wrong = exception.SchemaMismatch('upgrade')
    holder = holding.Holder(
        FakeDatabase(exception.StoreAway('away'), wrong).open_store
    )
    with pytest.raises(exception.StoreAway, match='upgrade'):
        holder.hold(['a'])
    assert holder.hold(['a']) == [True]


def test_a_store_that_cannot_be_used_is_told_at_once():
    with pytest.raises(exception.SchemaMismatch):
        holding.Holder(FakeDatabase(exception.SchemaMismatch('x')).open_store)


@pytest.mark.parametrize(
    ('time', 'received', 'kept'),
    [
        (1e9, 1e9 - 86400, 1e9),
        (1e9, 1e9 + 86400, 1e9),
        (1e9, 1e9 - 59, 1e9 - 59),
        (None, 1.0, 1.0),
    ],
)
def test_messages_come_by_the_clock_that_all_hosts_share(time, received, kept):
    store = FakeStore(time)
    cast = cast_module.Cast('c', 'm', received, 'conductor', b'', {})
    assert holding.Holder(lambda: store).hold([cast]) == [True]
    assert [each.received_at for each in store.held] == [kept]
