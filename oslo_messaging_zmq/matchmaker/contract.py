# SPDX-License-Identifier: Apache-2.0

"""The interface of matchmakers, which find the listeners of a topic."""

import abc
from collections.abc import Callable
from collections.abc import Mapping
import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class AnnouncedListener:
    """One listener, as the matchmaker announces it.

    :param id: random name of this listener, 32 hexadecimal digits.
    :param exchange: name space of topics.
    :param topic: of the listener.
    :param server: name within the topic.
    :param host: name of the machine, for people only.
    :param rpc: endpoint of calls and casts, ``tcp://host:port``.
    :param fanout: endpoint of fanout messages.
    :param key: public CURVE key in Z85, 40 characters; empty without keys.
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
"""Called with exchange, topic and all present listeners of the topic."""


class Matchmaker(abc.ABC):
    """Finds all listeners, and announces those of this process.

    All methods are thread-safe. None raises an error because the store of the
    addresses is not reachable: known addresses stay in use, and announcements
    are sent later.
    """

    @abc.abstractmethod
    def register(self, peer: AnnouncedListener) -> None:
        """Announce a listener of this process until it is unregistered.

        A listener that is registered again with another address or key
        replaces its earlier record.

        :param peer: its ``generation`` is ignored; the matchmaker sets it.
        """

    @abc.abstractmethod
    def unregister(self, peer_id: str) -> None:
        """Withdraw a listener; does nothing if it was never registered."""

    @abc.abstractmethod
    def peers(self, exchange: str, topic: str) -> Peers:
        """Return the known listeners of a topic, sorted by id.

        The first call for a topic waits for one bounded look-up; later calls
        return at once the list that is kept up to date.
        """

    @abc.abstractmethod
    def look_up(self, exchange: str, topic: str, timeout_s: float) -> Peers:
        """Read the listeners of a topic again, sorted by id.

        :param timeout_s: longest wait in seconds; after it, the known
            listeners are returned.
        """

    @abc.abstractmethod
    def watch(self, callback: Watcher) -> None:
        """Register a callback for changes of the listeners of used topics.

        :param callback: called on the matchmaker's thread; it must neither
            block nor call the matchmaker.
        """

    @abc.abstractmethod
    def statistics(self) -> Mapping[str, int]:
        """Return counters by name since the start."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Withdraw all announced listeners, and stop; bounded, may be
        called twice.
        """
