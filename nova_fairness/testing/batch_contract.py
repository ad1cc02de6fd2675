# SPDX-License-Identifier: Apache-2.0

"""Rules of every batch system, as tests that its author can run.

A subclass makes the system, and acts as its users and operators::

    class TestMyBatch(batch_contract.BatchContract):
        def make(self): ...
"""

import abc
from collections.abc import Callable
import time
import unittest

from nova_fairness import exception
from nova_fairness.batch import system
from nova_fairness.model import border
from nova_fairness.model import pledge

PATIENCE_S = 60.0
"""Seconds after which a test fails; only faulty code needs that long."""


class BatchContract(abc.ABC):
    """Tests of one batch system with at least two hosts of equal size.

    A name that starts with ``Test`` makes pytest collect the subclass. Each
    test begins with hosts that are open and empty.
    """

    @abc.abstractmethod
    def make(self) -> system.BatchSystem:
        """Return the batch system, with all hosts open and empty."""

    @abc.abstractmethod
    def submit(self, host: str, minutes: int) -> str | None:
        """Submit a job of one core with a time limit to a host.

        The job runs until the end of the test.

        :returns: name of the job; ``None`` if the system has no jobs, such as
            a fake with hosts alone: then tests of jobs are skipped.
        """

    @abc.abstractmethod
    def end(self, job: str) -> None:
        """End a job as its user would."""

    @abc.abstractmethod
    def close_by_hand(self, host: str, reason: str) -> None:
        """Close a host as an operator would."""

    def _submitted(self, host: str) -> str:
        job = self.submit(host, 5)
        if job is None:
            raise unittest.SkipTest('this batch system has no jobs')
        return job

    def test_description_is_one_line(self) -> None:
        """The description fits into a list for operators."""
        text = self.make().description
        if not text.strip() or '\n' in text:
            raise AssertionError(f'not one line: {text!r}')

    def test_an_empty_system_has_open_hosts_and_nothing_else(self) -> None:
        """The answer contains all hosts, no jobs and no waiting work."""
        seen = self.make().read_hosts()
        _assert(len(seen.places) > 1, seen)
        for place in seen.places.values():
            _assert(
                place == border.SideStatus(True, reason=place.reason), place
            )
        _assert(not seen.wants, seen.wants)

    def test_a_closed_host_is_ours_until_it_is_opened(self) -> None:
        """Both calls may be repeated, and change no other host."""
        batch = self.make()
        host, other = _hosts(batch)[:2]
        for _ in range(2):
            batch.close(host, 'it goes to the cloud')
            place = batch.read_hosts().places[host]
            _assert(not place.takes and place.ours and place.up, place)
            _assert(place.reason.startswith(border.MARK), place)
            _assert(batch.read_hosts().places[other].takes, host)
        for _ in range(2):
            batch.open(host)
            _eventually(lambda: batch.read_hosts().places[host].takes)
            _assert(not batch.read_hosts().places[host].ours, host)

    def test_a_host_closed_by_others_stays_closed(self) -> None:
        """The host is neither closed again nor opened; its reason stays."""
        batch = self.make()
        host = _hosts(batch)[0]
        self.close_by_hand(host, 'bad disk')
        before = batch.read_hosts().places[host]
        _assert(not before.takes and not before.ours, before)
        _refuses(lambda: batch.close(host, 'it goes'), 'bad disk')
        _refuses(lambda: batch.open(host), 'bad disk')
        _assert(batch.read_hosts().places[host] == before, host)

    def test_a_host_that_is_not_there_is_refused(self) -> None:
        """The error has the name of the host."""
        batch = self.make()
        _refuses(lambda: batch.close('nowhere', 'it goes'), 'nowhere')
        _refuses(lambda: batch.open('nowhere'), 'nowhere')

    def test_a_job_goes_on_where_its_host_is_closed(self) -> None:
        """The answer has the job with its cores and end, until it is gone."""
        batch = self.make()
        host = _hosts(batch)[0]
        job = self._submitted(host)
        _eventually(lambda: batch.read_hosts().places[host].work)
        batch.close(host, 'it goes to the cloud')
        place = batch.read_hosts().places[host]
        _assert(not place.takes and place.ours, place)
        _assert([each.name for each in place.work] == [job], place)
        _assert(place.work[0].cores > 0, place)
        _assert(place.work[0].gone_at is not None, place)
        self.end(job)
        _eventually(lambda: not batch.read_hosts().places[host].work)
        _assert(batch.read_hosts().places[host].ours, host)

    def accounts(self) -> tuple[str, str] | None:
        """Return two accounts of one parent; jobs are submitted to the first.

        ``None`` if the batch system has no accounts.
        """
        return None

    def test_shares_are_given_to_one_account_alone(self) -> None:
        """The new share can be read; other shares stay the same."""
        batch, names = self.make(), self.accounts()
        if names is None:
            _refuses(batch.shares, 'no accounts')
            return
        before = batch.shares()
        first, second = (before[name] for name in names)
        _assert(first.parent == second.parent, before)
        batch.set_share(names[0], first.share + 7)
        after = batch.shares()
        _assert(after[names[0]].share == first.share + 7, after)
        batch.set_share(names[0], first.share)
        _assert(batch.shares() == before, before)
        _refuses(lambda: batch.set_share('nobody', 1), 'nobody')

    def test_the_allocation_of_a_job_is_told(self) -> None:
        """The accounting has the job while it runs and after its end."""
        batch, names = self.make(), self.accounts()
        if names is None:
            return
        begun = time.time()
        job = self._submitted(_hosts(batch)[0])

        def found() -> list[pledge.Spent]:
            told = batch.accounting(begun - 1, time.time() + 1).jobs
            return [
                each
                for each in told
                if each.account == names[0] and each.begin >= begun - 1
            ]

        _eventually(found)
        _assert(found()[0].end is None and found()[0].cores > 0, found())
        self.end(job)
        _eventually(lambda: all(each.end for each in found()))

    def test_a_job_without_room_is_a_want(self) -> None:
        """A job that waits for closed hosts is waiting work."""
        batch = self.make()
        for host in _hosts(batch):
            batch.close(host, 'it goes to the cloud')
        job = self._submitted(_hosts(batch)[0])
        _eventually(lambda: batch.read_hosts().wants)
        want = batch.read_hosts().wants[0]
        _assert(want.name == job and want.cores > 0, want)
        self.end(job)
        _eventually(lambda: not batch.read_hosts().wants)


def _hosts(batch: system.BatchSystem) -> list[str]:
    return sorted(batch.read_hosts().places)


def _assert(is_so: object, what: object) -> None:
    if not is_so:
        raise AssertionError(f'not as the contract says: {what}')


def _refuses(call: Callable[[], object], word: str) -> None:
    try:
        call()
    except exception.BatchRefused as error:
        _assert(word in str(error), error)
        return
    raise AssertionError('it was not refused')


def _eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError('that never happened')
        time.sleep(0.05)
