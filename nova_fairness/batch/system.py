# SPDX-License-Identifier: Apache-2.0

"""Contract of a batch system: read hosts and jobs, close and open hosts."""

import abc
from collections.abc import Mapping
from typing import ClassVar

from nova_fairness import exception
from nova_fairness.model import border
from nova_fairness.model import pledge


class BatchSystem(abc.ABC):
    """A batch system; subclasses are loaded by stevedore.

    Arguments of the constructor are numbers that operators may set, each with
    a default.
    """

    description: ClassVar[str]
    """One sentence for operators; it says so if the plugin never ran on a real
    system.
    """

    @abc.abstractmethod
    def read_hosts(self) -> border.SideSnapshot:
        """Read all hosts, their work, and the jobs that wait for room.

        A host without work must have none, as far as the batch system knows,
        at a time after the host was closed. Only waiting jobs that more hosts
        would help are listed.

        :raises BatchAway: if the system gives no answer.
        :raises BatchUnreadable: if its answer has another form than expected.
        """

    @abc.abstractmethod
    def drain(self, host: str, reason: str) -> None:
        """Prevent new jobs on a host; running jobs go on.

        :param reason: text that the batch system shows; begins with
        :data:`.partition.MARK`.
        :raises BatchAway: if the system gives no answer.
        :raises BatchRefused: if the system refuses.
        """

    @abc.abstractmethod
    def undrain(self, host: str) -> None:
        """Let jobs start again on a host that was drained.

        :raises BatchAway: if the system gives no answer.
        :raises BatchRefused: if the system refuses.
        """

    def accounting(self, since: float, now: float) -> pledge.Accounting:
        """Return the use of jobs that ran at any time since a given time.

        A job runs while the batch system lists it as running. A job that does
        not run and has no end in the accounts is a fault, and is not charged.

        :param since: seconds of the epoch.
        :param now: seconds of the epoch; jobs that began later do not count.
        :raises BatchAway: if the system gives no answer.
        :raises BatchUnreadable: see :meth:`read_hosts`.
        :raises BatchRefused: if the system keeps no accounts, which is
            allowed.
        """
        raise self._without_accounts()

    def shares(self) -> Mapping[str, pledge.BatchShare]:
        """Return all accounts with their shares, by name.

        :raises BatchAway: see :meth:`accounting`.
        :raises BatchUnreadable: see :meth:`accounting`.
        :raises BatchRefused: see :meth:`accounting`.
        """
        raise self._without_accounts()

    def set_share(self, account: str, share: int) -> None:
        """Set the share of an account.

        :param account: name.
        :param share: >= 1.
        :raises BatchAway: see :meth:`accounting`.
        :raises BatchRefused: see :meth:`accounting`.
        """
        raise self._without_accounts()

    def _without_accounts(self) -> exception.BatchRefused:
        return exception.BatchRefused(
            'this batch system has no accounts that are known here'
        )

    def close(self, host: str, text: str) -> None:
        """Drain a host, if it is not drained already.

        :param host: its name in the batch system.
        :param text: reason that people see in the batch system.
        :raises BatchAway: if the system gives no answer.
        :raises BatchUnreadable: if its answer cannot be read.
        :raises BatchRefused: if the system has no such host, another service
            or person closed the host, or the system refuses.
        """
        place = self._find_status(host)
        if place.takes:
            self.drain(host, f'{border.MARK}: {text}')
        elif not place.ours:
            raise exception.BatchRefused(
                f'host {host} was not closed by this service: {place.reason}'
            )

    def open(self, host: str) -> None:
        """Let jobs start on a host that :meth:`close` closed.

        :param host: its name in the batch system.
        :raises BatchAway: see :meth:`close`.
        :raises BatchUnreadable: see :meth:`close`.
        :raises BatchRefused: see :meth:`close`.
        """
        place = self._find_status(host)
        if place.ours:
            self.undrain(host)
        elif not place.takes:
            raise exception.BatchRefused(
                f'host {host} was not closed by this service: {place.reason}'
            )

    def _find_status(self, host: str) -> border.SideStatus:
        place = self.read_hosts().places.get(host)
        if place is None:
            raise exception.BatchRefused(f'there is no host {host}')
        return place
