# SPDX-License-Identifier: Apache-2.0

"""Contract of a batch system: look at its hosts and jobs, close and open."""

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
    """One sentence for operators; says so if it was never run for real."""

    @abc.abstractmethod
    def look(self) -> border.SideSnapshot:
        """All hosts, what runs on them, and what waits for room.

        A host without work has none, as far as the batch system knows, at a
        moment after it was closed. Of what waits, only that is told which
        more hosts would help.

        :raises BatchAway: if it gives no answer.
        :raises BatchUnreadable: if its answer is not of the form that is
            read here.
        """

    @abc.abstractmethod
    def drain(self, host: str, reason: str) -> None:
        """Let no new jobs start on a host; those that run go on.

        :param reason: that is to stand there; begins with
            :data:`.partition.MARK`.
        :raises BatchAway: if it gives no answer.
        :raises BatchRefused: if it refuses.
        """

    @abc.abstractmethod
    def undrain(self, host: str) -> None:
        """Let jobs start again on a host that was drained.

        :raises BatchAway: if it gives no answer.
        :raises BatchRefused: if it refuses.
        """

    def accounting(self, since: float, now: float) -> pledge.Accounting:
        """Use of jobs that run now, or ran at any time after a moment.

        A job runs while the batch system lists it as running. One without an
        end in the accounts that does not run is a fault, and is not charged.

        :param since: seconds of the epoch.
        :param now: seconds of the epoch; jobs that began later do not count.
        :raises BatchAway: if it gives no answer.
        :raises BatchUnreadable: see :meth:`look`.
        :raises BatchRefused: if it keeps no accounts, as any may.
        """
        raise self._without_accounts()

    def shares(self) -> Mapping[str, pledge.BatchShare]:
        """All accounts by name.

        :raises BatchAway: see :meth:`accounting`.
        :raises BatchUnreadable: see :meth:`accounting`.
        :raises BatchRefused: see :meth:`accounting`.
        """
        raise self._without_accounts()

    def give(self, account: str, share: int) -> None:
        """Let an account have another share.

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
        :param text: why, for people who look there.
        :raises BatchAway: if it gives no answer.
        :raises BatchUnreadable: if its answer cannot be read.
        :raises BatchRefused: if it has no such host, the host was closed by
            others, or it refuses.
        """
        place = self._place(host)
        if place.takes:
            self.drain(host, f'{border.MARK}: {text}')
        elif not place.ours:
            raise exception.BatchRefused(
                f'host {host} was closed by another hand: {place.reason}'
            )

    def open(self, host: str) -> None:
        """Let jobs start on a host that :meth:`close` closed.

        :param host: its name in the batch system.
        :raises BatchAway: see :meth:`close`.
        :raises BatchUnreadable: see :meth:`close`.
        :raises BatchRefused: see :meth:`close`.
        """
        place = self._place(host)
        if place.ours:
            self.undrain(host)
        elif not place.takes:
            raise exception.BatchRefused(
                f'host {host} was closed by another hand: {place.reason}'
            )

    def _place(self, host: str) -> border.SideStatus:
        place = self.look().places.get(host)
        if place is None:
            raise exception.BatchRefused(f'there is no host {host}')
        return place
