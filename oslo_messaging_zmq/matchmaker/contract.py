# SPDX-License-Identifier: Apache-2.0

"""What a matchmaker must do: say who listens where."""

import abc
from collections.abc import Callable
from collections.abc import Mapping

from oslo_messaging_zmq.matchmaker import addressing

Watcher = Callable[[str, str, tuple[addressing.Peer, ...]], None]
"""Called with exchange, topic and everybody who listens to it now."""


class Matchmaker(abc.ABC):
    """Knows every listener, and tells others of this process's own.

    Every method may be called by any thread. None of them raises because the
    place where the addresses are kept cannot be reached: what is known goes
    on being used, and what is to be told is told when it is back.
    """

    @abc.abstractmethod
    def register(self, peer: addressing.Peer) -> None:
        """Announce a listener of this process until it is unregistered.

        A listener that is registered again with another address or key
        replaces its own earlier record.

        :param peer: its ``generation`` is ignored: the matchmaker gives one.
        """

    @abc.abstractmethod
    def unregister(self, peer_id: str) -> None:
        """Take a listener back; fine when it was never registered."""

    @abc.abstractmethod
    def peers(self, exchange: str, topic: str) -> tuple[addressing.Peer, ...]:
        """Who listens, as far as is known; sorted by id.

        The first question about a topic waits for one bounded look-up, later
        ones are answered at once from what is kept up to date meanwhile.
        """

    @abc.abstractmethod
    def look_up(
        self, exchange: str, topic: str, timeout_s: float
    ) -> tuple[addressing.Peer, ...]:
        """Who listens, asked afresh; sorted by id.

        :param timeout_s: longest wait in seconds; when there is no answer in
            this time, what was known before is returned.
        """

    @abc.abstractmethod
    def watch(self, callback: Watcher) -> None:
        """Be told whenever the listeners of a topic in use change.

        :param callback: called by the matchmaker's own native thread; it
            must neither block nor call back into the matchmaker.
        """

    @abc.abstractmethod
    def statistics(self) -> Mapping[str, int]:
        """Counters by name since the start, as plain numbers."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Take back what was announced and end; bounded, repeatable."""
