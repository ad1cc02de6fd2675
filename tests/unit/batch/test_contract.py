# SPDX-License-Identifier: Apache-2.0

import unittest

import pytest

from nova_fairness import exception
from nova_fairness.batch import system
from nova_fairness.model import pledge
from nova_fairness.testing import batch_contract
from tests.fixtures import fake_batch


class Contract(batch_contract.BatchContract):
    fake = fake_batch.FakeBatch
    names = ('physics', 'biology')

    def make(self):
        self.batch = self.fake()
        return self.batch

    def submit(self, host, minutes):
        return self.batch.submit(host, gone_at=60.0 * minutes)

    def end(self, job):
        self.batch.end(job)

    def accounts(self):
        return self.names

    def close_by_hand(self, host, reason):
        self.batch.drain(host, reason)


class TestFake(Contract):
    """The fake of unit tests is as real ones are."""


class Careless(fake_batch.FakeBatch):
    """Takes over what others closed."""

    def close(self, host, text):
        self._find_status(host)
        self.drain(host, f'nova-fairness: {text}')


class Killing(fake_batch.FakeBatch):
    """A faulty batch system that ends the jobs of a host that it drains."""

    def drain(self, host, reason):
        super().drain(host, reason)
        self._change(host, work=())


class Blind(fake_batch.FakeBatch):
    """A faulty batch system that reports no waiting work."""

    def read_hosts(self):
        seen = super().read_hosts()
        return type(seen)(seen.places)


class Generous(fake_batch.FakeBatch):
    """Gives all what one is to get."""

    def set_share(self, account, share):
        for name in self.accounts:
            super().set_share(name, share)


class Forgetful(fake_batch.FakeBatch):
    """Knows nothing of what runs."""

    def accounting(self, since, now):
        found = super().accounting(since, now).jobs
        return pledge.Accounting(tuple(x for x in found if x.end))


class Poor(fake_batch.FakeBatch):
    """Keeps no accounts, and says so."""

    accounting = system.BatchSystem.accounting
    shares = system.BatchSystem.shares
    give = system.BatchSystem.set_share


class TestPoor(Contract):
    """A batch system may be without accounts."""

    fake = Poor
    names = None


class Wordy(fake_batch.FakeBatch):
    description = 'One.\nTwo.'


@pytest.mark.parametrize(
    ('fake', 'broken'),
    [
        (Careless, 'test_a_host_closed_by_others_stays_closed'),
        (Killing, 'test_a_job_goes_on_where_its_host_is_closed'),
        (Blind, 'test_a_job_without_room_is_a_want'),
        (Generous, 'test_shares_are_given_to_one_account_alone'),
        (Forgetful, 'test_the_allocation_of_a_job_is_told'),
        (Wordy, 'test_description_is_one_line'),
    ],
)
def test_the_contract_detects_a_faulty_batch_plugin(fake, broken, monkeypatch):
    monkeypatch.setattr(batch_contract, 'PATIENCE_S', 0.0)
    contract = Contract()
    contract.fake = fake
    with pytest.raises(AssertionError):
        getattr(contract, broken)()


class Jobless(Contract):
    """A fake of hosts alone."""

    def submit(self, host, minutes):
        return None


def test_a_fake_without_jobs_passes_the_remaining_contract():
    tests = [name for name in dir(Jobless) if name.startswith('test_')]
    left_out = set()
    for name in tests:
        try:
            getattr(Jobless(), name)()
        except unittest.SkipTest:
            left_out.add(name)
    assert left_out == {
        'test_a_job_goes_on_where_its_host_is_closed',
        'test_a_job_without_room_is_a_want',
        'test_the_allocation_of_a_job_is_told',
    }
    assert len(tests) > len(left_out)


def test_no_host_is_changed_while_the_batch_system_is_unavailable():
    batch = fake_batch.FakeBatch()
    batch.is_away = True
    with pytest.raises(exception.BatchAway):
        batch.close('b-h0', 'it goes')
    assert all(place.takes for place in batch.places.values())


def test_a_batch_plugin_needs_all_three_methods():
    assert system.BatchSystem.__abstractmethods__ == {
        'read_hosts',
        'drain',
        'undrain',
    }
