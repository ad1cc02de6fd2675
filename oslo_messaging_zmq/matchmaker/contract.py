# SPDX-License-Identifier: Apache-2.0

"""Contract of matchmakers: say who listens where."""

import abc
from collections.abc import Callable
from collections.abc import Mapping
import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class AnnouncedListener:
    """One listener, as the matchmaker announces it.

    :param id: random name of this listener, 32 hexadecimal digits.
    :param exchange: name space of topics.
    :param topic: what it listens to.
    :param server: name within the topic.
    :param host: name of the machine, for people only.
    :param rpc: endpoint of calls and casts, ``tcp://host:port``.
    :param fanout: endpoint of messages to everybody.
    :param key: public CURVE key in Z85, 40 characters; '' when insecure.
    :param generation: grows with every registration in one matchmaker; 0
        before the first.
    """

    id: str
    exchange: str
    topic: str
    server: str
    host: str
    rpc: str
    fanout: str
    key: str = ''
    generation: int = 0


Peers = tuple[AnnouncedListener, ...]

Watcher = Callable[[str, str, Peers], None]
"""Called with exchange, topic and everybody who listens to it now."""


class Matchmaker(abc.ABC):
    """Knows every listener, and tells others of this process's own.

    Every method may be called by any thread. None of them raises because the
    place where the addresses are kept cannot be reached: what is known goes
    on being used, and what is to be told is told when it is back.
    """

    @abc.abstractmethod
    def register(self, peer: AnnouncedListener) -> None:
        """Announce a listener of this process until it is unregistered.

        A listener that is registered again with another address or key
        replaces its own earlier record.

        :param peer: its ``generation`` is ignored: the matchmaker gives one.
        """

    @abc.abstractmethod
    def unregister(self, peer_id: str) -> None:
        """Take a listener back; fine when it was never registered."""

    @abc.abstractmethod
    def peers(self, exchange: str, topic: str) -> Peers:
        """Known listeners; sorted by id.

        The first question about a topic waits for one bounded look-up, later
        ones are answered at once from what is kept up to date meanwhile.
        """

    @abc.abstractmethod
    def look_up(self, exchange: str, topic: str, timeout_s: float) -> Peers:
        """Listeners, asked afresh; sorted by id.

        :param timeout_s: longest wait in seconds; when there is no answer in
            this time, what was known before is returned.
        """

    @abc.abstractmethod
    def watch(self, callback: Watcher) -> None:
        """Be told whenever the listeners of a topic in use change.

        :param callback: called by the matchmaker's own thread; it
            must neither block nor call back into the matchmaker.
        """

    @abc.abstractmethod
    def statistics(self) -> Mapping[str, int]:
        """Counters by name since the start, as plain numbers."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Take back what was announced and end; bounded, repeatable."""
